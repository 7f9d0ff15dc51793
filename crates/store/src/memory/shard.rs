//! A shard: the part of a table under one lock, with an index by hash and the entries it refers to.

use std::ops::Range;
use std::sync::Arc;

use tollgate_algorithms::{Anomalies, KeyState, Micros, Policy, Timestamp};

use super::blocks::Blocks;
use super::budget::{Budget, Usage};
use super::entry::{Entry, SlotIndex, Tag};
use super::index::Index;
use super::policy_counts::{PolicyCounts, PolicyGroup};
use super::slots::Slots;
use super::stored_key::StoredKey;

/// How many slots each insertion checks for recovered entries.
const SWEEP: usize = 4;

/// How long ago an entry must have recovered before a sweep removes it. Without it, a busy key
/// whose limit recovers quickly would be removed and inserted repeatedly.
const GRACE: Micros = Micros::from_secs(1);

/// The minimum number of slots worth compacting.
const MIN_COMPACT: usize = 64;

/// The keys and blocks of one shard. The fields that find a key come first, in two adjacent cache lines
/// with the lock.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Shard {
    index: Index,
    pub(super) slots: Slots,
    pub(crate) blocks: Blocks,
    free: Vec<SlotIndex>,
    /// The slot before the next sweep.
    cursor: usize,
    /// The maximum number of entries.
    bound: usize,
    /// The slot before the next search for an entry to evict.
    pub(super) hand: usize,
    pub(super) policies: PolicyCounts,
    pub(crate) counts: Counts,
    /// The slots that a snapshot has yet to copy.
    pub(super) to_copy: Range<usize>,
    budget: Arc<Budget>,
    /// The bytes of keys and states that are not stored inline.
    heap: usize,
    /// The usage that the budget contains.
    recorded: Usage,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    /// Live entries evicted to make room.
    pub(crate) evicted: u64,
    pub(crate) anomalies: Anomalies,
}

impl Shard {
    pub(crate) fn new(bound: usize, budget: Arc<Budget>) -> Self {
        Shard {
            index: Index::default(),
            slots: Slots::default(),
            free: Vec::new(),
            cursor: 0,
            bound: bound.max(1),
            hand: 0,
            policies: PolicyCounts::default(),
            blocks: Blocks::default(),
            counts: Counts::default(),
            to_copy: 0..0,
            budget,
            heap: 0,
            recorded: Usage::default(),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.index.len()
    }

    /// Returns the slot of a key.
    pub(crate) fn find(&self, tag: Tag, policy: &Policy, key: &StoredKey<'_>) -> Option<SlotIndex> {
        let is_match = |slot| self.entry(slot).is_some_and(|entry| entry.matches(policy, key));
        self.index.find(spread(tag), is_match)
    }

    /// Returns the slot that [`find`](Self::find) tries first, if it is in the first chunk. Nearly every
    /// known key is there.
    #[inline]
    pub(crate) fn first_candidate(&self, tag: Tag) -> Option<SlotIndex> {
        self.index.first_candidate(spread(tag))
    }

    #[inline]
    pub(crate) fn entry(&self, slot: SlotIndex) -> Option<&Entry> {
        self.slots.get(index_of(slot))
    }

    /// Whether the fast path can decide a check of this key under a [single-limit
    /// policy](Policy::is_single_limit): the slot has its state, which is stored inline, and the key is
    /// not blocked.
    #[inline]
    pub(crate) fn is_on_fast_path(
        &self,
        slot: SlotIndex,
        policy: &Policy,
        key: &StoredKey<'_>,
    ) -> bool {
        let is_inline = |entry: &Entry| entry.is_inline_single_limit(policy, key);
        self.entry(slot).is_some_and(is_inline) && !self.blocks.contains(policy, key)
    }

    /// Returns the slot of a key, if its state is [plain](KeyState::is_plain_of) and the key is not blocked.
    pub(crate) fn find_plain(
        &self,
        tag: Tag,
        policy: &Policy,
        key: &StoredKey<'_>,
    ) -> Option<SlotIndex> {
        let slot = self.find(tag, policy, key)?;
        let is_plain = self.entry(slot).is_some_and(|entry| entry.state.is_plain_of(policy));
        (is_plain && !self.blocks.contains(policy, key)).then_some(slot)
    }

    /// Returns the state in a slot, and the shard's counters, if [the fast path](Self::is_on_fast_path) can
    /// decide a check of this key.
    #[inline]
    pub(crate) fn fast_path_mut(
        &mut self,
        slot: SlotIndex,
        policy: &Policy,
        key: &StoredKey<'_>,
    ) -> Option<(&mut KeyState, &mut Anomalies)> {
        let entry = self.slots.get_mut(index_of(slot))?;
        let is_fast =
            entry.is_inline_single_limit(policy, key) && !self.blocks.contains(policy, key);
        is_fast.then_some((&mut entry.state, &mut self.counts.anomalies))
    }

    /// Returns the state in an occupied slot, and the shard's counters.
    #[inline]
    pub(crate) fn state_and_anomalies_mut(
        &mut self,
        slot: SlotIndex,
    ) -> (&mut KeyState, &mut Anomalies) {
        let entry = self.slots.get_mut(index_of(slot));
        #[expect(clippy::expect_used, reason = "callers found the slot under the same lock")]
        (&mut entry.expect("the slot is occupied").state, &mut self.counts.anomalies)
    }

    /// Returns whether [`Shard::fast_path_mut`] would return the state in the slot of this key if it
    /// were stored inline.
    pub(crate) fn is_single_limit(
        &self,
        slot: SlotIndex,
        policy: &Policy,
        key: &StoredKey<'_>,
    ) -> bool {
        let is_single = |entry: &Entry| entry.state.is_single_limit_of(policy);
        self.entry(slot).is_some_and(is_single) && !self.blocks.contains(policy, key)
    }

    /// Changes the state in an occupied slot in its place.
    pub(crate) fn change_state<T>(
        &mut self,
        slot: SlotIndex,
        change: impl FnOnce(&mut KeyState, &mut Anomalies) -> T,
    ) -> T {
        let (state, anomalies) = self.state_and_anomalies_mut(slot);
        let before = state.heap_bytes();
        let changed = change(state, anomalies);
        let after = state.heap_bytes();
        if before != after {
            self.heap = self.heap - before + after;
            self.record_usage();
        }
        changed
    }

    /// Returns the state in an occupied slot.
    #[inline]
    pub(crate) fn state_mut(&mut self, slot: SlotIndex) -> &mut KeyState {
        self.state_and_anomalies_mut(slot).0
    }

    /// Makes room for one more entry; evicts if necessary, see [`super::eviction`].
    pub(crate) fn make_room(&mut self, entry: &Entry, now: Timestamp) -> Result<(), ShardFull> {
        self.sweep(now, SWEEP);
        self.make_room_for(1, PolicyGroup::from_state(&entry.state), now, &[])?;
        self.has_bytes(1, entry.heap_bytes(), now)
    }

    /// Returns an error if the budget does not suffice for that many more entries, with this many
    /// bytes that are not stored inline.
    pub(crate) fn has_bytes(
        &self,
        entries: usize,
        heap: usize,
        now: Timestamp,
    ) -> Result<(), ShardFull> {
        let bytes = self.growth(entries) + heap;
        if bytes == 0 || self.budget.has_room(bytes) {
            return Ok(());
        }
        // The next sweep may free memory.
        Err(ShardFull { retry_at: Some(now.saturating_add(GRACE).as_micros()) })
    }

    /// Returns the bytes by which the table grows with that many more entries.
    fn growth(&self, count: usize) -> usize {
        let new_slots = count.saturating_sub(self.free.len());
        self.slots.growth(new_slots) + self.index.growth(count)
    }

    /// Changes the bound. Excess entries are evicted as new keys are inserted.
    pub(crate) fn set_bound(&mut self, bound: usize) {
        self.bound = bound.max(1);
    }

    /// Returns whether that many more keys fit without eviction.
    pub(crate) fn has_room(&self, count: usize) -> bool {
        self.len() + count <= self.bound
    }

    /// Makes room for that many more keys, the last of which is of this group; `keep` are not
    /// evicted.
    pub(crate) fn make_room_for(
        &mut self,
        count: usize,
        group: PolicyGroup,
        now: Timestamp,
        keep: &[SlotIndex],
    ) -> Result<(), ShardFull> {
        while self.len() + count > self.bound {
            let victim = self.victim(Some(group), now, keep)?;
            self.evict(victim, now);
        }
        Ok(())
    }

    fn evict(&mut self, victim: SlotIndex, now: Timestamp) {
        let recovered = self.entry(victim).is_none_or(|entry| entry.state.is_untouched(now));
        self.counts.evicted += u64::from(!recovered);
        self.remove_charged(victim);
    }

    /// Evicts an eighth of the entries, and frees their memory; returns whether there were any.
    pub(crate) fn shed(&mut self, now: Timestamp) -> bool {
        let before = self.len();
        for _ in 0..before.div_ceil(8) {
            let Ok(victim) = self.victim(None, now, &[]) else { break };
            self.evict(victim, now);
        }
        let is_any = self.len() < before;
        if is_any {
            self.compact();
            self.record_usage();
        }
        is_any
    }

    /// Inserts a key that is not in the shard; the caller has made room.
    pub(crate) fn insert(&mut self, entry: Entry) {
        let tag = entry.tag();
        let slot = self.free.pop().unwrap_or_else(|| slot_of(self.slots.push()));
        self.policies.add(PolicyGroup::from_state(&entry.state));
        self.heap += entry.heap_bytes();
        self.slots.put(index_of(slot), entry);
        let slots = &self.slots;
        self.index.insert(spread(tag), slot, |slot| hash_at(slots, slot));
        self.record_usage();
    }

    /// Removes an entry whose state names its policy, as that of each entry in the table does.
    pub(crate) fn remove_charged(&mut self, slot: SlotIndex) {
        if let Some(group) = self.entry(slot).map(|entry| PolicyGroup::from_state(&entry.state)) {
            self.remove(slot, group);
        }
    }

    /// Removes an entry of a policy.
    pub(crate) fn remove(&mut self, slot: SlotIndex, group: PolicyGroup) {
        let Some(entry) = self.slots.take(index_of(slot)) else { return };
        self.policies.remove(group);
        self.heap -= entry.heap_bytes();
        self.free.push(slot);
        self.index.remove(spread(entry.tag()), slot);
        self.record_usage();
    }

    /// Takes the state in an occupied slot, to change it and to [put](Self::put_state) it back.
    pub(crate) fn take_state(&mut self, slot: SlotIndex) -> KeyState {
        let state = std::mem::take(self.state_mut(slot));
        self.heap -= state.heap_bytes();
        state
    }

    /// Puts a state into an occupied slot.
    pub(crate) fn put_state(&mut self, slot: SlotIndex, state: KeyState) {
        self.heap += state.heap_bytes();
        *self.state_mut(slot) = state;
        self.record_usage();
    }

    /// Updates the budget.
    pub(crate) fn record_usage(&mut self) {
        let usage = self.usage();
        if usage != self.recorded {
            self.budget.update(&mut self.recorded, usage);
        }
    }

    /// Checks the next slots, and removes entries that have recovered.
    pub(crate) fn sweep(&mut self, now: Timestamp, slots: usize) {
        let deadline = now.saturating_sub(GRACE);
        for _ in 0..slots.min(self.slots.len()) {
            self.cursor = if self.cursor + 1 < self.slots.len() { self.cursor + 1 } else { 0 };
            let recovered =
                self.slots.get(self.cursor).is_some_and(|entry| entry.state.is_untouched(deadline));
            if recovered {
                self.remove_charged(slot_of(self.cursor));
            }
        }
        if self.slots.len() > MIN_COMPACT && self.len() < self.slots.len() / 4 {
            self.compact();
            self.record_usage();
        }
    }

    /// Frees memory: moves the entries together and rebuilds the index.
    fn compact(&mut self) {
        let moved = |end: usize| (0..end).filter_map(|slot| self.slots.get(slot)).count();
        self.to_copy = moved(self.to_copy.start)..moved(self.to_copy.end);
        self.slots.compact();
        self.free = Vec::new();
        self.index = Index::with_capacity(self.slots.len());
        let slots = &self.slots;
        for slot in (0..slots.len()).map(slot_of) {
            let hash = hash_at(slots, slot);
            self.index.insert(hash, slot, |slot| hash_at(slots, slot));
        }
        self.cursor = 0;
        self.hand = 0;
    }

    fn usage(&self) -> Usage {
        let index = self.index.bytes() + self.free.capacity() * size_of::<SlotIndex>();
        let keys = self.slots.bytes() + index + self.policies.bytes() + self.heap;
        Usage { keys, blocks: self.blocks.bytes(), request_ids: 0 }
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
pub(super) fn slot_of(index: usize) -> SlotIndex {
    index.try_into().expect("a shard has at most 2^32 slots")
}

/// Returns the hash of the entry in a slot of the index.
fn hash_at(slots: &Slots, slot: SlotIndex) -> u64 {
    #[expect(clippy::expect_used, reason = "removal takes a slot out of the index, too")]
    let entry = slots.get(index_of(slot)).expect("an indexed slot is occupied");
    spread(entry.tag())
}

/// Spreads a tag over 64 bits: the index selects a bucket by the low bits of a hash, and compares
/// the high bits first.
#[inline]
fn spread(tag: Tag) -> u64 {
    u64::from(tag).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}
