//! The address of a client, as trusted proxies report it.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use http::header::{HeaderMap, HeaderValue};

use super::forwarded::{node, rsplit_unquoted};
use super::network::{Networks, Peer};

/// The header in which a proxy reports the address of its client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddressHeader {
    /// The name of the header.
    pub name: &'static str,
    /// The format of its value.
    pub format: AddressFormat,
}

impl AddressHeader {
    /// `X-Forwarded-For`, to which each proxy appends the address of its peer.
    pub const X_FORWARDED_FOR: Self =
        AddressHeader { name: "x-forwarded-for", format: AddressFormat::List };
    /// `Forwarded`, as in RFC 7239.
    pub const FORWARDED: Self =
        AddressHeader { name: "forwarded", format: AddressFormat::Forwarded };
    /// `X-Real-IP`, which the proxy replaces with the address of its peer.
    pub const X_REAL_IP: Self = AddressHeader { name: "x-real-ip", format: AddressFormat::Single };
}

/// The format of the value of an [`AddressHeader`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AddressFormat {
    /// One address.
    Single,
    /// A list of addresses to which each proxy appends its peer.
    List,
    /// A list of elements such as `for="[2001:db8::1]:4711";proto=https`, to which each proxy
    /// appends one.
    Forwarded,
}

/// The client's address cannot be determined. The message states the remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ClientAddressError {
    /// The peer is not a trusted proxy.
    Untrusted(Peer),
    /// The header is missing.
    Missing(&'static str, Peer),
    /// A header that holds one address is present more than once.
    Repeated(&'static str, Peer),
    /// An entry that a trusted proxy added is not an address.
    Invalid(&'static str, Box<str>),
    /// The request has no source of an address.
    Unknown,
}

impl fmt::Display for ClientAddressError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ClientAddressError::Untrusted(peer) => write!(
                f,
                "{peer} is not a trusted proxy, so the client address that it sends is ignored"
            ),
            ClientAddressError::Missing(header, peer) => write!(
                f,
                "{peer} did not send {header}, which holds the client's address; set it in the \
                 gateway, and do not let clients remove it"
            ),
            ClientAddressError::Repeated(header, peer) => write!(
                f,
                "{peer} sent {header}, which holds the client's address, more than once; set it in \
                 the gateway, replacing what the client sent"
            ),
            ClientAddressError::Invalid(header, entry) => {
                write!(f, "{header} has {entry:?} where a trusted proxy should have put an address")
            }
            ClientAddressError::Unknown => f.write_str("the client's address is unknown here"),
        }
    }
}

impl std::error::Error for ClientAddressError {}

/// Returns the client's address from the header, if the peer is trusted. In a list it is the
/// rightmost address that is not a trusted proxy, or the leftmost if all are. Entries further to
/// the left are under the client's control and are not read.
///
/// # Errors
/// The peer is not trusted, the header is missing or repeated, or an entry is not an address.
pub fn client_address(
    headers: &HeaderMap,
    header: AddressHeader,
    peer: Peer,
    trusted: &Networks,
) -> Result<IpAddr, ClientAddressError> {
    if !trusted.contains_peer(peer) {
        return Err(ClientAddressError::Untrusted(peer));
    }
    let lines = headers.get_all(header.name);
    if header.format == AddressFormat::Single {
        let mut lines = lines.iter();
        return match (lines.next(), lines.next()) {
            (None, _) => Err(ClientAddressError::Missing(header.name, peer)),
            (Some(line), None) => read(line.as_bytes(), header),
            (Some(_), Some(_)) => Err(ClientAddressError::Repeated(header.name, peer)),
        };
    }
    // Several header lines form one list, in order.
    let entries = lines.iter().rev().map(HeaderValue::as_bytes).flat_map(|line| {
        let (quoted, plain) = match header.format {
            AddressFormat::Forwarded => (Some(rsplit_unquoted(line, b',')), None),
            AddressFormat::Single | AddressFormat::List => {
                (None, Some(line.rsplit(|byte| *byte == b',')))
            }
        };
        quoted.into_iter().flatten().chain(plain.into_iter().flatten())
    });
    let mut leftmost = Err(ClientAddressError::Missing(header.name, peer));
    for entry in entries {
        let address = read(entry, header)?;
        if !trusted.contains(address) {
            return Ok(address);
        }
        leftmost = Ok(address);
    }
    leftmost
}

/// Parses an entry. An IPv4-mapped IPv6 address becomes the IPv4 address.
fn read(entry: &[u8], header: AddressHeader) -> Result<IpAddr, ClientAddressError> {
    let address = match header.format {
        AddressFormat::Forwarded => node(entry).and_then(|node| parse(&node)),
        AddressFormat::Single | AddressFormat::List => parse(entry.trim_ascii()),
    };
    address.map(|address| address.to_canonical()).ok_or_else(|| {
        let shown: String = String::from_utf8_lossy(entry).trim().chars().take(64).collect();
        ClientAddressError::Invalid(header.name, shown.into())
    })
}

/// Parses an address, with or without a port, brackets and a zone.
fn parse(entry: &[u8]) -> Option<IpAddr> {
    let text = str::from_utf8(entry).ok()?;
    let Some(bracketed) = text.strip_prefix('[') else {
        return match text.parse::<SocketAddr>() {
            Ok(text) if text.is_ipv4() => Some(text.ip()),
            _ => text.parse::<Ipv4Addr>().map(IpAddr::V4).ok().or_else(|| parse_v6(text)),
        };
    };
    let (address, port) = bracketed.split_once(']')?;
    let is_port = port.strip_prefix(':').is_some_and(|port| port.parse::<u16>().is_ok());
    (port.is_empty() || is_port).then(|| parse_v6(address))?
}

/// Parses an IPv6 address without its zone, which is meaningful only on the machine that wrote it.
fn parse_v6(text: &str) -> Option<IpAddr> {
    let address = match text.split_once('%') {
        Some((address, zone)) if !zone.is_empty() => address,
        Some(_) => return None,
        None => text,
    };
    address.parse::<Ipv6Addr>().ok().map(IpAddr::V6)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LIST: AddressHeader = AddressHeader::X_FORWARDED_FOR;
    const ONE: AddressHeader = AddressHeader::X_REAL_IP;

    fn client(header: AddressHeader, lines: &[&str], peer: &str) -> String {
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append(header.name, line.parse().unwrap());
        }
        let trusted = Networks::parse("10.0.0.0/8, ::1, unix").unwrap();
        let peer = if peer == "unix" { Peer::Unix } else { Peer::Ip(peer.parse().unwrap()) };
        match client_address(&headers, header, peer, &trusted) {
            Ok(address) => address.to_string(),
            Err(error) => format!("{error}"),
        }
    }

    #[test]
    fn client_is_the_rightmost_untrusted_address() {
        for (lines, expected) in [
            (&["203.0.113.7"][..], "203.0.113.7"),
            // Entries that the client sent are ignored.
            (&["1.2.3.4, 203.0.113.7"], "203.0.113.7"),
            (&["10.0.0.1, 203.0.113.7"], "203.0.113.7"),
            (&["junk, 203.0.113.7"], "203.0.113.7"),
            (&["1.2.3.4, , 203.0.113.7, 10.0.0.2"], "203.0.113.7"),
            (&["203.0.113.7,10.0.0.2,10.0.0.3"], "203.0.113.7"),
            // Several lines form one list.
            (&["1.2.3.4", "203.0.113.7"], "203.0.113.7"),
            (&["1.2.3.4, 203.0.113.7", "10.0.0.2"], "203.0.113.7"),
            // All are trusted proxies.
            (&["10.0.0.9, 10.0.0.2"], "10.0.0.9"),
            (&["::1"], "::1"),
            // Spellings.
            (&["203.0.113.7:443"], "203.0.113.7"),
            (&[" \t203.0.113.7 "], "203.0.113.7"),
            (&["::ffff:203.0.113.7"], "203.0.113.7"),
            (&["[::ffff:203.0.113.7]:443"], "203.0.113.7"),
            (&["203.0.113.7, ::ffff:10.0.0.2"], "203.0.113.7"),
            (&["2001:DB8::1"], "2001:db8::1"),
            (&["[2001:db8::1]"], "2001:db8::1"),
            (&["[2001:db8::1]:443"], "2001:db8::1"),
            (&["fe80::1%eth0"], "fe80::1"),
            (&["[fe80::1%eth0]:443"], "fe80::1"),
            (&["64:ff9b::203.0.113.7"], "64:ff9b::cb00:7107"),
        ] {
            assert_eq!(client(LIST, lines, "10.1.2.3"), expected, "{lines:?}");
            assert_eq!(client(LIST, lines, "unix"), expected, "{lines:?}");
        }
    }

    #[test]
    fn entries_of_trusted_proxies_must_be_addresses() {
        for entry in [
            "",
            "unknown",
            "203.0.113",
            "203.0.113.07",
            "203.0.113.7:",
            "203.0.113.7:x",
            "203.0.113.7:65536",
            "[203.0.113.7]",
            "[2001:db8::1",
            "2001:db8::1]",
            "[2001:db8::1]x",
            "[2001:db8::1]:",
            "fe80::1%",
            "::ffff:203.0.113.7/64",
            "\"203.0.113.7\"",
            "0x7f000001",
            "2130706433",
            "for=203.0.113.7",
            "203.0.113.7 1.2.3.4",
            "_hidden",
        ] {
            let expected = format!(
                "x-forwarded-for has {entry:?} where a trusted proxy should have put an address"
            );
            assert_eq!(client(LIST, &[entry], "10.1.2.3"), expected, "{entry}");
            let after = format!("1.2.3.4, {entry}, 10.0.0.1");
            assert_eq!(client(LIST, &[&after], "10.1.2.3"), expected, "{entry}");
        }
    }

    #[test]
    fn header_with_one_address_rejects_lists_and_repetition() {
        for (lines, peer, expected) in [
            (&["203.0.113.7"][..], "10.1.2.3", "203.0.113.7"),
            (&["10.0.0.9"], "10.1.2.3", "10.0.0.9"),
            (
                &["1.2.3.4, 203.0.113.7"],
                "10.1.2.3",
                "x-real-ip has \"1.2.3.4, 203.0.113.7\" where a trusted proxy should have put an \
                 address",
            ),
            (
                &["1.2.3.4", "203.0.113.7"],
                "10.1.2.3",
                "10.1.2.3 sent x-real-ip, which holds the client's address, more than once; set it \
                 in the gateway, replacing what the client sent",
            ),
        ] {
            assert_eq!(client(ONE, lines, peer), expected, "{lines:?}");
        }
    }

    #[test]
    fn client_of_forwarded_is_the_rightmost_untrusted_node() {
        let invalid = |entry: &str| {
            format!("forwarded has {entry:?} where a trusted proxy should have put an address")
        };
        for (lines, expected) in [
            (&["for=203.0.113.7;proto=https"][..], "203.0.113.7".to_owned()),
            (&["for=1.2.3.4, for=203.0.113.7"], "203.0.113.7".to_owned()),
            (&["for=1.2.3.4", "FOR=\"203.0.113.7:80\", for=10.0.0.2"], "203.0.113.7".to_owned()),
            (&["for=\"[2001:db8::1]:4711\""], "2001:db8::1".to_owned()),
            (&["for=\"[::ffff:203.0.113.7]\""], "203.0.113.7".to_owned()),
            // The client sent an open quote, which must not swallow what the proxy added.
            (&["for=\"1.2.3.4, for=203.0.113.7"], "203.0.113.7".to_owned()),
            (&["by=\", for=203.0.113.7"], "203.0.113.7".to_owned()),
            (&["for=unknown"], invalid("for=unknown")),
            (&["for=_hidden, for=10.0.0.2"], invalid("for=_hidden")),
            (&["for=1.2.3.4;for=5.6.7.8"], invalid("for=1.2.3.4;for=5.6.7.8")),
            (&["203.0.113.7"], invalid("203.0.113.7")),
        ] {
            assert_eq!(client(AddressHeader::FORWARDED, lines, "10.1.2.3"), expected, "{lines:?}");
        }
    }

    /// CVE-2024-45410: a client makes a proxy strip the header. That is an error; the peer's
    /// address is not used instead.
    #[test]
    fn missing_header_does_not_fall_back_to_the_peer() {
        for (header, peer, expected) in [
            (
                LIST,
                "10.1.2.3",
                "10.1.2.3 did not send x-forwarded-for, which holds the client's address; set it \
                 in the gateway, and do not let clients remove it",
            ),
            (
                ONE,
                "unix",
                "unix did not send x-real-ip, which holds the client's address; set it in the \
                 gateway, and do not let clients remove it",
            ),
        ] {
            assert_eq!(client(header, &[], peer), expected);
        }
        for peer in ["192.0.2.1", "::ffff:192.0.2.1"] {
            let expected = "192.0.2.1 is not a trusted proxy, so the client address that it sends \
                            is ignored";
            assert_eq!(client(LIST, &["203.0.113.7"], peer), expected);
        }
    }

    proptest! {
        #[test]
        fn every_spelling_of_an_address_parses_to_it(bits: u128, v4: u32, port: u16) {
            let (v4, v6) = (Ipv4Addr::from_bits(v4), Ipv6Addr::from_bits(bits));
            let spellings = [
                (v4.to_string(), IpAddr::V4(v4)),
                (format!("{v4}:{port}"), IpAddr::V4(v4)),
                (format!("::ffff:{v4}"), IpAddr::V4(v4)),
                (format!("[{}]:{port}", v4.to_ipv6_mapped()), IpAddr::V4(v4)),
                (v6.to_string(), IpAddr::V6(v6).to_canonical()),
                (format!("[{v6}]:{port}"), IpAddr::V6(v6).to_canonical()),
                (format!("{v6}%en{port}"), IpAddr::V6(v6).to_canonical()),
            ];
            for (text, address) in spellings {
                prop_assert_eq!(read(text.as_bytes(), LIST), Ok(address), "{}", text);
                let element = format!("proto=http;for=\"{text}\"");
                let forwarded = read(element.as_bytes(), AddressHeader::FORWARDED);
                prop_assert_eq!(forwarded, Ok(address), "{}", element);
            }
        }

        #[test]
        fn arbitrary_bytes_never_panic(entry in prop::collection::vec(any::<u8>(), 0..64)) {
            for header in [LIST, ONE, AddressHeader::FORWARDED] {
                if let Err(error) = read(&entry, header) {
                    prop_assert!(error.to_string().len() < 1_024);
                }
            }
        }
    }
}
