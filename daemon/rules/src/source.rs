//! The sources of key templates.

use std::fmt;

use http::header::HeaderName;

use tollgate_document::did_you_mean;

use super::matchers::header_name;

/// The source of a placeholder's value.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Source {
    /// `ip`: the client's IPv4 address or IPv6 network.
    Ip,
    /// `host`: in lower case, without port.
    Host,
    /// `method`: in upper case.
    Method,
    /// `path`: the whole normalized path.
    Path,
    /// `path.N`: the Nth segment, counted from 1.
    Segment(usize),
    /// `header.NAME`: the value of a header.
    Header(HeaderName),
    /// `query.NAME`: the value of a query parameter.
    Query(Box<str>),
    /// `cookie.NAME`: the value of a cookie.
    Cookie(Box<str>),
    /// `jwt.CLAIM`: a claim of the token; dots lead into nested claims.
    Jwt(Box<str>),
}

impl Source {
    /// Parses one alternative of a placeholder, such as `header.x-api-key`.
    ///
    /// # Errors
    /// The text is not a source; the error states the remedy.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (kind, name) = match text.split_once('.') {
            Some((kind, name)) => (kind, Some(name)),
            None => (text, None),
        };
        match (kind, name) {
            ("ip", None) => Ok(Source::Ip),
            ("host", None) => Ok(Source::Host),
            ("method", None) => Ok(Source::Method),
            ("path", None) => Ok(Source::Path),
            ("path", Some(number)) => segment(number),
            ("header", Some(name)) => header_name(name).map(Source::Header),
            ("query", Some(name)) => named("query", name).map(Source::Query),
            ("cookie", Some(name)) => named("cookie", name).map(Source::Cookie),
            ("jwt", Some(claim)) => named("jwt", claim).map(Source::Jwt),
            ("header" | "query" | "cookie" | "jwt", None) => {
                Err(format!("{kind} needs a name, as in {{{kind}.NAME}}"))
            }
            ("ip" | "host" | "method", Some(_)) => {
                Err(format!("{kind} takes no name; write {{{kind}}}"))
            }
            _ => Err(unknown(kind)),
        }
    }
}

fn segment(number: &str) -> Result<Source, String> {
    let digits = number.bytes().all(|byte| byte.is_ascii_digit());
    let read = number.parse().ok().filter(|number| digits && *number > 0);
    read.map(Source::Segment).ok_or_else(|| {
        "expected the number of a segment, counted from 1, as in {path.1}".to_owned()
    })
}

fn named(kind: &str, name: &str) -> Result<Box<str>, String> {
    let is_part = |c: char| !c.is_whitespace() && !c.is_control() && !"=|{}".contains(c);
    if !name.is_empty() && name.chars().all(is_part) {
        return Ok(name.into());
    }
    Err(format!(
        "expected a name after the dot of {{{kind}.NAME}}, without whitespace and = | {{ }}"
    ))
}

fn unknown(kind: &str) -> String {
    const KNOWN: [&str; 8] = ["ip", "host", "method", "path", "header", "query", "cookie", "jwt"];
    let hint = did_you_mean(kind, KNOWN.into_iter()).map_or(String::new(), |x| format!("; {x}"));
    format!(
        "unknown placeholder; expected {{ip}}, {{host}}, {{method}}, {{path}}, {{path.N}}, \
         {{header.NAME}}, {{query.NAME}}, {{cookie.NAME}} or {{jwt.CLAIM}}{hint}"
    )
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::Ip => f.write_str("ip"),
            Source::Host => f.write_str("host"),
            Source::Method => f.write_str("method"),
            Source::Path => f.write_str("path"),
            Source::Segment(number) => write!(f, "path.{number}"),
            Source::Header(name) => write!(f, "header.{name}"),
            Source::Query(name) => write!(f, "query.{name}"),
            Source::Cookie(name) => write!(f, "cookie.{name}"),
            Source::Jwt(claim) => write!(f, "jwt.{claim}"),
        }
    }
}
