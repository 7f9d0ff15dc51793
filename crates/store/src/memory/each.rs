//! Independent checks, looked up together so that their cache misses overlap.

use std::hint::black_box;

use tollgate_algorithms::{Check, Decision, Id, check_single_limit};

use super::MemoryStore;
use super::entry::SlotIndex;
use super::shard::Shard;
use super::stored_key::StoredKey;
use super::table::{Address, Table};
use crate::key::Key;
use crate::sync::MutexGuard;

/// The maximum number of checks that are looked up together, under the locks of their shards.
const TOGETHER: usize = 16;

impl MemoryStore {
    /// Decides and charges each check on its own, in order, as [`check`](Self::check) does. Calls
    /// `lease` for a new id for each check whose policy has a concurrent limit, and `decided` with each
    /// decision. The caller has validated the keys, as [`Key::new`] does.
    ///
    /// A check of a key that the processor's caches do not have takes mostly the time of reading the
    /// table in memory. Here up to 16 checks wait for it at once.
    pub fn check_each(
        &self,
        checks: &[Check<'_>],
        mut lease: impl FnMut() -> Id,
        mut decided: impl FnMut(Decision),
    ) {
        let mut rest = checks;
        while let [first, ..] = rest {
            let mut count = self.check_together(rest, &mut decided);
            if count == 0 {
                let key = Key::from_valid(first.key);
                decided(self.check(first.policy, key, first.cost, &mut lease));
                count = 1;
            }
            rest = &rest[count..];
        }
    }

    /// Decides the first checks if the fast path can; returns how many.
    fn check_together(&self, checks: &[Check<'_>], decided: &mut impl FnMut(Decision)) -> usize {
        let is_single = |check: &&Check<'_>| check.policy.is_single_limit();
        let count = checks.iter().take(TOGETHER).take_while(is_single).count();
        if count < 2 {
            return 0;
        }
        let mut addresses = [Address::default(); TOGETHER];
        let addresses = &mut addresses[..count];
        // Reads the keys ahead, before they are hashed one after the other.
        let bytes = checks[..count].iter().filter_map(|check| check.key.first());
        black_box(bytes.fold(0, |all, byte| all ^ byte));
        for (address, check) in addresses.iter_mut().zip(checks) {
            *address = self.table.address(check.policy, &StoredKey::new(check.key));
        }
        let mut shards = Shards::lock(&self.table, addresses);
        let checks = &checks[..shards.count];
        let slots = shards.find(checks, addresses);
        let now = self.clock.now();
        for (index, (check, slot)) in checks.iter().zip(slots).enumerate() {
            let (key, shard) = (StoredKey::new(check.key), shards.get_mut(index));
            let known = slot.and_then(|slot| shard.fast_path_mut(slot, check.policy, &key));
            let Some((state, anomalies)) = known else { return index };
            decided(check_single_limit(check.policy, state, check.cost.get(), now, anomalies));
        }
        checks.len()
    }
}

/// The locked shards of the first checks.
struct Shards<'a> {
    /// The guards, each at the first check of its shard.
    guards: [Option<MutexGuard<'a, Shard>>; TOGETHER],
    /// The position of the guard of each check.
    owners: [usize; TOGETHER],
    /// The number of checks whose shards are locked.
    count: usize,
}

impl<'a> Shards<'a> {
    /// Locks the shard of the first check, and those of the next ones up to one that is locked by
    /// another thread: waiting for it with other locks held could deadlock, and would hold up others.
    fn lock(table: &'a Table, addresses: &[Address]) -> Self {
        let (guards, owners) = ([const { None }; TOGETHER], [0; TOGETHER]);
        let mut shards = Shards { guards, owners, count: 0 };
        for (index, Address { shard, .. }) in addresses.iter().enumerate() {
            let is_same = |known: &Address| known.shard == *shard;
            let owner = addresses[..index].iter().position(is_same).unwrap_or(index);
            if owner == index {
                shards.guards[index] = match index {
                    0 => Some(table.lock(*shard)),
                    _ => table.try_lock(*shard),
                };
                if shards.guards[index].is_none() {
                    break;
                }
            }
            shards.owners[index] = owner;
            shards.count = index + 1;
        }
        shards
    }

    #[expect(clippy::expect_used, reason = "callers pass the position of a check that is locked")]
    fn get(&self, check: usize) -> &Shard {
        self.guards[self.owners[check]].as_deref().expect("the shard is locked")
    }

    #[expect(clippy::expect_used, reason = "callers pass the position of a check that is locked")]
    fn get_mut(&mut self, check: usize) -> &mut Shard {
        self.guards[self.owners[check]].as_deref_mut().expect("the shard is locked")
    }

    /// Returns the slots of the keys that are known. Each pass reads one more cache line for each check
    /// and does little else, so that the processor reads those of all checks at once.
    fn find(&self, checks: &[Check<'_>], addresses: &[Address]) -> [Option<SlotIndex>; TOGETHER] {
        let mut slots = [None; TOGETHER];
        for index in 0..checks.len() {
            slots[index] = self.get(index).first_candidate(addresses[index].tag);
        }
        let mut has_tag = [false; TOGETHER];
        for index in 0..checks.len() {
            let entry = slots[index].and_then(|slot| self.get(index).entry(slot));
            has_tag[index] = entry.is_some_and(|entry| entry.tag() == addresses[index].tag);
        }
        for (index, Check { policy, key, .. }) in checks.iter().enumerate() {
            let (shard, key) = (self.get(index), StoredKey::new(key));
            let is_match =
                |slot| shard.entry(slot).is_some_and(|entry| entry.matches(policy, &key));
            if !has_tag[index] || !slots[index].is_some_and(is_match) {
                slots[index] = shard.find(addresses[index].tag, policy, &key);
            }
        }
        slots
    }
}
