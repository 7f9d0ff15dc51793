//! What a line says.

use std::ops::Range;

use tollgate::Timestamp;

use super::escape::same_name;

/// When something happened, as a log tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// The time.
    pub at: Timestamp,
    /// Whether the log tells whole seconds only, so that it was somewhere in the second that begins
    /// there.
    pub whole_second: bool,
}

/// What a line says. What it does not say, or says as `-`, is none; texts are without the escapes of
/// their format, and any bytes.
#[derive(Clone, Debug)]
pub struct Line<'a> {
    /// When it happened.
    pub time: Stamp,
    /// The client's address, or its name.
    pub address: Option<&'a [u8]>,
    /// Who was logged in.
    pub user: Option<&'a [u8]>,
    /// The method of the request.
    pub method: Option<&'a [u8]>,
    /// The path and the query of the request, as they were sent.
    pub target: Option<&'a [u8]>,
    /// The host that was asked.
    pub host: Option<&'a [u8]>,
    /// The status of the answer.
    pub status: Option<u16>,
    /// Who is limited.
    pub key: Option<&'a [u8]>,
    /// What it costs.
    pub cost: Option<u64>,
    /// What a check says of itself.
    pub note: Option<&'a [u8]>,
    pub(super) further: Further<'a>,
}

/// What else a line says, found by its name.
#[derive(Clone, Debug)]
pub(super) enum Further<'a> {
    /// A combined log's two headers.
    Headers { referer: Option<&'a [u8]>, user_agent: Option<&'a [u8]> },
    /// Values by name: of the columns of a CSV, or of the fields of JSON that are wanted.
    Named { names: &'a [String], values: &'a [Option<Range<usize>>], text: &'a [u8] },
}

impl<'a> Line<'a> {
    pub(super) fn new(time: Stamp) -> Self {
        Line {
            time,
            address: None,
            user: None,
            method: None,
            target: None,
            host: None,
            status: None,
            key: None,
            cost: None,
            note: None,
            further: Further::Headers { referer: None, user_agent: None },
        }
    }

    /// A header of the request; its name in any case.
    ///
    /// A combined log has `Referer` and `User-Agent`. JSON has those that [`Fields::want`] asked for, and
    /// CSV the columns that are called `header.NAME`.
    ///
    /// [`Fields::want`]: super::Fields::want
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&'a [u8]> {
        match self.further {
            Further::Headers { referer, user_agent } => {
                if name.eq_ignore_ascii_case("referer") {
                    referer
                } else if name.eq_ignore_ascii_case("user-agent") {
                    user_agent
                } else {
                    None
                }
            }
            Further::Named { names, values, text } => {
                let is_it = |text: &str| {
                    text.strip_prefix("header.")
                        .is_some_and(|header| same_name(header.as_bytes(), name.as_bytes()))
                };
                let at = names.iter().position(|name| is_it(name))?;
                text.get(values.get(at)?.clone()?)
            }
        }
    }

    /// The text of a field by its name: of JSON any name that the [`Fields`] have, of CSV any column.
    ///
    /// [`Fields`]: super::Fields
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&'a [u8]> {
        let Further::Named { names, values, text } = self.further else {
            return None;
        };
        let at = names.iter().position(|n| same_name(n.as_bytes(), name.as_bytes()))?;
        text.get(values.get(at)?.clone()?)
    }
}
