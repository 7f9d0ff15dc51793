//! A parsed line.

use std::ops::Range;

use tollgate::Timestamp;

use super::escape::same_name;

/// The time of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// The time.
    pub at: Timestamp,
    /// Whether the log has a resolution of one second, so that the request happened during the second that
    /// starts at `at`.
    pub whole_second: bool,
}

/// A parsed line. Missing values and `-` are `None`. Texts are unescaped and may contain any bytes.
#[derive(Clone, Debug)]
pub struct Line<'a> {
    /// The time.
    pub time: Stamp,
    /// The client's address, or its name.
    pub address: Option<&'a [u8]>,
    /// The authenticated user.
    pub user: Option<&'a [u8]>,
    /// The method of the request.
    pub method: Option<&'a [u8]>,
    /// The path and the query of the request, as sent.
    pub target: Option<&'a [u8]>,
    /// The host of the request.
    pub host: Option<&'a [u8]>,
    /// The status of the response.
    pub status: Option<u16>,
    /// The key.
    pub key: Option<&'a [u8]>,
    /// The cost.
    pub cost: Option<u64>,
    /// The note of a check.
    pub note: Option<&'a [u8]>,
    pub(super) extra: ExtraFields<'a>,
}

/// ExtraFields values, looked up by name.
#[derive(Clone, Debug)]
pub(super) enum ExtraFields<'a> {
    /// The two headers of the combined format.
    Headers { referer: Option<&'a [u8]>, user_agent: Option<&'a [u8]> },
    /// Values by name: the columns of CSV, or the requested fields of JSON.
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
            extra: ExtraFields::Headers { referer: None, user_agent: None },
        }
    }

    /// A header of the request, by its name without regard to case.
    ///
    /// The combined format has `Referer` and `User-Agent`. JSON has the headers requested with
    /// [`Fields::want`], CSV the columns named `header.NAME`.
    ///
    /// [`Fields::want`]: super::Fields::want
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&'a [u8]> {
        match self.extra {
            ExtraFields::Headers { referer, user_agent } => {
                if name.eq_ignore_ascii_case("referer") {
                    referer
                } else if name.eq_ignore_ascii_case("user-agent") {
                    user_agent
                } else {
                    None
                }
            }
            ExtraFields::Named { names, values, text } => {
                let is_header = |text: &str| {
                    text.strip_prefix("header.")
                        .is_some_and(|header| same_name(header.as_bytes(), name.as_bytes()))
                };
                let at = names.iter().position(|name| is_header(name))?;
                text.get(values.get(at)?.clone()?)
            }
        }
    }

    /// The text of a field by name: in JSON any name of the [`Fields`], in CSV any column.
    ///
    /// [`Fields`]: super::Fields
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&'a [u8]> {
        let ExtraFields::Named { names, values, text } = self.extra else {
            return None;
        };
        let at = names.iter().position(|n| same_name(n.as_bytes(), name.as_bytes()))?;
        text.get(values.get(at)?.clone()?)
    }
}
