//! Networks and lists of networks.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A network or a single address: `10.0.0.0/8`, `2001:db8::/32`, `::1`. An IPv4-mapped IPv6 network
/// becomes the IPv4 network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Network {
    /// The first address: all bits after the prefix are 0.
    first: IpAddr,
    prefix: u8,
}

impl Network {
    /// Parses a network. The error states the remedy.
    fn parse(text: &str) -> Result<Self, String> {
        let (address, prefix) = match text.split_once('/') {
            Some((address, prefix)) => (address, Some(prefix)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| {
            "expected a network such as 10.0.0.0/8 or 2001:db8::/32, an address, or unix for Unix \
             sockets"
        })?;
        let most = bits(address);
        let prefix = match prefix {
            None => most,
            Some(prefix) => {
                let digits = prefix.bytes().all(|byte| byte.is_ascii_digit());
                let read = prefix.parse().ok().filter(|prefix| digits && *prefix <= most);
                read.ok_or_else(|| {
                    format!("expected a prefix length from 0 to {most} after the slash")
                })?
            }
        };
        let (address, prefix) = match (address, address.to_canonical()) {
            // Shorter prefixes, such as `::/0`, also contain addresses that are not mapped.
            (IpAddr::V6(_), mapped @ IpAddr::V4(_)) if prefix >= 96 => (mapped, prefix - 96),
            _ => (address, prefix),
        };
        let network = Network { first: masked(address, prefix), prefix };
        if network.first != address {
            return Err(format!("{address} has bits set after the prefix; write {network}"));
        }
        Ok(network)
    }

    /// Whether the network contains an address. An IPv4-mapped IPv6 address counts as the IPv4
    /// address.
    fn contains(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        address.is_ipv4() == self.first.is_ipv4() && masked(address, self.prefix) == self.first
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.prefix == bits(self.first) {
            return self.first.fmt(f);
        }
        write!(f, "{}/{}", self.first, self.prefix)
    }
}

fn bits(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

/// An address with all bits after the prefix set to 0.
fn masked(address: IpAddr, prefix: u8) -> IpAddr {
    // A prefix of 0 shifts all bits out, which `checked_shl` rejects: the mask is 0.
    match address {
        IpAddr::V4(v4) => {
            let mask = u32::MAX.checked_shl(32_u32.saturating_sub(prefix.into())).unwrap_or(0);
            Ipv4Addr::from_bits(v4.to_bits() & mask).into()
        }
        IpAddr::V6(v6) => {
            let mask = u128::MAX.checked_shl(128_u32.saturating_sub(prefix.into())).unwrap_or(0);
            Ipv6Addr::from_bits(v6.to_bits() & mask).into()
        }
    }
}

/// The length of the IPv6 prefix that identifies a client: 64 bits by default, because a client
/// that has one address of such a network usually has all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ipv6Prefix(u8);

impl Ipv6Prefix {
    /// A prefix of 32 to 128 bits.
    #[must_use]
    pub fn new(bits: u8) -> Option<Self> {
        (32..=128).contains(&bits).then_some(Ipv6Prefix(bits))
    }

    /// The key for an address: an IPv4 address, also an IPv4-mapped one, is used unchanged; any
    /// other IPv6 address is replaced by its network, such as `2001:db8::/64`.
    #[must_use]
    pub fn key(self, address: IpAddr) -> String {
        let address = address.to_canonical();
        let prefix = if address.is_ipv4() { 32 } else { self.0 };
        Network { first: masked(address, prefix), prefix }.to_string()
    }
}

impl Default for Ipv6Prefix {
    fn default() -> Self {
        Ipv6Prefix(64)
    }
}

impl fmt::Display for Ipv6Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The other end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    /// A peer with an IP address.
    Ip(IpAddr),
    /// A peer on this machine, connected through a Unix socket.
    Unix,
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Peer::Ip(ip) => ip.to_canonical().fmt(f),
            Peer::Unix => f.write_str("unix"),
        }
    }
}

/// A list of networks. The word `unix` stands for all peers that connect through a Unix socket.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Networks {
    networks: Vec<Network>,
    unix: bool,
}

impl Networks {
    /// Parses a network, an address, or `unix`.
    ///
    /// # Errors
    /// The text is none of these, or bits are set after the prefix; the error states the remedy.
    pub fn single(text: &str) -> Result<Self, String> {
        match text {
            "unix" => Ok(Networks { networks: Vec::new(), unix: true }),
            _ => Ok(Networks { networks: vec![Network::parse(text)?], unix: false }),
        }
    }

    /// Parses a list separated by commas.
    ///
    /// # Errors
    /// As [`single`](Self::single).
    pub fn parse(text: &str) -> Result<Self, String> {
        let texts = text.split(',').map(str::trim).filter(|text| !text.is_empty());
        texts.map(Networks::single).collect()
    }

    /// Whether one of the networks contains an address.
    #[must_use]
    pub fn contains(&self, address: IpAddr) -> bool {
        self.networks.iter().any(|network| network.contains(address))
    }

    /// Whether the list contains a peer.
    #[must_use]
    pub fn contains_peer(&self, peer: Peer) -> bool {
        match peer {
            Peer::Ip(address) => self.contains(address),
            Peer::Unix => self.unix,
        }
    }
}

impl FromIterator<Networks> for Networks {
    fn from_iter<T: IntoIterator<Item = Networks>>(all: T) -> Self {
        all.into_iter().fold(Networks::default(), |mut sum, networks| {
            sum.networks.extend(networks.networks);
            Networks { unix: sum.unix || networks.unix, ..sum }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_contain_their_addresses() {
        for (network, inside, outside) in [
            ("10.0.0.0/8", "10.0.0.0 10.255.255.255 ::ffff:10.1.2.3", "11.0.0.0 9.255.255.255 ::1"),
            ("0.0.0.0/0", "0.0.0.0 255.255.255.255 ::ffff:1.2.3.4", ":: 2001:db8::1"),
            ("::/0", ":: ffff::", "1.2.3.4 ::ffff:1.2.3.4"),
            ("127.0.0.1", "127.0.0.1 ::ffff:127.0.0.1", "127.0.0.2 ::1"),
            ("::ffff:10.0.0.0/104", "10.1.2.3 ::ffff:10.1.2.3", "11.0.0.0"),
            ("::ffff:10.0.0.1", "10.0.0.1", "10.0.0.2"),
            ("2001:db8::/32", "2001:db8:: 2001:db8:ffff::1", "2001:db9:: 1.2.3.4"),
            ("::1", "::1", "::2"),
        ] {
            let network = Network::parse(network).unwrap();
            assert_eq!(Network::parse(&network.to_string()).unwrap(), network);
            for (addresses, expected) in [(inside, true), (outside, false)] {
                for address in addresses.split(' ') {
                    let contains = network.contains(address.parse().unwrap());
                    assert_eq!(contains, expected, "{network} {address}");
                }
            }
        }
    }

    #[test]
    fn invalid_networks_are_rejected() {
        let usual = "expected a network such as 10.0.0.0/8 or 2001:db8::/32, an address, or unix \
                     for Unix sockets";
        for (text, remedy) in [
            ("localhost", usual),
            ("10.0.0/8", usual),
            ("10.0.0.01", usual),
            ("10.0.0.0/33", "expected a prefix length from 0 to 32 after the slash"),
            ("10.0.0.0/", "expected a prefix length from 0 to 32 after the slash"),
            ("::/+1", "expected a prefix length from 0 to 128 after the slash"),
            ("10.1.2.3/8", "10.1.2.3 has bits set after the prefix; write 10.0.0.0/8"),
            ("::1/64", "::1 has bits set after the prefix; write ::/64"),
        ] {
            assert_eq!(Networks::parse(text).unwrap_err(), remedy, "{text}");
        }
    }

    #[test]
    fn lists_contain_networks_and_unix_sockets() {
        let list = Networks::parse("10.0.0.0/8, ::1,unix").unwrap();
        let peer = |text: &str| Peer::Ip(text.parse().unwrap());
        for (peer, expected) in [
            (peer("10.9.9.9"), true),
            (peer("::ffff:10.9.9.9"), true),
            (peer("::1"), true),
            (Peer::Unix, true),
            (peer("127.0.0.1"), false),
        ] {
            assert_eq!(list.contains_peer(peer), expected, "{peer}");
        }
        assert!(!Networks::parse("0.0.0.0/0, ::/0").unwrap().contains_peer(Peer::Unix));
    }

    /// CVE-2026-30827: an IPv6 mask on mapped addresses put all of IPv4 into one key.
    /// CVE-2026-45364: a key for each IPv6 address lets anyone have 2^64 of them, and one address
    /// had several spellings.
    #[test]
    fn every_address_has_one_key() {
        for (prefix, address, key) in [
            (64, "203.0.113.7", "203.0.113.7"),
            (64, "::ffff:203.0.113.7", "203.0.113.7"),
            (64, "::FFFF:cb00:7107", "203.0.113.7"),
            (32, "::ffff:203.0.113.7", "203.0.113.7"),
            (64, "2001:db8::1", "2001:db8::/64"),
            (64, "2001:0DB8:0:0::ffff", "2001:db8::/64"),
            (64, "2001:db8:0:0:ffff:ffff:ffff:ffff", "2001:db8::/64"),
            (64, "2001:db8:0:1::", "2001:db8:0:1::/64"),
            (56, "2001:db8:0:1ff::1", "2001:db8:0:100::/56"),
            (48, "2001:db8:1:2::1", "2001:db8:1::/48"),
            (128, "2001:db8::1", "2001:db8::1"),
            (64, "::1", "::/64"),
            // NAT64 and 6to4 addresses are ordinary IPv6 addresses.
            (64, "64:ff9b::203.0.113.7", "64:ff9b::/64"),
            (64, "2002:cb00:7107::1", "2002:cb00:7107::/64"),
            // So are the deprecated IPv4-compatible addresses.
            (64, "::203.0.113.7", "::/64"),
        ] {
            let prefix = Ipv6Prefix::new(prefix).unwrap();
            assert_eq!(prefix.key(address.parse().unwrap()), key, "{address} {prefix}");
        }
        assert_eq!(Ipv6Prefix::default().to_string(), "64");
        for bits in [0, 31, 129] {
            assert_eq!(Ipv6Prefix::new(bits), None);
        }
    }
}
