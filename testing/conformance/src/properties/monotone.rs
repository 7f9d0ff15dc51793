//! With less used or a higher limit, a store admits no less. Scaled units and shifted times do not
//! change the decisions.

use tollgate_algorithms::{Kind, Limit, Micros, Operation, Policy, Spec, Timestamp};

use super::play::{
    CHECK, Response, build_trace, count, decide, describe, expect_equal, play, single_answer,
    single_check,
};
use super::player::{START, TestRequest};
use super::runner::{FailureReason, Outcome, Plan, run};
use super::strategies::{policies, several_policies, single_policies};
use super::trace::{check_steps, steps};
use crate::model::{self, Expected};
use crate::system::SystemUnderTest;

const KEY: &[u8] = b"k\0";

/// A cost that is admitted is also admitted with less used.
pub fn less_used_admits_more(system: &mut impl SystemUnderTest, plan: Plan) -> Outcome {
    let cases = (policies("p"), steps(1, 1, false), (1_u64..10, 0_u64..10, 0_u64..4_000_000));
    run(plan, &cases, |(policy, steps, (more, cost, later)), coverage| {
        let all_leases = policy.limits().iter().all(Limit::is_concurrent);
        if policy.is_shadow() || all_leases {
            return Ok(());
        }
        let trace = build_trace(std::slice::from_ref(&policy), &steps, false);
        let now = trace.last().map_or(START, |trace| trace.time);
        let mut probe = |penalty: u64| {
            play(system, &trace);
            if penalty > 0 {
                single_answer(decide(
                    system,
                    &single_check(now, Operation::Penalize, &policy, KEY, penalty),
                ))?;
            }
            let then = now.saturating_add(Micros::new(later));
            single_answer(decide(system, &single_check(then, Operation::Peek, &policy, KEY, cost)))
        };
        let (heavier, lighter) = (probe(more)?, probe(0)?);
        coverage.answer(&[heavier.clone(), lighter.clone()]);
        if heavier.allowed && !lighter.allowed || heavier.remaining > lighter.remaining {
            return Err(format!("{}more used: {heavier:?}, less: {lighter:?}", describe(&trace)));
        }
        Ok(())
    })
}

/// The limit with a larger capacity and a higher rate.
fn higher(spec: &Spec) -> Option<Limit> {
    let kind = match spec.kind {
        Kind::TokenBucket { burst } => Kind::TokenBucket { burst: burst + 2 },
        Kind::Queue { places } => Kind::Queue { places: places + 2 },
        kind => kind,
    };
    Spec { count: spec.count + 2, kind, ..*spec }.build().ok()
}

/// In the same state, a higher limit admits every cost that a lower limit admits.
pub fn higher_limit_admits_more(system: &mut impl SystemUnderTest, plan: Plan) -> Outcome {
    let cases = (single_policies("p"), check_steps(1, 1, false), (0_u64..12, 0_u64..4_000_000));
    run(plan, &cases, |(policy, steps, (cost, later)), coverage| {
        let Some(limit) = higher(policy.limits()[0].spec()) else { return Ok(()) };
        let Ok(higher) = Policy::new("p", [limit]) else { return Ok(()) };
        let trace = build_trace(std::slice::from_ref(&policy), &steps, false);
        let then =
            trace.last().map_or(START, |trace| trace.time).saturating_add(Micros::new(later));
        let mut probe = |policy: &Policy| {
            play(system, &trace);
            single_answer(decide(system, &single_check(then, CHECK, policy, KEY, cost)))
        };
        let (low, high) = (probe(&policy)?, probe(&higher)?);
        coverage.answer(&[low.clone(), high.clone()]);
        if low.allowed && !high.allowed {
            return Err(format!("{}{policy}: {low:?}, {higher}: {high:?}", describe(&trace)));
        }
        Ok(())
    })
}

/// A multiple of every window except the two longest.
const ALL_WINDOWS: u64 = 420 * 86_400_000_000;

fn later(time: Timestamp, times: u64) -> Timestamp {
    time.saturating_add(Micros::new(ALL_WINDOWS * times))
}

/// A trace that is shifted by a multiple of the windows has the same answers.
pub fn shifted_time_changes_nothing(system: &mut impl SystemUnderTest, plan: Plan) -> Outcome {
    let cases = (several_policies::<2>(), steps(2, 2, false), 1_u64..150);
    run(plan, &cases, |(policies, steps, times), coverage| {
        let mut limits = policies.iter().flat_map(Policy::limits);
        if limits.any(|limit| !ALL_WINDOWS.is_multiple_of(limit.spec().window.get())) {
            return Ok(());
        }
        let early = build_trace(&policies, &steps, false);
        let far = early.last().is_some_and(|early| {
            later(early.time, times)
                >= Timestamp::MAX.saturating_sub(Micros::new(800 * 86_400_000_000))
        });
        if far {
            return Ok(());
        }
        let expected = play(system, &early);
        count(coverage, &expected);
        let late: Vec<TestRequest> = early.iter().map(|early| shifted(early, times)).collect();
        let mut found = play(system, &late);
        for decision in found.iter_mut().flatten().flatten() {
            decision.time = decision.time.saturating_sub(Micros::new(ALL_WINDOWS * times));
        }
        expect_equal(&early, &expected, &found)
    })
}

fn shifted(request: &TestRequest, times: u64) -> TestRequest {
    let operation = match request.operation {
        Operation::Refund { time: Some(time) } => {
            Operation::Refund { time: Some(later(time, times)) }
        }
        Operation::Backfill { limit, time } => {
            Operation::Backfill { limit, time: later(time, times) }
        }
        operation => operation,
    };
    TestRequest { time: later(request.time, times), operation, ..request.clone() }
}

/// The limit counted in smaller units, of which `times` make one of the limit's; `None` for a sliding
/// window, which rounds its estimate to a unit, and for limits whose ticks would differ.
fn scaled(spec: &Spec, times: u64) -> Option<Limit> {
    let kind = match spec.kind {
        Kind::TokenBucket { burst } => Kind::TokenBucket { burst: burst.checked_mul(times)? },
        Kind::Queue { places } => {
            Kind::Queue { places: places.checked_add(1)?.checked_mul(times)? - 1 }
        }
        Kind::Sliding => return None,
        kind => kind,
    };
    let scaled = Spec { count: spec.count.checked_mul(times)?, kind, ..*spec };
    (model::tick_of(&scaled) == model::tick_of(spec)).then(|| scaled.build().ok()).flatten()
}

/// Limits and costs that are multiplied by the same factor have the same decisions.
pub fn scaled_units_change_nothing(system: &mut impl SystemUnderTest, plan: Plan) -> Outcome {
    let cases = (policies("p"), check_steps(1, 1, false), 2_u64..60);
    run(plan, &cases, |(policy, steps, times), coverage| {
        let limits = policy.limits().iter().map(|limit| scaled(limit.spec(), times));
        let Some(limits) = limits.collect::<Option<Vec<_>>>() else { return Ok(()) };
        let Ok(large) = Policy::new("p", limits) else { return Ok(()) };
        let large = large.with_log_entries(policy.log_entries());
        if policy.is_shadow() || large.limits().len() != policy.limits().len() {
            return Ok(());
        }
        let trace = build_trace(std::slice::from_ref(&policy), &steps, false);
        let fits =
            |request: &TestRequest| request.checks.iter().all(|check| check.2.get() < 1 << 40);
        let small: Vec<TestRequest> = trace.into_iter().filter(fits).collect();
        let expected = play(system, &small);
        count(coverage, &expected);
        let scaled_requests: Vec<TestRequest> =
            small.iter().map(|small| in_units(small, &large, times)).collect();
        let found = play(system, &scaled_requests);
        small.iter().zip(expected.iter().zip(&found)).try_for_each(
            |(request, (expected, found))| {
                check_scaled(expected, found, times)
                    .map_err(|reason| format!("{}then {request}\n{reason}", describe(&small)))
            },
        )
    })
}

fn in_units(request: &TestRequest, policy: &Policy, times: u64) -> TestRequest {
    let cost = request.checks[0].2.get() * times;
    single_check(request.time, request.operation, policy, KEY, cost)
}

fn check_scaled(small: &Response, large: &Response, times: u64) -> Result<(), FailureReason> {
    let (Ok(small), Ok(large)) = (small, large) else {
        let are_errors = small.is_err() && large.is_err();
        let reason = || format!("{small:?}\ntimes {times}: {large:?}");
        return if are_errors { Ok(()) } else { Err(reason()) };
    };
    let is_same = |(small, large): (&Expected, &Expected)| {
        let spans = |expected: &Expected| {
            (
                expected.allowed,
                expected.never,
                expected.retry_after,
                expected.reset_after,
                expected.delay,
            )
        };
        spans(small) == spans(large)
            && small.remaining == large.remaining / times
            && small.granted * times == large.granted
    };
    if small.len() == large.len() && small.iter().zip(large).all(is_same) {
        Ok(())
    } else {
        Err(format!("{small:?}\ntimes {times}: {large:?}"))
    }
}
