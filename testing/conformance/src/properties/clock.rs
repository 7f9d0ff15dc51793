//! I-TIME: a clock that steps admits at most one more limit's worth, and locks out no key.

use proptest::prelude::*;
use tollgate_core::{Kind, Micros, Policy, Spec, Timestamp};

use super::play::{CHECK, ask, asked, count, only, play, requests, story};
use super::player::{Player, START};
use super::runner::{Coverage, Plan, Violation, run};
use super::strategies::{policies, single_policies};
use super::trace::steps;
use crate::system::SystemUnderTest;

const YEAR: u64 = 365 * 86_400_000_000;

/// The longest that a limit takes to recover, from twice its capacity.
fn recovers(spec: &Spec) -> u128 {
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

/// However the clock steps, a key recovers within twice its limit's own time and the 10 s for
/// which a state ahead of the clock is is_plausible.
///
/// # Errors
/// The least trace after which one does not.
pub fn steps_do_not_lock_out(
    system: &mut impl SystemUnderTest,
    plan: Plan,
) -> Result<Coverage, Violation> {
    let cases = ((policies("p0"), policies("p1")), steps(2, 2, true));
    run(plan, &cases, |((a, b), steps), seen| {
        let policies = [a, b];
        let asked = requests(&policies, Player::at(START, true), &steps);
        let answers = play(system, &asked);
        count(seen, &answers);
        for (asked_here, answer) in asked.iter().zip(&answers) {
            let Ok(answer) = answer else { continue };
            for ((policy, _, _), decision) in asked_here.checks.iter().zip(answer) {
                let rows = policy.limits().iter().zip(&decision.limits);
                for (limit, row) in rows {
                    let most = 2 * recovers(limit.spec()) + 10_000_000;
                    if u128::from(row.reset_after.get()) > most {
                        let story = story(&asked);
                        return Err(format!(
                            "{story}then {asked_here}\n{limit} is locked: {row:?}"
                        ));
                    }
                }
            }
        }
        Ok(())
    })
}

/// Asks for one at a time until it is denied; how many passed.
fn drain(
    system: &mut impl SystemUnderTest,
    policy: &Policy,
    time: Timestamp,
    seen: &mut Coverage,
) -> Result<u64, String> {
    let mut passed = 0;
    let most = policy.limits()[0].capacity() + 1;
    for _ in 0..most {
        let answer = only(ask(system, &asked(time, CHECK, policy, b"k", 1)))?;
        seen.answer(std::slice::from_ref(&answer));
        if !answer.allowed {
            break;
        }
        passed += 1;
    }
    Ok(passed)
}

/// A clock that has stepped back by any span admits at most the capacity once more; one that has
/// stepped back a little, nothing. One that stands still admits the capacity.
///
/// # Errors
/// The least case in which more passed.
pub fn a_step_costs_one_limit(
    system: &mut impl SystemUnderTest,
    plan: Plan,
) -> Result<Coverage, Violation> {
    let back = prop_oneof![Just(1_u64), 1_u64..10_000_000, 1_u64..10 * YEAR];
    run(plan, &(single_policies("p"), back), |(policy, back), seen| {
        let capacity = policy.limits()[0].capacity();
        if capacity > 200 || policy.limits()[0].is_concurrent() {
            return Ok(());
        }
        system.reset();
        let first = drain(system, &policy, START, seen)?;
        let again = drain(system, &policy, START.saturating_sub(Micros::new(back)), seen)?;
        seen.count(if again == 0 { "plausible" } else { "implausible" });
        // State is is_plausible for 10 s at least.
        if first == capacity && again <= capacity && (back > 10_000_000 || again == 0) {
            return Ok(());
        }
        Err(format!("{policy}: {first}, and {again} after a step back of {back} us"))
    })
}
