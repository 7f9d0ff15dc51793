//! I-IDEMP: a request id charges once within its horizon, and means one request.

use proptest::prelude::*;
use tollgate_core::{Cost, Micros, Operation};

use super::play::{Answered, ask, count, play, requests, same, story};
use super::player::{Player, START, TestRequest};
use super::runner::{Coverage, Plan, Violation, run};
use super::strategies::policies;
use super::trace::steps;
use crate::system::{SystemError, SystemUnderTest};

const HORIZON: u64 = 30_000_000;

/// Whether an answer is one to be remembered.
fn is_remembered(asked: &TestRequest, answer: &Answered) -> bool {
    asked.operation != Operation::Peek
        && answer.as_ref().is_ok_and(|answer| answer.iter().all(|i| i.allowed))
}

/// Each request under an id of its own may be repeated at once, and is answered as it was; with
/// other arguments it is an error; neither leaves a trace.
///
/// # Errors
/// The least trace in which something is answered otherwise.
pub fn repeats_charge_once(
    system: &mut impl SystemUnderTest,
    plan: Plan,
) -> Result<Coverage, Violation> {
    let cases = ((policies("p0"), policies("p1")), steps(2, 2, false), 1_u64..9);
    run(plan, &cases, |((a, b), steps, more), seen| {
        let mut asked = requests(&[a, b], Player::at(START, false), &steps);
        for (index, value) in asked.iter_mut().enumerate() {
            value.request_id = Some(index.to_string().into_bytes());
        }
        let expected = play(system, &asked);
        count(seen, &expected);
        system.reset();
        let mut found = Vec::new();
        for (value, first) in asked.iter().zip(&expected) {
            found.push(ask(system, value));
            if !is_remembered(value, first) {
                continue;
            }
            seen.count("repeats");
            let mut other = value.clone();
            let cost = &mut other.checks[0].2;
            *cost = Cost::new(cost.get() ^ more).unwrap_or_default();
            let reused = ask(system, &other);
            // Of what cannot be decided at all, that is said first.
            if !matches!(&reused, Err(SystemError::Request(_))) {
                return Err(format!("{}then {other}\nanswered {reused:?}", story(&asked)));
            }
            let mut repeated = first.clone();
            repeated.iter_mut().flatten().for_each(|repeated| repeated.replayed = true);
            same(&asked, [&repeated], [&ask(system, value)])?;
        }
        same(&asked, &expected, &found)
    })
}

/// An id is forgotten at the end of its horizon, not before.
///
/// # Errors
/// The least trace after which it is not so.
pub fn ids_last_their_horizon(
    system: &mut impl SystemUnderTest,
    plan: Plan,
) -> Result<Coverage, Violation> {
    let cases = (policies("p"), steps(1, 1, false), prop::bool::ANY);
    run(plan, &cases, |(policy, steps, before), seen| {
        let mut asked = requests(&[policy], Player::at(START, false), &steps);
        asked.iter_mut().for_each(|x| x.request_id = None);
        let Some(mut last) = asked.pop() else { return Ok(()) };
        last.request_id = Some(b"id".to_vec());
        count(seen, &play(system, &asked));
        let first = ask(system, &last);
        if !is_remembered(&last, &first) {
            return Ok(());
        }
        let span = if before { HORIZON - 1 } else { HORIZON };
        let late =
            TestRequest { time: last.time.saturating_add(Micros::new(span)), ..last.clone() };
        let answer = ask(system, &late);
        let same_time = |answered: &Answered| {
            answered.as_ref().is_ok_and(|x| x.iter().all(|i| i.time == last.time))
        };
        seen.count(if before { "before" } else { "after" });
        if same_time(&answer) == before {
            return Ok(());
        }
        Err(format!("{}then {last}\n{span} us later {answer:?}", story(&asked)))
    })
}
