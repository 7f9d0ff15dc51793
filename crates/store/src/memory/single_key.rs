//! Operations on a single key, under one lock.

use tollgate_core::{
    CheckContext, Cost, Decision, Id, Inspection, KeyState, Operation, Policy, Timestamp,
    check_single_limit, decide_one, inspect,
};

use super::MemoryStore;
use super::entry::{Entry, SlotIndex};
use super::shard::{Shard, ShardFull};
use super::table::Address;
use crate::key::Key;

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
        if !policy.is_single_limit() {
            let lease = policy.has_concurrent().then(lease);
            return self.check_any(policy, key.as_bytes(), cost, lease);
        }
        let now = self.clock.now();
        let address = self.table.address(policy, key.as_bytes());
        let mut shard = self.table.lock(address.shard);
        if let Some((state, anomalies)) = shard.fast_path_mut(address.tag, policy, key.as_bytes()) {
            // A tail call: the decision is written directly to the caller's memory.
            return check_single_limit(policy, state, cost.get(), now, anomalies);
        }
        drop(shard);
        self.check_any(policy, key.as_bytes(), cost, None)
    }

    #[inline(never)]
    fn check_any(&self, policy: &Policy, key: &[u8], cost: Cost, lease: Option<Id>) -> Decision {
        let now = self.clock.now();
        self.decide_key(&Operation::Check { lease }, policy, key, cost.get(), now)
    }

    /// Returns the state of a key: the usage of each limit, the block, leases and reservations, and
    /// when they expire.
    #[must_use]
    pub fn inspect(&self, policy: &Policy, key: Key<'_>) -> Inspection {
        let (key, now) = (key.as_bytes(), self.clock.now());
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
        key: &[u8],
        cost: u64,
        now: Timestamp,
    ) -> Decision {
        let call = Call { operation, policy, key, cost, now };
        self.with_table(policy, |table| {
            let address = table.address(policy, key);
            let mut shard = table.lock(address.shard);
            match shard.find(address.tag, policy, key) {
                Some(slot) => call.decide_known(&mut shard, slot),
                None => call
                    .decide_new(&mut shard, address)
                    .unwrap_or_else(|full| self.decide_without_room(full.retry_at, cost, now)),
            }
        })
    }
}

/// An operation on one key at a point in time.
struct Call<'a> {
    operation: &'a Operation,
    policy: &'a Policy,
    key: &'a [u8],
    cost: u64,
    now: Timestamp,
}

impl Call<'_> {
    fn decide(&self, shard: &mut Shard, state: &mut KeyState) -> Decision {
        let known = shard.blocks.get(self.policy, self.key);
        let mut block = known;
        let mut context =
            CheckContext { policy: self.policy, state, block: &mut block, cost: self.cost };
        let decision =
            decide_one(self.operation, &mut context, self.now, &mut shard.counts.anomalies);
        if block != known {
            shard.blocks.set(self.policy.name(), self.key, block);
        }
        decision
    }

    fn decide_known(&self, shard: &mut Shard, slot: SlotIndex) -> Decision {
        let mut state = std::mem::take(shard.state_mut(slot));
        let decision = self.decide(shard, &mut state);
        let may_refund = !matches!(self.operation, Operation::Check { .. } | Operation::Peek);
        let is_untouched = may_refund && state.is_untouched(self.now);
        *shard.state_mut(slot) = state;
        if is_untouched {
            shard.remove(slot);
        } else if may_refund {
            shard.note_refund(slot, self.now);
        }
        decision
    }

    /// Decides for a key that is not in the table, and inserts it if anything was charged.
    fn decide_new(&self, shard: &mut Shard, address: Address) -> Result<Decision, ShardFull> {
        let mut state = KeyState::default();
        let decision = self.decide(shard, &mut state);
        if !state.is_untouched(self.now) {
            shard.make_room(self.now)?;
            shard.insert(Entry::new(address.tag, self.key, state), self.now);
        }
        Ok(decision)
    }
}
