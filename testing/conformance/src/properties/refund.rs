//! I-REFUND: what is given back was charged, and is as if it had not been.

use proptest::prelude::*;
use tollgate_core::{Kind, Operation, Policy, Timestamp};

use super::play::{Answered, CHECK, ask, asked, count, only, play, requests, same, story};
use super::player::{Player, START, TestRequest};
use super::runner::{Coverage, Plan, Violation, run};
use super::strategies::policies;
use super::trace::steps;
use crate::system::SystemUnderTest;

const KEY: &[u8] = b"k\0";

fn has_concurrent(policy: &Policy) -> bool {
    policy.limits().iter().any(|limit| limit.is_concurrent())
}

/// A check that is refunded at once, with the time of its decision, was never made.
///
/// # Errors
/// The least trace in which something else is answered with both.
pub fn refund_undoes_a_check(
    system: &mut impl SystemUnderTest,
    plan: Plan,
) -> Result<Coverage, Violation> {
    let cases = (policies("p"), steps(1, 1, false), 0_usize..40, 1_u64..10);
    run(plan, &cases, |(policy, steps, place, cost), seen| {
        let policy = policy.with_log_entries(10_000);
        if policy.is_shadow() || has_concurrent(&policy) {
            return Ok(());
        }
        let asked = requests(std::slice::from_ref(&policy), Player::at(START, false), &steps);
        // What was given back was charged all the same: an earlier place in a queue stays taken.
        let queue =
            policy.limits().iter().any(|limit| matches!(limit.spec().kind, Kind::Queue { .. }));
        let earlier = |x: &TestRequest| matches!(x.operation, Operation::Refund { time: Some(_) });
        if queue && asked.iter().any(earlier) {
            return Ok(());
        }
        let expected = play(system, &asked);
        let place = place % asked.len();
        let time = asked[place].time;
        let undone = undone(&policy, time, cost);
        // What was charged must still count when it is given back: see that the check passes.
        play(system, &asked[..place]);
        if !only(ask(system, &undone[0]))?.allowed {
            return Ok(());
        }
        seen.count("refunds");
        count(seen, &expected);
        let mut with_both = asked;
        with_both.splice(place..place, undone);
        let found = play(system, &with_both);
        let without: Vec<Answered> =
            found[..place].iter().chain(&found[place + 2..]).cloned().collect();
        let refunded = only(found[place + 1].clone())?;
        if refunded.granted != cost {
            return Err(format!(
                "{}gave back {}",
                story(&with_both[..place + 2]),
                refunded.granted
            ));
        }
        same(&with_both, &expected, &without)
    })
}

fn undone(policy: &Policy, time: Timestamp, cost: u64) -> [TestRequest; 2] {
    let refund = Operation::Refund { time: Some(time) };
    [asked(time, CHECK, policy, KEY, cost), asked(time, refund, policy, KEY, cost)]
}

/// A refund never gives more than the capacity, and on an unknown key it is nothing; without a
/// time, one that is large enough gives all of it back.
///
/// # Errors
/// The least trace after which it is not so.
pub fn refund_keeps_within_capacity(
    system: &mut impl SystemUnderTest,
    plan: Plan,
) -> Result<Coverage, Violation> {
    let cases = (policies("p"), steps(1, 1, false), any::<bool>());
    run(plan, &cases, |(policy, steps, with_time), seen| {
        if has_concurrent(&policy) {
            return Ok(());
        }
        let trace = requests(std::slice::from_ref(&policy), Player::at(START, false), &steps);
        count(seen, &play(system, &trace));
        let now = trace.last().map_or(START, |trace| trace.time);
        let time = with_time.then_some(now);
        let refund = |key: &[u8]| asked(now, Operation::Refund { time }, &policy, key, u64::MAX);
        let unknown = only(ask(system, &refund(b"unknown")))?;
        if unknown.granted > 0 || unknown.changed {
            return Err(format!("{}an unknown key got {unknown:?}", story(&trace)));
        }
        let answer = only(ask(system, &refund(KEY)))?;
        let rows = &answer.limits;
        seen.count(if answer.granted > 0 { "given back" } else { "nothing" });
        let within = rows.iter().all(|row| row.remaining <= row.capacity);
        let all = with_time || rows.iter().all(|row| row.remaining == row.capacity);
        let again = only(ask(system, &refund(KEY)))?;
        if within && all && again.granted == 0 && !again.changed {
            return Ok(());
        }
        Err(format!("{}refund {answer:?}, then {again:?}", story(&trace)))
    })
}
