//! A check with the state of its key, and charges to it.

use super::evaluate::{Evaluation, describe};
use crate::algorithm::{Anomalies, Charge, lease_cost};
use crate::decision::Decision;
use crate::id::Id;
use crate::key::{Block, KeyState};
use crate::limit::Limit;
use crate::policy::Policy;
use crate::time::Timestamp;

/// A check with the state that the store keeps of its key.
///
/// The contexts of one request have different (policy, key) pairs: a store sums the costs of equal
/// pairs first.
#[derive(Debug)]
pub struct CheckContext<'a> {
    /// The policy.
    pub policy: &'a Policy,
    /// The state of the key; the default for an unknown key.
    pub state: &'a mut KeyState,
    /// The block of the key.
    pub block: &'a mut Option<Block>,
    /// The cost of the check, which is the number that the operation works with.
    pub cost: u64,
}

impl CheckContext<'_> {
    pub(super) fn active_block(&self, now: Timestamp) -> Option<Block> {
        self.block.filter(|block| block.is_active(now))
    }

    pub(super) fn is_blocked(&self, now: Timestamp) -> bool {
        self.active_block(now).is_some()
    }

    /// A charge of this cost without a lease.
    pub(super) fn charge(&self, cost: u64) -> Charge {
        Charge { cost, lease: None, log_entries: self.policy.log_entries() }
    }

    /// Brings the state into the numbers of the policy, before a change.
    pub(super) fn migrate(&mut self, now: Timestamp) {
        if self.state.policy().is_some() && !self.state.is_of(self.policy) {
            *self.state = core::mem::take(self.state).migrate(self.policy, now);
        }
    }

    /// Charges every limit, in each version that the key keeps of it. The evaluation before it has counted
    /// the anomalies of the states.
    pub(super) fn charge_limits(
        &mut self,
        charge: &Charge,
        now: Timestamp,
        anomalies: &mut Anomalies,
    ) {
        self.migrate(now);
        self.state.drop_ended_ban(now);
        let limits = self.policy.limits().iter();
        for (limit, state) in limits.zip(self.state.limits_mut(self.policy)) {
            let usage = limit.algorithm.advance_to(state, now, &mut Anomalies::default());
            limit.algorithm.charge(state, usage, charge, now, anomalies);
        }
        self.state.charge_detached(self.policy, now, |_, _| charge.cost);
    }

    /// Charges the `count-denied` limits. Returns whether there are any.
    pub(super) fn charge_denied(
        &mut self,
        charge: &Charge,
        now: Timestamp,
        anomalies: &mut Anomalies,
    ) -> bool {
        let limits = self.policy.limits();
        if charge.cost == 0 || !limits.iter().any(Limit::counts_denied) {
            return false;
        }
        self.migrate(now);
        for (limit, state) in limits.iter().zip(self.state.limits_mut(self.policy)) {
            if limit.counts_denied() {
                let usage = limit.algorithm.advance_to(state, now, &mut Anomalies::default());
                limit.algorithm.charge_denied(state, usage, charge, now, anomalies);
            }
        }
        self.state.charge_detached(self.policy, now, |index, detached| {
            let is_counted = limits[index].counts_denied() && detached.limit.counts_denied();
            if is_counted { charge.cost } else { 0 }
        });
        true
    }

    /// Lets a block override what the limits decided.
    pub(super) fn apply_block(&self, decision: &mut Decision, now: Timestamp) {
        if let Some(block) = self.active_block(now) {
            decision.extend_reset(block, now);
            decision.deny_blocked(block, now);
        }
    }

    /// The decision of an operation that does not check the limits: it reports the current state.
    pub(super) fn report(&self, now: Timestamp) -> Decision {
        let evaluation = Evaluation::unchecked(self.policy);
        let mut decision = describe(self.policy, self.state, self.state, &evaluation, now);
        self.extend_reset_to_ban(&mut decision, now);
        if let Some(block) = self.active_block(now) {
            decision.extend_reset(block, now);
        }
        decision
    }

    /// The cost of a lease that one of the concurrency limits still holds.
    pub(super) fn lease_cost(&self, id: Id, now: Timestamp) -> Option<u64> {
        let state = self.state.as_read_by(self.policy);
        self.policy.limits().iter().enumerate().find_map(|(index, limit)| {
            let state = state.limit(index);
            let usage = limit.algorithm.advance_to(state, now, &mut Anomalies::default());
            lease_cost(state, &usage, id)
        })
    }
}
