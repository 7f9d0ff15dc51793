//! Reading bytes whose lengths cannot be trusted, and writing such.

use alloc::vec::Vec;

use super::{Malformed, ensure};

/// What is left of some bytes that are being read.
///
/// # Example
/// ```
/// use tollgate_core::codec::Bytes;
/// let mut bytes = Bytes::new(&[7, 2, 0, 0, 0, b'h', b'i']);
/// assert_eq!(bytes.u8()?, 7);
/// assert_eq!(bytes.text()?, "hi");
/// assert!(bytes.is_empty() && bytes.u8().is_err());
/// # Ok::<(), tollgate_core::codec::Malformed>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    /// These bytes, none of them read.
    #[must_use]
    pub const fn new(bytes: &'a [u8]) -> Self {
        Bytes(bytes)
    }

    /// How many are left.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether none is left.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The next `len` bytes.
    ///
    /// # Errors
    /// Fewer are left.
    pub fn take(&mut self, len: usize) -> Result<&'a [u8], Malformed> {
        let (taken, left) = self.0.split_at_checked(len).ok_or(CUT_OFF)?;
        self.0 = left;
        Ok(taken)
    }

    /// All that are left.
    pub fn take_rest(&mut self) -> &'a [u8] {
        core::mem::take(&mut self.0)
    }

    /// The next bytes, as an array.
    ///
    /// # Errors
    /// Fewer are left.
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (taken, left) = self.0.split_first_chunk().ok_or(CUT_OFF)?;
        self.0 = left;
        Ok(*taken)
    }

    /// The next byte.
    ///
    /// # Errors
    /// None is left.
    pub fn u8(&mut self) -> Result<u8, Malformed> {
        self.array().map(u8::from_le_bytes)
    }

    /// The next byte, as yes or no.
    ///
    /// # Errors
    /// None is left, or it is neither 0 nor 1.
    pub fn flag(&mut self) -> Result<bool, Malformed> {
        let value = self.u8()?;
        ensure(value <= 1, "a flag that is neither 0 nor 1")?;
        Ok(value == 1)
    }

    /// The next 16 bits.
    ///
    /// # Errors
    /// Fewer are left.
    pub fn u16(&mut self) -> Result<u16, Malformed> {
        self.array().map(u16::from_le_bytes)
    }

    /// The next 32 bits.
    ///
    /// # Errors
    /// Fewer are left.
    pub fn u32(&mut self) -> Result<u32, Malformed> {
        self.array().map(u32::from_le_bytes)
    }

    /// The next 64 bits.
    ///
    /// # Errors
    /// Fewer are left.
    pub fn u64(&mut self) -> Result<u64, Malformed> {
        self.array().map(u64::from_le_bytes)
    }

    /// The next 128 bits.
    ///
    /// # Errors
    /// Fewer are left.
    pub fn u128(&mut self) -> Result<u128, Malformed> {
        self.array().map(u128::from_le_bytes)
    }

    /// A count of things that take at least `each` bytes: so many that they can be there.
    ///
    /// # Errors
    /// That many bytes are not left.
    pub fn count(&mut self, each: usize) -> Result<usize, Malformed> {
        let count = usize::try_from(self.u32()?).map_err(|_| CUT_OFF)?;
        let bytes = count.checked_mul(each).ok_or(CUT_OFF)?;
        ensure(bytes <= self.len(), CUT_OFF.0)?;
        Ok(count)
    }

    /// A length and that many bytes.
    ///
    /// # Errors
    /// That many are not left.
    pub fn prefixed(&mut self) -> Result<&'a [u8], Malformed> {
        let len = self.count(1)?;
        self.take(len)
    }

    /// A length and that many bytes of UTF-8.
    ///
    /// # Errors
    /// That many are not left, or they are not UTF-8.
    pub fn text(&mut self) -> Result<&'a str, Malformed> {
        core::str::from_utf8(self.prefixed()?).map_err(|_| Malformed("a text that is not UTF-8"))
    }
}

const CUT_OFF: Malformed = Malformed("it ends too early");

/// Appends a count or a length.
///
/// None that is kept comes near 2^32: a key has at most 64 KiB, a log takes 16 bytes an entry.
/// One that did would be written as 2^32 − 1, which reading refuses.
pub fn put_count(out: &mut Vec<u8>, count: usize) {
    out.extend_from_slice(&u32::try_from(count).unwrap_or(u32::MAX).to_le_bytes());
}

/// Appends a length and the bytes.
pub fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_count(out, bytes.len());
    out.extend_from_slice(bytes);
}
