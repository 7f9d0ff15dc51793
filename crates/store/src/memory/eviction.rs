//! Who leaves a full shard: recovered entries first, then those that would be admitted, the
//! soonest to recover first; never one that denies or holds leases.
//!
//! Times in the queues are lower bounds: a charge moves an entry's times only later, and an entry
//! that comes up too early goes back with its true time. So a charge costs nothing here.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use tollgate_core::{KeyState, Timestamp};

use super::shard::{Place, Shard};

type Queue = BinaryHeap<Reverse<(u64, Place)>>;

#[derive(Debug, Default)]
pub(crate) struct Eviction {
    /// By when they recover; they may deny by now.
    by_recovery: Queue,
    /// Those that denied, by when they may leave.
    denying: Queue,
}

/// When an entry may leave: when it admits cost 1 and holds no lease.
fn may_leave_at(state: &KeyState, now: Timestamp) -> u64 {
    if state.has_leases() { state.recovers_at(now) } else { state.admits_at(now) }
}

impl Eviction {
    pub(crate) fn of(shard: &Shard, now: Timestamp) -> Self {
        let mut eviction = Eviction::default();
        for (place, entry) in shard.entries_from(0) {
            eviction.add(place, &entry.state, now);
        }
        eviction
    }

    pub(crate) fn add(&mut self, place: Place, state: &KeyState, now: Timestamp) {
        let leaves_at = may_leave_at(state, now);
        if leaves_at > now.as_micros() {
            self.denying.push(Reverse((leaves_at, place)));
        } else {
            self.by_recovery.push(Reverse((state.recovers_at(now), place)));
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.by_recovery.len() + self.denying.len()
    }

    pub(crate) fn bytes(&self) -> usize {
        (self.by_recovery.capacity() + self.denying.capacity()) * size_of::<(u64, Place)>()
    }

    /// When the next entry may leave that may not now.
    pub(crate) fn next_time(&self) -> Option<u64> {
        self.denying.peek().map(|Reverse((time, _))| *time)
    }

    /// Takes out the entry that leaves next, if any may.
    pub(crate) fn next(&mut self, shard: &Shard, now: Timestamp, keep: &[Place]) -> Option<Place> {
        while let Some(&Reverse((time, place))) = self.denying.peek() {
            if time > now.as_micros() {
                break;
            }
            self.denying.pop();
            if let Some(entry) = shard.entry(place) {
                self.add(place, &entry.state, now);
            }
        }
        let mut kept = Vec::new();
        let mut found = None;
        while let Some(Reverse((time, place))) = self.by_recovery.pop() {
            let Some(entry) = shard.entry(place) else { continue };
            let moved = may_leave_at(&entry.state, now) > now.as_micros()
                || entry.state.recovers_at(now) > time.max(now.as_micros());
            if keep.contains(&place) {
                kept.push(Reverse((time, place)));
            } else if moved {
                self.add(place, &entry.state, now);
            } else {
                found = Some(place);
                break;
            }
        }
        self.by_recovery.extend(kept);
        found
    }
}
