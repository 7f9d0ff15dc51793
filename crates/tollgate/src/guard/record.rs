//! What an admission has charged, and the operations that change it afterwards.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use tollgate_core::{Check, Cost, Decision, Id, Operation, Policy, Request, RequestError};
use tollgate_store::{Answer, KeyBuf, StoreError};

use crate::limiter::Limiter;

/// A check that owns its policy and key.
#[derive(Clone)]
pub(super) struct OwnedCheck {
    pub(super) policy: Policy,
    pub(super) key: KeyBuf,
    pub(super) cost: Cost,
}

impl OwnedCheck {
    pub(super) fn new(check: &Check<'_>) -> Self {
        let Check { policy, key, cost } = *check;
        OwnedCheck { policy: policy.clone(), key: key.into(), cost }
    }

    pub(super) fn borrow(&self) -> Check<'_> {
        Check::new(&self.policy, &self.key).with_cost(self.cost)
    }

    fn has_quota(&self) -> bool {
        self.policy.limits().iter().any(|limit| !limit.is_concurrent())
    }
}

/// A function that receives errors after the admission.
type ReportError = Box<dyn Fn(&StoreError) + Send + Sync>;

/// The checks of an admission and their decisions.
pub(super) struct Record {
    limiter: Limiter,
    pub(super) checks: Vec<OwnedCheck>,
    pub(super) decisions: Vec<Decision>,
    pub(super) request_id: Option<Id>,
    pub(super) on_error: OnceLock<ReportError>,
    /// Whether a lease ended although it was held.
    pub(super) is_lost: AtomicBool,
    pub(super) is_released: AtomicBool,
}

/// An operation on the check with this index.
pub(super) struct Change {
    operation: Operation,
    index: usize,
    cost: Cost,
}

impl Record {
    pub(super) fn new(
        limiter: Limiter,
        checks: Vec<OwnedCheck>,
        answer: Answer,
        request_id: Option<Id>,
    ) -> Self {
        assert_eq!(checks.len(), answer.decisions.len(), "an answer has a decision for each check");
        let (decisions, on_error) = (answer.decisions, OnceLock::new());
        let (is_lost, is_released) = (AtomicBool::new(false), AtomicBool::new(false));
        Record { limiter, checks, decisions, request_id, on_error, is_lost, is_released }
    }

    /// The checks that hold a lease.
    pub(super) fn leases(&self) -> impl Iterator<Item = (usize, &OwnedCheck, Id)> {
        let decided = self.checks.iter().zip(&self.decisions).enumerate();
        decided.filter_map(|(index, (check, decision))| Some((index, check, decision.lease?)))
    }

    pub(super) fn releases(&self) -> Vec<Change> {
        let release = |(index, _, lease)| Change {
            operation: Operation::Release { lease },
            index,
            cost: Cost::ZERO,
        };
        self.leases().map(release).collect()
    }

    pub(super) fn renewals(&self) -> Vec<Change> {
        let renewal = |(index, _, lease)| Change {
            operation: Operation::Renew { lease },
            index,
            cost: Cost::ZERO,
        };
        self.leases().map(renewal).collect()
    }

    /// The checks that have certainly charged quota, in contrast to leases, which are released.
    fn charged(&self) -> impl Iterator<Item = (usize, &OwnedCheck, &Decision)> {
        let decided = self.checks.iter().zip(&self.decisions).enumerate();
        decided.map(|(index, (check, decision))| (index, check, decision)).filter(
            |(_, check, decision)| decision.charged_cost() > Cost::ZERO && check.has_quota(),
        )
    }

    /// Refunds what was charged. A decision without the store has charged nothing that a refund may
    /// credit.
    pub(super) fn refunds(&self) -> Vec<Change> {
        let refund = |(index, _, decision): (usize, &OwnedCheck, &Decision)| Change {
            operation: Operation::Refund { time: Some(decision.time) },
            index,
            cost: decision.charged_cost(),
        };
        self.charged().map(refund).collect()
    }

    /// Executes independent operations, and reports their errors; returns the first.
    pub(super) async fn execute(self: Arc<Self>, changes: Vec<Change>) -> Result<(), StoreError> {
        if changes.is_empty() {
            return Ok(());
        }
        let checks: Vec<_> = changes
            .iter()
            .map(|change| [self.checks[change.index].borrow().with_cost(change.cost)])
            .collect();
        let requests: Vec<_> = changes
            .iter()
            .zip(&checks)
            .map(|(change, checks)| Request {
                operation: change.operation,
                checks,
                request_id: None,
            })
            .collect();
        let mut first = Ok(());
        let results = self.limiter.decide_batch(&requests).await;
        for (change, result) in changes.iter().zip(results) {
            match result {
                Ok(answer) => {
                    let is_renewal = matches!(change.operation, Operation::Renew { .. });
                    if is_renewal && answer.decisions.iter().any(|decision| !decision.changed) {
                        self.is_lost.store(true, Ordering::Release);
                    }
                }
                Err(error) => {
                    self.report(&error);
                    first = first.and(Err(error));
                }
            }
        }
        first
    }

    fn report(&self, error: &StoreError) {
        if let Some(report) = self.on_error.get() {
            report(error);
        }
    }

    /// Replaces the cost of each check for which `cost` returns one. Leases keep theirs.
    pub(super) async fn settle(
        self: Arc<Self>,
        cost: impl Fn(&Policy) -> Option<Cost>,
    ) -> Result<(), StoreError> {
        if self.charged().next().is_none() {
            return Ok(());
        }
        let actual = |check: &OwnedCheck| match check.policy.has_concurrent() {
            true => check.cost,
            false => cost(&check.policy).unwrap_or(check.cost),
        };
        let Some(request_id) = self.request_id else {
            let differences = self.differences(actual);
            return Arc::clone(&self).execute(differences).await;
        };
        let checks: Vec<_> =
            self.checks.iter().map(|check| check.borrow().with_cost(actual(check))).collect();
        let (operation, request_id) = (Operation::Settle, request_id.to_string());
        let request =
            Request { operation, checks: &checks, request_id: Some(request_id.as_bytes()) };
        match self.limiter.decide(&request).await {
            Ok(_) => Ok(()),
            // Request ids are remembered for a shorter time than the work took.
            Err(StoreError::Request(RequestError::UnknownCharge)) => {
                let differences = self.differences(actual);
                Arc::clone(&self).execute(differences).await
            }
            Err(error) => {
                self.report(&error);
                Err(error)
            }
        }
    }

    /// The operations that turn what was charged into the actual cost.
    fn differences(&self, actual: impl Fn(&OwnedCheck) -> Cost) -> Vec<Change> {
        let difference = |(index, check, decision): (usize, &OwnedCheck, &Decision)| {
            let (estimate, actual) = (decision.charged_cost().get(), actual(check).get());
            let operation = match actual >= estimate {
                true => Operation::Penalize,
                false => Operation::Refund { time: Some(decision.time) },
            };
            let cost = Cost::new(actual.abs_diff(estimate)).filter(|cost| *cost > Cost::ZERO)?;
            Some(Change { operation, index, cost })
        };
        let settled = self.charged().filter(|(_, check, _)| !check.policy.has_concurrent());
        settled.filter_map(difference).collect()
    }
}

/// Writes no keys: they may be personal data.
impl fmt::Debug for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let policies = self.checks.iter().map(|check| check.policy.name());
        f.debug_map().entries(policies.zip(&self.decisions)).finish()
    }
}
