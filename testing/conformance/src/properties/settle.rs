//! Settlements never leave less used than if the actual cost had been charged at once.

use proptest::prelude::*;
use tollgate_algorithms::{Kind, Operation, Policy, Timestamp};

use super::play::{CHECK, build_trace, decide, describe, play, single_answer, single_check};
use super::player::TestRequest;
use super::runner::{FailureReason, Outcome, Plan, run};
use super::strategies::single_policies;
use super::trace::check_steps;
use crate::model::Expected;
use crate::system::SystemUnderTest;

const KEY: &[u8] = b"k\0";
const HORIZON: u64 = 30_000_000;

/// A policy whose charges are refunded; a concurrent limit has leases.
fn refundable() -> impl Strategy<Value = Policy> {
    single_policies("p")
        .prop_filter("the limit is not concurrent", |policy| !policy.has_concurrent())
}

/// A check of `estimate` with a request id.
fn named_check(policy: &Policy, time: Timestamp, estimate: u64) -> TestRequest {
    let request_id = Some(b"id".to_vec());
    TestRequest { request_id, ..single_check(time, CHECK, policy, KEY, estimate) }
}

fn settlement(policy: &Policy, time: Timestamp, actual: u64) -> TestRequest {
    let request_id = Some(b"id".to_vec());
    TestRequest { request_id, ..single_check(time, Operation::Settle, policy, KEY, actual) }
}

/// Decides the trace and then a peek of cost 0.
fn peek_after(
    system: &mut impl SystemUnderTest,
    trace: &[TestRequest],
    policy: &Policy,
    time: Timestamp,
) -> Result<Expected, FailureReason> {
    play(system, trace);
    let peek = single_check(time, Operation::Peek, policy, KEY, 0);
    single_answer(decide(system, &peek))
}

/// If there are no other charges in between, a lower actual cost leaves the same state as a check of that
/// cost.
pub fn settling_equals_checking(system: &mut impl SystemUnderTest, plan: Plan) -> Outcome {
    let cases = (refundable(), check_steps(1, 1, false), 1_u64..12, 1_u64..12, 0..HORIZON);
    run(plan, &cases, |(policy, steps, one, other, wait), coverage| {
        let mut trace = build_trace(std::slice::from_ref(&policy), &steps, false);
        let Some(last) = trace.last() else { return Ok(()) };
        let (charged, settled) = (last.time, Timestamp::from_micros(last.time.as_micros() + wait));
        let (actual, estimate) = (one.min(other), one.max(other));
        let before = trace.clone();
        trace.push(named_check(&policy, charged, estimate));
        if !play(system, &trace).pop().is_some_and(is_admitted) {
            return Ok(());
        }
        trace.push(settlement(&policy, settled, actual));
        let found = peek_after(system, &trace, &policy, settled)?;
        let checked = [before, vec![named_check(&policy, charged, actual)]].concat();
        let expected = peek_after(system, &checked, &policy, settled)?;
        coverage.admitted += 1;
        coverage.denied += u64::from(!found.allowed) + 1;
        coverage.count(if found.reset_after.is_some_and(|reset| reset.get() > 0) {
            "used"
        } else {
            "recovered"
        });
        // A queue refunds nothing behind which others have queued, and these may have queued at once.
        if matches!(policy.limits()[0].spec().kind, Kind::Queue { .. }) {
            return no_more(&trace, &expected, &found);
        }
        let differences = expected.differences(&found);
        if differences.is_empty() {
            return Ok(());
        }
        Err(format!("{}{}", describe(&trace), differences.join("\n")))
    })
}

/// Whatever else is charged before and after a settlement, no more remains than if the actual cost had been
/// charged at once, and the other admitted checks after it.
pub fn settling_gives_back_no_more(system: &mut impl SystemUnderTest, plan: Plan) -> Outcome {
    let steps = || check_steps(1, 1, false);
    let cases = (refundable(), steps(), 1_u64..12, 1_u64..12, 0..30_usize);
    run(plan, &cases, |(policy, steps, one, other, place), coverage| {
        let others = build_trace(std::slice::from_ref(&policy), &steps, false);
        let (actual, estimate) = (one.min(other), one.max(other));
        let first = others[0].time;
        let mut trace = vec![named_check(&policy, first, estimate)];
        trace.extend(others);
        let place = 1 + place % trace.len();
        let time = trace[place - 1].time;
        trace.insert(place, settlement(&policy, time, actual));
        let end = trace[trace.len() - 1].time;
        let answers = play(system, &trace);
        if !answers.first().cloned().is_some_and(is_admitted)
            || time.duration_since(first).get() >= HORIZON
            // A denial may be counted, and admitted after a check of the lower cost.
            || policy.limits()[0].spec().count_denied
        {
            return Ok(());
        }
        let found = peek_after(system, &trace, &policy, end)?;
        let admitted = trace.iter().zip(answers).skip(1).filter_map(|(request, answer)| {
            let is_check = matches!(request.operation, Operation::Check { .. });
            (is_check && is_admitted(answer)).then(|| request.clone())
        });
        let mut checked = vec![named_check(&policy, first, actual)];
        checked.extend(admitted);
        coverage.admitted += 1;
        coverage.denied += 1;
        let expected = peek_after(system, &checked, &policy, end)?;
        no_more(&trace, &expected, &found)
    })
}

fn is_admitted(answer: super::play::Response) -> bool {
    answer.is_ok_and(|answer| answer.iter().all(|decision| decision.allowed))
}

fn no_more(
    trace: &[TestRequest],
    expected: &Expected,
    found: &Expected,
) -> Result<(), FailureReason> {
    if found.remaining <= expected.remaining {
        return Ok(());
    }
    let (found, most) = (found.remaining, expected.remaining);
    Err(format!("{}remaining {found}, expected at most {most}", describe(trace)))
}
