//! Numbers of keys and arguments: of 7 bytes, or of 7 bits a byte.

use tollgate_algorithms::codec::{Bytes, Malformed};

use super::ensure;

pub(super) fn prefixed<'a>(from: &mut Bytes<'a>) -> Result<&'a [u8], Malformed> {
    let len = usize::from(from.u16()?);
    from.take(len)
}

/// The greatest number that a double represents exactly together with all lower ones. It exceeds
/// every capacity.
pub(crate) const MAX_NUMBER: u64 = (1 << 53) - 1;

/// Decodes a number of 7 bytes.
pub(crate) fn number(from: &mut Bytes<'_>) -> Result<u64, Malformed> {
    let mut bytes = [0; 8];
    bytes[..7].copy_from_slice(from.take(7)?);
    Ok(u64::from_le_bytes(bytes))
}

/// Appends a number of 7 bytes.
pub(crate) fn put_number(out: &mut Vec<u8>, number: u64) {
    debug_assert!(number < 1 << 56);
    out.extend_from_slice(&number.to_le_bytes()[..7]);
}

#[expect(clippy::expect_used, reason = "the form of 16 limits has at most 640 bytes")]
pub(super) fn put_u16(out: &mut Vec<u8>, number: usize) {
    out.extend_from_slice(&u16::try_from(number).expect("a number of 16 bits").to_le_bytes());
}

pub(super) fn put_varint(out: &mut Vec<u8>, mut number: u64) {
    loop {
        let low = number.to_le_bytes()[0] & 0x7f;
        number >>= 7;
        if number == 0 {
            out.push(low);
            return;
        }
        out.push(low | 0x80);
    }
}

pub(super) fn varint(from: &mut Bytes<'_>) -> Result<u64, Malformed> {
    let (mut number, mut shift) = (0, 0);
    loop {
        let byte = from.u8()?;
        ensure(shift < 56, Malformed("a number is too long"))?;
        number |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Ok(number);
        }
        shift += 7;
    }
}
