//! Networks, and addresses as networks of one.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::error::PatternError;

/// What a key begins with whose template has alternatives and got an address.
const SOURCE: &str = "ip=";
/// The longest text of an address, with its source and a length.
const MAX_NETWORK_LEN: usize = "ip=0000:0000:0000:0000:0000:ffff:255.255.255.255/128".len();
const V4_BITS: u8 = 32;
const V6_BITS: u8 = 128;
/// What the bits of an IPv4 address follow in the IPv6 address that stands for it.
const MAPPED_BITS: u8 = V6_BITS - V4_BITS;

/// A network. They are ordered so that one stands before all that lie in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Network {
    is_v6: bool,
    /// The bits of its address, the first one highest; 0 beyond its length.
    bits: u128,
    length: u8,
}

impl Network {
    /// The network of this length that an address is in. IPv4 in the clothes of IPv6 is IPv4.
    fn around(address: IpAddr, length: u8) -> Self {
        let (is_v6, bits, length) = match address {
            IpAddr::V4(v4) => (false, u128::from(v4.to_bits()) << MAPPED_BITS, length),
            IpAddr::V6(v6) => match (v6.to_ipv4_mapped(), length.checked_sub(MAPPED_BITS)) {
                (Some(value), Some(length)) => return Network::around(value.into(), length),
                _ => (true, v6.to_bits(), length),
            },
        };
        Network { is_v6, bits: bits & mask(length), length }
    }

    /// The network that a pattern writes, if it writes one.
    pub(super) fn of_pattern(text: &str) -> Result<Option<Self>, PatternError> {
        let Some((address, length)) = split(text) else { return Ok(None) };
        let Ok(address) = address.parse::<IpAddr>() else {
            let looks = looks_like_address(address);
            return if looks { Err(PatternError::Address) } else { Ok(None) };
        };
        let most = bits_of(address);
        let length = length.parse().ok().filter(|length| *length <= most);
        let length = length.ok_or(PatternError::Length { most })?;
        let network = Network::around(address, length);
        if !network.begins_at(address) {
            let network = network.to_string().into_boxed_str();
            return Err(PatternError::BeyondLength { network });
        }
        Ok(Some(network))
    }

    /// What a key is that is an address, or a network that stands for all its addresses, such as
    /// `2001:db8::/64`; either may follow `ip=`.
    pub(super) fn of_key(key: &[u8]) -> Option<Self> {
        if key.len() > MAX_NETWORK_LEN {
            return None;
        }
        let text = str::from_utf8(key).ok()?;
        match split(text) {
            Some(_) => Network::of_pattern(text).ok().flatten(),
            None => {
                let address: IpAddr = text.strip_prefix(SOURCE).unwrap_or(text).parse().ok()?;
                Some(Network::around(address, bits_of(address)))
            }
        }
    }

    /// Whether all of another network lies in it.
    pub(super) fn contains(&self, other: &Network) -> bool {
        self.is_v6 == other.is_v6
            && self.length <= other.length
            && (self.bits ^ other.bits) & mask(self.length) == 0
    }

    pub(super) fn length(&self) -> u8 {
        self.length
    }

    fn begins_at(&self, address: IpAddr) -> bool {
        Network::around(address, bits_of(address)).bits == self.bits
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let address: IpAddr = if self.is_v6 {
            Ipv6Addr::from_bits(self.bits).into()
        } else {
            let bits = u32::try_from(self.bits >> MAPPED_BITS).unwrap_or_default();
            Ipv4Addr::from_bits(bits).into()
        };
        write!(f, "{address}/{}", self.length)
    }
}

/// What stands before the last slash and the digits after it.
fn split(text: &str) -> Option<(&str, &str)> {
    let (address, length) = text.rsplit_once('/')?;
    let digits = !length.is_empty() && length.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| (address.strip_prefix(SOURCE).unwrap_or(address), length))
}

fn looks_like_address(text: &str) -> bool {
    let v4 = |byte: u8| byte.is_ascii_digit() || byte == b'.';
    let v6 = |byte: u8| byte.is_ascii_hexdigit() || byte == b'.' || byte == b':';
    (text.contains('.') && text.bytes().all(v4))
        || (text.matches(':').count() > 1 && text.bytes().all(v6))
}

fn bits_of(address: IpAddr) -> u8 {
    if address.is_ipv4() { V4_BITS } else { V6_BITS }
}

/// As many ones as the length, from the highest bit on.
fn mask(length: u8) -> u128 {
    u128::MAX.checked_shl(u32::from(V6_BITS.saturating_sub(length))).unwrap_or(0)
}
