//! Hashes of keys: cluster slots, and buckets for partitions and connections.

use std::hash::Hasher;

use fnv::FnvHasher;

/// The number of slots of a cluster.
pub(crate) const SLOTS: u16 = 16_384;

/// Returns the cluster slot of bytes without a hash tag: their CRC-16 (XMODEM), modulo [`SLOTS`].
pub(crate) fn slot(bytes: &[u8]) -> u16 {
    let crc = bytes.iter().fold(0_u16, |crc, byte| {
        (0..8).fold(crc ^ (u16::from(*byte) << 8), |crc, _| {
            let shifted = crc << 1;
            if crc & 0x8000 == 0 { shifted } else { shifted ^ 0x1021 }
        })
    });
    crc % SLOTS
}

/// Returns the FNV-1a hash of bytes, with one round of the MurmurHash3 finalizer, because the last
/// bytes reach only some bits of FNV-1a. Partitions depend on it: it must never change.
pub(crate) fn hash(bytes: &[u8]) -> u64 {
    let mut hasher = FnvHasher::default();
    hasher.write(bytes);
    let hash = hasher.finish();
    (hash ^ (hash >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd)
}

/// Returns the bucket of a hash among `count` buckets.
#[expect(clippy::expect_used, reason = "a remainder is below the count, which is a usize")]
pub(crate) fn bucket(hash: u64, count: usize) -> usize {
    let count = u64::try_from(count).expect("usize fits u64");
    usize::try_from(hash % count).expect("a remainder fits usize")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_match_the_cluster_specification() {
        assert_eq!(slot(b"123456789"), 0x31c3 % SLOTS);
        assert_eq!(slot(b"foo"), 12_182);
    }
}
