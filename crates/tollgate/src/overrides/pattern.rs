//! Which keys an override is of, as it is written.

use std::borrow::Cow;

use tollgate_core::MAX_KEY_LEN;

use super::error::PatternError;
use super::network::Network;

/// Which keys an override is of.
///
/// | Written | Which keys |
/// |---|---|
/// | `vip` | this key |
/// | `bot-*` | keys that begin with `bot-`; a star stands at the end only |
/// | `10.0.0.0/8`, `2001:db8::/32` | keys that are an address in the network, such as `10.1.2.3`, or a network that lies in it, such as `2001:db8:1::/64`; `ip=` before the address does not matter |
/// | `vip\*`, `10.0.0.0\/8`, `a\\b` | the keys `vip*`, `10.0.0.0/8`, `a\b` |
///
/// An address alone is this key and no other: write `10.0.0.1/32` for whatever is that address.
/// `0.0.0.0/0` is all of IPv4, `::/0` all of IPv6, and IPv4 that is written as IPv6
/// (`::ffff:10.0.0.1`) is IPv4.
///
/// # Example
/// ```
/// use tollgate::KeyPattern;
/// assert!(KeyPattern::parse("bot-*").is_ok());
/// let error = KeyPattern::parse("10.0.0.1/8").unwrap_err();
/// assert_eq!(error.to_string(), "the address has bits beyond the length; write 10.0.0.0/8");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct KeyPattern<'a>(pub(super) Shape<'a>);

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Shape<'a> {
    Exact(Cow<'a, [u8]>),
    /// Without the star.
    Prefix(Cow<'a, [u8]>),
    Network(Network),
}

impl<'a> KeyPattern<'a> {
    /// Reads a pattern.
    ///
    /// # Errors
    /// It says no keys, or looks like a network and is none.
    pub fn parse(text: &'a str) -> Result<Self, PatternError> {
        if let Some(network) = Network::of_pattern(text)? {
            return Ok(KeyPattern(Shape::Network(network)));
        }
        let (bytes, is_prefix) = unescaped(text)?;
        match (bytes.len(), is_prefix) {
            (0, true) => Err(PatternError::Everything),
            (0, false) => Err(PatternError::Empty),
            (length, _) if length > MAX_KEY_LEN => Err(PatternError::Long(length)),
            (_, true) => Ok(KeyPattern(Shape::Prefix(bytes))),
            (_, false) => Ok(KeyPattern(Shape::Exact(bytes))),
        }
    }

    /// The pattern of one key, of any bytes.
    ///
    /// # Errors
    /// They are none, or more than a key's.
    pub fn exact<B: AsRef<[u8]> + ?Sized>(key: &'a B) -> Result<Self, PatternError> {
        match key.as_ref() {
            [] => Err(PatternError::Empty),
            key if key.len() > MAX_KEY_LEN => Err(PatternError::Long(key.len())),
            key => Ok(KeyPattern(Shape::Exact(Cow::Borrowed(key)))),
        }
    }
}

/// The bytes that a text means, and whether a star ends it.
fn unescaped(text: &str) -> Result<(Cow<'_, [u8]>, bool), PatternError> {
    let Some(first) = text.find(['*', '\\']) else {
        return Ok((text.as_bytes().into(), false));
    };
    if first + 1 == text.len() && text.ends_with('*') {
        return Ok((text.as_bytes().get(..first).unwrap_or_default().into(), true));
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
