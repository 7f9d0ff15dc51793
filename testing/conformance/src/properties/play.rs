//! Traces of requests at times, played from the beginning.

use std::panic::{AssertUnwindSafe, catch_unwind};

use tollgate_core::{Check, Cost, Id, Operation, Policy, Request, Timestamp};

use super::player::{Asked, Player};
use super::runner::{Seen, Why};
use super::trace::Step;
use crate::model::Expected;
use crate::subject::{ModelSubject, Refusal, Subject};

/// What a request was answered.
pub(crate) type Answered = Result<Vec<Expected>, Refusal>;

/// Puts one request to a subject at its time.
pub(crate) fn ask(subject: &mut impl Subject, asked: &Asked) -> Answered {
    subject.set_time(asked.time);
    let decide = AssertUnwindSafe(|| asked.with(|request| subject.decide(request)));
    catch_unwind(decide).unwrap_or_else(|_| Err(Refusal::Failed("it panicked".to_owned())))
}

/// Puts requests to a subject at once, at the time of the first.
pub(crate) fn ask_all(subject: &mut impl Subject, asked: &[Asked]) -> Vec<Answered> {
    let Some(first) = asked.first() else { return Vec::new() };
    subject.set_time(first.time);
    let checks: Vec<Vec<Check<'_>>> = asked.iter().map(Asked::checks).collect();
    let requests = asked.iter().zip(&checks).map(|(asked, checks)| asked.request(checks));
    let requests: Vec<Request<'_>> = requests.collect();
    subject.decide_all(&requests)
}

/// Puts them all to a subject that has forgotten everything else.
pub(crate) fn play(subject: &mut impl Subject, asked: &[Asked]) -> Vec<Answered> {
    subject.forget_all();
    asked.iter().map(|x| ask(subject, x)).collect()
}

/// The requests that these steps come to, by what the model answers, so that the same can be
/// asked again with a change.
pub(crate) fn requests(policies: &[Policy], mut player: Player, steps: &[Step]) -> Vec<Asked> {
    let mut model = ModelSubject::default();
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
) -> Asked {
    let cost = Cost::new(cost).unwrap_or(Cost::MAX);
    Asked { time, operation, checks: vec![(policy.clone(), key.to_vec(), cost)], request_id: None }
}

/// A check that can have a lease, under an id that nothing else has.
pub(crate) const CHECK: Operation = Operation::Check { lease: Some(Id::from_u128(u128::MAX)) };

/// The answer to a request of one check, which must be one.
pub(crate) fn only(answered: Answered) -> Result<Expected, Why> {
    match answered {
        Ok(mut answer) if answer.len() == 1 => Ok(answer.remove(0)),
        answered => Err(format!("not one answer: {answered:?}")),
    }
}

/// The requests as text, one a line.
pub(crate) fn story(asked: &[Asked]) -> String {
    let lines: Vec<String> = asked.iter().map(ToString::to_string).collect();
    format!("asked in this order:\n{}\n", lines.join("\n"))
}

/// Counts all answers.
pub(crate) fn count(seen: &mut Seen, answers: &[Answered]) {
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
    asked: &[Asked],
    expected: impl IntoIterator<Item = &'a Answered>,
    found: impl IntoIterator<Item = &'a Answered>,
) -> Result<(), Why> {
    for (index, (expected, found)) in expected.into_iter().zip(found).enumerate() {
        let differences = differences(expected, found);
        if !differences.is_empty() {
            let last = asked.get(index).map(ToString::to_string).unwrap_or_default();
            return Err(format!("{}then {last}\n{}", story(asked), differences.join("\n")));
        }
    }
    Ok(())
}
