//! Copying tables for a snapshot in short steps while they are in use, and restoring them.
//!
//! A copy holds a shard's lock for one step at a time, so entries come and go between steps. An
//! entry stays in its slot, and when all slots move (`Shard::compact`), the range still to copy
//! moves with them. So an entry that lives throughout is copied. An entry that is removed before it
//! was copied had recovered, was reset or was evicted: its state is lost to the store, too. If its
//! key is inserted again behind the cursor, all of its state was charged after the snapshot began,
//! like any charge behind the cursor. If its key is inserted again ahead of the cursor, it is
//! copied twice, and a restore uses the later copy.
//!
//! Slots added after the copy began are not copied, so a copy ends however many keys arrive.

use tollgate_algorithms::{Block, KeyState, Policy, Timestamp};

use super::blocks::BlockKey;
use super::entry::Entry;
use super::policy_counts::PolicyGroup;
use super::shard::Shard;
use super::stored_key::StoredKey;
use super::table::Table;

/// The bounds of one step, under one lock: about 20 µs for 256 keys of 24 bytes (13 KB). A step may
/// exceed `bytes` by one entry; an entry with 16 logs of 10,000 entries takes about 1 ms.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    pub(crate) entries: usize,
    /// Bytes copied; the entry that reaches the bound is the last.
    pub(crate) bytes: usize,
    /// Slots visited, most of which may be empty.
    pub(crate) slots: usize,
}

impl Step {
    pub(crate) const SHORT: Step = Step { entries: 256, bytes: 64 * 1024, slots: 4_096 };
}

impl Shard {
    /// Starts a copy of all current entries.
    pub(crate) fn begin_copy(&mut self) {
        self.to_copy = 0..self.slots.len();
    }

    /// Visits the next entries; `visit` returns how many bytes this step has copied so far. Returns
    /// whether there are more entries.
    pub(crate) fn copy_step(
        &mut self,
        step: Step,
        mut visit: impl FnMut(&StoredKey<'_>, &KeyState) -> usize,
    ) -> bool {
        let mut remaining = step.entries;
        for slot in self.to_copy.clone().take(step.slots) {
            self.to_copy.start = slot + 1;
            let Some(entry) = self.slots.get(slot) else { continue };
            remaining = remaining.saturating_sub(1);
            if visit(&entry.key(), &entry.state) >= step.bytes || remaining == 0 {
                break;
            }
        }
        !self.to_copy.is_empty()
    }

    /// Visits the blocks after a policy and key, as [`Shard::copy_step`] visits entries. Returns
    /// the last block visited, if any.
    pub(crate) fn copy_blocks(
        &self,
        after: Option<&BlockKey>,
        step: Step,
        mut visit: impl FnMut(&str, &[u8], Block) -> usize,
    ) -> Option<BlockKey> {
        let mut last = None;
        for (policy, key, block) in self.blocks.after(after).take(step.entries) {
            last = Some((policy, key));
            if visit(policy, key, block) >= step.bytes {
                break;
            }
        }
        last.map(|(policy, key)| (policy.into(), key.into()))
    }
}

/// The result of restoring a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeyRestore {
    /// The key was inserted.
    New,
    /// The key replaced an earlier copy.
    Replaced,
    /// The key has recovered since, so it was not restored.
    Recovered,
    /// The shard is full and no key can be evicted, so the key was not restored.
    NoRoom,
}

impl Table {
    /// Restores a key, in place of an earlier copy. If `fits`, the table as a whole is not full:
    /// then the key is inserted even if its shard is full, because hashing differs between
    /// processes, and a table that held all keys before must hold them again.
    pub(crate) fn restore_key(
        &self,
        key: &StoredKey<'_>,
        state: KeyState,
        fits: bool,
        now: Timestamp,
    ) -> KeyRestore {
        let Some(policy) = state.policy() else { return KeyRestore::Recovered };
        let address = self.address(policy, key);
        let mut shard = self.lock(address.shard);
        let known = shard.find(address.tag, policy, key);
        if let Some(slot) = known {
            shard.remove_charged(slot);
        }
        if state.is_untouched(now) {
            return KeyRestore::Recovered;
        }
        let group = PolicyGroup::new(policy);
        if known.is_none() && !fits && shard.make_room_for(1, group, now, &[]).is_err() {
            return KeyRestore::NoRoom;
        }
        let entry = Entry::new(address.tag, key, state);
        if shard.has_bytes(1, entry.heap_bytes(), now).is_err() {
            return KeyRestore::NoRoom;
        }
        shard.insert(entry);
        if known.is_none() { KeyRestore::New } else { KeyRestore::Replaced }
    }

    /// Restores a block, in place of an earlier one; returns whether there was none.
    pub(crate) fn restore_block(&self, policy: &str, key: &StoredKey<'_>, block: Block) -> bool {
        let address = self.address_under(Policy::hash_of_name(policy), key);
        let mut shard = self.lock(address.shard);
        let is_new = shard.blocks.set(policy, key, Some(block)).is_none();
        shard.record_usage();
        is_new
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use tollgate_algorithms::{Check, Cost, Operation, Request};

    use super::*;
    use crate::clock::ManualClock;
    use crate::memory::MemoryStore;

    const STEP: Step = Step { entries: 7, bytes: usize::MAX, slots: usize::MAX };

    /// A store of one shard, with keys of one byte each.
    struct Bench {
        store: MemoryStore,
        policy: Policy,
    }

    impl Bench {
        fn new(keys: u8) -> Self {
            let clock = ManualClock::at(Timestamp::from_micros(1_763_650_000_000_000));
            let store = MemoryStore::builder().clock(clock).max_keys(127).build();
            let bench = Bench { store, policy: "5/h".parse().unwrap() };
            (0..keys).for_each(|key| bench.execute(Operation::Check { lease: None }, key));
            bench
        }

        fn execute(&self, operation: Operation, key: u8) {
            let checks = [Check { policy: &self.policy, key: &[key], cost: Cost::ONE }];
            let request = Request { operation, checks: &checks, request_id: None };
            assert!(self.store.decide_now(&request).unwrap().allowed());
        }

        /// Runs a step; returns whether there are more entries.
        fn copy(&self, step: Step, copied: &mut BTreeMap<u8, u32>) -> bool {
            let mut bytes = 0;
            self.store.table.lock(0).copy_step(step, |key, _| {
                *copied.entry(key.bytes()[0]).or_default() += 1;
                bytes += 10;
                bytes
            })
        }
    }

    #[test]
    fn compaction_during_a_copy_loses_and_repeats_no_entry() {
        for steps_before in 0..18 {
            let bench = Bench::new(120);
            let mut copied = BTreeMap::new();
            bench.store.table.lock(0).begin_copy();
            (0..steps_before).for_each(|_| _ = bench.copy(STEP, &mut copied));
            // Remove four of five entries, so that the shard compacts, then insert others.
            (0..120).filter(|n| n % 5 > 0).for_each(|key| bench.execute(Operation::Reset, key));
            assert_eq!(bench.store.table.lock(0).slots.len(), 120);
            bench.store.sweep(1);
            assert_eq!(bench.store.table.lock(0).slots.len(), 24);
            (200..250).for_each(|key| bench.execute(Operation::Check { lease: None }, key));
            let mut steps = 0;
            while bench.copy(STEP, &mut copied) {
                steps += 1;
            }
            assert!(steps <= 24 / 7, "later insertions do not prolong the copy");
            for key in (0..120).step_by(5) {
                assert_eq!(copied.get(&key), Some(&1), "{key} after {steps_before} steps");
            }
        }
    }

    #[test]
    fn a_key_removed_and_inserted_behind_the_cursor_is_not_copied() {
        let bench = Bench::new(20);
        let mut copied = BTreeMap::new();
        bench.store.table.lock(0).begin_copy();
        bench.copy(STEP, &mut copied);
        // The first slot is behind the cursor, and the next insertion reuses it.
        bench.execute(Operation::Reset, 19);
        bench.execute(Operation::Reset, 0);
        bench.execute(Operation::Check { lease: None }, 19);
        while bench.copy(STEP, &mut copied) {}
        assert_eq!(copied.get(&19), None, "all of its state was charged since");
        assert_eq!(copied.len(), 19);
    }

    #[test]
    fn a_step_ends_at_each_of_its_bounds() {
        let bench = Bench::new(40);
        let long = Step { entries: 40, bytes: usize::MAX, slots: 40 };
        let check = |step: Step, count: usize, more: bool| {
            let mut copied = BTreeMap::new();
            bench.store.table.lock(0).begin_copy();
            assert_eq!(bench.copy(step, &mut copied), more, "{step:?}");
            assert_eq!(copied.len(), count, "{step:?}");
        };
        check(long, 40, false);
        check(Step { entries: 39, ..long }, 39, true);
        check(Step { entries: 1, ..long }, 1, true);
        check(Step { slots: 39, ..long }, 39, true);
        check(Step { bytes: 100, ..long }, 10, true);
        check(Step { bytes: 101, ..long }, 11, true);
        check(Step { bytes: 1, ..long }, 1, true);
        (0..30).for_each(|key| bench.execute(Operation::Reset, key));
        check(Step { slots: 30, ..long }, 0, true);
        check(Step { entries: 5, ..long }, 5, true);
    }
}
