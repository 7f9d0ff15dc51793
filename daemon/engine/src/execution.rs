//! Executing calls on the store. Nothing is counted or audited here.

use std::time::Duration;

use tollgate::{Check, Key, MemoryLimiter, Operation, Request, RequestError, StoreError};

use crate::call::{Call, CheckRequest, Checks, Outcome};
use crate::engine::Engine;
use crate::operation::Action;

/// Executes a call.
pub(crate) async fn execute(engine: &Engine, call: &Call<'_, '_>) -> Result<Outcome, StoreError> {
    let limiter = engine.limiter();
    let request_id = call.request_id();
    match (call.action, &call.checks) {
        (Action::Inspect, checks) => {
            let check = inspected(checks);
            let key = Key::new(&check.key).map_err(StoreError::Request)?;
            limiter.inspect(&check.policy, key).await.map(Outcome::Inspection)
        }
        // The fast path: nearly all calls are plain checks.
        (Action::Execute(Operation::Check { lease: None }), Checks::One(check))
            if request_id.is_none() =>
        {
            let key = Key::new(&check.key).map_err(StoreError::Request)?;
            limiter.check_cost(&check.policy, key, check.cost).await.map(Outcome::Decision)
        }
        (Action::Execute(operation), Checks::One(check)) => {
            let request = Request { operation, checks: &[check.as_check()], request_id };
            limiter.decide(&request).await.map(Outcome::from_single)
        }
        (Action::Execute(operation), Checks::Several(checks)) => {
            let checks: Vec<_> = checks.iter().map(CheckRequest::as_check).collect();
            let request = Request { operation, checks: &checks, request_id };
            limiter.decide(&request).await.map(Outcome::Decisions)
        }
    }
}

/// The check that names the key to inspect.
fn inspected<'c, 'a>(checks: &'c Checks<'a>) -> &'c CheckRequest<'a> {
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
            let check = inspected(checks);
            Ok(Outcome::Inspection(memory.inspect(&check.policy, Key::new(&check.key)?)))
        }
        (Action::Execute(operation), Checks::One(check)) => {
            let request = Request { operation, checks: &[check.as_check()], request_id };
            memory.decide(&request).map(Outcome::from_single)
        }
        (Action::Execute(operation), Checks::Several(checks)) => {
            let checks: Vec<_> = checks.iter().map(CheckRequest::as_check).collect();
            let request = Request { operation, checks: &checks, request_id };
            memory.decide(&request).map(Outcome::Decisions)
        }
    }
}

/// Executes operations, each as a whole.
pub(crate) async fn execute_operations(
    engine: &Engine,
    calls: &[Call<'_, '_>],
    deadline: Duration,
) -> Vec<Result<Outcome, StoreError>> {
    let checks: Vec<Vec<Check<'_>>> = calls
        .iter()
        .map(|call| call.checks.as_slice().iter().map(CheckRequest::as_check).collect())
        .collect();
    let requests: Vec<_> = calls
        .iter()
        .zip(&checks)
        .map(|(call, checks)| {
            let Action::Execute(operation) = call.action else {
                unreachable!("inspections are executed one by one");
            };
            let request_id = call.request_id();
            Request { operation, checks, request_id }
        })
        .collect();
    let answers = engine.limiter().decide_batch_within(&requests, deadline).await;
    assert_eq!(answers.len(), calls.len(), "the store returns one answer per request");
    calls
        .iter()
        .zip(answers)
        .map(|(call, answer)| {
            answer.map(|answer| match call.checks {
                Checks::One(_) => Outcome::from_single(answer),
                Checks::Several(_) => Outcome::Decisions(answer),
            })
        })
        .collect()
}
