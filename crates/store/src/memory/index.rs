//! The index of a shard: finds the slot of an entry by its hash.
//!
//! It is an open-addressing hash table of chunks: a chunk has the tags and the slots of 12 entries in
//! one cache line, so that a key is found with two dependent reads of memory, of a chunk and of its
//! entry. A table that keeps its tags in one array and its slots in another takes three. An entry whose
//! chunk is full is placed in a later one, and the chunk counts it: a search ends at the first chunk
//! whose count is 0, and a removed entry leaves no marker.

use super::entry::SlotIndex;

/// The entries of a chunk.
const CHUNK_LEN: usize = 12;
/// The entries per chunk at which the number of chunks doubles.
const MAX_LOAD: usize = 10;

/// The tag of a free position.
const FREE: u8 = 0;

#[derive(Clone, Debug, Default)]
#[repr(C, align(64))]
struct Chunk {
    /// One byte of the hash of each entry.
    tags: [u8; CHUNK_LEN],
    /// How many entries are in later chunks because this one was full.
    overflow: u32,
    slots: [SlotIndex; CHUNK_LEN],
}

const _: () = assert!(size_of::<Chunk>() == 64);

impl Chunk {
    /// Returns the positions of a tag.
    #[inline]
    fn positions(&self, tag: u8) -> Positions {
        let [a, b, c, d, e, f, g, h, i, j, k, l] = self.tags;
        let low = equal_bytes(u64::from_le_bytes([a, b, c, d, e, f, g, h]), tag);
        let high = equal_bytes(u64::from(u32::from_le_bytes([i, j, k, l])), tag);
        Positions(low >> 7 | (high & 0xffff_ffff) >> 6)
    }
}

/// Returns the bytes of a word that equal `byte`, as their highest bits.
#[inline]
fn equal_bytes(word: u64, byte: u8) -> u64 {
    const LOW_BITS: u64 = u64::from_le_bytes([0x7f; 8]);
    let difference = word ^ u64::from_le_bytes([byte; 8]);
    // The highest bit of a byte becomes 1 unless all of its bits are 0; no sum exceeds its byte.
    !(((difference & LOW_BITS) + LOW_BITS) | difference | LOW_BITS)
}

/// Positions in a chunk. Bit 8 × n stands for position n, and bit 8 × n + 1 for position n + 8.
struct Positions(u64);

impl Iterator for Positions {
    type Item = usize;

    #[inline]
    fn next(&mut self) -> Option<usize> {
        if self.0 == 0 {
            return None;
        }
        let bit = self.0.trailing_zeros();
        self.0 &= self.0 - 1;
        usize::try_from(bit / 8 + bit % 8 * 8).ok()
    }
}

/// The slots of a shard by the hashes of their entries.
#[derive(Debug, Default)]
pub(super) struct Index {
    /// A power of two, or none.
    chunks: Box<[Chunk]>,
    len: usize,
}

impl Index {
    /// Creates an index with room for that many slots.
    pub(super) fn with_capacity(slots: usize) -> Self {
        let chunks = slots.div_ceil(MAX_LOAD).next_power_of_two();
        Index { chunks: vec![Chunk::default(); chunks].into(), len: 0 }
    }

    pub(super) const fn len(&self) -> usize {
        self.len
    }

    /// Returns how many slots fit before the index grows.
    pub(super) const fn capacity(&self) -> usize {
        self.chunks.len() * MAX_LOAD
    }

    /// Returns the allocated bytes.
    pub(super) const fn bytes(&self) -> usize {
        size_of_val(&*self.chunks)
    }

    /// Returns the bytes that the index grows by with that many more slots.
    pub(super) fn growth(&self, slots: usize) -> usize {
        let needed = self.len + slots;
        if needed <= self.capacity() {
            return 0;
        }
        needed.div_ceil(MAX_LOAD).next_power_of_two() * size_of::<Chunk>() - self.bytes()
    }

    /// Returns the slot with this hash that `is_match` accepts.
    #[inline]
    pub(super) fn find(
        &self,
        hash: u64,
        mut is_match: impl FnMut(SlotIndex) -> bool,
    ) -> Option<SlotIndex> {
        let tag = tag_of(hash);
        for chunk in self.probe(hash) {
            let chunk = &self.chunks[chunk];
            for position in chunk.positions(tag) {
                let slot = chunk.slots[position];
                if is_match(slot) {
                    return Some(slot);
                }
            }
            if chunk.overflow == 0 {
                return None;
            }
        }
        None
    }

    /// Returns the slot that [`find`](Self::find) tries first, if it is in the first chunk.
    #[inline]
    pub(super) fn first_candidate(&self, hash: u64) -> Option<SlotIndex> {
        let chunk = &self.chunks[self.probe(hash).next()?];
        chunk.positions(tag_of(hash)).next().map(|position| chunk.slots[position])
    }

    /// Inserts a slot that the index does not have; `hash_of` returns the hashes of the others.
    pub(super) fn insert(
        &mut self,
        hash: u64,
        slot: SlotIndex,
        hash_of: impl Fn(SlotIndex) -> u64,
    ) {
        if self.len == self.capacity() {
            let mut larger = Index::with_capacity(self.len + 1);
            for chunk in &self.chunks {
                for (_, slot) in
                    chunk.tags.iter().zip(&chunk.slots).filter(|(tag, _)| **tag != FREE)
                {
                    larger.place(hash_of(*slot), *slot);
                }
            }
            *self = larger;
        }
        self.place(hash, slot);
    }

    /// Puts a slot into the first chunk with a free position.
    fn place(&mut self, hash: u64, slot: SlotIndex) {
        for chunk in self.probe(hash) {
            let chunk = &mut self.chunks[chunk];
            if let Some(position) = chunk.positions(FREE).next() {
                (chunk.tags[position], chunk.slots[position]) = (tag_of(hash), slot);
                self.len += 1;
                return;
            }
            chunk.overflow += 1;
        }
    }

    /// Removes a slot with its hash, if the index has it.
    pub(super) fn remove(&mut self, hash: u64, slot: SlotIndex) {
        let position_in = |chunk: &Chunk| {
            chunk.positions(tag_of(hash)).find(|position| chunk.slots[*position] == slot)
        };
        let found = self.probe(hash).find_map(|chunk| {
            let position = position_in(&self.chunks[chunk])?;
            Some((chunk, position))
        });
        let Some((found, position)) = found else { return };
        self.chunks[found].tags[position] = FREE;
        self.len -= 1;
        for chunk in self.probe(hash).take_while(|chunk| *chunk != found) {
            self.chunks[chunk].overflow -= 1;
        }
    }

    /// Returns the chunks that may have this hash, in the order of a search.
    #[inline]
    fn probe(&self, hash: u64) -> impl Iterator<Item = usize> + use<> {
        let [a, b, c, d, ..] = hash.to_le_bytes();
        #[expect(clippy::expect_used, reason = "32 bits fit usize")]
        let first = usize::try_from(u32::from_le_bytes([a, b, c, d])).expect("32 bits fit usize");
        let mask = self.chunks.len().wrapping_sub(1);
        (0..self.chunks.len()).map(move |step| first.wrapping_add(step) & mask)
    }
}

/// Returns the tag of a hash: its highest bits, but not [`FREE`].
#[inline]
fn tag_of(hash: u64) -> u8 {
    hash.to_be_bytes()[0].max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    /// Few hashes, so that many share a chunk and a tag.
    fn hash(number: u64) -> u64 {
        let home = number % 7;
        (number % 5) << 56 | home
    }

    #[test]
    fn slots_are_found_until_they_are_removed() {
        let (mut index, mut model) = (Index::default(), HashMap::new());
        let mut random = fastrand::Rng::with_seed(1);
        let slot_of = |number: u64| SlotIndex::try_from(number).unwrap();
        for _ in 0..20_000 {
            let number = random.u64(..300);
            if model.remove(&number).is_some() {
                index.remove(hash(number), slot_of(number));
            } else if random.u8(..3) > 0 {
                model.insert(number, ());
                index.insert(hash(number), slot_of(number), |slot| hash(slot.into()));
            }
            assert_eq!(index.len(), model.len());
            assert!(index.len() <= index.capacity());
            for number in [number, random.u64(..300)] {
                let found = index.find(hash(number), |slot| slot == slot_of(number));
                assert_eq!(found.is_some(), model.contains_key(&number), "{number}");
            }
        }
        for number in model.into_keys() {
            index.remove(hash(number), slot_of(number));
        }
        assert_eq!(index.len(), 0);
        assert!(
            index.chunks.iter().all(|chunk| chunk.overflow == 0 && chunk.tags == [FREE; CHUNK_LEN])
        );
    }

    #[test]
    fn growth_is_what_insertions_allocate() {
        let mut index = Index::default();
        assert_eq!(index.find(5, |_| true), None);
        for slot in 0..5_000 {
            let (before, growth) = (index.bytes(), index.growth(1));
            index.insert(u64::from(slot) << 40, slot, |slot| u64::from(slot) << 40);
            assert_eq!(index.bytes(), before + growth, "{slot}");
        }
    }
}
