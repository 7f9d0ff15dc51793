//! Executing calls on the store. Nothing is counted or audited here.

use std::time::Duration;

use tollgate::{Check, Key, Limiter, MemoryLimiter, Operation, Request, RequestError, StoreError};

use crate::call::{Call, CheckRequest, Checks, Outcome};
use crate::engine::Engine;
use crate::operation::Action;

/// Executes a call.
pub(crate) async fn execute(engine: &Engine, call: &Call<'_, '_>) -> Result<Outcome, StoreError> {
    let result = execute_once(engine.limiter(), call).await;
    if lacks_store(call, &result) {
        return Err(last_failure(engine));
    }
    result
}

async fn execute_once(limiter: &Limiter, call: &Call<'_, '_>) -> Result<Outcome, StoreError> {
    let request_id = call.request_id();
    match (call.action, &call.checks) {
        (Action::Inspect, checks) => {
            let check = inspected_check(checks);
            let key = Key::new(&check.key).map_err(StoreError::Request)?;
            limiter.inspect(&check.policy, key).await.map(Outcome::Inspection)
        }
        // A plain check that only the store can decide.
        (Action::Execute(Operation::Check { lease: None }), Checks::One(check))
            if request_id.is_none() =>
        {
            let key = Key::new(&check.key).map_err(StoreError::Request)?;
            Ok(Outcome::Decision(limiter.check_cost(&check.policy, key, check.cost).await))
        }
        (Action::Execute(operation), checks) => {
            let store_checks = StoreChecks::new(checks);
            let request = Request { operation, checks: store_checks.as_slice(), request_id };
            limiter.decide(&request).await.map(|answer| Outcome::new(checks, answer))
        }
    }
}

/// Whether a decision was made without the store although the call requires the store.
fn lacks_store(call: &Call<'_, '_>, result: &Result<Outcome, StoreError>) -> bool {
    result.as_ref().is_ok_and(|outcome| call.lacks_store(outcome))
}

fn last_failure(engine: &Engine) -> StoreError {
    match engine.limiter().stats().last_failure {
        Some(failure) => failure.into(),
        None => unreachable!("a policy decides only after the store has failed"),
    }
}

/// Checks as the store takes them. A single one, the usual case, needs no allocation.
enum StoreChecks<'c> {
    One([Check<'c>; 1]),
    Several(Vec<Check<'c>>),
}

impl<'c> StoreChecks<'c> {
    fn new(checks: &'c Checks<'_>) -> Self {
        match checks {
            Checks::One(check) => StoreChecks::One([check.as_check()]),
            Checks::Several(checks) => {
                StoreChecks::Several(checks.iter().map(CheckRequest::as_check).collect())
            }
        }
    }

    fn as_slice(&self) -> &[Check<'c>] {
        match self {
            StoreChecks::One(check) => check,
            StoreChecks::Several(checks) => checks,
        }
    }
}

/// The check that names the key to inspect.
fn inspected_check<'c, 'a>(checks: &'c Checks<'a>) -> &'c CheckRequest<'a> {
    match checks {
        Checks::One(check) => check,
        Checks::Several(_) => unreachable!("inspect does not accept the parameter checks"),
    }
}

/// Executes a call on the memory store.
pub(crate) fn execute_on_memory(
    memory: &MemoryLimiter,
    call: &Call<'_, '_>,
) -> Result<Outcome, RequestError> {
    let request_id = call.request_id();
    match (call.action, &call.checks) {
        (Action::Inspect, checks) => {
            let check = inspected_check(checks);
            Ok(Outcome::Inspection(memory.inspect(&check.policy, Key::new(&check.key)?)))
        }
        (Action::Execute(operation), checks) => {
            let store_checks = StoreChecks::new(checks);
            let request = Request { operation, checks: store_checks.as_slice(), request_id };
            memory.decide(&request).map(|answer| Outcome::new(checks, answer))
        }
    }
}

/// Executes operations, each as a whole.
pub(crate) async fn execute_operations(
    engine: &Engine,
    calls: &[Call<'_, '_>],
    deadline: Duration,
) -> Vec<Result<Outcome, StoreError>> {
    let checks: Vec<_> = calls.iter().map(|call| StoreChecks::new(&call.checks)).collect();
    let requests: Vec<_> = calls
        .iter()
        .zip(&checks)
        .map(|(call, checks)| {
            let Action::Execute(operation) = call.action else {
                unreachable!("inspections are executed one by one");
            };
            let (checks, request_id) = (checks.as_slice(), call.request_id());
            Request { operation, checks, request_id }
        })
        .collect();
    let answers = engine.limiter().decide_batch_within(&requests, deadline).await;
    assert_eq!(answers.len(), calls.len(), "the store returns one answer per request");
    calls
        .iter()
        .zip(answers)
        .map(|(call, answer)| {
            let result = answer.map(|answer| Outcome::new(&call.checks, answer));
            if lacks_store(call, &result) { Err(last_failure(engine)) } else { result }
        })
        .collect()
}
