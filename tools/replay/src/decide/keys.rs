//! Keys as numbers: each is looked up once, where its line is read.

use hashbrown::HashTable;

/// How many bytes of a key stand beside its number; what is longer stands apart. An IPv4 address, and
/// the network of an IPv6 address, are shorter.
const INLINE: usize = 22;

/// The keys of a partition, each with the policy it is asked under, by numbers from 0 on.
#[derive(Debug, Default)]
pub(crate) struct Keys {
    /// The number of each, with 32 bits of its hash.
    table: HashTable<(u32, u32)>,
    slots: Vec<Slot>,
    /// The bytes of long keys.
    long: Vec<u8>,
}

/// One key: 32 bytes, so that two stand on a cache line.
#[derive(Clone, Copy, Debug)]
struct Slot {
    policy: u32,
    length: u32,
    /// The bytes, or for a long key where they stand.
    bytes: [u8; INLINE + 2],
}

impl Slot {
    fn bytes<'a>(&'a self, long: &'a [u8]) -> &'a [u8] {
        let length = usize::try_from(self.length).unwrap_or(usize::MAX);
        if length <= INLINE {
            return &self.bytes[..length];
        }
        let start = place(&self.bytes);
        long.get(start..start + length).unwrap_or_default()
    }
}

fn place(bytes: &[u8; INLINE + 2]) -> usize {
    let mut start = [0; 8];
    start.copy_from_slice(&bytes[..8]);
    usize::try_from(u64::from_le_bytes(start)).unwrap_or(usize::MAX)
}

/// A hash of all bits from the half that is kept.
fn spread(half: u32) -> u64 {
    u64::from(half).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

impl Keys {
    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.slots.len()
    }

    /// The number of a key, and whether it is new. Nothing if there are as many as there can be.
    pub(crate) fn number(&mut self, half: u32, policy: u32, key: &[u8]) -> Option<(u32, bool)> {
        let Keys { table, slots, long } = self;
        let is_it = |&(tag, number): &(u32, u32)| {
            let slot = usize::try_from(number).ok().and_then(|x| slots.get(x));
            tag == half && slot.is_some_and(|slot| slot.policy == policy && slot.bytes(long) == key)
        };
        if let Some(&(_, number)) = table.find(spread(half), is_it) {
            return Some((number, false));
        }
        let number = u32::try_from(slots.len()).ok().filter(|x| *x < u32::MAX)?;
        let mut bytes = [0; INLINE + 2];
        if key.len() <= INLINE {
            bytes[..key.len()].copy_from_slice(key);
        } else {
            bytes[..8].copy_from_slice(&u64::try_from(long.len()).ok()?.to_le_bytes());
            long.extend_from_slice(key);
        }
        slots.push(Slot { policy, length: u32::try_from(key.len()).ok()?, bytes });
        table.insert_unique(spread(half), (half, number), |&(tag, _)| spread(tag));
        Some((number, true))
    }

    /// A key, and the policy it is asked under.
    pub(crate) fn get(&self, number: u32) -> (u32, &[u8]) {
        let slot = usize::try_from(number).ok().and_then(|x| self.slots.get(x));
        slot.map_or((0, &[][..]), |slot| (slot.policy, slot.bytes(&self.long)))
    }
}
