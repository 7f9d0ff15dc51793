//! Eviction from a full shard: recovered entries first, then entries that would admit a request,
//! the soonest to recover first; never an entry that denies or holds leases.
//!
//! Times in the queues are lower bounds. A charge only moves an entry's times later, so a charge
//! costs nothing here: an entry that comes up too early is queued again with its current time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use tollgate_core::{KeyState, Timestamp};

use super::entry::SlotIndex;
use super::shard::Shard;

type Queue = BinaryHeap<Reverse<(u64, SlotIndex)>>;

#[derive(Debug, Default)]
pub(crate) struct Eviction {
    /// Entries that admitted when they were queued, by when they recover.
    by_recovery: Queue,
    /// Entries that denied when they were queued, by when they can be evicted.
    denying: Queue,
}

/// When an entry can be evicted: when it admits cost 1 and holds no lease.
fn evictable_at(state: &KeyState, now: Timestamp) -> u64 {
    if state.has_leases() { state.recovers_at(now) } else { state.admits_at(now) }
}

impl Eviction {
    pub(crate) fn new(shard: &Shard, now: Timestamp) -> Self {
        let mut eviction = Eviction::default();
        for (slot, entry) in shard.entries() {
            eviction.add(slot, &entry.state, now);
        }
        eviction
    }

    pub(crate) fn add(&mut self, slot: SlotIndex, state: &KeyState, now: Timestamp) {
        let evictable_at = evictable_at(state, now);
        if evictable_at > now.as_micros() {
            self.denying.push(Reverse((evictable_at, slot)));
        } else {
            self.by_recovery.push(Reverse((state.recovers_at(now), slot)));
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.by_recovery.len() + self.denying.len()
    }

    pub(crate) fn bytes(&self) -> usize {
        (self.by_recovery.capacity() + self.denying.capacity()) * size_of::<(u64, SlotIndex)>()
    }

    /// When the next entry that cannot be evicted now can be.
    pub(crate) fn next_time(&self) -> Option<u64> {
        self.denying.peek().map(|Reverse((time, _))| *time)
    }

    /// Removes the next entry to evict from the queues, if any can be evicted.
    pub(crate) fn next(
        &mut self,
        shard: &Shard,
        now: Timestamp,
        keep: &[SlotIndex],
    ) -> Option<SlotIndex> {
        while let Some(&Reverse((time, slot))) = self.denying.peek() {
            if time > now.as_micros() {
                break;
            }
            self.denying.pop();
            if let Some(entry) = shard.entry(slot) {
                self.add(slot, &entry.state, now);
            }
        }
        let mut skipped = Vec::new();
        let mut victim = None;
        while let Some(Reverse((time, slot))) = self.by_recovery.pop() {
            let Some(entry) = shard.entry(slot) else { continue };
            let was_charged = evictable_at(&entry.state, now) > now.as_micros()
                || entry.state.recovers_at(now) > time.max(now.as_micros());
            if keep.contains(&slot) {
                skipped.push(Reverse((time, slot)));
            } else if was_charged {
                self.add(slot, &entry.state, now);
            } else {
                victim = Some(slot);
                break;
            }
        }
        self.by_recovery.extend(skipped);
        victim
    }
}
