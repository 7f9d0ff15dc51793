//! Conversions between integers that cannot fail on supported targets.

/// An index or a length as a `usize`.
#[expect(clippy::expect_used, reason = "an index lies within a collection in memory")]
pub(crate) fn index(number: impl TryInto<usize>) -> usize {
    number.try_into().ok().expect("an index fits a usize")
}

/// A length as 64 bits.
#[expect(clippy::expect_used, reason = "supported targets have at most 64-bit addresses")]
pub(crate) fn to_u64(number: usize) -> u64 {
    u64::try_from(number).expect("a usize fits 64 bits")
}

/// A count or a position in a picture.
#[expect(clippy::expect_used, reason = "pictures have few panels and marks")]
pub(crate) fn to_i32(number: usize) -> i32 {
    i32::try_from(number).expect("a small number")
}

/// A number that the caller knows to be below 2^32.
#[expect(clippy::expect_used, reason = "callers pass numbers below 2^32")]
pub(crate) fn to_u32(number: impl TryInto<u32>) -> u32 {
    number.try_into().ok().expect("a number below 2^32")
}
