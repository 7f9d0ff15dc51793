//! A clock that steps back admits at most one more capacity, and does not lock a key.

use proptest::prelude::*;
use tollgate_algorithms::{Kind, Micros, Policy, Spec, Timestamp};

use super::play::{CHECK, decide, describe, play_steps, single_answer, single_check};
use super::player::START;
use super::runner::{Coverage, Outcome, Plan, run};
use super::strategies::{several_policies, single_policies};
use super::trace::steps;
use crate::system::SystemUnderTest;

const YEAR: u64 = 365 * 86_400_000_000;

/// The longest time that a limit takes to recover from twice its capacity.
fn max_recovery(spec: &Spec) -> u128 {
    let window = u128::from(spec.window.get());
    match spec.kind {
        Kind::TokenBucket { .. } | Kind::Queue { .. } => {
            u128::from(spec.capacity()) * 2 * window / u128::from(spec.count) + 1_000_001
        }
        Kind::Sliding => 2 * window,
        Kind::SlidingBy { precision, .. } => window + u128::from(precision.get()),
        _ => window,
    }
}

/// However the clock steps, a key recovers within twice the recovery time of its limit plus 10 s,
/// the largest plausible difference between clocks.
pub fn clock_steps_do_not_lock_keys(system: &mut impl SystemUnderTest, plan: Plan) -> Outcome {
    let cases = (several_policies::<2>(), steps(2, 2, true));
    run(plan, &cases, |(policies, steps), coverage| {
        let (trace, answers) = play_steps(system, &policies, &steps, true, coverage);
        for (request, answer) in trace.iter().zip(&answers) {
            let Ok(answer) = answer else { continue };
            for ((policy, _, _), decision) in request.checks.iter().zip(answer) {
                let rows = policy.limits().iter().zip(&decision.limits);
                for (limit, row) in rows {
                    let most = 2 * max_recovery(limit.spec()) + 10_000_000;
                    if u128::from(row.reset_after.get()) > most {
                        let story = describe(&trace);
                        return Err(format!("{story}then {request}\n{limit} is locked: {row:?}"));
                    }
                }
            }
        }
        Ok(())
    })
}

/// Checks cost 1 until a denial; returns the number of admissions.
fn drain(
    system: &mut impl SystemUnderTest,
    policy: &Policy,
    time: Timestamp,
    coverage: &mut Coverage,
) -> Result<u64, String> {
    let mut passed = 0;
    let most = policy.limits()[0].capacity() + 1;
    for _ in 0..most {
        let answer = single_answer(decide(system, &single_check(time, CHECK, policy, b"k", 1)))?;
        coverage.answer(std::slice::from_ref(&answer));
        if !answer.allowed {
            break;
        }
        passed += 1;
    }
    Ok(passed)
}

/// A clock that stands still admits the capacity. After a step back of any span the store admits at
/// most the capacity once more; after a plausible step back it admits nothing.
pub fn clock_step_admits_one_more_capacity(
    system: &mut impl SystemUnderTest,
    plan: Plan,
) -> Outcome {
    let back = prop_oneof![Just(1_u64), 1_u64..10_000_000, 1_u64..10 * YEAR];
    run(plan, &(single_policies("p"), back), |(policy, back), coverage| {
        let capacity = policy.limits()[0].capacity();
        if capacity > 200 || policy.limits()[0].is_concurrent() {
            return Ok(());
        }
        system.reset();
        let first = drain(system, &policy, START, coverage)?;
        let again = drain(system, &policy, START.saturating_sub(Micros::new(back)), coverage)?;
        coverage.count(if again == 0 { "plausible" } else { "implausible" });
        // Steps of up to 10 s are plausible.
        if first == capacity && again <= capacity && (back > 10_000_000 || again == 0) {
            return Ok(());
        }
        Err(format!("{policy}: {first}, and {again} after a step back of {back} us"))
    })
}
