//! One method per operation on a single key.

use std::time::Duration;

use tollgate_algorithms::{
    Check, Cost, Decision, Id, Micros, Operation, Policy, Request, Timestamp,
};
use tollgate_state::{Answer, AsKey, KeyBuffer, StoreError};

use super::Limiter;
use crate::id::random_id;

/// Operations on a single key, one method for each.
///
/// # Errors
/// A method returns an error if the operation does not apply to the policy or to the cost, or if
/// the store failed and the operation does not [decide](Operation::decides).
impl Limiter {
    /// Charges and grants the lesser of `max` and what remains. `max` is above 0, and the policy
    /// has no concurrent limit.
    pub async fn take(
        &self,
        policy: &Policy,
        key: impl AsKey,
        max: Cost,
    ) -> Result<Decision, StoreError> {
        self.execute(Operation::Take, policy, key, max).await
    }

    /// Charges a cost now for work that may start after the decision's delay; denied if the delay
    /// exceeds `max_wait`. The decision carries the reservation, for [`cancel`](Self::cancel). All
    /// limits of the policy are token buckets or queues.
    pub async fn reserve(
        &self,
        policy: &Policy,
        key: impl AsKey,
        cost: Cost,
        max_wait: impl Into<Micros>,
    ) -> Result<Decision, StoreError> {
        let operation = Operation::Reserve { id: random_id(), max_wait: max_wait.into() };
        self.execute(operation, policy, key, cost).await
    }

    /// Cancels a reservation before its time, and refunds its cost less what was reserved after it.
    /// `changed` is false if its time has come or if it is cancelled already.
    pub async fn cancel(
        &self,
        policy: &Policy,
        key: impl AsKey,
        reservation: Id,
    ) -> Result<Decision, StoreError> {
        self.execute(Operation::Cancel { id: reservation }, policy, key, Cost::ZERO).await
    }

    /// Refunds a cost, up to the capacity: in the window of `time`, the time of the charging
    /// decision, or without it from the newest charges backwards. The cost is above 0, and not all
    /// limits of the policy are concurrent.
    pub async fn refund(
        &self,
        policy: &Policy,
        key: impl AsKey,
        cost: Cost,
        time: Option<Timestamp>,
    ) -> Result<Decision, StoreError> {
        self.execute(Operation::Refund { time }, policy, key, cost).await
    }

    /// Charges a cost above 0 regardless of what remains, into a debt of at most one capacity. Not
    /// all limits of the policy are concurrent.
    pub async fn penalize(
        &self,
        policy: &Policy,
        key: impl AsKey,
        cost: Cost,
    ) -> Result<Decision, StoreError> {
        self.execute(Operation::Penalize, policy, key, cost).await
    }

    /// Replaces the cost that a check charged by the actual one, once. `request_id` is that of the
    /// check, which [`decide`](Self::decide) takes; `decide` also settles several checks together.
    ///
    /// A lower cost is refunded at the time of the charge, a higher one is charged regardless of what
    /// remains, into a debt of at most one capacity. `granted` is what is charged then.
    ///
    /// # Errors
    /// No charge is known for the request id, or it is settled with another cost.
    pub async fn settle(
        &self,
        policy: &Policy,
        key: impl AsKey,
        request_id: &[u8],
        actual: Cost,
    ) -> Result<Decision, StoreError> {
        let mut buffer = KeyBuffer::new();
        let key = key.as_key(&mut buffer);
        let checks = [Check::new(policy, &key).with_cost(actual)];
        let request_id = Some(request_id);
        let request = Request { operation: Operation::Settle, checks: &checks, request_id };
        self.decide(&request).await.map(Answer::into_decision)
    }

    /// Deletes all counters, leases and reservations of a key; a block stays.
    pub async fn reset(&self, policy: &Policy, key: impl AsKey) -> Result<Decision, StoreError> {
        self.execute(Operation::Reset, policy, key, Cost::ZERO).await
    }

    /// Denies every check of a key for `duration`, or until [`unblock`](Self::unblock) if it is `None`.
    pub async fn block(
        &self,
        policy: &Policy,
        key: impl AsKey,
        duration: Option<Duration>,
    ) -> Result<Decision, StoreError> {
        let span = duration.map(Micros::from);
        self.execute(Operation::Block { span }, policy, key, Cost::ZERO).await
    }

    /// Lifts a block or a ban.
    pub async fn unblock(&self, policy: &Policy, key: impl AsKey) -> Result<Decision, StoreError> {
        self.execute(Operation::Unblock, policy, key, Cost::ZERO).await
    }

    /// Extends a lease of a concurrent limit to its full duration from now. `changed` is false if
    /// it has expired or was released.
    pub async fn renew(
        &self,
        policy: &Policy,
        key: impl AsKey,
        lease: Id,
    ) -> Result<Decision, StoreError> {
        self.execute(Operation::Renew { lease }, policy, key, Cost::ZERO).await
    }

    /// Releases a lease of a concurrent limit. `changed` is false if it has expired or was released
    /// already.
    pub async fn release(
        &self,
        policy: &Policy,
        key: impl AsKey,
        lease: Id,
    ) -> Result<Decision, StoreError> {
        self.execute(Operation::Release { lease }, policy, key, Cost::ZERO).await
    }
}
