//! Networks, and lists of them.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A network, or one address: `10.0.0.0/8`, `2001:db8::/32`, `::1`. One written as IPv4 mapped into
/// IPv6 is the IPv4 network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    /// With all bits after the prefix 0.
    first: IpAddr,
    prefix: u8,
}

impl Network {
    /// Reads a network.
    ///
    /// # Errors
    /// It is none, or bits are set after its prefix; the error says what to write.
    pub fn parse(text: &str) -> Result<Self, String> {
        let usual = "write a network such as 10.0.0.0/8 or 2001:db8::/32, or an address";
        let (address, prefix) = match text.split_once('/') {
            Some((address, prefix)) => (address, Some(prefix)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| usual.to_owned())?;
        let most = bits(address);
        let prefix = match prefix {
            None => most,
            Some(prefix) => {
                let digits = prefix.bytes().all(|byte| byte.is_ascii_digit());
                let read = prefix.parse().ok().filter(|prefix| digits && *prefix <= most);
                read.ok_or_else(|| format!("write a prefix from 0 to {most} after the slash"))?
            }
        };
        let (address, prefix) = match (address, address.to_canonical()) {
            // `::/0` and its like hold more than what is mapped.
            (IpAddr::V6(_), mapped @ IpAddr::V4(_)) if prefix >= 96 => (mapped, prefix - 96),
            _ => (address, prefix),
        };
        let network = Network { first: masked(address, prefix), prefix };
        if network.first != address {
            return Err(format!("write {network}; {address} has bits set after its prefix"));
        }
        Ok(network)
    }

    /// Whether an address is in it. One that is mapped into IPv6 is the IPv4 address.
    #[must_use]
    pub fn contains(&self, address: IpAddr) -> bool {
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

/// An address with all bits after a prefix 0.
fn masked(address: IpAddr, prefix: u8) -> IpAddr {
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

/// How much of an IPv6 address names who is limited: the first 64 bits unless told otherwise, since
/// anyone who has one of those networks has all of its addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ipv6Prefix(u8);

impl Ipv6Prefix {
    /// Reads a number of bits.
    ///
    /// # Errors
    /// It is not from 32 to 128.
    pub fn parse(text: &str) -> Result<Self, String> {
        let digits = text.bytes().all(|byte| byte.is_ascii_digit());
        let read = text.parse().ok().filter(|text| digits && (32..=128).contains(text));
        read.map(Ipv6Prefix).ok_or_else(|| "write a number of bits from 32 to 128".to_owned())
    }

    /// An address as a key: an IPv4 address as it is, also where it is mapped into IPv6; of any
    /// other IPv6 address its network, as `2001:db8::/64`.
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

/// Who is at the other end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    /// Someone at an address.
    Ip(IpAddr),
    /// Someone on this machine, through a socket in the file system.
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

/// A list of networks; the word `unix` in it is whoever comes through a unix socket.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Networks {
    networks: Vec<Network>,
    unix: bool,
}

impl Networks {
    /// Adds a network, an address, or `unix`.
    ///
    /// # Errors
    /// It is none of them; the error says what to write.
    pub fn add(&mut self, text: &str) -> Result<(), String> {
        if text == "unix" {
            self.unix = true;
            return Ok(());
        }
        let network = Network::parse(text).map_err(|error| {
            if error.ends_with("or an address") {
                format!("{error}, or unix for unix sockets")
            } else {
                error
            }
        })?;
        self.networks.push(network);
        Ok(())
    }

    /// Reads a list with commas between.
    ///
    /// # Errors
    /// As [`add`](Self::add).
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut networks = Networks::default();
        let texts = text.split(',').map(str::trim).filter(|x| !x.is_empty());
        texts.into_iter().try_for_each(|text| networks.add(text))?;
        Ok(networks)
    }

    /// Whether an address is in one of them.
    #[must_use]
    pub fn contains(&self, address: IpAddr) -> bool {
        self.networks.iter().any(|network| network.contains(address))
    }

    /// Whether a peer is in one of them.
    #[must_use]
    pub fn contains_peer(&self, peer: Peer) -> bool {
        match peer {
            Peer::Ip(address) => self.contains(address),
            Peer::Unix => self.unix,
        }
    }
}

impl fmt::Display for Networks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let networks = self.networks.iter().map(Network::to_string);
        let all: Vec<_> = networks.chain(self.unix.then(|| "unix".to_owned())).collect();
        f.write_str(&all.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_holds_its_addresses() {
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
    fn what_is_no_network_is_refused() {
        let usual = "write a network such as 10.0.0.0/8 or 2001:db8::/32, or an address, or unix for \
                     unix sockets";
        for (text, remedy) in [
            ("localhost", usual),
            ("10.0.0/8", usual),
            ("10.0.0.01", usual),
            ("10.0.0.0/33", "write a prefix from 0 to 32 after the slash"),
            ("10.0.0.0/", "write a prefix from 0 to 32 after the slash"),
            ("::/+1", "write a prefix from 0 to 128 after the slash"),
            ("10.1.2.3/8", "write 10.0.0.0/8; 10.1.2.3 has bits set after its prefix"),
            ("::1/64", "write ::/64; ::1 has bits set after its prefix"),
        ] {
            assert_eq!(Networks::parse(text).unwrap_err(), remedy, "{text}");
        }
    }

    #[test]
    fn a_list_holds_networks_and_unix_sockets() {
        let list = Networks::parse("10.0.0.0/8, ::1,unix").unwrap();
        assert_eq!(list.to_string(), "10.0.0.0/8, ::1, unix");
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
    fn an_address_has_one_key() {
        for (prefix, address, key) in [
            ("64", "203.0.113.7", "203.0.113.7"),
            ("64", "::ffff:203.0.113.7", "203.0.113.7"),
            ("64", "::FFFF:cb00:7107", "203.0.113.7"),
            ("32", "::ffff:203.0.113.7", "203.0.113.7"),
            ("64", "2001:db8::1", "2001:db8::/64"),
            ("64", "2001:0DB8:0:0::ffff", "2001:db8::/64"),
            ("64", "2001:db8:0:0:ffff:ffff:ffff:ffff", "2001:db8::/64"),
            ("64", "2001:db8:0:1::", "2001:db8:0:1::/64"),
            ("56", "2001:db8:0:1ff::1", "2001:db8:0:100::/56"),
            ("48", "2001:db8:1:2::1", "2001:db8:1::/48"),
            ("128", "2001:db8::1", "2001:db8::1"),
            ("64", "::1", "::/64"),
            // NAT64 and 6to4 are what they are: IPv6.
            ("64", "64:ff9b::203.0.113.7", "64:ff9b::/64"),
            ("64", "2002:cb00:7107::1", "2002:cb00:7107::/64"),
            // So are the long abandoned compatible addresses.
            ("64", "::203.0.113.7", "::/64"),
        ] {
            let prefix = Ipv6Prefix::parse(prefix).unwrap();
            assert_eq!(prefix.key(address.parse().unwrap()), key, "{address} {prefix}");
        }
        assert_eq!(Ipv6Prefix::default().to_string(), "64");
        for text in ["31", "129", "", "+64", "/64"] {
            assert_eq!(
                Ipv6Prefix::parse(text).unwrap_err(),
                "write a number of bits from 32 to 128"
            );
        }
    }
}
