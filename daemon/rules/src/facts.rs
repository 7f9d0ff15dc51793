//! The attributes of a request that rules read.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::fmt;
use std::net::IpAddr;

use http::header::{COOKIE, HeaderMap, HeaderName, HeaderValue};
use percent_encoding::percent_decode;
use tollgate::Timestamp;
use tollgate_headers::{
    AddressHeader, ClientAddressError, Ipv6Prefix, Networks, Peer, client_address,
};

use super::jwt::{Claims, Jwt};
use super::matchers::canonical;
use super::path::{Path, query_of};
use super::query::{self, split_once};
use super::source::Source;

/// The attributes of a request that rules read. The client's address and the token are evaluated
/// when a rule first needs them, and only then can they fail.
#[derive(Debug)]
pub struct Facts<'a> {
    /// The method.
    pub method: &'a str,
    /// The path and query, as sent.
    pub target: &'a [u8],
    /// The host, or the reason why it is unknown.
    pub host: Result<&'a str, &'a str>,
    /// The headers.
    pub headers: &'a HeaderMap,
    /// Whether the gateway may have joined lines of a header by a comma without a space.
    pub has_joined_headers: bool,
    /// The source of the client's address.
    pub client: Client<'a>,
    /// The prefix of an IPv6 address that goes into a key.
    pub ipv6_prefix: Ipv6Prefix,
    /// The validation of tokens, if any.
    pub jwt: Option<&'a Jwt>,
    /// The current time.
    pub now: Timestamp,
    /// The claims of the token, once a rule has needed them.
    claims: OnceCell<Result<Claims, KeyError>>,
}

/// The source of the client's address.
#[derive(Clone, Copy, Debug)]
pub enum Client<'a> {
    /// A known address.
    Known(IpAddr),
    /// The address in a header, if the peer is trusted.
    FromHeader {
        /// The header.
        header: AddressHeader,
        /// The peer that sent the header.
        peer: Peer,
        /// The proxies whose header is trusted.
        trusted: &'a Networks,
    },
    /// The address is unknown.
    Unknown,
}

/// The key of a check cannot be formed. The message states the remedy and may be shown to the
/// client.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum KeyError {
    /// The request has no value for this source; the rule's `on_missing` decides.
    Missing(String),
    /// The request has several different values for this source.
    Ambiguous(String),
    /// Servers read the path in different ways, and the rules refuse such paths; or it has too many
    /// readings, or too many checks for all of them.
    AmbiguousPath,
    /// This placeholder makes the key longer than the maximum number of bytes.
    TooLong(String, usize),
    /// The client's address cannot be determined.
    Address(ClientAddressError),
    /// The host is unknown, for this reason.
    Host(String),
}

impl fmt::Display for KeyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            KeyError::Missing(source) => write!(f, "the request has no {source}"),
            KeyError::Ambiguous(source) => {
                write!(f, "the request has several values for {source}; send one")
            }
            KeyError::AmbiguousPath => {
                f.write_str("servers may read the path in different ways; send it normalized")
            }
            KeyError::TooLong(source, most) => {
                write!(f, "{source} makes a key of more than {most} bytes; send a shorter value")
            }
            KeyError::Address(error @ ClientAddressError::Untrusted(peer)) => {
                let peer = in_yaml(*peer);
                write!(f, "{error}; if it is your gateway, write trusted_proxies: [{peer}]")
            }
            KeyError::Address(error) => error.fmt(f),
            KeyError::Host(host) => f.write_str(host),
        }
    }
}

impl std::error::Error for KeyError {}

/// A peer as an element of a YAML list, quoted if it contains a colon.
fn in_yaml(peer: Peer) -> String {
    let text = peer.to_string();
    if text.contains(':') { format!("\"{text}\"") } else { text }
}

impl<'a> Facts<'a> {
    /// The attributes of a request whose host, client and token are unknown.
    #[must_use]
    pub fn new(method: &'a str, target: &'a [u8], headers: &'a HeaderMap) -> Self {
        Facts {
            method,
            target,
            host: Err("the host is unknown here"),
            headers,
            has_joined_headers: false,
            client: Client::Unknown,
            ipv6_prefix: Ipv6Prefix::default(),
            jwt: None,
            now: Timestamp::from_micros(0),
            claims: OnceCell::new(),
        }
    }

    /// The host in canonical form.
    pub(super) fn host(&self) -> Result<Cow<'a, str>, KeyError> {
        self.host.map(canonical).map_err(|error| KeyError::Host(error.to_owned()))
    }

    /// The value of a source, under one reading of the path. An empty value is missing.
    pub(super) fn value<'b>(
        &'b self,
        source: &Source,
        path: &'b Path<'_>,
    ) -> Result<Cow<'b, [u8]>, KeyError> {
        let value = match source {
            Source::Ip => Some(self.ip()?.into_bytes().into()),
            Source::Host => Some(bytes(self.host()?)),
            Source::Method => Some(self.method.to_ascii_uppercase().into_bytes().into()),
            Source::Path => Some(path.as_bytes().into()),
            Source::Segment(number) => {
                number.checked_sub(1).and_then(|x| path.segments().nth(x)).map(Cow::Borrowed)
            }
            Source::Header(name) => {
                self.check_joined(name)?;
                let lines = self.headers.get_all(name).iter().map(|line| line.as_bytes().into());
                single(lines, source)?
            }
            Source::Query(name) => {
                let pairs = query::pairs(query_of(self.target));
                single(values(pairs, name), source)?
            }
            Source::Cookie(name) => single(values(self.cookies(), name), source)?,
            Source::Jwt(claim) => self.claims()?.text(claim).map(bytes),
        };
        let value: Option<Cow<'_, [u8]>> = value.filter(|value| !value.is_empty());
        value.ok_or_else(|| KeyError::Missing(source.to_string()))
    }

    /// Fails if a value of a header may be several: the application gets them one by one.
    pub(super) fn check_joined(&self, name: &HeaderName) -> Result<(), KeyError> {
        let is_joined = |value: &HeaderValue| {
            let mut parts = value.as_bytes().split(|byte| *byte == b',');
            let begins_empty = parts.next().is_some_and(<[u8]>::is_empty);
            let mut rest = parts.peekable();
            let has_comma = rest.peek().is_some();
            has_comma && (begins_empty || rest.any(|part| !part.starts_with(b" ")))
        };
        if self.has_joined_headers && self.headers.get_all(name).iter().any(is_joined) {
            return Err(KeyError::Ambiguous(Source::Header(name.clone()).to_string()));
        }
        Ok(())
    }

    fn ip(&self) -> Result<String, KeyError> {
        let address = match self.client {
            Client::Known(address) => Ok(address),
            Client::FromHeader { header, peer, trusted } => {
                client_address(self.headers, header, peer, trusted)
            }
            Client::Unknown => Err(ClientAddressError::Unknown),
        };
        address.map(|address| self.ipv6_prefix.key(address)).map_err(KeyError::Address)
    }

    /// Names and values of the cookies. Values are percent-decoded and unquoted, so that spellings
    /// that a server may treat as equal are equal.
    fn cookies(&self) -> impl Iterator<Item = (Cow<'_, [u8]>, Cow<'_, [u8]>)> {
        let lines = self.headers.get_all(COOKIE).iter();
        let pairs = lines.flat_map(|line| line.as_bytes().split(|byte| *byte == b';'));
        pairs.filter_map(|pair| {
            let (name, value) = split_once(pair, b'=')?;
            let value = value.trim_ascii();
            let unquoted = value.strip_prefix(b"\"").and_then(|value| value.strip_suffix(b"\""));
            Some((name.trim_ascii().into(), percent_decode(unquoted.unwrap_or(value)).into()))
        })
    }

    /// The claims of the token; empty without a valid token.
    fn claims(&self) -> Result<&Claims, KeyError> {
        let read = self.claims.get_or_init(|| match self.jwt {
            Some(jwt) => jwt.claims(self.headers, self.now),
            None => Ok(Claims::default()),
        });
        read.as_ref().map_err(KeyError::clone)
    }
}

fn bytes(text: Cow<'_, str>) -> Cow<'_, [u8]> {
    match text {
        Cow::Borrowed(text) => text.as_bytes().into(),
        Cow::Owned(text) => text.into_bytes().into(),
    }
}

/// The values with this name.
fn values<'a>(
    pairs: impl Iterator<Item = (Cow<'a, [u8]>, Cow<'a, [u8]>)>,
    name: &str,
) -> impl Iterator<Item = Cow<'a, [u8]>> {
    pairs.filter(move |(x, _)| **x == *name.as_bytes()).map(|(_, value)| value)
}

/// The only value. Equal values count as one.
pub(super) fn single<'a>(
    mut values: impl Iterator<Item = Cow<'a, [u8]>>,
    source: &impl fmt::Display,
) -> Result<Option<Cow<'a, [u8]>>, KeyError> {
    let Some(first) = values.next() else { return Ok(None) };
    if values.any(|value| value != first) {
        return Err(KeyError::Ambiguous(source.to_string()));
    }
    Ok(Some(first))
}
