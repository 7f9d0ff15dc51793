//! The slots of a shard, in segments.
//!
//! Apart from the first one, a segment has a fixed length and never moves. A vector would be copied
//! as it grows, and small allocations would settle in the memory of its previous copies, so that
//! none of them could be used for a copy again: with states outside the table, the process needed
//! three times the bytes of the store.

use super::entry::Entry;

/// The number of slots of a segment: one page. The first one doubles until it has that many, because
/// most shards of a small table have few entries.
const SEGMENT: usize = 64;
const MIN_FIRST_SEGMENT: usize = 8;

type Segment = Box<[Option<Entry>; SEGMENT]>;

/// A growing list of slots for entries. The first segment comes first, near the lock of the shard.
#[derive(Debug, Default)]
#[repr(C)]
pub(crate) struct Slots {
    /// The slots of the first segment, which are found with one read less than the others.
    first: Box<[Option<Entry>]>,
    rest: Vec<Segment>,
    len: usize,
}

impl Slots {
    /// Returns the number of slots, occupied or not.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    #[inline]
    pub(crate) fn get(&self, slot: usize) -> Option<&Entry> {
        let slot = match self.first.get(slot) {
            Some(slot) => slot,
            None => &self.rest.get((slot / SEGMENT).checked_sub(1)?)?[slot % SEGMENT],
        };
        slot.as_ref()
    }

    #[inline]
    fn slot_mut(&mut self, slot: usize) -> Option<&mut Option<Entry>> {
        match self.first.get_mut(slot) {
            Some(slot) => Some(slot),
            None => {
                let segment = self.rest.get_mut((slot / SEGMENT).checked_sub(1)?)?;
                Some(&mut segment[slot % SEGMENT])
            }
        }
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, slot: usize) -> Option<&mut Entry> {
        self.slot_mut(slot)?.as_mut()
    }

    pub(crate) fn take(&mut self, slot: usize) -> Option<Entry> {
        self.slot_mut(slot)?.take()
    }

    /// Puts an entry into a slot, which exists.
    pub(crate) fn put(&mut self, slot: usize, entry: Entry) {
        #[expect(clippy::expect_used, reason = "an entry must not be lost")]
        let slot = self.slot_mut(slot).expect("the slot exists");
        *slot = Some(entry);
    }

    /// Adds an unoccupied slot, and returns its index.
    pub(crate) fn push(&mut self) -> usize {
        if self.len == self.capacity() {
            if self.len < SEGMENT {
                resize(&mut self.first, (2 * self.len).max(MIN_FIRST_SEGMENT));
            } else {
                self.rest.push(Box::new([const { None }; SEGMENT]));
            }
        }
        self.len += 1;
        self.len - 1
    }

    /// Moves the entries together, in their order, and frees the memory of the rest.
    pub(crate) fn compact(&mut self) {
        let mut kept = 0;
        for slot in 0..self.len {
            if let Some(entry) = self.take(slot) {
                self.put(kept, entry);
                kept += 1;
            }
        }
        self.len = kept;
        let first = kept.min(SEGMENT).next_power_of_two().max(MIN_FIRST_SEGMENT);
        if first < self.first.len() {
            resize(&mut self.first, first);
        }
        self.rest.truncate(kept.saturating_sub(SEGMENT).div_ceil(SEGMENT));
        self.rest.shrink_to(2 * self.rest.len());
    }

    fn capacity(&self) -> usize {
        self.first.len() + self.rest.len() * SEGMENT
    }

    /// Returns the allocated bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.capacity() * size_of::<Option<Entry>>() + self.rest.capacity() * size_of::<Segment>()
    }

    /// Returns the bytes that this many more slots would allocate.
    pub(crate) fn growth(&self, slots: usize) -> usize {
        const MIN_SEGMENTS: usize = 4;
        let needed = self.len + slots;
        let capacity = if needed > SEGMENT {
            needed.next_multiple_of(SEGMENT)
        } else {
            needed.next_power_of_two().max(MIN_FIRST_SEGMENT)
        };
        let new_slots = capacity.saturating_sub(self.capacity());
        let rest = capacity.saturating_sub(SEGMENT).div_ceil(SEGMENT);
        // The list of segments doubles.
        let new_segments =
            if rest > self.rest.capacity() { self.rest.capacity().max(MIN_SEGMENTS) } else { 0 };
        new_slots * size_of::<Option<Entry>>() + new_segments * size_of::<Segment>()
    }
}

/// Changes the length of the first segment, whose entries are within the new one.
fn resize(first: &mut Box<[Option<Entry>]>, len: usize) {
    let mut slots = std::mem::take(first).into_vec();
    slots.truncate(len);
    slots.reserve_exact(len - slots.len());
    slots.resize_with(len, || None);
    *first = slots.into_boxed_slice();
}
