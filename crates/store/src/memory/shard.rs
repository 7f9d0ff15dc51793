//! A shard: the part of a table under one lock, with an index by hash and the entries it refers to.

use std::ops::Range;

use hashbrown::HashTable;
use tollgate_core::{Anomalies, KeyState, Micros, Policy, Timestamp};

use super::blocks::Blocks;
use super::entry::{Entry, SlotIndex, Tag};
use super::eviction::Eviction;

/// How many slots each insertion checks for recovered entries.
const SWEEP: usize = 4;

/// How long ago an entry must have recovered before a sweep removes it. Without it, a busy key
/// whose limit recovers quickly would be removed and inserted repeatedly.
const GRACE: Micros = Micros::from_secs(1);

/// The minimum number of slots worth compacting.
const MIN_COMPACT: usize = 64;

/// The keys and blocks of one shard.
#[derive(Debug)]
pub(crate) struct Shard {
    index: HashTable<SlotIndex>,
    pub(super) entries: Vec<Option<Entry>>,
    free: Vec<SlotIndex>,
    /// The slot before the next sweep.
    cursor: usize,
    /// The maximum number of entries.
    bound: usize,
    /// Created when the shard is first full.
    eviction: Option<Eviction>,
    pub(crate) blocks: Blocks,
    pub(crate) counts: Counts,
    /// The slots that a snapshot has yet to copy.
    pub(super) to_copy: Range<usize>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    /// Live entries evicted to make room.
    pub(crate) evicted: u64,
    /// New keys that found no room.
    pub(crate) full: u64,
    pub(crate) anomalies: Anomalies,
}

impl Shard {
    pub(crate) fn new(bound: usize) -> Self {
        Shard {
            index: HashTable::new(),
            entries: Vec::new(),
            free: Vec::new(),
            cursor: 0,
            bound: bound.max(1),
            eviction: None,
            blocks: Blocks::default(),
            counts: Counts::default(),
            to_copy: 0..0,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.index.len()
    }

    #[inline]
    pub(crate) fn find(&self, tag: Tag, policy: &Policy, key: &[u8]) -> Option<SlotIndex> {
        let is_match = |slot: &SlotIndex| {
            self.entry(*slot).is_some_and(|entry| entry.tag() == tag && entry.matches(policy, key))
        };
        self.index.find(spread(tag), is_match).copied()
    }

    #[inline]
    pub(crate) fn entry(&self, slot: SlotIndex) -> Option<&Entry> {
        self.entries.get(index_of(slot))?.as_ref()
    }

    /// Returns the state of a known key, and the shard's counters, if the fast path can decide a
    /// check of it: if its policy has one limit and nothing else, and the shard has no blocks.
    #[inline]
    pub(crate) fn fast_path_mut(
        &mut self,
        tag: Tag,
        policy: &Policy,
        key: &[u8],
    ) -> Option<(&mut KeyState, &mut Anomalies)> {
        if !self.blocks.is_empty() {
            return None;
        }
        let slot = self.find(tag, policy, key)?;
        let entry = self.entries.get_mut(index_of(slot))?.as_mut()?;
        let is_plain = entry.state.is_single_limit_of(policy);
        is_plain.then_some((&mut entry.state, &mut self.counts.anomalies))
    }

    /// Returns the state in an occupied slot.
    #[inline]
    pub(crate) fn state_mut(&mut self, slot: SlotIndex) -> &mut KeyState {
        let entry = self.entries[index_of(slot)].as_mut();
        #[expect(clippy::expect_used, reason = "callers found the slot under the same lock")]
        &mut entry.expect("the slot is occupied").state
    }

    pub(crate) fn entries(&self) -> impl Iterator<Item = (SlotIndex, &Entry)> {
        (0..).zip(&self.entries).filter_map(|(slot, entry)| Some((slot, entry.as_ref()?)))
    }

    /// Makes room for one more key; evicts if necessary, see [`Eviction`].
    pub(crate) fn make_room(&mut self, now: Timestamp) -> Result<(), ShardFull> {
        self.sweep(now, SWEEP);
        self.make_room_for(1, now, &[])
    }

    /// Changes the bound. Excess entries are evicted as new keys are inserted.
    pub(crate) fn set_bound(&mut self, bound: usize) {
        self.bound = bound.max(1);
    }

    /// Returns whether that many more keys fit without eviction.
    pub(crate) fn has_room(&self, count: usize) -> bool {
        self.len() + count <= self.bound
    }

    /// Makes room for that many more keys; `keep` are not evicted.
    pub(crate) fn make_room_for(
        &mut self,
        count: usize,
        now: Timestamp,
        keep: &[SlotIndex],
    ) -> Result<(), ShardFull> {
        while self.len() + count > self.bound {
            let mut eviction = match self.eviction.take() {
                Some(eviction) if eviction.len() <= 2 * self.bound + MIN_COMPACT => eviction,
                _ => Eviction::new(self, now),
            };
            let victim = eviction.next(self, now, keep);
            let retry_at = eviction.next_time();
            self.eviction = Some(eviction);
            let Some(victim) = victim else {
                self.counts.full += 1;
                return Err(ShardFull { retry_at });
            };
            let recovered = self.entry(victim).is_none_or(|entry| entry.state.is_untouched(now));
            self.counts.evicted += u64::from(!recovered);
            self.remove(victim);
        }
        Ok(())
    }

    /// Inserts a key that is not in the shard; the caller has made room.
    pub(crate) fn insert(&mut self, entry: Entry, now: Timestamp) {
        let tag = entry.tag();
        let slot = match self.free.pop() {
            Some(slot) => slot,
            None => {
                if self.entries.len() == self.entries.capacity() {
                    // Grow by an eighth: doubling would waste up to half of the memory.
                    self.entries.reserve_exact((self.entries.len() / 8).max(8));
                }
                self.entries.push(None);
                slot_of(self.entries.len() - 1)
            }
        };
        if let Some(eviction) = &mut self.eviction {
            eviction.add(slot, &entry.state, now);
        }
        self.entries[index_of(slot)] = Some(entry);
        let entries = &self.entries;
        self.index.insert_unique(spread(tag), slot, |slot| hash_at(entries, *slot));
    }

    /// Notes that an entry may recover sooner than when it was last charged.
    pub(crate) fn note_refund(&mut self, slot: SlotIndex, now: Timestamp) {
        let Some(mut eviction) = self.eviction.take() else { return };
        if let Some(entry) = self.entry(slot) {
            eviction.add(slot, &entry.state, now);
        }
        self.eviction = Some(eviction);
    }

    pub(crate) fn remove(&mut self, slot: SlotIndex) {
        let Some(entry) = self.entries.get_mut(index_of(slot)).and_then(Option::take) else {
            return;
        };
        self.free.push(slot);
        if let Ok(found) = self.index.find_entry(spread(entry.tag()), |other| *other == slot) {
            found.remove();
        }
    }

    /// Checks the next slots, and removes entries that have recovered.
    pub(crate) fn sweep(&mut self, now: Timestamp, slots: usize) {
        let deadline = now.saturating_sub(GRACE);
        for _ in 0..slots.min(self.entries.len()) {
            self.cursor = if self.cursor + 1 < self.entries.len() { self.cursor + 1 } else { 0 };
            let recovered = self.entries[self.cursor]
                .as_ref()
                .is_some_and(|entry| entry.state.is_untouched(deadline));
            if recovered {
                self.remove(slot_of(self.cursor));
            }
        }
        if self.entries.len() > MIN_COMPACT && self.len() < self.entries.len() / 4 {
            self.compact();
        }
    }

    /// Frees memory: moves the entries together and rebuilds the index.
    fn compact(&mut self) {
        let moved = |slot: usize| self.entries.iter().take(slot).flatten().count();
        self.to_copy = moved(self.to_copy.start)..moved(self.to_copy.end);
        let entries: Vec<_> = std::mem::take(&mut self.entries).into_iter().flatten().collect();
        self.entries = Vec::with_capacity(entries.len() + entries.len() / 8);
        self.free = Vec::new();
        self.index = HashTable::with_capacity(entries.len());
        for (slot, entry) in (0..).zip(entries) {
            let tag = entry.tag();
            self.entries.push(Some(entry));
            let entries = &self.entries;
            self.index.insert_unique(spread(tag), slot, |slot| hash_at(entries, *slot));
        }
        self.cursor = 0;
        self.eviction = None;
    }

    pub(crate) fn bytes(&self) -> usize {
        let entries = self.entries.capacity() * size_of::<Option<Entry>>();
        let index = self.index.allocation_size() + self.free.capacity() * size_of::<SlotIndex>();
        let eviction = self.eviction.as_ref().map_or(0, Eviction::bytes);
        let heap: usize = self.entries.iter().flatten().map(Entry::heap_bytes).sum();
        entries + index + eviction + heap + self.blocks.bytes()
    }
}

/// There is no room for a new key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ShardFull {
    /// When an entry can next be evicted, in µs since the epoch.
    pub(crate) retry_at: Option<u64>,
}

#[inline]
#[expect(clippy::expect_used, reason = "every slot index was a usize")]
fn index_of(slot: SlotIndex) -> usize {
    slot.try_into().expect("a slot index fits usize")
}

#[expect(clippy::expect_used, reason = "4 billion slots of 64 bytes exceed any shard")]
fn slot_of(index: usize) -> SlotIndex {
    index.try_into().expect("a shard has at most 2^32 slots")
}

/// Returns the hash of the entry in a slot of the index.
fn hash_at(entries: &[Option<Entry>], slot: SlotIndex) -> u64 {
    #[expect(clippy::expect_used, reason = "removal takes a slot out of the index, too")]
    let entry = entries[index_of(slot)].as_ref().expect("an indexed slot is occupied");
    spread(entry.tag())
}

/// Spreads a tag over 64 bits: the index selects a bucket by the low bits of a hash, and compares
/// the high bits first.
#[inline]
fn spread(tag: Tag) -> u64 {
    u64::from(tag).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}
