//! What rules may know of a request.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::fmt;
use std::net::IpAddr;

use http::header::{COOKIE, HeaderMap};
use percent_encoding::percent_decode;
use tollgate::Timestamp;

use super::address::{AddressHeader, ClientAddressError, client_address};
use super::host;
use super::jwt::{Claims, Jwt};
use super::network::{Ipv6Prefix, Networks, Peer};
use super::path::{Path, query_of};
use super::source::Source;
use crate::query;

/// What rules may know of a request. What costs something to know is worked out when a rule first
/// asks, and only an error if one does.
#[derive(Debug)]
pub struct Facts<'a> {
    /// Its method.
    pub method: &'a str,
    /// Its path and query, as they were sent.
    pub target: &'a [u8],
    /// Its host, or why that is not known.
    pub host: Result<&'a str, &'a str>,
    /// Its headers.
    pub headers: &'a HeaderMap,
    /// Where it came from.
    pub client: Client<'a>,
    /// How much of an IPv6 address is in a key.
    pub ipv6_prefix: Ipv6Prefix,
    /// How its token is read, if one is.
    pub jwt: Option<&'a Jwt>,
    /// What time it is.
    pub now: Timestamp,
    /// What the token says, once it was asked for.
    claims: OnceCell<Result<Claims, KeyError>>,
}

/// Where a request came from.
#[derive(Clone, Copy, Debug)]
pub enum Client<'a> {
    /// From this address.
    Known(IpAddr),
    /// From where a header says, if the peer is trusted.
    FromHeader {
        /// The header.
        header: AddressHeader,
        /// The peer.
        peer: Peer,
        /// Whose word is taken.
        trusted: &'a Networks,
    },
    /// Nobody knows.
    Unknown,
}

/// Why there is no value for a key. Its text says what to do, and is fit for whoever sent the request.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum KeyError {
    /// The request has none; the rule says what holds then. It names the source.
    Missing(String),
    /// The request has several that differ, of which only its sender knows which counts. It names the
    /// source.
    Ambiguous(String),
    /// The key would be longer than so many bytes, by this placeholder.
    TooLong(String, usize),
    /// The client's address is not known.
    Address(ClientAddressError),
    /// The host is not known; why.
    Host(String),
}

impl fmt::Display for KeyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            KeyError::Missing(source) => write!(f, "the request has no {source}"),
            KeyError::Ambiguous(source) => {
                write!(f, "the request has several values of {source}; send one")
            }
            KeyError::TooLong(source, most) => {
                write!(f, "{source} makes a key of more than {most} bytes; send a shorter value")
            }
            KeyError::Address(address) => address.fmt(f),
            KeyError::Host(host) => f.write_str(host),
        }
    }
}

impl std::error::Error for KeyError {}

impl<'a> Facts<'a> {
    /// Of a request of which nothing else is known yet.
    #[must_use]
    pub fn new(method: &'a str, target: &'a [u8], headers: &'a HeaderMap) -> Self {
        Facts {
            method,
            target,
            host: Err("nothing tells the host here"),
            headers,
            client: Client::Unknown,
            ipv6_prefix: Ipv6Prefix::default(),
            jwt: None,
            now: Timestamp::from_micros(0),
            claims: OnceCell::new(),
        }
    }

    /// The host as it is compared.
    pub(super) fn host(&self) -> Result<Cow<'a, str>, KeyError> {
        self.host.map(host::canonical).map_err(|error| KeyError::Host(error.to_owned()))
    }

    /// The value of a source, where the path is read as this. An empty one is none.
    pub(super) fn value<'b>(
        &'b self,
        source: &Source,
        path: &'b Path,
    ) -> Result<Cow<'b, [u8]>, KeyError> {
        let value = match source {
            Source::Ip => Some(self.ip()?.into_bytes().into()),
            Source::Host => Some(owned(&self.host()?)),
            Source::Method => Some(owned(&self.method.to_ascii_uppercase())),
            Source::Path => Some(path.as_bytes().into()),
            Source::Segment(number) => {
                number.checked_sub(1).and_then(|x| path.segments().nth(x)).map(Cow::Borrowed)
            }
            Source::Header(name) => {
                let lines =
                    self.headers.get_all(name).iter().map(|get_all| get_all.as_bytes().into());
                single(lines, source)?
            }
            Source::Query(name) => {
                let pairs = query::pairs(query_of(self.target));
                single(values(pairs, name), source)?
            }
            Source::Cookie(name) => single(values(self.cookies(), name), source)?,
            Source::Jwt(claim) => self.claims()?.text(claim).map(|text| owned(&text)),
        };
        let value: Option<Cow<'_, [u8]>> = value.filter(|cow: &Cow<'_, [u8]>| !cow.is_empty());
        value.ok_or_else(|| KeyError::Missing(source.to_string()))
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

    /// Names and values of the cookies. Values are percent-decoded and lose their quotes, so that
    /// what a server may read as the same is the same.
    fn cookies(&self) -> impl Iterator<Item = (Cow<'_, [u8]>, Cow<'_, [u8]>)> {
        let lines = self.headers.get_all(COOKIE).iter();
        let pairs = lines.flat_map(|line| line.as_bytes().split(|byte| *byte == b';'));
        pairs.filter_map(|pair| {
            let at = pair.iter().position(|pair| *pair == b'=')?;
            let (name, value) = pair.split_at(at);
            let value = value.get(1..).unwrap_or_default().trim_ascii();
            let unquoted = value.strip_prefix(b"\"").and_then(|value| value.strip_suffix(b"\""));
            Some((name.trim_ascii().into(), percent_decode(unquoted.unwrap_or(value)).into()))
        })
    }

    /// What the token says; nothing if there is no valid one.
    fn claims(&self) -> Result<&Claims, KeyError> {
        let read = self.claims.get_or_init(|| match self.jwt {
            Some(jwt) => jwt.claims(self.headers, self.now),
            None => Ok(Claims::default()),
        });
        read.as_ref().map_err(KeyError::clone)
    }
}

fn owned<'a>(text: &str) -> Cow<'a, [u8]> {
    Cow::Owned(text.as_bytes().to_vec())
}

/// The values that have a name.
fn values<'a>(
    pairs: impl Iterator<Item = (Cow<'a, [u8]>, Cow<'a, [u8]>)>,
    name: &str,
) -> impl Iterator<Item = Cow<'a, [u8]>> {
    pairs.filter(move |(x, _)| **x == *name.as_bytes()).map(|(_, value)| value)
}

/// The only value; the same twice is one.
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
