//! A line of a log as the facts of a request, by which rules and templates know it.

use std::net::{IpAddr, SocketAddr};

use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use tollgate_replay::NotAsked;
use tollgate_replay::log::Line;
use tollgate_server::rules::{Client, Facts, Ipv6Prefix, Jwt, KeyError};

/// How lines are looked at.
#[derive(Clone, Debug, Default)]
pub(super) struct Sight {
    /// How much of an IPv6 address is in a key.
    pub(super) ipv6_prefix: Ipv6Prefix,
    /// The headers that somebody may ask for.
    pub(super) headers: Vec<HeaderName>,
    /// How tokens are read, if any are.
    pub(super) jwt: Option<Jwt>,
}

impl Sight {
    /// Looks at a line as a request.
    pub(super) fn facts<T>(
        &self,
        line: &Line<'_>,
        look: impl FnOnce(&Facts<'_>) -> Result<T, NotAsked>,
    ) -> Result<T, NotAsked> {
        let mut headers = HeaderMap::new();
        for name in &self.headers {
            let value =
                line.header(name.as_str()).and_then(|header| HeaderValue::from_bytes(header).ok());
            if let Some(value) = value {
                headers.insert(name.clone(), value);
            }
        }
        let text = |bytes: Option<_>| bytes.and_then(|byte| std::str::from_utf8(byte).ok());
        let method = text(line.method).unwrap_or_default();
        let target = line.target.unwrap_or(b"/");
        let client = line.address.and_then(address).map_or(Client::Unknown, Client::Known);
        let mut facts = Facts::new(method, target, &headers);
        facts.host = text(line.host).ok_or("the log does not tell the host");
        facts.client = client;
        facts.ipv6_prefix = self.ipv6_prefix;
        facts.jwt = self.jwt.as_ref();
        facts.now = line.time.at;
        look(&facts)
    }

    /// The key of an address, if it is one.
    pub(super) fn address(&self, text: &[u8]) -> Option<String> {
        address(text).map(|address| self.ipv6_prefix.key(address))
    }
}

/// The address in a text: alone, in brackets, or with a port.
fn address(text: &[u8]) -> Option<IpAddr> {
    let text = std::str::from_utf8(text).ok()?;
    let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    bare.parse().ok().or_else(|| text.parse::<SocketAddr>().ok().map(|text| text.ip()))
}

/// What it means for a line that its key has no value.
pub(super) fn not_asked(why: KeyError) -> NotAsked {
    match why {
        KeyError::Missing(_) | KeyError::Address(_) | KeyError::Host(_) => NotAsked::NoKey,
        other => NotAsked::Broken(other.to_string()),
    }
}
