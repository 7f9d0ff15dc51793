//! Reading untrusted bytes, and writing lengths and counts.

use alloc::vec::Vec;
use core::fmt;

/// An error for bytes that cannot be decoded, with the reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed(pub &'static str);

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl core::error::Error for Malformed {}

/// Fails with `reason` unless `condition` is true.
pub(super) fn ensure(condition: bool, reason: &'static str) -> Result<(), Malformed> {
    if condition { Ok(()) } else { Err(Malformed(reason)) }
}

macro_rules! integer {
    ($type:ident) => {
        #[doc = concat!("Reads a little-endian `", stringify!($type), "`.")]
        ///
        /// # Errors
        /// Fewer bytes remain.
        pub fn $type(&mut self) -> Result<$type, Malformed> {
            self.array().map($type::from_le_bytes)
        }
    };
}

/// A cursor over untrusted bytes.
///
/// # Example
/// ```
/// use tollgate_algorithms::codec::Bytes;
/// let mut bytes = Bytes::new(&[7, 2, 0, 0, 0, b'h', b'i']);
/// assert_eq!(bytes.u8()?, 7);
/// assert_eq!(bytes.text()?, "hi");
/// assert!(bytes.is_empty() && bytes.u8().is_err());
/// # Ok::<(), tollgate_algorithms::codec::Malformed>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    /// Creates a cursor at the start of the bytes.
    #[must_use]
    pub const fn new(bytes: &'a [u8]) -> Self {
        Bytes(bytes)
    }

    /// The number of remaining bytes.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether no byte remains.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Reads `len` bytes.
    ///
    /// # Errors
    /// Fewer bytes remain.
    pub fn take(&mut self, len: usize) -> Result<&'a [u8], Malformed> {
        let (taken, left) = self.0.split_at_checked(len).ok_or(CUT_OFF)?;
        self.0 = left;
        Ok(taken)
    }

    /// Reads all remaining bytes.
    pub fn take_rest(&mut self) -> &'a [u8] {
        core::mem::take(&mut self.0)
    }

    /// Reads an array of bytes.
    ///
    /// # Errors
    /// Fewer bytes remain.
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (taken, left) = self.0.split_first_chunk().ok_or(CUT_OFF)?;
        self.0 = left;
        Ok(*taken)
    }

    integer!(u8);
    integer!(u16);
    integer!(u32);
    integer!(u64);
    integer!(u128);

    /// Reads a flag: a byte that is 0 or 1.
    ///
    /// # Errors
    /// No byte remains, or it is neither 0 nor 1.
    pub fn flag(&mut self) -> Result<bool, Malformed> {
        let value = self.u8()?;
        ensure(value <= 1, "a flag is neither 0 nor 1")?;
        Ok(value == 1)
    }

    /// Reads a count of items of at least `each` bytes.
    ///
    /// # Errors
    /// Fewer bytes remain than the items need.
    pub fn count(&mut self, each: usize) -> Result<usize, Malformed> {
        let count = usize::try_from(self.u32()?).map_err(|_| CUT_OFF)?;
        let bytes = count.checked_mul(each).ok_or(CUT_OFF)?;
        ensure(bytes <= self.len(), CUT_OFF.0)?;
        Ok(count)
    }

    /// Reads a length and that many bytes.
    ///
    /// # Errors
    /// Fewer bytes remain.
    pub fn prefixed(&mut self) -> Result<&'a [u8], Malformed> {
        let len = self.count(1)?;
        self.take(len)
    }

    /// Reads a length and that many bytes of UTF-8.
    ///
    /// # Errors
    /// Fewer bytes remain, or they are not UTF-8.
    pub fn text(&mut self) -> Result<&'a str, Malformed> {
        core::str::from_utf8(self.prefixed()?).map_err(|_| Malformed("a text is not UTF-8"))
    }
}

const CUT_OFF: Malformed = Malformed("unexpected end of data");

/// Appends a count or a length.
#[expect(clippy::expect_used, reason = "a key has at most 64 KiB, a log 16 bytes an entry")]
pub(super) fn put_count(out: &mut Vec<u8>, count: usize) {
    out.extend_from_slice(&u32::try_from(count).expect("a count of 32 bits").to_le_bytes());
}

/// Appends a length and the bytes.
///
/// # Panics
/// There are 2^32 bytes or more.
pub fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_count(out, bytes.len());
    out.extend_from_slice(bytes);
}
