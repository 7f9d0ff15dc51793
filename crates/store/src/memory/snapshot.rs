//! What a snapshot needs of the table: to copy it out in short steps while it is used, and to put
//! it back.
//!
//! A shard's lock is held for one step at a time, so entries come and go between two. A place keeps
//! its entry as long as that lives, and when places move all at once (`Shard::compact`), what is
//! still to be copied moves with them. So every entry that lives throughout is copied. One that
//! leaves before it was copied had recovered, was reset or was evicted: what it held is gone from
//! the store, too. It may come back at a place that is behind; then all it holds was charged since
//! the snapshot began, as what is charged behind the cursor is. It may also be copied twice, when
//! it comes back before the cursor: the later copy is then the one that counts.
//!
//! Places that are added after the copying began are not copied, so it ends however many keys come.

use std::sync::Arc;

use tollgate_core::{Block, KeyState, Policy, Timestamp};

use super::MemoryStore;
use super::blocks::Blocked;
use super::entry::Entry;
use super::shard::Shard;
use super::table::Table;
use crate::sync::{MutexGuard, lock};

/// The most that is done under one hold of a shard's lock: some 20 µs for 256 keys of 24 bytes,
/// which are 13 KB. The longest entry, of 16 logs of 10,000 entries, takes 16 times 60 µs; a policy
/// that keeps more of a log has it copied in one piece all the same.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    pub(crate) entries: usize,
    /// Bytes copied; the entry that passes them is the last.
    pub(crate) bytes: usize,
    /// Places looked at, most of which may be empty.
    pub(crate) places: usize,
}

impl Step {
    pub(crate) const SHORT: Step = Step { entries: 256, bytes: 64 * 1024, places: 4_096 };
}

impl Shard {
    /// Begins to copy entries: all that are there now.
    pub(crate) fn begin_copy(&mut self) {
        self.to_copy = 0..self.entries.len();
    }

    /// Visits the next entries; `visit` says how many bytes were copied so far in this step.
    /// Whether there is more.
    pub(crate) fn copy_step(
        &mut self,
        step: Step,
        mut visit: impl FnMut(&[u8], &KeyState) -> usize,
    ) -> bool {
        let mut left = step.entries;
        for place in self.to_copy.clone().take(step.places) {
            self.to_copy.start = place + 1;
            let Some(Some(entry)) = self.entries.get(place) else { continue };
            left = left.saturating_sub(1);
            if visit(entry.key(), &entry.state) >= step.bytes || left == 0 {
                break;
            }
        }
        !self.to_copy.is_empty()
    }

    /// Visits the blocks behind one of this policy and key, as [`Shard::copy_step`] does entries.
    /// Which was the last, if there was any.
    pub(crate) fn copy_blocks(
        &self,
        after: Option<&Blocked>,
        step: Step,
        mut visit: impl FnMut(&str, &[u8], Block) -> usize,
    ) -> Option<Blocked> {
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

/// What became of a key that was put back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PutBack {
    /// It was not there.
    New,
    /// It took the place of what was known of it.
    Replaced,
    /// It was not, for it has recovered.
    Recovered,
    /// It was not, for the shard is full and nobody may leave.
    NoRoom,
}

impl Table {
    /// Puts a key back, in place of what is known of it. If `fits`, the table is not full: then the
    /// key is taken even where its shard is, for the keys of a file fall to the shards otherwise
    /// than they did before, and a table that held them all must not lose some of them.
    pub(crate) fn put_back(
        &self,
        key: &[u8],
        state: KeyState,
        fits: bool,
        now: Timestamp,
    ) -> PutBack {
        let Some(policy) = state.policy() else { return PutBack::Recovered };
        let address = self.address(policy, key);
        let mut shard = self.lock(address.shard);
        let known = shard.find(address.tag, policy, key);
        if let Some(place) = known {
            shard.remove(place);
        }
        if state.is_untouched(now) {
            return PutBack::Recovered;
        }
        if known.is_none() && !fits && shard.make_room_for(1, now, &[]).is_err() {
            return PutBack::NoRoom;
        }
        shard.insert(Entry::new(address.tag, key, state), now);
        if known.is_none() { PutBack::New } else { PutBack::Replaced }
    }

    /// Puts a block back, in place of an earlier one; whether there was none.
    pub(crate) fn put_back_block(&self, policy: &str, key: &[u8], block: Block) -> bool {
        let address = self.address_under(Policy::hash_of_name(policy), key);
        self.lock(address.shard).blocks.set(policy, key, Some(block)).is_none()
    }
}

impl MemoryStore {
    pub(crate) fn main_table(&self) -> &Table {
        &self.table
    }

    /// The tables of policies that have a bound of their own, by name.
    pub(crate) fn tables_by_name(&self) -> Vec<(Box<str>, Arc<Table>)> {
        let tables = self.own_tables.read().unwrap_or_else(|error| error.into_inner());
        tables.iter().map(|(name, table)| (name.clone(), Arc::clone(table))).collect()
    }

    /// How many keys there are, and how many live ones had to go.
    pub(crate) fn keys_and_evicted(&self) -> (u64, u64) {
        let tables = self.tables();
        let tables = || tables.iter().map(|table| &**table).chain([&self.table]);
        let keys: usize = tables().map(Table::keys).sum();
        let evicted = tables().map(|table| table.counts().evicted).sum();
        (u64::try_from(keys).unwrap_or(u64::MAX), evicted)
    }

    /// Held by the one who copies the tables out: a shard knows of one copy at a time.
    pub(crate) fn lock_copying(&self) -> MutexGuard<'_, ()> {
        lock(&self.copying)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use tollgate_core::{Check, Cost, Operation, Request};

    use super::*;
    use crate::clock::ManualClock;
    use crate::memory::MemoryStore;

    const STEP: Step = Step { entries: 7, bytes: usize::MAX, places: usize::MAX };

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
            (0..keys).for_each(|key| bench.ask(Operation::Check { lease: None }, key));
            bench
        }

        fn ask(&self, verb: Operation, key: u8) {
            let checks = [Check { policy: &self.policy, key: &[key], cost: Cost::ONE }];
            let request = Request { verb, checks: &checks, request_id: None };
            assert!(self.store.decide_now(&request).unwrap().allowed());
        }

        /// Takes a step; whether there is more.
        fn copy(&self, step: Step, copied: &mut BTreeMap<u8, u32>) -> bool {
            let mut bytes = 0;
            self.store.main_table().lock(0).copy_step(step, |key, _| {
                *copied.entry(key[0]).or_default() += 1;
                bytes += 10;
                bytes
            })
        }
    }

    #[test]
    fn places_that_move_take_what_is_left_to_copy_with_them() {
        for steps_before in 0..18 {
            let bench = Bench::new(120);
            let mut copied = BTreeMap::new();
            bench.store.main_table().lock(0).begin_copy();
            (0..steps_before).for_each(|_| _ = bench.copy(STEP, &mut copied));
            // Four of five leave, so that the others move together; others come.
            (0..120).filter(|n| n % 5 > 0).for_each(|key| bench.ask(Operation::Reset, key));
            assert_eq!(bench.store.main_table().lock(0).entries.len(), 120);
            bench.store.sweep(1);
            assert_eq!(bench.store.main_table().lock(0).entries.len(), 24);
            (200..250).for_each(|key| bench.ask(Operation::Check { lease: None }, key));
            let mut steps = 0;
            while bench.copy(STEP, &mut copied) {
                steps += 1;
            }
            assert!(steps <= 24 / 7, "what came since is not waited for");
            for key in (0..120).step_by(5) {
                assert_eq!(copied.get(&key), Some(&1), "{key} after {steps_before} steps");
            }
        }
    }

    #[test]
    fn a_key_that_leaves_and_comes_back_was_forgotten_between() {
        let bench = Bench::new(20);
        let mut copied = BTreeMap::new();
        bench.store.main_table().lock(0).begin_copy();
        bench.copy(STEP, &mut copied);
        // The first place is behind the cursor: the next who comes takes it.
        bench.ask(Operation::Reset, 19);
        bench.ask(Operation::Reset, 0);
        bench.ask(Operation::Check { lease: None }, 19);
        while bench.copy(STEP, &mut copied) {}
        assert_eq!(copied.get(&19), None, "all that it holds was charged since");
        assert_eq!(copied.len(), 19);
    }

    #[test]
    fn a_step_ends_at_each_of_its_bounds() {
        let bench = Bench::new(40);
        let long = Step { entries: 40, bytes: usize::MAX, places: 40 };
        let check = |step: Step, count: usize, more: bool| {
            let mut copied = BTreeMap::new();
            bench.store.main_table().lock(0).begin_copy();
            assert_eq!(bench.copy(step, &mut copied), more, "{step:?}");
            assert_eq!(copied.len(), count, "{step:?}");
        };
        check(long, 40, false);
        check(Step { entries: 39, ..long }, 39, true);
        check(Step { entries: 1, ..long }, 1, true);
        check(Step { places: 39, ..long }, 39, true);
        check(Step { bytes: 100, ..long }, 10, true);
        check(Step { bytes: 101, ..long }, 11, true);
        check(Step { bytes: 1, ..long }, 1, true);
        (0..30).for_each(|key| bench.ask(Operation::Reset, key));
        check(Step { places: 30, ..long }, 0, true);
        check(Step { entries: 5, ..long }, 5, true);
    }
}
