//! Plays traces of requests on a system.

use std::panic::{AssertUnwindSafe, catch_unwind};

use tollgate_algorithms::{Check, Cost, Id, Operation, Policy, Request, Timestamp};

use super::player::{Player, START, TestRequest};
use super::runner::{Coverage, FailureReason};
use super::trace::Step;
use crate::model::Expected;
use crate::system::{ModelSystem, SystemError, SystemUnderTest};

/// The decisions about a request, or its error.
pub(crate) type Response = Result<Vec<Expected>, SystemError>;

/// Decides one request at its time.
pub(crate) fn decide(system: &mut impl SystemUnderTest, request: &TestRequest) -> Response {
    system.set_time(request.time);
    let decide = AssertUnwindSafe(|| request.with(|request| system.decide(request)));
    catch_unwind(decide).unwrap_or_else(|_| Err(SystemError::Failed("it panicked".to_owned())))
}

/// Decides a batch of requests at the time of the first.
pub(crate) fn decide_all(
    system: &mut impl SystemUnderTest,
    trace: &[TestRequest],
) -> Vec<Response> {
    let Some(first) = trace.first() else { return Vec::new() };
    system.set_time(first.time);
    let checks: Vec<Vec<Check<'_>>> = trace.iter().map(TestRequest::checks).collect();
    let requests = trace.iter().zip(&checks).map(|(request, checks)| request.request(checks));
    let requests: Vec<Request<'_>> = requests.collect();
    system.decide_all(&requests)
}

/// Decides a trace on a system without state.
pub(crate) fn play(system: &mut impl SystemUnderTest, trace: &[TestRequest]) -> Vec<Response> {
    system.reset();
    trace.iter().map(|request| decide(system, request)).collect()
}

/// The requests of these steps; `backwards` states whether the clock may step back. The answers of the
/// model determine times, so that the same trace can be played on several systems.
pub(crate) fn build_trace(
    policies: &[Policy],
    steps: &[Step],
    backwards: bool,
) -> Vec<TestRequest> {
    let (mut model, mut player) = (ModelSystem::default(), Player::at(START, backwards));
    let next = |step: &Step| {
        let request = player.next(policies, step);
        if let Ok(answer) = decide(&mut model, &request) {
            player.learn(&answer);
        }
        request
    };
    steps.iter().map(next).collect()
}

/// Plays the trace of these steps, and counts the decisions and errors. Returns both.
pub(crate) fn play_steps(
    system: &mut impl SystemUnderTest,
    policies: &[Policy],
    steps: &[Step],
    backwards: bool,
    coverage: &mut Coverage,
) -> (Vec<TestRequest>, Vec<Response>) {
    let trace = build_trace(policies, steps, backwards);
    let answers = play(system, &trace);
    count(coverage, &answers);
    (trace, answers)
}

/// A request with one check.
pub(crate) fn single_check(
    time: Timestamp,
    operation: Operation,
    policy: &Policy,
    key: &[u8],
    cost: u64,
) -> TestRequest {
    let cost = Cost::new(cost).unwrap_or(Cost::MAX);
    TestRequest {
        time,
        operation,
        checks: vec![(policy.clone(), key.to_vec(), cost)],
        request_id: None,
    }
}

/// A check with a lease id that no other request uses.
pub(crate) const CHECK: Operation = Operation::Check { lease: Some(Id::from_u128(u128::MAX)) };

/// The decision about a request with one check; any other response is a failure.
pub(crate) fn single_answer(response: Response) -> Result<Expected, FailureReason> {
    match response {
        Ok(mut answer) if answer.len() == 1 => Ok(answer.remove(0)),
        response => Err(format!("expected one decision, found {response:?}")),
    }
}

/// The requests as text, one per line.
pub(crate) fn describe(trace: &[TestRequest]) -> String {
    let lines: Vec<String> = trace.iter().map(ToString::to_string).collect();
    format!("requests in this order:\n{}\n", lines.join("\n"))
}

/// Counts the decisions and errors.
pub(crate) fn count(coverage: &mut Coverage, answers: &[Response]) {
    for answer in answers {
        match answer {
            Ok(answer) => coverage.answer(answer),
            Err(_) => coverage.rejected += 1,
        }
    }
}

/// The fields that differ between two responses.
pub(crate) fn differences(expected: &Response, found: &Response) -> Vec<String> {
    match (expected, found) {
        (Ok(expected), Ok(found)) if expected.len() == found.len() => {
            let both = expected.iter().zip(found);
            both.flat_map(|(expected, found)| expected.differences(found)).collect()
        }
        (expected, found) if expected == found => Vec::new(),
        (expected, found) => vec![format!("expected {expected:?}, found {found:?}")],
    }
}

/// Fails at the first response that differs from the expected one, and if their numbers differ.
pub(crate) fn expect_equal<'a>(
    trace: &[TestRequest],
    expected: impl IntoIterator<Item = &'a Response>,
    found: impl IntoIterator<Item = &'a Response>,
) -> Result<(), FailureReason> {
    let expected: Vec<_> = expected.into_iter().collect();
    let found: Vec<_> = found.into_iter().collect();
    if expected.len() != found.len() {
        let (trace, expected, found) = (describe(trace), expected.len(), found.len());
        return Err(format!("{trace}expected {expected} responses, found {found}"));
    }
    for (index, (expected, found)) in expected.into_iter().zip(found).enumerate() {
        let differences = differences(expected, found);
        if !differences.is_empty() {
            let (trace, differences) = (describe(trace), differences.join("\n"));
            return Err(format!("{trace}at request {}:\n{differences}", index + 1));
        }
    }
    Ok(())
}
