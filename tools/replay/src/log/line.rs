//! A parsed line, and its values in JSON and CSV.

use std::ops::Range;

use super::error::LineError;
use super::fields::{DEFAULTS, TimeUnit, same_name};
use super::time::{self, Stamp};

/// A byte order mark, which some editors put before a text.
pub(super) const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

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

/// Values that are looked up by name.
#[derive(Clone, Debug)]
pub(super) enum ExtraFields<'a> {
    /// The two headers of the combined format.
    Headers { referer: Option<&'a [u8]>, user_agent: Option<&'a [u8]> },
    /// Values by name: the columns of CSV, or the requested fields of JSON.
    Named { names: &'a [String], values: &'a [Option<Range<usize>>], text: &'a [u8] },
}

impl<'a> Line<'a> {
    /// A header of the request, by its name without regard to case.
    ///
    /// The combined format has `Referer` and `User-Agent`. JSON has the headers requested with
    /// [`Fields::want`], CSV the columns named `header.NAME`.
    ///
    /// [`Fields::want`]: super::Fields::want
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
            ExtraFields::Named { .. } => self.named(|ours| {
                let ours = ours.strip_prefix("header.");
                ours.is_some_and(|ours| same_name(ours.as_bytes(), name.as_bytes()))
            }),
        }
    }

    /// The text of a field by name: in JSON any name of the [`Fields`], in CSV any column.
    ///
    /// [`Fields`]: super::Fields
    pub fn field(&self, name: &str) -> Option<&'a [u8]> {
        self.named(|ours| same_name(ours.as_bytes(), name.as_bytes()))
    }

    fn named(&self, matches: impl Fn(&str) -> bool) -> Option<&'a [u8]> {
        let ExtraFields::Named { names, values, text } = self.extra else {
            return None;
        };
        let at = names.iter().position(|name| matches(name))?;
        text.get(values.get(at)?.clone()?)
    }
}

/// The positions of the known values among all values of a line.
#[derive(Clone, Debug)]
pub(super) struct Slots {
    /// Those of [`DEFAULTS`].
    known: [Option<usize>; DEFAULTS.len()],
    request: Option<usize>,
}

impl Slots {
    /// `request` is the position of the request line, if there is one.
    pub(super) fn new(names: &[String], request: Option<usize>) -> Self {
        let slot = |name: &str| names.iter().position(|n| n.eq_ignore_ascii_case(name));
        Slots { known: DEFAULTS.map(|(name, _)| slot(name)), request }
    }

    /// The name of a required column that is missing.
    pub(super) fn missing(&self) -> Option<&'static str> {
        let [time, ip, _, _, _, user, _, key, ..] = self.known;
        match (time, key.or(ip).or(user)) {
            (None, _) => Some("time"),
            (_, None) => Some("key"),
            _ => None,
        }
    }

    /// Builds a line from values, which are ranges of `text`.
    pub(super) fn line<'a>(
        &self,
        names: &'a [String],
        values: &'a [Option<Range<usize>>],
        text: &'a [u8],
        unit: TimeUnit,
    ) -> Result<Line<'a>, LineError> {
        let value = |slot: Option<usize>| text.get(values.get(slot?)?.clone()?);
        let present = |text: Option<&'a [u8]>| text.filter(|text| !matches!(*text, b"" | b"-"));
        let filled = |text: Option<&'a [u8]>| text.filter(|text| !text.is_empty());
        let [time, ip, method, path, host, user, status, key, cost, note] = self.known.map(value);
        let at = time::parse(time.ok_or(LineError::NoTime)?, unit)?;
        let (mut method, mut target) = (present(method), present(path));
        if let (None, None, Some(text)) = (method, target, present(value(self.request))) {
            let words = request(text);
            (method, target) = (filled(Some(words.0)), filled(Some(words.1)));
        }
        let cost = filled(cost).map(|cost| number(cost).ok_or(LineError::Number { field: "cost" }));
        Ok(Line {
            time: Stamp { at, whole_second: false },
            address: present(ip).map(without_port),
            user: present(user),
            method,
            target,
            host: present(host),
            status: present(status).and_then(|text| u16::try_from(number(text)?).ok()),
            key: filled(key),
            cost: cost.transpose()?,
            note: filled(note),
            extra: ExtraFields::Named { names, values, text },
        })
    }
}

/// The method and the target of a request line; both empty if it is not HTTP, such as a TLS
/// handshake on an HTTP port, or `-`.
pub(super) fn request(request: &[u8]) -> (&[u8], &[u8]) {
    let (method, rest) = word(request);
    if !method.iter().all(|byte| byte.is_ascii_alphabetic() || *byte == b'-' || *byte == b'_') {
        return (&[], &[]);
    }
    // A broken client may send a target with spaces; the protocol has none.
    let target = match memchr::memrchr(b' ', rest).and_then(|at| rest.split_at_checked(at)) {
        Some((target, protocol)) if protocol.starts_with(b" HTTP/") => target,
        _ => rest,
    };
    if target.is_empty() { (&[], &[]) } else { (method, target) }
}

/// The first word, and what follows its space.
pub(super) fn word(text: &[u8]) -> (&[u8], &[u8]) {
    match text.iter().position(|byte| *byte == b' ') {
        Some(at) => (&text[..at], &text[at + 1..]),
        None => (text, &[]),
    }
}

/// Removes the port: `192.0.2.1` of `192.0.2.1:443`, `2001:db8::1` of `[2001:db8::1]:443`.
fn without_port(address: &[u8]) -> &[u8] {
    if let Some(inside) = address.strip_prefix(b"[") {
        return memchr::memchr(b']', inside).and_then(|end| inside.get(..end)).unwrap_or(address);
    }
    match memchr::memchr(b':', address).and_then(|at| address.split_at_checked(at)) {
        Some((host, port)) if !port.get(1..).unwrap_or_default().contains(&b':') => host,
        _ => address,
    }
}

fn number(text: &[u8]) -> Option<u64> {
    let text = text.trim_ascii();
    time::number(text).filter(|_| !text.is_empty())
}
