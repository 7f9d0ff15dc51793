//! The common and the combined log format of Apache and nginx.
//!
//! ```text
//! [NAME:PORT ]ADDRESS IDENT USER [TIME] "REQUEST" STATUS BYTES[ "REFERER" "USER-AGENT"[ …]]
//! ```
//!
//! The time is located first: `[`, a date, and `] "`. Both servers escape quotes in everything that
//! a client sends, so a client cannot forge a time.

use memchr::{memchr, memchr_iter, memchr2};

use super::error::LineError;
use super::line::{ExtraFields, Line, request, word};
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

#[derive(Clone, Copy, Debug, Default)]
struct Text<'a> {
    raw: &'a [u8],
    is_escaped: bool,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Access {
    dates: Dates,
    /// The texts of the last line that had escapes, unescaped.
    unescaped: Vec<u8>,
}

impl Access {
    /// `has_headers` is true for the combined format, where two headers follow the size. A line
    /// without them is still valid.
    pub(super) fn parse<'a>(
        &'a mut self,
        line: &'a [u8],
        has_headers: bool,
    ) -> Result<Line<'a>, LineError> {
        let parts = split(line)?;
        let time = self.dates.parse(parts.date)?;
        let (referer, rest) = if has_headers { header(parts.behind)? } else { Default::default() };
        let (user_agent, _) = if has_headers { header(rest)? } else { Default::default() };
        let (host, address, user) = prefix(parts.before);
        let (method, target) = request(parts.request.raw);
        let target = Text { raw: target, ..parts.request };
        let user = Text { raw: user, is_escaped: memchr(b'\\', user).is_some() };

        let texts = [target, referer, user_agent, user];
        let [target, referer, user_agent, user] = self.unescape(texts);
        let (referer, user_agent) = (present(referer), present(user_agent));
        Ok(Line {
            time,
            address: present(address),
            user: present(user),
            method: present(method),
            target: present(target),
            host: present(host),
            status: parts.status,
            key: None,
            cost: None,
            note: None,
            extra: ExtraFields::Headers { referer, user_agent },
        })
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

/// The host, the address and the user before the time.
fn prefix(before: &[u8]) -> (&[u8], &[u8], &[u8]) {
    let (first, rest) = word(before);
    let (_ident, user) = word(rest);
    // Usually there are three words. More are a virtual host at the start, a list of addresses
    // (`X-Forwarded-For` instead of the address), or a user with spaces.
    if !user.contains(&b' ') {
        return (&[], without_comma(first), user);
    }
    if let Some(host) = host_of(first) {
        let (address, rest) = word(rest);
        return (host, without_comma(address), word(rest).1);
    }
    let user = if first.ends_with(b",") { word(after_list(rest)).1 } else { user };
    (&[], without_comma(first), user)
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

/// Appends `raw` to `text` and resolves the escapes `\"`, `\\`, `\n` and similar, and `\xHH`. Other
/// backslashes remain.
fn unescape(raw: &[u8], text: &mut Vec<u8>) {
    let mut rest = raw;
    while let Some(at) = memchr(b'\\', rest) {
        let (before, escape) = rest.split_at(at);
        text.extend_from_slice(before);
        let (byte, length) = escaped(escape);
        text.push(byte);
        rest = escape.get(length..).unwrap_or_default();
    }
    text.extend_from_slice(rest);
}

/// The byte of the escape at the start of `text`, and the length of the escape.
fn escaped(text: &[u8]) -> (u8, usize) {
    match text {
        [_, b'x', high, low, ..] => match (hex(*high), hex(*low)) {
            (Some(high), Some(low)) => (high << 4 | low, 4),
            _ => (b'\\', 1),
        },
        [_, b'"', ..] => (b'"', 2),
        [_, b'\\', ..] => (b'\\', 2),
        [_, b'n', ..] => (b'\n', 2),
        [_, b'r', ..] => (b'\r', 2),
        [_, b't', ..] => (b'\t', 2),
        [_, b'b', ..] => (0x08, 2),
        [_, b'f', ..] => (0x0C, 2),
        [_, b'v', ..] => (0x0B, 2),
        _ => (b'\\', 1),
    }
}

fn hex(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        b'A'..=b'F' => Some(digit - b'A' + 10),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_of_both_servers_are_resolved() {
        let check = |raw: &str, expected: &[u8]| {
            let mut text = Vec::new();
            unescape(raw.as_bytes(), &mut text);
            assert_eq!(text, expected, "{raw}");
        };
        check("plain", b"plain");
        check(r#"a\"b\\c"#, br#"a"b\c"#);
        check(r"\x16\x03\xfF!", b"\x16\x03\xFF!");
        check(r"\t\n\r\b\f\v", b"\t\n\r\x08\x0C\x0B");
        check(r"\xg0\x1", br"\xg0\x1");
        check(r"end\", br"end\");
    }
}
