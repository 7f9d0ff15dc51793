//! Values that can be keys: texts, bytes, numbers, addresses.

use std::borrow::Cow;
use std::fmt::{self, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use sha2::{Digest, Sha256};
use tollgate_algorithms::MAX_KEY_LEN;

use crate::key::{Key, KeyBuf};

/// A value that can be the key of a check.
///
/// | Value | Key |
/// |---|---|
/// | text, bytes | its bytes |
/// | an integer | its decimal digits: `42` and `"42"` are the same key |
/// | an IPv4 address, also an IPv4-mapped one | its text: `203.0.113.7` |
/// | any other IPv6 address | its network of 64 bits, because a client usually has all of it: `2001:db8::/64` |
/// | a value with [`Display`](fmt::Display) | [`KeyBuf::display`] has its text |
///
/// # Long and empty keys
/// A key has 1 to 65,536 bytes. Any other text or bytes are replaced by `%sha256:` and the SHA-256 of
/// the value in 64 hexadecimal digits. Two such values have the same key only if their digests are
/// equal; finding such a pair takes about 2^128 attempts. A value that *is* that text has the same key
/// as the value with this digest; keys of [`KeyBuf::join`] are never of that form. All stores keep a
/// key of more than 256 bytes as its SHA-256, truncated in memory to 208 bits, where a pair takes about
/// 2^104 attempts.
///
/// # Examples
/// ```
/// use tollgate_state::{AsKey, Key, KeyBuffer};
///
/// /// An account.
/// struct Account(u64);
///
/// impl AsKey for Account {
///     fn as_key<'a>(&'a self, buffer: &'a mut KeyBuffer) -> Key<'a> {
///         buffer.display(format_args!("account:{}", self.0))
///     }
/// }
///
/// assert_eq!(Account(42).as_key(&mut KeyBuffer::new()), "account:42".as_key(&mut KeyBuffer::new()));
/// ```
pub trait AsKey {
    /// Returns the key. `buffer` holds it if the value itself does not contain its bytes.
    fn as_key<'a>(&'a self, buffer: &'a mut KeyBuffer) -> Key<'a>;
}

/// The length of the text that replaces a long key.
const DIGEST_LEN: usize = DIGEST_PREFIX.len() + 64;
const DIGEST_PREFIX: &str = "%sha256:";

/// The bytes of a key while a method uses it. It allocates only for a text of more than 72 bytes.
#[derive(Clone, Debug, Default)]
pub struct KeyBuffer(Bytes);

/// `None` saves filling the array for a value that contains the bytes of its key.
#[derive(Clone, Debug, Default)]
enum Bytes {
    #[default]
    None,
    Short([u8; DIGEST_LEN], usize),
    Long(Vec<u8>),
}

impl KeyBuffer {
    /// Creates an empty buffer.
    #[must_use]
    #[inline]
    pub const fn new() -> Self {
        KeyBuffer(Bytes::None)
    }

    /// Returns the text of a value as a key.
    pub fn display(&mut self, value: impl fmt::Display) -> Key<'_> {
        self.write(value);
        if is_key(self.written()) {
            return Key::from_valid(self.written());
        }
        let mut digest = KeyBuffer::new();
        digest.write_digest(self.written());
        *self = digest;
        Key::from_valid(self.written())
    }

    fn write(&mut self, value: impl fmt::Display) {
        self.0 = Bytes::Short([0; DIGEST_LEN], 0);
        #[expect(clippy::expect_used, reason = "as documented for `ToString`")]
        write!(self, "{value}").expect("the value's `Display` returns no error");
    }

    fn write_digest(&mut self, value: &[u8]) {
        let digest = Sha256::digest(value);
        self.write(format_args!("{DIGEST_PREFIX}{digest:x}"));
    }

    fn written(&self) -> &[u8] {
        match &self.0 {
            Bytes::None => &[],
            Bytes::Short(bytes, len) => &bytes[..*len],
            Bytes::Long(bytes) => bytes,
        }
    }
}

impl Write for KeyBuffer {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let text = text.as_bytes();
        if let Bytes::Long(bytes) = &mut self.0 {
            bytes.extend_from_slice(text);
        } else if let Bytes::Short(bytes, len) = &mut self.0
            && let Some(place) = bytes.get_mut(*len..*len + text.len())
        {
            place.copy_from_slice(text);
            *len += text.len();
        } else {
            self.0 = Bytes::Long([self.written(), text].concat());
        }
        Ok(())
    }
}

const fn is_key(bytes: &[u8]) -> bool {
    !bytes.is_empty() && bytes.len() <= MAX_KEY_LEN
}

impl AsKey for [u8] {
    #[inline]
    fn as_key<'a>(&'a self, buffer: &'a mut KeyBuffer) -> Key<'a> {
        if is_key(self) {
            return Key::from_valid(self);
        }
        buffer.write_digest(self);
        Key::from_valid(buffer.written())
    }
}

impl AsKey for Key<'_> {
    #[inline]
    fn as_key<'a>(&'a self, _: &'a mut KeyBuffer) -> Key<'a> {
        *self
    }
}

impl AsKey for KeyBuf {
    #[inline]
    fn as_key<'a>(&'a self, _: &'a mut KeyBuffer) -> Key<'a> {
        self.key()
    }
}

impl<T: AsKey + ?Sized> AsKey for &T {
    #[inline]
    fn as_key<'a>(&'a self, buffer: &'a mut KeyBuffer) -> Key<'a> {
        T::as_key(self, buffer)
    }
}

impl<const N: usize> AsKey for [u8; N] {
    #[inline]
    fn as_key<'a>(&'a self, buffer: &'a mut KeyBuffer) -> Key<'a> {
        self[..].as_key(buffer)
    }
}

impl<T: AsKey + ToOwned + ?Sized> AsKey for Cow<'_, T> {
    fn as_key<'a>(&'a self, buffer: &'a mut KeyBuffer) -> Key<'a> {
        T::as_key(self, buffer)
    }
}

/// Implements the trait for types that contain text or bytes.
macro_rules! as_bytes {
    ($($type:ty: $as_bytes:ident,)*) => {
        $(impl AsKey for $type {
            #[inline]
            fn as_key<'a>(&'a self, buffer: &'a mut KeyBuffer) -> Key<'a> {
                self.$as_bytes().as_key(buffer)
            }
        })*
    };
}

as_bytes! {
    str: as_bytes,
    String: as_bytes,
    Box<str>: as_bytes,
    std::sync::Arc<str>: as_bytes,
    Vec<u8>: as_slice,
    Box<[u8]>: as_ref,
}

/// Implements the trait for types whose text is short and never empty.
macro_rules! as_text {
    ($($type:ty)*) => {
        $(impl AsKey for $type {
            fn as_key<'a>(&'a self, buffer: &'a mut KeyBuffer) -> Key<'a> {
                buffer.display(self)
            }
        })*
    };
}

as_text!(u8 u16 u32 u64 u128 usize i8 i16 i32 i64 i128 isize Ipv4Addr);

impl AsKey for IpAddr {
    fn as_key<'a>(&'a self, buffer: &'a mut KeyBuffer) -> Key<'a> {
        match self {
            IpAddr::V4(address) => address.as_key(buffer),
            IpAddr::V6(address) => address.as_key(buffer),
        }
    }
}

impl AsKey for Ipv6Addr {
    fn as_key<'a>(&'a self, buffer: &'a mut KeyBuffer) -> Key<'a> {
        match self.to_ipv4_mapped() {
            Some(address) => buffer.display(address),
            None => {
                let network = Ipv6Addr::from_bits(self.to_bits() & (u128::MAX << 64));
                buffer.display(format_args!("{network}/64"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(value: impl AsKey) -> String {
        let mut buffer = KeyBuffer::new();
        String::from_utf8(value.as_key(&mut buffer).as_bytes().to_vec()).unwrap()
    }

    #[test]
    fn values_are_the_documented_keys() {
        let ip = |text: &str| text.parse::<IpAddr>().unwrap();
        for (found, expected) in [
            (text("user:42"), "user:42"),
            (text(String::from("user:42")), "user:42"),
            (text(b"user:42"), "user:42"),
            (text(vec![b'a']), "a"),
            (text(Cow::Borrowed("a")), "a"),
            (text(Key::new("a").unwrap()), "a"),
            (text(KeyBuf::display(format_args!("user:{}", 42))), "user:42"),
            (text(42_u64), "42"),
            (text(-1_i8), "-1"),
            (text(ip("203.0.113.7")), "203.0.113.7"),
            (text(ip("::ffff:203.0.113.7")), "203.0.113.7"),
            (text(ip("2001:db8::1")), "2001:db8::/64"),
            (text(ip("2001:db8:0:0:ffff:ffff:ffff:ffff")), "2001:db8::/64"),
            (text("2001:db8:0:1::".parse::<Ipv6Addr>().unwrap()), "2001:db8:0:1::/64"),
            // The digest of the empty text, from FIPS 180-4.
            (text(""), "%sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
        ] {
            assert_eq!(found, expected);
        }
    }

    #[test]
    fn keys_up_to_the_maximum_are_unchanged_and_longer_ones_are_digests() {
        for len in [1, 72, 73, 256, MAX_KEY_LEN] {
            let long = "x".repeat(len);
            assert_eq!(text(&*long), long);
            assert_eq!(text(KeyBuf::display(&long)), long);
        }
        let (long, other) = ("x".repeat(MAX_KEY_LEN + 1), "x".repeat(MAX_KEY_LEN + 2));
        assert_eq!(text(&*long).len(), DIGEST_LEN);
        assert_eq!(text(&*long), text(KeyBuf::display(&long)));
        assert_ne!(text(&*long), text(&*other));
        // Written in parts, as most types do.
        let parts = KeyBuf::display(format_args!("{}{}{}", "a".repeat(50), "b".repeat(50), "c"));
        assert_eq!(text(parts), ["a".repeat(50), "b".repeat(50), "c".to_owned()].concat());
    }
}
