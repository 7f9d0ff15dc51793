//! Who is limited: any bytes, and ways to join several into one without a collision.

use std::fmt;

use tollgate_core::{MAX_KEY_LEN, RequestError};

/// A key: 1 to 65,536 bytes, any bytes.
///
/// # Example
/// ```
/// use tollgate_store::Key;
/// assert_eq!(Key::new("user:42")?.as_bytes(), b"user:42");
/// assert!(Key::new("").is_err());
/// # Ok::<(), tollgate_core::RequestError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key<'a>(&'a [u8]);

impl<'a> Key<'a> {
    /// The key of these bytes.
    ///
    /// # Errors
    /// They are none, or more than 65,536.
    #[inline]
    pub fn new<B: AsRef<[u8]> + ?Sized>(bytes: &'a B) -> Result<Self, RequestError> {
        let bytes = bytes.as_ref();
        match bytes.len() {
            0 => Err(RequestError::EmptyKey),
            len if len > MAX_KEY_LEN => Err(RequestError::LongKey(len)),
            _ => Ok(Key(bytes)),
        }
    }

    /// Its bytes.
    #[must_use]
    #[inline]
    pub const fn as_bytes(self) -> &'a [u8] {
        self.0
    }
}

impl fmt::Debug for Key<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({})", self.0.escape_ascii())
    }
}

/// A key of its own bytes, such as one joined from parts.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyBuf(Box<[u8]>);

impl KeyBuf {
    /// Joins parts with `|`; within a part `|` and `%` are written `%7C` and `%25`. So different
    /// parts never make the same key: `a`, `bc` is `a|bc`, and `ab`, `c` is `ab|c`.
    ///
    /// # Errors
    /// There is no part, or the whole is longer than 65,536 bytes.
    ///
    /// # Example
    /// ```
    /// use tollgate_store::KeyBuf;
    /// let key = KeyBuf::join(["acme", "10.0.0.1"])?;
    /// assert_eq!(key.key().as_bytes(), b"acme|10.0.0.1");
    /// assert_ne!(KeyBuf::join(["a|b", "c"])?, KeyBuf::join(["a", "b|c"])?);
    /// # Ok::<(), tollgate_core::RequestError>(())
    /// ```
    pub fn join<P: AsRef<[u8]>>(parts: impl IntoIterator<Item = P>) -> Result<Self, RequestError> {
        let mut bytes = Vec::new();
        for (index, part) in parts.into_iter().enumerate() {
            if index > 0 {
                bytes.push(b'|');
            }
            for byte in part.as_ref() {
                match byte {
                    b'|' => bytes.extend_from_slice(b"%7C"),
                    b'%' => bytes.extend_from_slice(b"%25"),
                    byte => bytes.push(*byte),
                }
            }
        }
        Key::new(&bytes)?;
        Ok(KeyBuf(bytes.into_boxed_slice()))
    }

    /// It, borrowed.
    #[must_use]
    pub fn key(&self) -> Key<'_> {
        Key(&self.0)
    }
}

impl fmt::Debug for KeyBuf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.key().fmt(f)
    }
}
