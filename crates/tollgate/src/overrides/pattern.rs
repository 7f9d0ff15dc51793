//! Patterns: which keys an override applies to.

use std::borrow::Cow;
use std::fmt;
use std::net::IpAddr;

use ipnet::IpNet;
use tollgate_algorithms::MAX_KEY_LEN;

/// Which keys an override applies to.
///
/// | Pattern | Keys |
/// |---|---|
/// | `vip` | this key |
/// | `bot-*` | keys that start with `bot-`; a star is allowed at the end only |
/// | `10.0.0.0/8`, `2001:db8::/32` | keys that are an address in the network, such as `10.1.2.3`, or a network within it, such as `2001:db8:1::/64`; `ip=` before the address is ignored |
/// | `vip\*`, `10.0.0.0\/8`, `a\\b` | the keys `vip*`, `10.0.0.0/8`, `a\b` |
///
/// An address alone is an exact key: `10.0.0.1/32` also matches `ip=10.0.0.1` and `::ffff:10.0.0.1`.
/// `0.0.0.0/0` is all of IPv4 and `::/0` all of IPv6; IPv4-mapped IPv6 addresses count as IPv4.
///
/// # Examples
/// ```
/// use tollgate::KeyPattern;
/// assert!(KeyPattern::parse("bot-*").is_ok());
/// let error = KeyPattern::parse("10.0.0.1/8").unwrap_err();
/// assert_eq!(
///     error.to_string(),
///     "the address has bits set beyond the prefix length; write 10.0.0.0/8"
/// );
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct KeyPattern<'a>(pub(super) Shape<'a>);

/// What a [`KeyPattern`] matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum KeyPatternKind<'p> {
    /// This key.
    Exact(&'p [u8]),
    /// Keys that start with these bytes.
    Prefix(&'p [u8]),
    /// Keys that are an address in a network, or a network within it.
    Network,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Shape<'a> {
    Exact(Cow<'a, [u8]>),
    /// Without the star.
    Prefix(Cow<'a, [u8]>),
    Network(IpNet),
}

impl<'a> KeyPattern<'a> {
    /// Parses a pattern.
    ///
    /// # Errors
    /// Returns an error if the pattern is empty, too long, matches every key, has a misplaced star
    /// or backslash, or looks like a network and is not one.
    pub fn parse(text: &'a str) -> Result<Self, PatternError> {
        if let Some(network) = parse_network(text)? {
            return Ok(KeyPattern(Shape::Network(network)));
        }
        let (bytes, is_prefix) = unescape(text)?;
        match (bytes.len(), is_prefix) {
            (0, true) => Err(PatternError::Everything),
            (0, false) => Err(PatternError::Empty),
            (length, _) if length > MAX_KEY_LEN => Err(PatternError::Long(length)),
            (_, true) => Ok(KeyPattern(Shape::Prefix(bytes))),
            (_, false) => Ok(KeyPattern(Shape::Exact(bytes))),
        }
    }

    /// Returns the pattern of one key, which may be any bytes.
    ///
    /// # Errors
    /// Returns an error if the key is empty or longer than [`MAX_KEY_LEN`](crate::MAX_KEY_LEN).
    pub fn exact<B: AsRef<[u8]> + ?Sized>(key: &'a B) -> Result<Self, PatternError> {
        match key.as_ref() {
            [] => Err(PatternError::Empty),
            key if key.len() > MAX_KEY_LEN => Err(PatternError::Long(key.len())),
            key => Ok(KeyPattern(Shape::Exact(Cow::Borrowed(key)))),
        }
    }

    /// Returns what the pattern matches.
    #[must_use]
    pub fn kind(&self) -> KeyPatternKind<'_> {
        match &self.0 {
            Shape::Exact(key) => KeyPatternKind::Exact(key),
            Shape::Prefix(prefix) => KeyPatternKind::Prefix(prefix),
            Shape::Network(_) => KeyPatternKind::Network,
        }
    }
}

/// Prints the pattern as it is written.
impl fmt::Display for KeyPattern<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (bytes, star) = match &self.0 {
            Shape::Exact(key) => (key, ""),
            Shape::Prefix(prefix) => (prefix, "*"),
            Shape::Network(network) => return network.fmt(f),
        };
        let text = String::from_utf8_lossy(bytes);
        let is_network = !matches!(parse_network(&text), Ok(None));
        for c in text.chars() {
            if matches!(c, '*' | '\\') || (c == '/' && is_network) {
                f.write_str("\\")?;
            }
            write!(f, "{c}")?;
        }
        f.write_str(star)
    }
}

/// Resolves the escapes of a pattern; returns also whether it ends with a star.
fn unescape(text: &str) -> Result<(Cow<'_, [u8]>, bool), PatternError> {
    if !text.contains('\\') {
        let (prefix, is_prefix) = text.strip_suffix('*').map_or((text, false), |x| (x, true));
        if prefix.contains('*') {
            return Err(PatternError::Star);
        }
        return Ok((prefix.as_bytes().into(), is_prefix));
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        match byte {
            b'\\' => match rest.next() {
                Some(value @ (b'*' | b'/' | b'\\')) => bytes.push(value),
                _ => return Err(PatternError::Backslash),
            },
            b'*' if rest.len() == 0 => return Ok((bytes.into(), true)),
            b'*' => return Err(PatternError::Star),
            byte => bytes.push(byte),
        }
    }
    Ok((bytes.into(), false))
}

/// The prefix of a key that a rule builds from an address among alternatives.
const SOURCE: &str = "ip=";
/// The length of the longest text of a network.
const MAX_NETWORK_LEN: usize = "ip=0000:0000:0000:0000:0000:ffff:255.255.255.255/128".len();
/// The bits that precede the IPv4 address in an IPv4-mapped IPv6 address.
const MAPPED_BITS: u8 = 96;

/// Parses a pattern as a network; `None` if it does not look like one.
fn parse_network(text: &str) -> Result<Option<IpNet>, PatternError> {
    let Some((address, length)) = split_network(text) else { return Ok(None) };
    let Ok(address) = address.parse::<IpAddr>() else {
        return if looks_like_address(address) { Err(PatternError::Address) } else { Ok(None) };
    };
    let max = IpNet::from(address).max_prefix_len();
    let length = length.parse().map_err(|_| PatternError::Length { max })?;
    let network = IpNet::new(address, length).map_err(|_| PatternError::Length { max })?;
    let network = unmapped(network);
    if network != network.trunc() {
        let network = network.trunc().to_string().into();
        return Err(PatternError::BeyondLength { network });
    }
    Ok(Some(network))
}

/// Parses a key that is an address, or a network that stands for all its addresses, such as
/// `2001:db8::/64`.
pub(super) fn network_of_key(key: &[u8]) -> Option<IpNet> {
    if key.len() > MAX_NETWORK_LEN {
        return None;
    }
    let text = str::from_utf8(key).ok()?;
    if split_network(text).is_some() {
        return parse_network(text).ok().flatten();
    }
    let address: IpAddr = text.strip_prefix(SOURCE).unwrap_or(text).parse().ok()?;
    Some(unmapped(address.into()))
}

/// Turns an IPv4-mapped IPv6 network into the IPv4 network; other networks stay as they are.
fn unmapped(network: IpNet) -> IpNet {
    let IpNet::V6(v6) = network else { return network };
    match (v6.addr().to_ipv4_mapped(), v6.prefix_len().checked_sub(MAPPED_BITS)) {
        (Some(v4), Some(length)) =>
        {
            #[expect(clippy::expect_used, reason = "an IPv6 length is at most 128")]
            IpNet::new(v4.into(), length).expect("128 - 96 bits are the length of IPv4")
        }
        _ => network,
    }
}

/// Splits a text at its last slash if only digits follow; drops [`SOURCE`].
fn split_network(text: &str) -> Option<(&str, &str)> {
    let (address, length) = text.rsplit_once('/')?;
    let has_digits = !length.is_empty() && length.bytes().all(|byte| byte.is_ascii_digit());
    has_digits.then(|| (address.strip_prefix(SOURCE).unwrap_or(address), length))
}

fn looks_like_address(text: &str) -> bool {
    let v4 = |byte: u8| byte.is_ascii_digit() || byte == b'.';
    let v6 = |byte: u8| byte.is_ascii_hexdigit() || byte == b'.' || byte == b':';
    (text.contains('.') && text.bytes().all(v4))
        || (text.matches(':').count() > 1 && text.bytes().all(v6))
}

/// Why a key pattern is invalid.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PatternError {
    /// The pattern is empty.
    Empty,
    /// The pattern has more bytes than a key can have.
    Long(usize),
    /// The pattern is a star alone.
    Everything,
    /// A star is not at the end.
    Star,
    /// A backslash does not precede a star, a slash or a backslash.
    Backslash,
    /// The address of a network has bits set beyond the prefix length.
    BeyondLength {
        /// The network that contains the address.
        network: Box<str>,
    },
    /// The prefix length of a network exceeds the bits of its address.
    Length {
        /// The number of bits of the address.
        max: u8,
    },
    /// The text before the slash looks like an address, but is not a complete one.
    Address,
}

impl fmt::Display for PatternError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PatternError::Empty => f.write_str("the pattern is empty; write a key such as user:42"),
            PatternError::Long(length) => {
                write!(f, "the pattern is {length} bytes long; a key has at most {MAX_KEY_LEN}")
            }
            PatternError::Everything => f.write_str(
                "* alone matches every key; change the limits of the policy instead",
            ),
            PatternError::Star => f.write_str(
                r"* matches the rest of a key and must come last; write \* for a literal star",
            ),
            PatternError::Backslash => f.write_str(
                r"a backslash must precede *, / or \; write \\ for a literal backslash",
            ),
            PatternError::BeyondLength { network } => {
                write!(f, "the address has bits set beyond the prefix length; write {network}")
            }
            PatternError::Length { max } => {
                write!(f, r"the prefix length is at most {max}; write \/ for a literal slash")
            }
            PatternError::Address => f.write_str(
                r"incomplete network address; write it as 10.0.0.0/8 or 2001:db8::/32, or write \/ for a literal slash",
            ),
        }
    }
}

impl std::error::Error for PatternError {}
