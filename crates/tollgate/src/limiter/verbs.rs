//! The verbs of one check, each by its name.

use tollgate_core::{Cost, Decision, Id, Micros, Operation, Policy, Timestamp};
use tollgate_store::{Key, StoreError};

use super::Limiter;

impl Limiter {
    /// What a check of this cost would answer; nothing changes.
    ///
    /// # Errors
    /// None, but for what a later version may add.
    pub async fn peek(
        &self,
        policy: &Policy,
        key: Key<'_>,
        cost: Cost,
    ) -> Result<Decision, StoreError> {
        self.execute(Operation::Peek, policy, key, cost).await
    }

    /// Grants the lesser of `most` and what remains.
    ///
    /// # Errors
    /// `most` is 0, or the policy has a concurrent limit.
    pub async fn take(
        &self,
        policy: &Policy,
        key: Key<'_>,
        most: Cost,
    ) -> Result<Decision, StoreError> {
        self.execute(Operation::Take, policy, key, most).await
    }

    /// Charges now what may act after the decision's delay; refused whole if that is longer than
    /// `max_wait`. The decision carries the reservation to cancel.
    ///
    /// # Errors
    /// The policy has a limit that is neither token bucket nor queue.
    pub async fn reserve(
        &self,
        policy: &Policy,
        key: Key<'_>,
        cost: Cost,
        max_wait: Micros,
    ) -> Result<Decision, StoreError> {
        self.execute(Operation::Reserve { id: crate::random_id(), max_wait }, policy, key, cost)
            .await
    }

    /// Gives a reservation back, once, before its time: its cost less what was reserved behind it.
    /// After its time, or a second time, `changed` is false.
    ///
    /// # Errors
    /// The policy has a limit that is neither token bucket nor queue, or the store gave no answer.
    pub async fn cancel(
        &self,
        policy: &Policy,
        key: Key<'_>,
        reservation: Id,
    ) -> Result<Decision, StoreError> {
        self.execute(Operation::Cancel { id: reservation }, policy, key, Cost::ZERO).await
    }

    /// Gives a cost back, never past the capacity: with the `time` of its decision, in the window
    /// of that time; without, the newest charges first.
    ///
    /// # Errors
    /// The cost is 0, all limits of the policy are concurrent ones, or the store gave no answer.
    pub async fn refund(
        &self,
        policy: &Policy,
        key: Key<'_>,
        cost: Cost,
        time: Option<Timestamp>,
    ) -> Result<Decision, StoreError> {
        self.execute(Operation::Refund { time }, policy, key, cost).await
    }

    /// Charges whatever the level, into a debt of at most one more capacity.
    ///
    /// # Errors
    /// The cost is 0, all limits of the policy are concurrent ones, or the store gave no answer.
    pub async fn penalize(
        &self,
        policy: &Policy,
        key: Key<'_>,
        cost: Cost,
    ) -> Result<Decision, StoreError> {
        self.execute(Operation::Penalize, policy, key, cost).await
    }

    /// Forgets all counters, leases and reservations of a key; its block stays.
    ///
    /// # Errors
    /// The store gave no answer.
    pub async fn reset(&self, policy: &Policy, key: Key<'_>) -> Result<Decision, StoreError> {
        self.execute(Operation::Reset, policy, key, Cost::ZERO).await
    }

    /// Denies every check of a key, for a time or until it is unblocked.
    ///
    /// # Errors
    /// The store gave no answer.
    pub async fn block(
        &self,
        policy: &Policy,
        key: Key<'_>,
        span: Option<Micros>,
    ) -> Result<Decision, StoreError> {
        self.execute(Operation::Block { span }, policy, key, Cost::ZERO).await
    }

    /// Lifts a block.
    ///
    /// # Errors
    /// The store gave no answer.
    pub async fn unblock(&self, policy: &Policy, key: Key<'_>) -> Result<Decision, StoreError> {
        self.execute(Operation::Unblock, policy, key, Cost::ZERO).await
    }

    /// Lets a lease that is still held last its whole length from now. If it is gone the decision
    /// says so: its `changed` is false.
    ///
    /// # Errors
    /// The policy has no concurrent limit, or the store gave no answer.
    pub async fn renew(
        &self,
        policy: &Policy,
        key: Key<'_>,
        lease: Id,
    ) -> Result<Decision, StoreError> {
        self.execute(Operation::Renew { lease }, policy, key, Cost::ZERO).await
    }

    /// Gives a lease's place back, once; `changed` is false if it is not held any more.
    ///
    /// # Errors
    /// The policy has no concurrent limit, or the store gave no answer.
    pub async fn release(
        &self,
        policy: &Policy,
        key: Key<'_>,
        lease: Id,
    ) -> Result<Decision, StoreError> {
        self.execute(Operation::Release { lease }, policy, key, Cost::ZERO).await
    }
}
