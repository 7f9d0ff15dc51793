//! A request id charges once within its horizon, and identifies one request.

use proptest::prelude::*;
use tollgate_algorithms::{Cost, Micros, Operation};

use super::play::{Response, build_trace, count, decide, describe, expect_equal, play};
use super::player::TestRequest;
use super::runner::{Outcome, Plan, run};
use super::strategies::{policies, several_policies};
use super::trace::steps;
use crate::system::{SystemError, SystemUnderTest};

const HORIZON: u64 = 30_000_000;

/// Whether the store remembers the answer under the request id.
fn is_remembered(request: &TestRequest, answer: &Response) -> bool {
    request.operation != Operation::Peek
        && answer.as_ref().is_ok_and(|answer| answer.iter().all(|decision| decision.allowed))
}

/// A repeated request returns the first answer; with other arguments it is an error. Neither changes
/// later answers.
pub fn repeats_charge_once(system: &mut impl SystemUnderTest, plan: Plan) -> Outcome {
    let cases = (several_policies::<2>(), steps(2, 2, false), 1_u64..9);
    run(plan, &cases, |(policies, steps, more), coverage| {
        let mut trace = build_trace(&policies, &steps, false);
        for (index, request) in trace.iter_mut().enumerate() {
            request.request_id = Some(index.to_string().into_bytes());
        }
        let expected = play(system, &trace);
        count(coverage, &expected);
        system.reset();
        let mut found = Vec::new();
        for (request, first) in trace.iter().zip(&expected) {
            found.push(decide(system, request));
            if !is_remembered(request, first) {
                continue;
            }
            coverage.count("repeats");
            let mut other = request.clone();
            let cost = &mut other.checks[0].2;
            *cost = Cost::new(cost.get() ^ more).unwrap_or_default();
            let reused = decide(system, &other);
            // An invalid request is rejected before its id is compared.
            if !matches!(&reused, Err(SystemError::Request(_))) {
                return Err(format!("{}then {other}\nanswered {reused:?}", describe(&trace)));
            }
            let mut repeated = first.clone();
            repeated.iter_mut().flatten().for_each(|repeated| repeated.replayed = true);
            expect_equal(&trace, [&repeated], [&decide(system, request)])?;
        }
        expect_equal(&trace, &expected, &found)
    })
}

/// A request id is forgotten at the end of its horizon, not before.
pub fn request_ids_expire_at_horizon(system: &mut impl SystemUnderTest, plan: Plan) -> Outcome {
    let cases = (policies("p"), steps(1, 1, false), prop::bool::ANY);
    run(plan, &cases, |(policy, steps, before), coverage| {
        let mut trace = build_trace(&[policy], &steps, false);
        trace.iter_mut().for_each(|request| request.request_id = None);
        let Some(mut last) = trace.pop() else { return Ok(()) };
        last.request_id = Some(b"id".to_vec());
        count(coverage, &play(system, &trace));
        let first = decide(system, &last);
        if !is_remembered(&last, &first) {
            return Ok(());
        }
        let span = if before { HORIZON - 1 } else { HORIZON };
        let late =
            TestRequest { time: last.time.saturating_add(Micros::new(span)), ..last.clone() };
        let answer = decide(system, &late);
        let has_first_time = |response: &Response| {
            response
                .as_ref()
                .is_ok_and(|answer| answer.iter().all(|decision| decision.time == last.time))
        };
        coverage.count(if before { "before" } else { "after" });
        if has_first_time(&answer) == before {
            return Ok(());
        }
        Err(format!("{}then {last}\n{span} us later {answer:?}", describe(&trace)))
    })
}
