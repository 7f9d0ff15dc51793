//! What an admission has charged, and the operations that change it afterwards.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use tollgate_algorithms::{Check, Cost, Decision, Id, Operation, Policy, Request, RequestError};
use tollgate_state::{Answer, KeyBuf, StoreError};

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
}

/// A function that receives errors after the admission.
type ReportError = Arc<dyn Fn(&StoreError) + Send + Sync>;

/// The checks of an admission and their decisions.
pub(super) struct Record {
    limiter: Limiter,
    pub(super) checks: Vec<OwnedCheck>,
    pub(super) decisions: Vec<Decision>,
    pub(super) request_id: Option<Id>,
    pub(super) on_error: OnceLock<ReportError>,
    /// Whether a lease ended although it was held.
    pub(super) is_lost: AtomicBool,
    /// What each check charges now: its cost until it is settled or refunded.
    costs: Mutex<Vec<Cost>>,
    is_settled: AtomicBool,
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
        let (is_lost, is_settled) = (AtomicBool::new(false), AtomicBool::new(false));
        let costs = Mutex::new(checks.iter().map(|check| check.cost).collect());
        Record { limiter, checks, decisions, request_id, on_error, is_lost, costs, is_settled }
    }

    /// The checks that hold a lease.
    pub(super) fn leases(&self) -> impl Iterator<Item = (usize, &OwnedCheck, Id)> {
        let decided = self.checks.iter().zip(&self.decisions).enumerate();
        decided.filter_map(|(index, (check, decision))| Some((index, check, decision.lease?)))
    }

    /// The operations that change each lease.
    pub(super) fn lease_changes(&self, operation: impl Fn(Id) -> Operation) -> Vec<Change> {
        let change =
            |(index, _, lease)| Change { operation: operation(lease), index, cost: Cost::ZERO };
        self.leases().map(change).collect()
    }

    fn costs(&self) -> MutexGuard<'_, Vec<Cost>> {
        self.costs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Refunds what is charged. A decision without the store has charged nothing that a refund may
    /// credit.
    pub(super) async fn refund(self: Arc<Self>) -> Result<(), StoreError> {
        let refunds = self.differences(|_| Some(Cost::ZERO));
        self.execute(refunds).await
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
                    if error.was_not_executed() {
                        self.undo(change);
                    }
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
        let actual =
            |check: &OwnedCheck| cost(&check.policy).filter(|_| !check.policy.has_concurrent());
        let differences = self.differences(actual);
        // The request can be settled once; later calls change what the first one has charged.
        let id = self.request_id.filter(|_| !differences.is_empty());
        let Some(id) = id.filter(|_| !self.is_settled.swap(true, Ordering::AcqRel)) else {
            return self.execute(differences).await;
        };
        let costs = self.costs().clone();
        let checks = self.checks.iter().zip(costs);
        let checks: Vec<_> = checks.map(|(check, cost)| check.borrow().with_cost(cost)).collect();
        let (operation, id) = (Operation::Settle, id.to_string());
        let request = Request { operation, checks: &checks, request_id: Some(id.as_bytes()) };
        match self.limiter.decide(&request).await {
            Ok(_) => Ok(()),
            // Request ids are remembered for a shorter time than the work took.
            Err(StoreError::Request(RequestError::UnknownCharge)) => {
                Arc::clone(&self).execute(differences).await
            }
            Err(error) => {
                // A repetition with the same id changes nothing twice.
                differences.iter().for_each(|change| self.undo(change));
                self.is_settled.store(false, Ordering::Release);
                self.report(&error);
                Err(error)
            }
        }
    }

    /// Notes the actual costs of the checks for which `actual` returns one. Returns the operations that
    /// turn what is charged into them.
    fn differences(&self, actual: impl Fn(&OwnedCheck) -> Option<Cost>) -> Vec<Change> {
        let mut changes = Vec::new();
        let decided = self.checks.iter().zip(&self.decisions);
        for (index, (cost, (check, decision))) in self.costs().iter_mut().zip(decided).enumerate() {
            // Leases are released instead, and a decision without the store has charged nothing.
            let has_charged = decision.charged_cost() > Cost::ZERO && check.policy.has_quota();
            let Some(actual) = actual(check).filter(|_| has_charged) else { continue };
            let charged = std::mem::replace(cost, actual);
            let operation = match actual.cmp(&charged) {
                std::cmp::Ordering::Equal => continue,
                std::cmp::Ordering::Greater => Operation::Penalize,
                std::cmp::Ordering::Less => Operation::Refund { time: Some(decision.time) },
            };
            let difference = Cost::new(actual.get().abs_diff(charged.get()));
            changes.extend(difference.map(|cost| Change { operation, index, cost }));
        }
        changes
    }

    /// Takes back the note of a change that the store has not made.
    fn undo(&self, change: &Change) {
        let (mut costs, difference) = (self.costs(), change.cost.get());
        let cost = &mut costs[change.index];
        let before = match change.operation {
            Operation::Penalize => cost.get().checked_sub(difference),
            Operation::Refund { .. } => cost.get().checked_add(difference),
            _ => return,
        };
        if let Some(before) = before.and_then(Cost::new) {
            *cost = before;
        }
    }
}

/// Writes no keys: they may be personal data.
impl fmt::Debug for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let policies = self.checks.iter().map(|check| check.policy.name());
        f.debug_map().entries(policies.zip(&self.decisions)).finish()
    }
}
