//! Constants of the snapshot format.

pub(super) const MAGIC: [u8; 8] = *b"TOLLGATE";
pub(super) const VERSION: u32 = 3;
/// The previous version, which differs only in that it has all keys as they are. It is read, but not
/// written.
pub(super) const VERSION_OF_TEXT_KEYS: u32 = 2;
/// The end of a block that does not end.
pub(super) const FOREVER: u64 = u64::MAX;

// The kinds of sections.
pub(super) const POLICY: u8 = 1;
pub(super) const TABLE: u8 = 2;
pub(super) const KEYS: u8 = 3;
pub(super) const BLOCKS: u8 = 4;
pub(super) const END: u8 = 5;

/// Converts a length or a count.
#[expect(clippy::expect_used, reason = "no platform has wider pointers")]
pub(super) fn to_u64(n: usize) -> u64 {
    n.try_into().expect("usize fits u64")
}
