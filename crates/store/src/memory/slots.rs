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

type Segment = Box<[Option<Entry>]>;

/// A growing list of slots for entries.
#[derive(Debug, Default)]
pub(crate) struct Slots {
    segments: Vec<Segment>,
    len: usize,
}

impl Slots {
    /// Returns the number of slots, occupied or not.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    #[inline]
    pub(crate) fn get(&self, slot: usize) -> Option<&Entry> {
        self.segments.get(slot / SEGMENT)?.get(slot % SEGMENT)?.as_ref()
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, slot: usize) -> Option<&mut Entry> {
        self.segments.get_mut(slot / SEGMENT)?.get_mut(slot % SEGMENT)?.as_mut()
    }

    pub(crate) fn take(&mut self, slot: usize) -> Option<Entry> {
        self.segments.get_mut(slot / SEGMENT)?.get_mut(slot % SEGMENT)?.take()
    }

    /// Puts an entry into a slot, which exists.
    pub(crate) fn put(&mut self, slot: usize, entry: Entry) {
        self.segments[slot / SEGMENT][slot % SEGMENT] = Some(entry);
    }

    /// Adds an unoccupied slot, and returns its index.
    pub(crate) fn push(&mut self) -> usize {
        if self.len == self.capacity() {
            match self.segments.last_mut() {
                Some(first) if first.len() < SEGMENT => resize(first, 2 * self.len),
                last => {
                    let len = if last.is_some() { SEGMENT } else { MIN_FIRST_SEGMENT };
                    self.segments.push((0..len).map(|_| None).collect());
                }
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
        self.segments.truncate(kept.div_ceil(SEGMENT));
        if let [first] = &mut *self.segments {
            resize(first, kept.next_power_of_two().max(MIN_FIRST_SEGMENT));
        }
        self.segments.shrink_to(2 * self.segments.len());
    }

    fn capacity(&self) -> usize {
        let other = self.segments.len().saturating_sub(1) * SEGMENT;
        self.segments.first().map_or(0, |first| first.len() + other)
    }

    /// Returns the allocated bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.capacity() * size_of::<Option<Entry>>()
            + self.segments.capacity() * size_of::<Segment>()
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
        let segments = capacity.div_ceil(SEGMENT);
        // The list of segments doubles.
        let new_segments = if segments > self.segments.capacity() {
            self.segments.capacity().max(segments).max(MIN_SEGMENTS)
        } else {
            0
        };
        new_slots * size_of::<Option<Entry>>() + new_segments * size_of::<Segment>()
    }
}

/// Changes the length of a segment, whose entries are within the new one.
fn resize(segment: &mut Segment, len: usize) {
    if segment.len() != len {
        let mut slots = std::mem::take(segment).into_vec();
        slots.truncate(len);
        slots.reserve_exact(len - slots.len());
        slots.resize_with(len, || None);
        *segment = slots.into_boxed_slice();
    }
}
