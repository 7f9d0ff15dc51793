//! Traces of requests at times, played from the beginning.

use std::panic::{AssertUnwindSafe, catch_unwind};

use tollgate_core::{Check, Cost, Id, Operation, Policy, Request, Timestamp};

use super::player::{Player, TestRequest};
use super::runner::{Coverage, FailureReason};
use super::trace::Step;
use crate::model::Expected;
use crate::system::{ModelSystem, SystemError, SystemUnderTest};

/// What a request was answered.
pub(crate) type Answered = Result<Vec<Expected>, SystemError>;

/// Puts one request to a system at its time.
pub(crate) fn ask(system: &mut impl SystemUnderTest, asked: &TestRequest) -> Answered {
    system.set_time(asked.time);
    let decide = AssertUnwindSafe(|| asked.with(|request| system.decide(request)));
    catch_unwind(decide).unwrap_or_else(|_| Err(SystemError::Failed("it panicked".to_owned())))
}

/// Puts requests to a system at once, at the time of the first.
pub(crate) fn ask_all(system: &mut impl SystemUnderTest, asked: &[TestRequest]) -> Vec<Answered> {
    let Some(first) = asked.first() else { return Vec::new() };
    system.set_time(first.time);
    let checks: Vec<Vec<Check<'_>>> = asked.iter().map(TestRequest::checks).collect();
    let requests = asked.iter().zip(&checks).map(|(asked, checks)| asked.request(checks));
    let requests: Vec<Request<'_>> = requests.collect();
    system.decide_all(&requests)
}

/// Puts them all to a system that has forgotten everything else.
pub(crate) fn play(system: &mut impl SystemUnderTest, asked: &[TestRequest]) -> Vec<Answered> {
    system.reset();
    asked.iter().map(|x| ask(system, x)).collect()
}

/// The requests that these steps come to, by what the model answers, so that the same can be
/// asked again with a change.
pub(crate) fn requests(
    policies: &[Policy],
    mut player: Player,
    steps: &[Step],
) -> Vec<TestRequest> {
    let mut model = ModelSystem::default();
    let next = |step: &Step| {
        let asked = player.next(policies, step);
        if let Ok(answer) = ask(&mut model, &asked) {
            player.learn(&answer);
        }
        asked
    };
    steps.iter().map(next).collect()
}

/// One check of one key.
pub(crate) fn asked(
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

/// A check that can have a lease, under an id that nothing else has.
pub(crate) const CHECK: Operation = Operation::Check { lease: Some(Id::from_u128(u128::MAX)) };

/// The answer to a request of one check, which must be one.
pub(crate) fn only(answered: Answered) -> Result<Expected, FailureReason> {
    match answered {
        Ok(mut answer) if answer.len() == 1 => Ok(answer.remove(0)),
        answered => Err(format!("not one answer: {answered:?}")),
    }
}

/// The requests as text, one a line.
pub(crate) fn story(asked: &[TestRequest]) -> String {
    let lines: Vec<String> = asked.iter().map(ToString::to_string).collect();
    format!("asked in this order:\n{}\n", lines.join("\n"))
}

/// Counts all answers.
pub(crate) fn count(seen: &mut Coverage, answers: &[Answered]) {
    for answer in answers {
        match answer {
            Ok(answer) => seen.answer(answer),
            Err(_) => seen.refused += 1,
        }
    }
}

/// Each way in which one answer is not the other.
pub(crate) fn differences(expected: &Answered, found: &Answered) -> Vec<String> {
    match (expected, found) {
        (Ok(expected), Ok(found)) if expected.len() == found.len() => {
            let both = expected.iter().zip(found);
            both.flat_map(|(expected, found)| expected.differences_from(found)).collect()
        }
        (expected, found) if expected == found => Vec::new(),
        (expected, found) => vec![format!("expected {expected:?}, found {found:?}")],
    }
}

/// Holds that these answers are those, and says which is not.
pub(crate) fn same<'a>(
    asked: &[TestRequest],
    expected: impl IntoIterator<Item = &'a Answered>,
    found: impl IntoIterator<Item = &'a Answered>,
) -> Result<(), FailureReason> {
    for (index, (expected, found)) in expected.into_iter().zip(found).enumerate() {
        let differences = differences(expected, found);
        if !differences.is_empty() {
            let last = asked.get(index).map(ToString::to_string).unwrap_or_default();
            return Err(format!("{}then {last}\n{}", story(asked), differences.join("\n")));
        }
    }
    Ok(())
}
