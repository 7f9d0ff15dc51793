//! Compensation: what takes back a charge whose request is not admitted after all.

use tollgate_algorithms::{Cost, Decision, Id, Limit, Micros, Operation};
use tollgate_state::Answer;

use crate::request::{RequestCheck, StoreRequest};
use crate::stats::Counters;

/// Returns the requests that take back the charge of a request whose caller did not wait for the
/// answer, and which is therefore not admitted. A request with an id keeps its charge, because its
/// repeat gets the recorded answer.
pub(crate) fn reconcile(
    request: &StoreRequest,
    answer: &Answer,
    counters: &Counters,
) -> Vec<StoreRequest> {
    if request.request_id.is_some() {
        return Vec::new();
    }
    let undo = compensation(request.operation, &request.checks, &answer.decisions);
    counters.record_reconciled(undo.len());
    undo
}

/// Returns the requests that take back exactly what a request was charged: none if it was denied, if
/// it charges nothing, or if it repeats an earlier one.
pub(crate) fn compensation(
    operation: Operation,
    checks: &[RequestCheck],
    decisions: &[Decision],
) -> Vec<StoreRequest> {
    let mut undo = Vec::new();
    if !operation.decides() || !decisions.iter().all(|decision| decision.allowed) {
        return undo;
    }
    for (check, decision) in checks.iter().zip(decisions) {
        if decision.replayed || decision.granted == 0 {
            continue;
        }
        #[expect(clippy::expect_used, reason = "the decision grants a cost of the request")]
        let cost = Cost::new(decision.granted).expect("a granted cost is valid");
        let mut add = |operation| {
            let check = RequestCheck { cost, ..check.clone() };
            undo.push(StoreRequest::new(operation, vec![check]));
        };
        // A reservation whose time has come is an ordinary charge.
        if let Some(id) = decision.reservation.filter(|_| decision.delay > Micros::ZERO) {
            add(Operation::Cancel { id });
            continue;
        }
        // The bucket of a leased policy may have been full since, and would have more than without the charge.
        let is_wasted = operation == Operation::Take
            && check.policy.hold().is_some()
            && check.policy.limits().iter().any(Limit::can_reserve);
        if check.policy.has_quota() && !is_wasted {
            add(Operation::Refund { time: Some(decision.time) });
        }
        if let Some(lease) = lease_of(operation).filter(|_| check.policy.has_concurrent()) {
            add(Operation::Release { lease });
        }
    }
    undo
}

/// Returns the lease that an operation takes.
pub(crate) fn lease_of(operation: Operation) -> Option<Id> {
    match operation {
        Operation::Check { lease } => lease,
        Operation::Acquire { lease } => Some(lease),
        _ => None,
    }
}
