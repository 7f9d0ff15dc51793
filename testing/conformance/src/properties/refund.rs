//! A refund undoes a charge, and never exceeds it.

use proptest::prelude::*;
use tollgate_algorithms::{Kind, Operation, Policy, Timestamp};

use super::play::{
    CHECK, Response, build_trace, count, decide, describe, expect_equal, play, single_answer,
    single_check,
};
use super::player::{START, TestRequest};
use super::runner::{Outcome, Plan, run};
use super::strategies::policies;
use super::trace::steps;
use crate::system::SystemUnderTest;

const KEY: &[u8] = b"k\0";

fn has_concurrent(policy: &Policy) -> bool {
    policy.limits().iter().any(|limit| limit.is_concurrent())
}

/// A check that is refunded at once, with the time of its decision, does not change later answers.
pub fn refund_undoes_a_check(system: &mut impl SystemUnderTest, plan: Plan) -> Outcome {
    let cases = (policies("p"), steps(1, 1, false), 0_usize..40, 1_u64..10);
    run(plan, &cases, |(policy, steps, place, cost), coverage| {
        let policy = policy.with_log_entries(10_000);
        if policy.is_shadow() || has_concurrent(&policy) {
            return Ok(());
        }
        let trace = build_trace(std::slice::from_ref(&policy), &steps, false);
        // A refund with a time depends on whether another cost waits behind it in the queue.
        let queue =
            policy.limits().iter().any(|limit| matches!(limit.spec().kind, Kind::Queue { .. }));
        let has_time = |request: &TestRequest| {
            matches!(request.operation, Operation::Refund { time: Some(_) })
        };
        if queue && trace.iter().any(has_time) {
            return Ok(());
        }
        let expected = play(system, &trace);
        let place = place % trace.len();
        let time = trace[place].time;
        let undone = check_and_refund(&policy, time, cost);
        // Only an admitted check is charged.
        play(system, &trace[..place]);
        if !single_answer(decide(system, &undone[0]))?.allowed {
            return Ok(());
        }
        coverage.count("refunds");
        count(coverage, &expected);
        let mut with_both = trace;
        with_both.splice(place..place, undone);
        let found = play(system, &with_both);
        let without: Vec<Response> =
            found[..place].iter().chain(&found[place + 2..]).cloned().collect();
        let refunded = single_answer(found[place + 1].clone())?;
        if refunded.granted != cost {
            return Err(format!(
                "{}refunded {}",
                describe(&with_both[..place + 2]),
                refunded.granted
            ));
        }
        expect_equal(&with_both, &expected, &without)
    })
}

fn check_and_refund(policy: &Policy, time: Timestamp, cost: u64) -> [TestRequest; 2] {
    let refund = Operation::Refund { time: Some(time) };
    [single_check(time, CHECK, policy, KEY, cost), single_check(time, refund, policy, KEY, cost)]
}

/// A refund leaves at most the capacity, and refunds nothing of an unknown key. Without a time, a
/// large refund restores the capacity.
pub fn refund_keeps_within_capacity(system: &mut impl SystemUnderTest, plan: Plan) -> Outcome {
    let cases = (policies("p"), steps(1, 1, false), any::<bool>());
    run(plan, &cases, |(policy, steps, with_time), coverage| {
        if has_concurrent(&policy) {
            return Ok(());
        }
        let trace = build_trace(std::slice::from_ref(&policy), &steps, false);
        count(coverage, &play(system, &trace));
        let now = trace.last().map_or(START, |trace| trace.time);
        let time = with_time.then_some(now);
        let refund =
            |key: &[u8]| single_check(now, Operation::Refund { time }, &policy, key, u64::MAX);
        let unknown = single_answer(decide(system, &refund(b"unknown")))?;
        if unknown.granted > 0 || unknown.changed {
            return Err(format!("{}an unknown key has the refund {unknown:?}", describe(&trace)));
        }
        let answer = single_answer(decide(system, &refund(KEY)))?;
        let rows = &answer.limits;
        coverage.count(if answer.granted > 0 { "refunded" } else { "nothing" });
        let within = rows.iter().all(|row| row.remaining <= row.capacity);
        let all = with_time || rows.iter().all(|row| row.remaining == row.capacity);
        let again = single_answer(decide(system, &refund(KEY)))?;
        if within && all && again.granted == 0 && !again.changed {
            return Ok(());
        }
        Err(format!("{}refund {answer:?}, then {again:?}", describe(&trace)))
    })
}
