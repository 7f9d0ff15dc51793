//! Keys: the bytes that identify who is limited.

use std::fmt;

use tollgate_algorithms::{MAX_KEY_LEN, RequestError};

use crate::as_key::{AsKey, KeyBuffer};

/// A key: any 1 to 65,536 bytes. Methods of limiters also take other values, see [`AsKey`].
///
/// # Examples
/// ```
/// use tollgate_state::Key;
/// assert_eq!(Key::new("user:42")?.as_bytes(), b"user:42");
/// assert!(Key::new("").is_err());
/// # Ok::<(), tollgate_algorithms::RequestError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key<'a>(&'a [u8]);

impl<'a> Key<'a> {
    /// Creates a key from bytes.
    ///
    /// # Errors
    /// Returns an error if there are no bytes, or more than 65,536.
    #[inline]
    pub fn new<B: AsRef<[u8]> + ?Sized>(bytes: &'a B) -> Result<Self, RequestError> {
        let bytes = bytes.as_ref();
        match bytes.len() {
            0 => Err(RequestError::EmptyKey),
            len if len > MAX_KEY_LEN => Err(RequestError::LongKey(len)),
            _ => Ok(Key(bytes)),
        }
    }

    /// The key of these bytes, whose length is valid.
    #[inline]
    pub(crate) const fn from_valid(bytes: &'a [u8]) -> Self {
        Key(bytes)
    }

    /// Returns the bytes of the key.
    #[must_use]
    #[inline]
    pub const fn as_bytes(self) -> &'a [u8] {
        self.0
    }
}

impl AsRef<[u8]> for Key<'_> {
    fn as_ref(&self) -> &[u8] {
        self.0
    }
}

impl AsRef<[u8]> for KeyBuf {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Key<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({})", self.0.escape_ascii())
    }
}

/// An owned key, such as one joined from parts.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyBuf(Box<[u8]>);

impl KeyBuf {
    /// Joins parts with `|`. Within a part, `|` and `%` are escaped as `%7C` and `%25`, so that
    /// different parts never form the same key: `a`, `bc` is `a|bc`, and `ab`, `c` is `ab|c`.
    ///
    /// # Errors
    /// Returns an error if the result is empty or longer than 65,536 bytes.
    ///
    /// # Examples
    /// ```
    /// use tollgate_state::KeyBuf;
    /// let key = KeyBuf::join(["acme", "10.0.0.1"])?;
    /// assert_eq!(key.key().as_bytes(), b"acme|10.0.0.1");
    /// assert_ne!(KeyBuf::join(["a|b", "c"])?, KeyBuf::join(["a", "b|c"])?);
    /// # Ok::<(), tollgate_algorithms::RequestError>(())
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

    /// Returns the text of a value as a key. [`AsKey`] describes texts that are empty or too long.
    ///
    /// # Examples
    /// ```
    /// use tollgate_state::KeyBuf;
    /// let (tenant, user) = ("acme", 42);
    /// let key = KeyBuf::display(format_args!("{tenant}/{user}"));
    /// assert_eq!(key.key().as_bytes(), b"acme/42");
    /// ```
    #[must_use]
    pub fn display(value: impl fmt::Display) -> Self {
        KeyBuf(KeyBuffer::new().display(value).as_bytes().into())
    }

    /// Borrows the key.
    #[must_use]
    pub fn key(&self) -> Key<'_> {
        Key(&self.0)
    }
}

/// Copies the key.
impl<T: AsKey + ?Sized> From<&T> for KeyBuf {
    fn from(value: &T) -> Self {
        KeyBuf(value.as_key(&mut KeyBuffer::new()).as_bytes().into())
    }
}

impl fmt::Debug for KeyBuf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.key().fmt(f)
    }
}
