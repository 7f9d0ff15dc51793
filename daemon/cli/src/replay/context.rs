//! Presents a log line as a request to rules and templates.

use std::net::{IpAddr, SocketAddr};

use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use tollgate_replay::Skip;
use tollgate_replay::log::Line;
use tollgate_server::rules::{Client, Facts, Ipv6Prefix, Jwt, KeyError};

/// The settings for the extraction of keys.
#[derive(Clone, Debug, Default)]
pub(super) struct ExtractContext {
    /// The length of the network of an IPv6 address in keys.
    pub(super) ipv6_prefix: Ipv6Prefix,
    /// The headers that rules and templates read.
    pub(super) headers: Vec<HeaderName>,
    /// The verification of tokens.
    pub(super) jwt: Option<Jwt>,
}

impl ExtractContext {
    /// Calls `extract` with the facts of a line.
    pub(super) fn with_facts<T>(
        &self,
        line: &Line<'_>,
        extract: impl FnOnce(&Facts<'_>) -> Result<T, Skip>,
    ) -> Result<T, Skip> {
        let mut headers = HeaderMap::new();
        for name in &self.headers {
            let value =
                line.header(name.as_str()).and_then(|header| HeaderValue::from_bytes(header).ok());
            if let Some(value) = value {
                headers.insert(name.clone(), value);
            }
        }
        let text = |bytes: Option<_>| bytes.and_then(|bytes| std::str::from_utf8(bytes).ok());
        // A line without a method matches only rules without one.
        let method = text(line.method).unwrap_or("");
        let target = line.target.unwrap_or(b"/");
        let client = line.address.and_then(parse_address).map_or(Client::Unknown, Client::Known);
        let mut facts = Facts::new(method, target, &headers);
        facts.host = text(line.host).ok_or("the log does not contain the host");
        facts.client = client;
        facts.ipv6_prefix = self.ipv6_prefix;
        facts.jwt = self.jwt.as_ref();
        facts.now = line.time.at;
        extract(&facts)
    }

    /// The key of an address; `None` if the text is not one.
    pub(super) fn address(&self, text: &[u8]) -> Option<String> {
        parse_address(text).map(|address| self.ipv6_prefix.key(address))
    }
}

/// Parses an address, alone, in brackets, or with a port.
fn parse_address(text: &[u8]) -> Option<IpAddr> {
    let text = std::str::from_utf8(text).ok()?;
    let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    bare.parse().ok().or_else(|| text.parse::<SocketAddr>().ok().map(|text| text.ip()))
}

/// Why a line whose key has no value is skipped.
pub(super) fn skip_reason(missing: KeyError) -> Skip {
    match missing {
        KeyError::Missing(_) | KeyError::Address(_) | KeyError::Host(_) => Skip::NoKey,
        other => Skip::Invalid(other.to_string()),
    }
}
