//! I-ATOM and order: several limits and several checks are decided as one, in whatever order
//! they stand.

use tollgate_core::{Micros, Policy};

use super::play::{Answered, count, play, requests, same, story};
use super::player::{Player, START, TestRequest};
use super::runner::{Coverage, FailureReason, Plan, Violation, run};
use super::strategies::policies;
use super::trace::steps;
use crate::model::Expected;
use crate::system::SystemUnderTest;

/// Limits and checks written in another order are answered the same, in that order.
///
/// # Errors
/// The least trace that is answered otherwise.
pub fn order_changes_nothing(
    system: &mut impl SystemUnderTest,
    plan: Plan,
) -> Result<Coverage, Violation> {
    let three = (policies("p0"), policies("p1"), policies("p2"));
    run(plan, &(three, steps(3, 2, false)), |((a, b, c), steps), seen| {
        let asked = requests(&[a, b, c], Player::at(START, false), &steps);
        let expected = play(system, &asked);
        count(seen, &expected);
        let reversed: Vec<TestRequest> = asked.iter().map(reversed).collect();
        let mut found = play(system, &reversed);
        for answer in found.iter_mut().flatten() {
            answer.reverse();
        }
        // Which of several faults is named, is a matter of order.
        let faults = |answered: &Answered| answered.is_err();
        let both = expected.iter().zip(&found).filter(|(a, b)| !(faults(a) && faults(b)));
        let (expected, found): (Vec<&Answered>, Vec<&Answered>) = both.unzip();
        same(&asked, expected, found)
    })
}

fn reversed(asked: &TestRequest) -> TestRequest {
    let mut reversed = asked.clone();
    reversed.checks.reverse();
    for (policy, _, _) in &mut reversed.checks {
        let limits = policy.limits().iter().rev().copied();
        if let Ok(inner) = Policy::new(policy.name(), limits) {
            let value = inner.with_log_entries(policy.log_entries());
            *policy = if policy.is_shadow() { value.shadow() } else { value };
        }
    }
    reversed
}

/// What a policy says follows from what its limits say; a request is granted whole or not at
/// all.
///
/// # Errors
/// The least trace with an answer that does not.
pub fn answers_agree_with_themselves(
    system: &mut impl SystemUnderTest,
    plan: Plan,
) -> Result<Coverage, Violation> {
    let three = (policies("p0"), policies("p1"), policies("p2"));
    run(plan, &(three, steps(3, 2, true)), |((a, b, c), steps), seen| {
        let asked = requests(&[a, b, c], Player::at(START, true), &steps);
        let answers = play(system, &asked);
        count(seen, &answers);
        for (asked_here, answer) in asked.iter().zip(&answers) {
            let Ok(answer) = answer else { continue };
            let agrees = whole(asked_here, answer).and_then(|()| {
                answer
                    .iter()
                    .try_for_each(|answer| if answer.shadow { Ok(()) } else { agrees(answer) })
            });
            agrees.map_err(|error| format!("{}then {asked_here}\n{error}", story(&asked)))?;
        }
        Ok(())
    })
}

fn whole(asked: &TestRequest, answer: &[Expected]) -> Result<(), FailureReason> {
    let real: Vec<&Expected> = answer.iter().filter(|answer| !answer.shadow).collect();
    let denied = real.iter().any(|real| !real.allowed);
    // What a key holds already is granted whatever else is denied.
    let granted = real.iter().any(|real| real.granted > 0 && !real.replayed);
    if asked.operation.decides() && denied && granted {
        return Err(format!("granted in part: {answer:?}"));
    }
    Ok(())
}

fn agrees(it: &Expected) -> Result<(), FailureReason> {
    let rows = &it.limits;
    let blocked = it.reason == tollgate_core::Reason::Blocked;
    let checks = [
        ("one limit is binding", rows.iter().filter(|row| row.binding).count() == 1),
        ("which is that one", rows.get(it.binding).is_some_and(|row| row.binding)),
        ("capacity", rows.get(it.binding).is_some_and(|row| row.capacity == it.capacity)),
        ("remaining", rows.iter().map(|row| row.remaining).min() == Some(it.remaining)),
        ("remaining within capacity", rows.iter().all(|row| row.remaining <= row.capacity)),
        ("allowed", blocked || it.replayed || it.allowed == rows.iter().all(|row| row.allowed)),
        ("never", it.never == rows.iter().any(|row| row.never)),
        ("no retry for never", !it.never || it.retry_after.is_none()),
        ("no retry of nothing", it.retry_after != Some(Micros::ZERO)),
        ("retry", {
            let longest = rows.iter().filter_map(|row| row.retry_after).max();
            blocked || it.never || it.replayed || it.retry_after == longest
        }),
        ("reset", {
            let longest = rows.iter().map(|row| row.reset_after).max();
            it.replayed || it.reset_after.is_none_or(|reset| Some(reset) >= longest)
        }),
    ];
    match checks.iter().find(|check| !check.1) {
        Some((what, _)) => Err(format!("{what} does not follow: {it:?}")),
        None => Ok(()),
    }
}
