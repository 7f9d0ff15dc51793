//! Limits and checks are decided together, in any order.

use tollgate_algorithms::{Micros, Policy};

use super::play::{Response, describe, expect_equal, play, play_steps};
use super::player::TestRequest;
use super::runner::{FailureReason, Outcome, Plan, run};
use super::strategies::several_policies;
use super::trace::steps;
use crate::model::Expected;
use crate::system::SystemUnderTest;

/// Limits and checks in another order have the same answers, in that order.
pub fn order_changes_nothing(system: &mut impl SystemUnderTest, plan: Plan) -> Outcome {
    run(plan, &(several_policies::<3>(), steps(3, 2, false)), |(policies, steps), coverage| {
        let (trace, expected) = play_steps(system, &policies, &steps, false, coverage);
        let reversed: Vec<TestRequest> = trace.iter().map(reversed).collect();
        let mut found = play(system, &reversed);
        for answer in found.iter_mut().flatten() {
            answer.reverse();
        }
        // The order decides which of several errors is reported.
        let both = expected.iter().zip(&found).filter(|(a, b)| a.is_ok() || b.is_ok());
        let (expected, found): (Vec<&Response>, Vec<&Response>) = both.unzip();
        expect_equal(&trace, expected, found)
    })
}

fn reversed(request: &TestRequest) -> TestRequest {
    let mut reversed = request.clone();
    reversed.checks.reverse();
    for (policy, _, _) in &mut reversed.checks {
        let limits = policy.limits().iter().rev().copied();
        if let Ok(reordered) = Policy::new(policy.name(), limits) {
            let reordered = reordered.with_log_entries(policy.log_entries());
            *policy = if policy.is_shadow() { reordered.shadow() } else { reordered };
        }
    }
    reversed
}

/// The decision of a policy follows from those of its limits, and a request is granted completely or
/// not at all.
pub fn answers_are_consistent(system: &mut impl SystemUnderTest, plan: Plan) -> Outcome {
    run(plan, &(several_policies::<3>(), steps(3, 2, true)), |(policies, steps), coverage| {
        let (trace, answers) = play_steps(system, &policies, &steps, true, coverage);
        for (request, answer) in trace.iter().zip(&answers) {
            let Ok(answer) = answer else { continue };
            let mut enforced = answer.iter().filter(|decision| !decision.shadow);
            let result = check_complete(request, answer)
                .and_then(|()| enforced.try_for_each(check_decision));
            result.map_err(|error| format!("{}then {request}\n{error}", describe(&trace)))?;
        }
        Ok(())
    })
}

fn check_complete(request: &TestRequest, answer: &[Expected]) -> Result<(), FailureReason> {
    let enforced = || answer.iter().filter(|decision| !decision.shadow);
    let denied = enforced().any(|decision| !decision.allowed);
    // A lease that the key already holds is granted even if another check is denied.
    let granted = enforced().any(|decision| decision.granted > 0 && !decision.replayed);
    if request.operation.decides() && denied && granted {
        return Err(format!("granted in part: {answer:?}"));
    }
    Ok(())
}

fn check_decision(decision: &Expected) -> Result<(), FailureReason> {
    let rows = &decision.limits;
    let blocked = decision.reason == tollgate_algorithms::Reason::Blocked;
    let checks = [
        ("one limit is binding", rows.iter().filter(|row| row.binding).count() == 1),
        (
            "binding is the index of that limit",
            rows.get(decision.binding).is_some_and(|row| row.binding),
        ),
        (
            "capacity",
            rows.get(decision.binding).is_some_and(|row| row.capacity == decision.capacity),
        ),
        ("remaining", rows.iter().map(|row| row.remaining).min() == Some(decision.remaining)),
        ("remaining within capacity", rows.iter().all(|row| row.remaining <= row.capacity)),
        (
            "allowed",
            blocked || decision.replayed || decision.allowed == rows.iter().all(|row| row.allowed),
        ),
        ("never", decision.never == rows.iter().any(|row| row.never)),
        ("no retry for never", !decision.never || decision.retry_after.is_none()),
        ("no retry of 0", decision.retry_after != Some(Micros::ZERO)),
        ("retry", {
            let longest = rows.iter().filter_map(|row| row.retry_after).max();
            blocked || decision.never || decision.replayed || decision.retry_after == longest
        }),
        ("reset", {
            let longest = rows.iter().map(|row| row.reset_after).max();
            decision.replayed || decision.reset_after.is_none_or(|reset| Some(reset) >= longest)
        }),
    ];
    match checks.iter().find(|check| !check.1) {
        Some((what, _)) => Err(format!("{what} does not follow: {decision:?}")),
        None => Ok(()),
    }
}
