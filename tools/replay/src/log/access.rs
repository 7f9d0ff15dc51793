//! The common and the combined log format of Apache and nginx.
//!
//! ```text
//! [NAME:PORT ]ADDRESS IDENT USER [TIME] "REQUEST" STATUS BYTES[ "REFERER" "USER-AGENT"[ …]]
//! ```
//!
//! The time is located first: `[`, a date, and `] "`. Both servers escape quotes in everything that a
//! client sends, so a client cannot forge a time.

use memchr::{memchr, memchr_iter, memchr2};

use super::error::LineError;
use super::escape::unescape;
use super::line::{ExtraFields, Line};
use super::time::{DATE_BYTES, Dates};

/// The maximum length of a time in brackets; RFC 3339 with nanoseconds has 35 bytes.
const MAX_DATE_LEN: usize = 48;

/// The parts of a line, with escapes.
#[derive(Debug, Default)]
struct Parts<'a> {
    before: &'a [u8],
    date: &'a [u8],
    request: Text<'a>,
    status: Option<u16>,
    /// What follows the size.
    behind: &'a [u8],
}

/// A quoted text.
#[derive(Clone, Copy, Debug, Default)]
struct Text<'a> {
    raw: &'a [u8],
    is_escaped: bool,
}

/// Parses the lines of one log.
#[derive(Clone, Debug, Default)]
pub(super) struct Access {
    dates: Dates,
    /// The texts of the last line that had escapes, unescaped.
    unescaped: Vec<u8>,
}

impl Access {
    /// `has_headers` is true for the combined format, where two headers follow the size. A line without
    /// them is still valid.
    pub(super) fn parse<'a>(
        &'a mut self,
        line: &'a [u8],
        has_headers: bool,
    ) -> Result<Line<'a>, LineError> {
        let parts = split(line)?;
        let time = self.dates.parse(parts.date)?;
        let (referer, rest) = if has_headers { header(parts.behind)? } else { Default::default() };
        let (user_agent, _) = if has_headers { header(rest)? } else { Default::default() };
        let prefix = LinePrefix::parse(parts.before);
        let (method, target) = request(parts.request.raw);
        let target = Text { raw: target, ..parts.request };
        let user = Text { raw: prefix.user, is_escaped: memchr(b'\\', prefix.user).is_some() };

        let texts = [target, referer, user_agent, user];
        let [target, referer, user_agent, user] = self.unescape(texts);
        let mut line = Line::new(time);
        line.address = present(prefix.address);
        line.host = present(prefix.host);
        line.user = present(user);
        line.method = present(method);
        line.target = present(target);
        line.status = parts.status;
        line.extra =
            ExtraFields::Headers { referer: present(referer), user_agent: present(user_agent) };
        Ok(line)
    }

    fn unescape<'a, const N: usize>(&'a mut self, texts: [Text<'a>; N]) -> [&'a [u8]; N] {
        if !texts.iter().any(|text| text.is_escaped) {
            return texts.map(|text| text.raw);
        }
        self.unescaped.clear();
        let ranges = texts.map(|text| {
            let start = self.unescaped.len();
            if text.is_escaped {
                unescape(text.raw, &mut self.unescaped);
            }
            (text, start..self.unescaped.len())
        });
        let unescaped = &self.unescaped;
        ranges.map(|(text, range)| if text.is_escaped { &unescaped[range] } else { text.raw })
    }
}

pub(super) fn is_common(line: &[u8]) -> bool {
    split(line).is_ok_and(|parts| Dates::default().parse(parts.date).is_ok())
}

pub(super) fn is_combined(line: &[u8]) -> bool {
    is_common(line) && split(line).is_ok_and(|parts| parts.behind.starts_with(b" \""))
}

fn split(line: &[u8]) -> Result<Parts<'_>, LineError> {
    let (before, date, rest) = find_date(line).ok_or(LineError::NoTime)?;
    let rest = rest.strip_prefix(b" \"").ok_or(LineError::NoRequest)?;
    let (request, rest) = quoted(rest).ok_or(LineError::Unclosed)?;
    let (status, behind) = status(rest).ok_or(LineError::NoStatus)?;
    Ok(Parts { before, date, request, status, behind })
}

/// The text before the date, the date, and the text after its bracket.
///
/// If no quote follows any date, the first date is returned, so that the error names the request.
fn find_date(line: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let mut without_request = None;
    for open in memchr_iter(b'[', line) {
        let Some(before) = line.get(..open).and_then(|line| line.strip_suffix(b" ")) else {
            continue;
        };
        let inside = line.get(open + 1..)?;
        let length = match inside.get(DATE_BYTES) {
            Some(b']') => DATE_BYTES,
            _ => match memchr(b']', inside.get(..MAX_DATE_LEN).unwrap_or(inside)) {
                Some(length) => length,
                None => continue,
            },
        };
        let (date, rest) = inside.split_at_checked(length)?;
        let rest = rest.get(1..)?;
        if rest.starts_with(b" \"") {
            return Some((before, date, rest));
        }
        if without_request.is_none() && Dates::default().parse(date).is_ok() {
            without_request = Some((before, date, rest));
        }
    }
    without_request
}

/// The text before the closing quote, and the text after it.
fn quoted(text: &[u8]) -> Option<(Text<'_>, &[u8])> {
    let (mut at, mut is_escaped) = (0, false);
    loop {
        let rest = text.get(at..)?;
        at += memchr2(b'"', b'\\', rest)?;
        if text.get(at) == Some(&b'"') {
            let text = (Text { raw: text.get(..at)?, is_escaped }, text.get(at + 1..)?);
            return Some(text);
        }
        is_escaped = true;
        at += 2;
    }
}

/// Parses ` 200 2326` or ` - -`; returns the status and the rest.
fn status(text: &[u8]) -> Option<(Option<u16>, &[u8])> {
    let text = text.strip_prefix(b" ")?;
    let (status, rest) = match text {
        [hundreds @ b'0'..=b'9', tens @ b'0'..=b'9', ones @ b'0'..=b'9', rest @ ..] => {
            let digit = |byte: &u8| u16::from(*byte - b'0');
            (Some(digit(hundreds) * 100 + digit(tens) * 10 + digit(ones)), rest)
        }
        [b'-', rest @ ..] => (None, rest),
        _ => return None,
    };
    let size = rest.strip_prefix(b" ")?;
    let is_size = |byte: &&u8| byte.is_ascii_digit() || **byte == b'-';
    let digits = size.iter().take_while(is_size).count();
    let behind = size.get(digits..)?;
    (digits > 0 && matches!(behind.first(), None | Some(b' '))).then_some((status, behind))
}

/// Parses ` "…"`; empty if the line ends or continues differently.
fn header(text: &[u8]) -> Result<(Text<'_>, &[u8]), LineError> {
    match text.strip_prefix(b" \"") {
        Some(text) => quoted(text).ok_or(LineError::Unclosed),
        None => Ok((Text::default(), text)),
    }
}

/// The method and the target of a request line; both empty if it is not HTTP, such as a TLS handshake on an
/// HTTP port, or `-`.
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

/// The part of a line before the time.
#[derive(Debug)]
struct LinePrefix<'a> {
    host: &'a [u8],
    address: &'a [u8],
    user: &'a [u8],
}

impl<'a> LinePrefix<'a> {
    fn parse(before: &'a [u8]) -> Self {
        let (first, rest) = word(before);
        let (_ident, user) = word(rest);
        // Usually there are three words. More are a virtual host at the start, a list of addresses
        // (`X-Forwarded-For` instead of the address), or a user with spaces.
        if !user.contains(&b' ') {
            return LinePrefix { host: &[], address: without_comma(first), user };
        }
        if let Some(host) = host_of(first) {
            let (address, rest) = word(rest);
            return LinePrefix { host, address: without_comma(address), user: word(rest).1 };
        }
        let user = if first.ends_with(b",") { word(after_list(rest)).1 } else { user };
        LinePrefix { host: &[], address: without_comma(first), user }
    }
}

/// What follows a comma-separated list.
fn after_list(text: &[u8]) -> &[u8] {
    let (mut first, mut rest) = word(text);
    while first.ends_with(b",") {
        (first, rest) = word(rest);
    }
    rest
}

fn without_comma(text: &[u8]) -> &[u8] {
    text.strip_suffix(b",").unwrap_or(text)
}

/// The first word, and what follows its space.
fn word(text: &[u8]) -> (&[u8], &[u8]) {
    match text.iter().position(|byte| *byte == b' ') {
        Some(at) => (&text[..at], &text[at + 1..]),
        None => (text, &[]),
    }
}

/// The host of `HOST:PORT`; `None` for an IPv6 address, which has more colons.
fn host_of(word: &[u8]) -> Option<&[u8]> {
    let colon = memchr::memrchr(b':', word)?;
    let (host, port) = (word.get(..colon)?, word.get(colon + 1..)?);
    let is_port = (1..=5).contains(&port.len()) && port.iter().all(u8::is_ascii_digit);
    let is_host = !host.contains(&b':') || (host.starts_with(b"[") && host.ends_with(b"]"));
    (is_port && is_host).then_some(host)
}

/// A value, unless it is empty or `-`.
fn present(text: &[u8]) -> Option<&[u8]> {
    (!matches!(text, b"" | b"-" | b"\"\"")).then_some(text)
}
