//! Keys as numbers, so that each key is looked up once, when its line is read.

use hashbrown::HashTable;

use crate::convert::{index, to_u32, to_u64};

/// How many bytes of a key are stored inline. An IPv4 address and the network of an IPv6 address are
/// shorter.
const INLINE: usize = 22;

/// The keys of a partition with their policies, numbered from 0.
#[derive(Debug, Default)]
pub(crate) struct Keys {
    /// The number of each key, with 32 bits of its hash.
    table: HashTable<(u32, u32)>,
    slots: Vec<Slot>,
    /// The bytes of keys that are not inline.
    long: Vec<u8>,
}

/// A key in 32 bytes, so that two share a cache line.
#[derive(Clone, Copy, Debug)]
struct Slot {
    policy: u32,
    length: u32,
    /// The bytes of the key, or the position of a long key.
    bytes: [u8; INLINE + 2],
}

impl Slot {
    fn bytes<'a>(&'a self, long: &'a [u8]) -> &'a [u8] {
        let length = index(self.length);
        if length <= INLINE {
            return &self.bytes[..length];
        }
        let start = long_start(&self.bytes);
        &long[start..start + length]
    }
}

fn long_start(bytes: &[u8; INLINE + 2]) -> usize {
    let mut start = [0; 8];
    start.copy_from_slice(&bytes[..8]);
    index(u64::from_le_bytes(start))
}

/// Spreads the stored half of a hash over 64 bits.
fn spread(half: u32) -> u64 {
    u64::from(half).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

impl Keys {
    /// The number of keys.
    pub(crate) fn len(&self) -> usize {
        self.slots.len()
    }

    /// The number of a key, and whether it is new; `None` if all numbers are in use.
    pub(crate) fn number(&mut self, half: u32, policy: u32, key: &[u8]) -> Option<(u32, bool)> {
        let Keys { table, slots, long } = self;
        let is_equal = |&(tag, number): &(u32, u32)| {
            let slot = &slots[index(number)];
            tag == half && slot.policy == policy && slot.bytes(long) == key
        };
        if let Some(&(_, number)) = table.find(spread(half), is_equal) {
            return Some((number, false));
        }
        let number = u32::try_from(slots.len()).ok().filter(|number| *number < u32::MAX)?;
        let mut bytes = [0; INLINE + 2];
        if key.len() <= INLINE {
            bytes[..key.len()].copy_from_slice(key);
        } else {
            bytes[..8].copy_from_slice(&to_u64(long.len()).to_le_bytes());
            long.extend_from_slice(key);
        }
        slots.push(Slot { policy, length: to_u32(key.len()), bytes });
        table.insert_unique(spread(half), (half, number), |&(tag, _)| spread(tag));
        Some((number, true))
    }

    /// A key, and the number of its policy.
    pub(crate) fn get(&self, number: u32) -> (u32, &[u8]) {
        let slot = &self.slots[index(number)];
        (slot.policy, slot.bytes(&self.long))
    }
}
