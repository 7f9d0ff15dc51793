//! One method per operation on a single key.

use tollgate_core::{Cost, Decision, Id, Micros, Operation, Policy, Timestamp};
use tollgate_store::{Key, StoreError};

use super::Limiter;
use crate::id::random_id;

impl Limiter {
    /// Returns what a check of this cost would decide; changes nothing.
    ///
    /// # Errors
    /// Reserved for later versions: returns no error today.
    pub async fn peek(
        &self,
        policy: &Policy,
        key: Key<'_>,
        cost: Cost,
    ) -> Result<Decision, StoreError> {
        self.execute(Operation::Peek, policy, key, cost).await
    }

    /// Charges and grants the lesser of `max` and what remains.
    ///
    /// # Errors
    /// Returns an error if `max` is 0 or the policy has a concurrent limit.
    pub async fn take(
        &self,
        policy: &Policy,
        key: Key<'_>,
        max: Cost,
    ) -> Result<Decision, StoreError> {
        self.execute(Operation::Take, policy, key, max).await
    }

    /// Charges a cost now for work that may start after the decision's delay; denied if the delay
    /// exceeds `max_wait`. The decision carries the reservation, for [`cancel`](Self::cancel).
    ///
    /// # Errors
    /// Returns an error if the policy has a limit that is neither a token bucket nor a queue.
    pub async fn reserve(
        &self,
        policy: &Policy,
        key: Key<'_>,
        cost: Cost,
        max_wait: Micros,
    ) -> Result<Decision, StoreError> {
        self.execute(Operation::Reserve { id: random_id(), max_wait }, policy, key, cost).await
    }

    /// Cancels a reservation before its time, and refunds its cost less what was reserved after it.
    /// `changed` is false if its time has come or if it is cancelled already.
    ///
    /// # Errors
    /// Returns an error if the policy has a limit that is neither a token bucket nor a queue, or if the
    /// store failed.
    pub async fn cancel(
        &self,
        policy: &Policy,
        key: Key<'_>,
        reservation: Id,
    ) -> Result<Decision, StoreError> {
        self.execute(Operation::Cancel { id: reservation }, policy, key, Cost::ZERO).await
    }

    /// Refunds a cost, up to the capacity: in the window of `time`, the time of the charging
    /// decision, or without it from the newest charges backwards.
    ///
    /// # Errors
    /// Returns an error if the cost is 0, if all limits of the policy are concurrent, or if the store
    /// failed.
    pub async fn refund(
        &self,
        policy: &Policy,
        key: Key<'_>,
        cost: Cost,
        time: Option<Timestamp>,
    ) -> Result<Decision, StoreError> {
        self.execute(Operation::Refund { time }, policy, key, cost).await
    }

    /// Charges a cost regardless of what remains, into a debt of at most one capacity.
    ///
    /// # Errors
    /// Returns an error if the cost is 0, if all limits of the policy are concurrent, or if the store
    /// failed.
    pub async fn penalize(
        &self,
        policy: &Policy,
        key: Key<'_>,
        cost: Cost,
    ) -> Result<Decision, StoreError> {
        self.execute(Operation::Penalize, policy, key, cost).await
    }

    /// Deletes all counters, leases and reservations of a key; a block stays.
    ///
    /// # Errors
    /// Returns an error if the store failed.
    pub async fn reset(&self, policy: &Policy, key: Key<'_>) -> Result<Decision, StoreError> {
        self.execute(Operation::Reset, policy, key, Cost::ZERO).await
    }

    /// Denies every check of a key for `duration`, or until [`unblock`](Self::unblock) if it is `None`.
    ///
    /// # Errors
    /// Returns an error if the store failed.
    pub async fn block(
        &self,
        policy: &Policy,
        key: Key<'_>,
        duration: Option<Micros>,
    ) -> Result<Decision, StoreError> {
        self.execute(Operation::Block { span: duration }, policy, key, Cost::ZERO).await
    }

    /// Lifts a block.
    ///
    /// # Errors
    /// Returns an error if the store failed.
    pub async fn unblock(&self, policy: &Policy, key: Key<'_>) -> Result<Decision, StoreError> {
        self.execute(Operation::Unblock, policy, key, Cost::ZERO).await
    }

    /// Extends a lease to its full duration from now. `changed` is false if it has expired or was
    /// released.
    ///
    /// # Errors
    /// Returns an error if the policy has no concurrent limit or if the store failed.
    pub async fn renew(
        &self,
        policy: &Policy,
        key: Key<'_>,
        lease: Id,
    ) -> Result<Decision, StoreError> {
        self.execute(Operation::Renew { lease }, policy, key, Cost::ZERO).await
    }

    /// Releases a lease. `changed` is false if it has expired or was released already.
    ///
    /// # Errors
    /// Returns an error if the policy has no concurrent limit or if the store failed.
    pub async fn release(
        &self,
        policy: &Policy,
        key: Key<'_>,
        lease: Id,
    ) -> Result<Decision, StoreError> {
        self.execute(Operation::Release { lease }, policy, key, Cost::ZERO).await
    }
}
