//! Batches of independent checks, whose cache misses overlap.

use std::hint::black_box;

use tollgate_algorithms::{Check, Decision, Id, check_single_limit};

use super::MemoryStore;
use super::entry::SlotIndex;
use super::locked_shards::LockedShards;
use super::stored_key::{MAX_TEXT_LEN, StoredKey};
use super::table::Address;
use crate::key::Key;

/// The maximum number of checks in a group, whose keys are looked up together under the locks of
/// their shards.
const MAX_GROUP: usize = 16;

/// The bytes of all tables up to which reads need not overlap: half of a level-2 cache of 1 MiB.
const CACHED_BYTES: usize = if cfg!(loom) { 0 } else { 512 * 1024 };

impl MemoryStore {
    /// Decides and charges each check on its own, in order, as [`check`](Self::check) does, and appends
    /// the decisions. Calls `lease` for a new id for each check whose policy has a concurrent limit. The
    /// caller has validated the keys, as [`Key::new`] does.
    ///
    /// If a key is not in the processor's caches, most of the time of a check is spent on reading the
    /// table. Here the reads of up to 16 checks overlap, unless the table is so small that it stays in
    /// the caches. Checks that are decided together share one reading of the clock.
    pub fn check_each(
        &self,
        checks: &[Check<'_>],
        mut lease: impl FnMut() -> Id,
        decisions: &mut Vec<Decision>,
    ) {
        // So that no memory is allocated while shards are locked.
        decisions.reserve(checks.len());
        let mut rest = checks;
        while !rest.is_empty() {
            let decided = decisions.len();
            let (group, after) = rest.split_at(self.check_group(rest, decisions));
            // The entries of the others are in the caches now.
            let others = &group[decisions.len() - decided..];
            if !others.is_empty() {
                let now = self.clock.now();
                decisions.extend(others.iter().map(|check| {
                    let key = Key::from_valid(check.key);
                    self.check_at(now, check.policy, key, check.cost, || Some(lease()))
                }));
            }
            rest = after;
        }
    }

    /// Looks up a group of the first checks, and decides them up to the first one that needs more than
    /// the fast path. Returns how many checks are in the group; the first one, which exists, always is.
    /// Decides none of them if the table is in the caches.
    fn check_group(&self, checks: &[Check<'_>], decisions: &mut Vec<Decision>) -> usize {
        if self.budget.usage().keys <= CACHED_BYTES {
            return checks.len().min(MAX_GROUP);
        }
        let is_single =
            |check: &&Check<'_>| check.policy.is_single_limit() && check.key.len() <= MAX_TEXT_LEN;
        let count = checks.iter().take(MAX_GROUP).take_while(is_single).count();
        if count < 2 {
            return 1;
        }
        let mut addresses = [Address::default(); MAX_GROUP];
        let addresses = &mut addresses[..count];
        // Reads the keys ahead, before they are hashed one after the other.
        let bytes = checks[..count].iter().filter_map(|check| check.key.first());
        black_box(bytes.fold(0, |all, byte| all ^ byte));
        for (address, check) in addresses.iter_mut().zip(checks) {
            *address = self.table.address(check.policy, &StoredKey::Text(check.key));
        }
        let (mut shards, count) = LockedShards::try_lock_first(&self.table, addresses);
        let checks = &checks[..count];
        let (slots, known) = shards.find_slots(checks, addresses);
        let now = self.clock.now();
        // The range has an exact length, so that each decision is written directly into the vector.
        decisions.extend((0..known).map(|index| {
            let Check { policy, cost, .. } = checks[index];
            let (state, anomalies) = shards.get_mut(index).state_and_anomalies_mut(slots[index]);
            check_single_limit(policy, state, cost.get(), now, anomalies)
        }));
        checks.len()
    }
}

impl LockedShards<'_, MAX_GROUP> {
    /// Finds the slots of the first checks, up to the first one that the fast path cannot decide. Returns
    /// them and their number.
    ///
    /// Each of the first two passes reads one more cache line for each check and does little else, so
    /// that the processor reads those of all checks at once.
    fn find_slots(
        &self,
        checks: &[Check<'_>],
        addresses: &[Address],
    ) -> ([SlotIndex; MAX_GROUP], usize) {
        let mut candidates = [None; MAX_GROUP];
        for (index, Address { tag, .. }) in addresses[..checks.len()].iter().enumerate() {
            candidates[index] = self.get(index).first_candidate(*tag);
        }
        for (index, slot) in candidates.iter().enumerate() {
            let entry = slot.and_then(|slot| self.get(index).entry(slot));
            black_box(entry.is_some_and(|entry| entry.state.is_inline()));
        }
        let (mut slots, mut known) = ([SlotIndex::default(); MAX_GROUP], 0);
        for (index, check) in checks.iter().enumerate() {
            let (key, shard) = (StoredKey::Text(check.key), self.get(index));
            let is_fast = |slot| shard.is_on_fast_path(slot, check.policy, &key);
            slots[index] = match candidates[index] {
                Some(slot) if is_fast(slot) => slot,
                _ => match shard.find(addresses[index].tag, check.policy, &key) {
                    Some(slot) if is_fast(slot) => slot,
                    _ => break,
                },
            };
            known = index + 1;
        }
        (slots, known)
    }
}
