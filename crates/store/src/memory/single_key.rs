//! Operations on a single key, under one lock.

use tollgate_algorithms::{
    CheckContext, Cost, Decision, Id, Inspection, KeyState, Operation, Policy, RecordedCharge,
    Timestamp, check_single_limit, decide_one, inspect, settle,
};

use super::MemoryStore;
use super::blocks::Blocks;
use super::entry::{Entry, SlotIndex};
use super::policy_counts::PolicyGroup;
use super::shard::{Shard, ShardFull};
use super::stored_key::{MAX_TEXT_LEN, StoredKey};
use super::table::Address;
use crate::key::Key;
use crate::sync::MutexGuard;

impl MemoryStore {
    /// Checks and charges a cost. Calls `lease` for a new id only if the policy has a concurrent
    /// limit.
    #[inline]
    pub fn check(
        &self,
        policy: &Policy,
        key: Key<'_>,
        cost: Cost,
        lease: impl FnOnce() -> Id,
    ) -> Decision {
        self.check_at(self.clock.now(), policy, key, cost, || Some(lease()))
    }

    /// The check at a time that has just been read from the clock.
    #[inline]
    pub(super) fn check_at(
        &self,
        now: Timestamp,
        policy: &Policy,
        key: Key<'_>,
        cost: Cost,
        lease: impl FnOnce() -> Option<Id>,
    ) -> Decision {
        if !policy.is_single_limit() || key.as_bytes().len() > MAX_TEXT_LEN {
            let lease = if policy.has_concurrent() { lease() } else { None };
            let key = StoredKey::new(key.as_bytes());
            return self.decide_key(&Operation::Check { lease }, policy, &key, cost.get(), now);
        }
        let key = StoredKey::Text(key.as_bytes());
        let address = self.table.address(policy, &key);
        let mut shard = self.table.lock(address.shard);
        if let Some(slot) = shard.first_candidate(address.tag)
            && let Some((state, anomalies)) = shard.fast_path_mut(slot, policy, &key)
        {
            // Inlined, so that the decision is written directly to the caller's memory.
            return check_single_limit(policy, state, cost.get(), now, anomalies);
        }
        let operation = &Operation::Check { lease: None };
        let call = Call { operation, policy, key: &key, cost: cost.get(), charge: None, now };
        self.check_slowly(shard, address, &call)
    }

    /// Executes a check of a policy with a single limit whose key is not the first candidate, or that
    /// the fast path does not decide.
    #[inline(never)]
    fn check_slowly(
        &self,
        mut shard: MutexGuard<'_, Shard>,
        address: Address,
        call: &Call<'_>,
    ) -> Decision {
        let Call { policy, key, cost, now, .. } = *call;
        let slot = shard.find(address.tag, policy, key);
        if let Some((state, anomalies)) =
            slot.and_then(|slot| shard.fast_path_mut(slot, policy, key))
        {
            return check_single_limit(policy, state, cost, now, anomalies);
        }
        if self.budget.is_nearly_used_up() {
            // Memory is reclaimed from other shards, and this one can change meanwhile.
            drop(shard);
            return self.execute(call);
        }
        if let Some(slot) = slot
            && shard.is_single_limit(slot, policy, key)
        {
            return shard.change_state(slot, |state, anomalies| {
                check_single_limit(policy, state, cost, now, anomalies)
            });
        }
        self.execute_in(&mut shard, address, slot, call)
    }

    /// Returns the state of a key: the usage of each limit, the block, leases and reservations, and
    /// when they expire.
    #[must_use]
    pub fn inspect(&self, policy: &Policy, key: Key<'_>) -> Inspection {
        let (key, now) = (&StoredKey::new(key.as_bytes()), self.clock.now());
        self.with_table(policy, |table| {
            let address = table.address(policy, key);
            let mut shard = table.lock(address.shard);
            let mut block = shard.blocks.get(policy, key);
            let mut unknown = KeyState::default();
            let state = match shard.find(address.tag, policy, key) {
                Some(slot) => shard.state_mut(slot),
                None => &mut unknown,
            };
            inspect(&CheckContext { policy, state, block: &mut block, cost: 0 }, now)
        })
    }

    /// Executes an operation on one key.
    pub(super) fn decide_key(
        &self,
        operation: &Operation,
        policy: &Policy,
        key: &StoredKey<'_>,
        cost: u64,
        now: Timestamp,
    ) -> Decision {
        self.execute(&Call { operation, policy, key, cost, charge: None, now })
    }

    /// Settles a check on one key; see [`settle`].
    pub(super) fn settle_key(
        &self,
        policy: &Policy,
        key: &StoredKey<'_>,
        cost: u64,
        charge: Option<&RecordedCharge>,
        now: Timestamp,
    ) -> Decision {
        self.execute(&Call { operation: &Operation::Settle, policy, key, cost, charge, now })
    }

    fn execute(&self, call: &Call<'_>) -> Decision {
        let Call { operation, policy, key, now, .. } = *call;
        self.reclaim(operation, 1, now);
        self.with_table(policy, |table| {
            let address = table.address(policy, key);
            let mut shard = table.lock(address.shard);
            let slot = shard.find(address.tag, policy, key);
            self.execute_in(&mut shard, address, slot, call)
        })
    }

    /// Executes an operation on a key of a locked shard, in its slot if it is known.
    fn execute_in(
        &self,
        shard: &mut Shard,
        address: Address,
        slot: Option<SlotIndex>,
        call: &Call<'_>,
    ) -> Decision {
        let decided = match slot {
            Some(slot) => call.decide_known(shard, slot),
            None => call.decide_new(shard, address),
        };
        decided.unwrap_or_else(|full| self.decide_without_room(full, call.cost, call.now))
    }
}

/// An operation on one key at a point in time.
struct Call<'a> {
    operation: &'a Operation,
    policy: &'a Policy,
    key: &'a StoredKey<'a>,
    cost: u64,
    /// The charge that a settlement replaces.
    charge: Option<&'a RecordedCharge>,
    now: Timestamp,
}

impl Call<'_> {
    fn decide(&self, shard: &mut Shard, state: &mut KeyState) -> Decision {
        let known = shard.blocks.get(self.policy, self.key);
        let mut block = known;
        let mut context =
            CheckContext { policy: self.policy, state, block: &mut block, cost: self.cost };
        let anomalies = &mut shard.counts.anomalies;
        let decision = match self.operation {
            Operation::Settle => settle(&mut context, self.charge, self.now, anomalies),
            operation => decide_one(operation, &mut context, self.now, anomalies),
        };
        if block != known {
            shard.blocks.set(self.policy.name(), self.key, block);
            shard.record_usage();
        }
        decision
    }

    /// Returns an error if the operation would allocate more than the budget has left.
    fn has_bytes(&self, shard: &Shard, is_inline: bool) -> Result<(), ShardFull> {
        let bytes = match self.operation {
            Operation::Block { .. } => Blocks::bytes_of(self.policy.name(), self.key),
            operation if may_grow(operation) && !is_inline => 1,
            _ => 0,
        };
        shard.has_bytes(0, bytes, self.now)
    }

    fn decide_known(&self, shard: &mut Shard, slot: SlotIndex) -> Result<Decision, ShardFull> {
        let is_inline = shard.state_mut(slot).is_inline();
        self.has_bytes(shard, is_inline)?;
        let mut state = shard.take_state(slot);
        let decision = self.decide(shard, &mut state);
        let may_refund = !matches!(self.operation, Operation::Check { .. } | Operation::Peek);
        let is_untouched = may_refund && state.is_untouched(self.now);
        if is_untouched {
            shard.remove(slot, PolicyGroup::new(self.policy));
            return Ok(decision);
        }
        shard.put_state(slot, state);
        if may_refund {
            shard.policies.note_refund();
        }
        Ok(decision)
    }

    /// Decides for a key that is not in the table, and inserts it if anything was charged.
    fn decide_new(&self, shard: &mut Shard, address: Address) -> Result<Decision, ShardFull> {
        self.has_bytes(shard, true)?;
        let mut state = KeyState::default();
        let decision = self.decide(shard, &mut state);
        if !state.is_untouched(self.now) {
            let entry = Entry::new(address.tag, self.key, state);
            shard.make_room(&entry, self.now)?;
            shard.insert(entry);
        }
        Ok(decision)
    }
}

/// Returns whether an operation may allocate memory.
pub(super) const fn may_grow(operation: &Operation) -> bool {
    operation.decides() && !matches!(operation, Operation::Peek)
}
