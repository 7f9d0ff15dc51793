//! The common and the combined format of Apache and nginx.
//!
//! ```text
//! [NAME:PORT ]ADDRESS IDENT USER [TIME] "REQUEST" STATUS BYTES[ "REFERER" "USER-AGENT"[ …]]
//! ```
//!
//! The time is looked for first: `[`, what is as long as a date, and `] "`. Both servers escape a
//! quote in whatever a client sends, so no client can write a time that is believed.

use memchr::{memchr, memchr_iter, memchr2};

use super::broken::BrokenLine;
use super::escape::unescape;
use super::line::{Further, Line};
use super::time::{DATE_BYTES, Dates};

/// No time in brackets is longer; RFC 3339 with nanoseconds has 35.
const MAX_DATE_LEN: usize = 48;

/// A line cut into its parts; escapes are still in it.
#[derive(Debug, Default)]
struct Parts<'a> {
    before: &'a [u8],
    date: &'a [u8],
    request: Text<'a>,
    status: Option<u16>,
    /// What follows the size.
    behind: &'a [u8],
}

/// What stood between quotes.
#[derive(Clone, Copy, Debug, Default)]
struct Text<'a> {
    raw: &'a [u8],
    is_escaped: bool,
}

/// Reads lines of one log.
#[derive(Clone, Debug, Default)]
pub(super) struct Access {
    dates: Dates,
    /// Texts of the last line that had escapes.
    unescaped: Vec<u8>,
}

impl Access {
    /// `has_headers` says whether the log is combined, so that two headers follow the size; a line that
    /// ends there all the same is not broken.
    pub(super) fn read<'a>(
        &'a mut self,
        line: &'a [u8],
        has_headers: bool,
    ) -> Result<Line<'a>, BrokenLine> {
        let parts = split(line)?;
        let time = self.dates.read(parts.date)?;
        let (referer, rest) = if has_headers { header(parts.behind)? } else { Default::default() };
        let (user_agent, _) = if has_headers { header(rest)? } else { Default::default() };
        let who = Who::of(parts.before);
        let (method, target) = request(parts.request.raw);
        let target = Text { raw: target, ..parts.request };
        let user = Text { raw: who.user, is_escaped: memchr(b'\\', who.user).is_some() };

        let texts = [target, referer, user_agent, user];
        let [target, referer, user_agent, user] = self.without_escapes(texts);
        let mut line = Line::new(time);
        line.address = said(who.address);
        line.host = said(who.host);
        line.user = said(user);
        line.method = said(method);
        line.target = said(target);
        line.status = parts.status;
        line.further = Further::Headers { referer: said(referer), user_agent: said(user_agent) };
        Ok(line)
    }

    fn without_escapes<'a, const N: usize>(&'a mut self, texts: [Text<'a>; N]) -> [&'a [u8]; N] {
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
        ranges.map(
            |(x, range)| {
                if x.is_escaped { unescaped.get(range).unwrap_or_default() } else { x.raw }
            },
        )
    }
}

pub(super) fn is_common(line: &[u8]) -> bool {
    split(line).is_ok_and(|x| Dates::default().read(x.date).is_ok())
}

pub(super) fn is_combined(line: &[u8]) -> bool {
    is_common(line) && split(line).is_ok_and(|x| x.behind.starts_with(b" \""))
}

fn split(line: &[u8]) -> Result<Parts<'_>, BrokenLine> {
    let (before, date, rest) = find_date(line).ok_or(BrokenLine::NoTime)?;
    let rest = rest.strip_prefix(b" \"").ok_or(BrokenLine::NoRequest)?;
    let (request, rest) = quoted(rest).ok_or(BrokenLine::Unclosed)?;
    let (status, behind) = status(rest).ok_or(BrokenLine::NoStatus)?;
    Ok(Parts { before, date, request, status, behind })
}

/// What stands before the date, the date, and what stands behind its bracket.
///
/// If no quote follows any, the first is taken, for the sake of what is then said about the line.
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
        if without_request.is_none() && Dates::default().read(date).is_ok() {
            without_request = Some((before, date, rest));
        }
    }
    without_request
}

/// What stands before the quote that closes, and what stands behind it.
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

/// ` 200 2326` or ` - -`, and what follows.
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

/// ` "…"`, and what follows; nothing where the line ends, or has something else.
fn header(text: &[u8]) -> Result<(Text<'_>, &[u8]), BrokenLine> {
    match text.strip_prefix(b" \"") {
        Some(text) => quoted(text).ok_or(BrokenLine::Unclosed),
        None => Ok((Text::default(), text)),
    }
}

/// The method and the target of a request; neither, if it is no request of HTTP: what comes to a port
/// for HTTP is sometimes a greeting of TLS, and `-` is written where nothing came.
pub(super) fn request(request: &[u8]) -> (&[u8], &[u8]) {
    let (method, rest) = word(request);
    if !method
        .iter()
        .all(|method| method.is_ascii_alphabetic() || *method == b'-' || *method == b'_')
    {
        return (&[], &[]);
    }
    // A target may have spaces in it, where a client is no good; the protocol has none.
    let target = match memchr::memrchr(b' ', rest).and_then(|at| rest.split_at_checked(at)) {
        Some((target, protocol)) if protocol.starts_with(b" HTTP/") => target,
        _ => rest,
    };
    if target.is_empty() { (&[], &[]) } else { (method, target) }
}

/// Who asked whom, from what stands before the time.
#[derive(Debug)]
struct Who<'a> {
    host: &'a [u8],
    address: &'a [u8],
    user: &'a [u8],
}

impl<'a> Who<'a> {
    fn of(before: &'a [u8]) -> Self {
        let (first, rest) = word(before);
        let (_ident, user) = word(rest);
        // Three words are the usual line. More are a virtual host before them, addresses with commas
        // (`X-Forwarded-For` in place of the address), or a user with spaces.
        if !user.contains(&b' ') {
            return Who { host: &[], address: without_comma(first), user };
        }
        if let Some(host) = host_of(first) {
            let (address, rest) = word(rest);
            return Who { host, address: without_comma(address), user: word(rest).1 };
        }
        let user = if first.ends_with(b",") { word(after_list(rest)).1 } else { user };
        Who { host: &[], address: without_comma(first), user }
    }
}

/// What follows the last word of a list with commas.
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
    match text.iter().position(|text| *text == b' ') {
        Some(at) => (text.get(..at).unwrap_or_default(), text.get(at + 1..).unwrap_or_default()),
        None => (text, &[]),
    }
}

/// The host of `HOST:PORT`; an address of IPv6 has more colons, and is none.
fn host_of(word: &[u8]) -> Option<&[u8]> {
    let colon = memchr::memrchr(b':', word)?;
    let (host, port) = (word.get(..colon)?, word.get(colon + 1..)?);
    let is_port = (1..=5).contains(&port.len()) && port.iter().all(u8::is_ascii_digit);
    let is_host = !host.contains(&b':') || (host.starts_with(b"[") && host.ends_with(b"]"));
    (is_port && is_host).then_some(host)
}

/// What says something: `-` and nothing do not.
fn said(text: &[u8]) -> Option<&[u8]> {
    (!matches!(text, b"" | b"-" | b"\"\"")).then_some(text)
}
