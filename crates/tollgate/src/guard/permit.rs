//! Permits and charges.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::task::AbortHandle;
use tollgate_algorithms::{Check, Cost, Decision, Id, Operation, Policy};
use tollgate_state::{Answer, StoreError};

use super::record::{OwnedCheck, Record};
use super::task::complete;
use crate::limiter::Limiter;

/// A lease is renewed after this part of its length, so that one failed renewal does not lose it.
const RENEWALS_PER_LEASE: u32 = 3;

/// An admission whose leases are held until this is dropped: they are renewed in the background, and
/// then released. [`Limiter::acquire`], [`Limiter::acquire_all`] and [`Limiter::until_allowed`] return
/// it.
///
/// A lease also ends by itself if the process is killed. What the limits have charged stays charged,
/// except if it is [refunded](Self::refund) or [settled](Self::settle).
#[derive(Debug)]
#[must_use = "dropping a permit releases its leases"]
pub struct Permit {
    record: Arc<Record>,
    renewal: Option<AbortHandle>,
    runtime: Option<Handle>,
    is_released: bool,
}

impl Permit {
    /// Takes over an answer of [`Limiter::check_all`] or [`Limiter::decide`] that admits the request:
    /// holds its leases. `request_id` is that of the request, for [`settle`](Self::settle).
    ///
    /// # Panics
    /// Panics if the answer is not one to these checks.
    pub fn from_answer(
        limiter: &Limiter,
        checks: &[Check<'_>],
        answer: Answer,
        request_id: Option<Id>,
    ) -> Self {
        let checks = checks.iter().map(OwnedCheck::new).collect();
        Permit::new(Record::new(limiter.clone(), checks, answer, request_id))
    }

    pub(super) fn new(record: Record) -> Self {
        let record = Arc::new(record);
        let runtime = Handle::try_current().ok();
        let limits = record.leases().flat_map(|(_, check, _)| check.policy.limits());
        let leases = limits.filter(|limit| limit.is_concurrent());
        let shortest = leases.map(|limit| Duration::from(limit.spec().window)).min();
        let renewal = runtime.as_ref().zip(shortest).map(|(runtime, shortest)| {
            let renewal = renew(Arc::clone(&record), shortest / RENEWALS_PER_LEASE);
            runtime.spawn(renewal).abort_handle()
        });
        Permit { record, renewal, runtime, is_released: false }
    }

    /// Calls a function with each error of the store after the admission, such as to log it. Permits can
    /// share the function. Only the first one applies.
    pub fn on_error(self, report: Arc<dyn Fn(&StoreError) + Send + Sync>) -> Self {
        let _ = self.record.on_error.set(report);
        self
    }

    /// The decisions, in the order of the checks.
    pub fn decisions(&self) -> &[Decision] {
        &self.record.decisions
    }

    /// Whether a renewal has found that a lease ended: the store was unavailable, or the process was
    /// suspended, for longer than the lease, or an operator reset the key. Stays false until a renewal
    /// reaches the store.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        self.record.is_lost.load(Ordering::Acquire)
    }

    /// Replaces the cost that was charged under a policy by the actual one: the difference is refunded,
    /// or charged regardless of what remains, into a debt of at most one capacity. The cost of a policy
    /// with a concurrent limit stays, and so does that of a decision without the store. A later call
    /// replaces the cost of an earlier one.
    ///
    /// # Errors
    /// Returns an error if the store failed. Call it again, unless the
    /// [outcome is unknown](StoreError::is_outcome_unknown) and the permit has no request id.
    pub fn settle(
        &self,
        policy: &Policy,
        actual: Cost,
    ) -> impl Future<Output = Result<(), StoreError>> + Send + use<> {
        let policy = policy.clone();
        let settled = move |other: &Policy| other.shares_name(&policy).then_some(actual);
        Arc::clone(&self.record).settle(settled)
    }

    /// As [`settle`](Self::settle), for every policy.
    ///
    /// # Errors
    /// Returns an error if the store failed.
    pub fn settle_all(
        &self,
        actual: Cost,
    ) -> impl Future<Output = Result<(), StoreError>> + Send + use<> {
        Arc::clone(&self.record).settle(move |_| Some(actual))
    }

    /// Refunds what is charged; the leases stay. A decision that was made without the store has
    /// charged nothing, so nothing is refunded then.
    ///
    /// # Errors
    /// Returns an error if the store failed.
    pub fn refund(&self) -> impl Future<Output = Result<(), StoreError>> + Send + use<> {
        Arc::clone(&self.record).refund()
    }

    /// Releases the leases, and waits until the store has done so. Dropping the permit does not wait.
    ///
    /// # Errors
    /// Returns an error if the store failed: the leases then end by themselves.
    pub async fn release(mut self) -> Result<(), StoreError> {
        let release = super::task::Completed::new(self.take_releases());
        drop(self);
        release.await
    }

    fn take_releases(&mut self) -> impl Future<Output = Result<(), StoreError>> + Send + use<> {
        if let Some(renewal) = self.renewal.take() {
            renewal.abort();
        }
        let releases = match std::mem::replace(&mut self.is_released, true) {
            true => Vec::new(),
            false => self.record.lease_changes(|lease| Operation::Release { lease }),
        };
        Arc::clone(&self.record).execute(releases)
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        if self.is_released || self.record.leases().next().is_none() {
            return;
        }
        let release = self.take_releases();
        complete(self.runtime.as_ref(), async move {
            // The record has reported an error.
            let _ = release.await;
        });
    }
}

async fn renew(record: Arc<Record>, interval: Duration) {
    loop {
        tokio::time::sleep(interval).await;
        // The record has reported an error; the next renewal may succeed.
        let renewals = record.lease_changes(|lease| Operation::Renew { lease });
        let _ = Arc::clone(&record).execute(renewals).await;
    }
}

/// An admission that is undone if it does not reach the caller.
#[derive(Debug)]
pub(super) struct Undelivered(Option<Permit>);

impl Undelivered {
    pub(super) fn new(permit: Permit) -> Self {
        Undelivered(Some(permit))
    }

    #[expect(clippy::expect_used, reason = "only this takes it, by value")]
    pub(super) fn deliver(mut self) -> Permit {
        self.0.take().expect("an admission is delivered once")
    }
}

impl Drop for Undelivered {
    fn drop(&mut self) {
        if let Some(permit) = self.0.take() {
            let refund = permit.refund();
            complete(permit.runtime.as_ref(), async move {
                // The record has reported an error.
                let _ = refund.await;
            });
        }
    }
}

/// An estimate that a policy has charged, to be replaced by the actual cost. [`Limiter::charge`]
/// returns it.
///
/// If this is dropped, the estimate stays charged: the work may have happened.
#[derive(Debug)]
#[must_use = "an estimate that is not settled stays charged"]
pub struct Charge(pub(super) Permit);

impl Charge {
    /// The decision about the estimate.
    pub fn decision(&self) -> &Decision {
        &self.0.decisions()[0]
    }

    /// Replaces the estimate by the actual cost; see [`Permit::settle`].
    ///
    /// # Errors
    /// Returns an error if the store failed: the estimate may then stay charged.
    pub async fn settle(self, actual: Cost) -> Result<(), StoreError> {
        super::task::Completed::new(self.0.settle_all(actual)).await
    }

    /// Refunds the estimate, because the work did not happen.
    ///
    /// # Errors
    /// Returns an error if the store failed: the estimate may then stay charged.
    pub async fn refund(self) -> Result<(), StoreError> {
        super::task::Completed::new(self.0.refund()).await
    }
}
