//! The model by itself against a simulation that keeps the whole history of a key and counts it
//! from the beginning for every microsecond: no state, no rolling, no search.
#![allow(clippy::expect_used, reason = "a test")]

use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use tollgate_conformance::model::{Expected, Model};
use tollgate_core::{
    Check, Cost, Id, Kind, Limit, Micros, Operation, Policy, Request, Spec, Timestamp,
};

/// What was charged, and when.
type History = [(u64, u64)];

/// How much of a limit is used, as a fraction: how many parts, and how many make one unit.
fn used(spec: &Spec, tick: u64, history: &History, now: u64) -> (u64, u64) {
    let window = spec.window.get();
    let sum = |counts: &dyn Fn(u64) -> bool| {
        history.iter().filter(|history| counts(history.0)).map(|history| history.1).sum::<u64>()
    };
    match spec.kind {
        Kind::TokenBucket { .. } | Kind::Queue { .. } => {
            (drained(spec, tick, history, now), window)
        }
        Kind::Fixed { offset } => {
            let index = |n: u64| (n + window - offset.get()) / window;
            (sum(&|x| index(x) == index(now)), 1)
        }
        Kind::FixedFromFirst => (from_first(window, history, now), 1),
        Kind::Log => (sum(&|x| x + window > now), 1),
        Kind::Sliding => {
            let index = now / window;
            let previous = sum(&|x| x / window + 1 == index);
            let left = window - now % window;
            (sum(&|x| x / window == index) + previous * left / window, 1)
        }
        Kind::SlidingBy { precision, strict } => {
            let step = precision.get();
            let span = if strict { window / step + 1 } else { window / step };
            (sum(&|x| x / step + span > now / step), 1)
        }
        _ => (sum(&|x| x + window > now), 1),
    }
}

/// The level, drained tick by tick, in units of 1 / window.
fn drained(spec: &Spec, tick: u64, history: &History, now: u64) -> u64 {
    let Some(first) = history.first() else {
        return 0;
    };
    let mut level = 0;
    let mut charges = history.iter().peekable();
    for step in first.0 / tick..=now / tick {
        level -= (spec.count * tick).min(level);
        while let Some(charge) = charges.next_if(|charge| charge.0 / tick <= step) {
            level += charge.1 * spec.window.get();
        }
    }
    level
}

fn from_first(window: u64, history: &History, now: u64) -> u64 {
    let (mut end, mut count) = (0, 0);
    for (time, cost) in history {
        if *time >= end {
            (end, count) = (time + window, 0);
        }
        count += cost;
    }
    if now < end { count } else { 0 }
}

/// What one limit says of a check, from its history.
struct Simulated {
    allowed: bool,
    never: bool,
    remaining: u64,
    retry_after: Option<u64>,
    reset_after: u64,
    delay: u64,
}

/// How much will be used, microsecond by microsecond from `now` on, if nothing more is charged.
fn course<'a>(
    spec: &'a Spec,
    tick: u64,
    history: &'a History,
    now: u64,
) -> Box<dyn Iterator<Item = u64> + 'a> {
    let (mut level, _) = used(spec, tick, history, now);
    if matches!(spec.kind, Kind::TokenBucket { .. } | Kind::Queue { .. }) {
        return Box::new((now..).map(move |time| {
            if time > now && time % tick == 0 {
                level -= (spec.count * tick).min(level);
            }
            level
        }));
    }
    Box::new((now..).map(move |time| used(spec, tick, history, time).0))
}

fn simulate(
    spec: &Spec,
    tick: u64,
    history: &mut Vec<(u64, u64)>,
    now: u64,
    cost: u64,
) -> Simulated {
    let (level, parts) = used(spec, tick, history, now);
    let capacity = spec.capacity() * parts;
    let admits = |used: u64| used + cost * parts <= capacity;
    let (allowed, never) = (admits(level), cost > spec.capacity());
    let retry = || course(spec, tick, history, now).position(admits).expect("it recovers");
    let retry_after = (!allowed && !never).then(|| retry().try_into().expect("it is short"));
    let is_queue = matches!(spec.kind, Kind::Queue { .. });
    let waits = is_queue && allowed && level > 0;
    let departs = now / tick * tick + level.div_ceil(spec.count);
    if allowed && cost > 0 {
        history.push((now, cost));
    }
    let (used_now, _) = used(spec, tick, history, now);
    let reset = course(spec, tick, history, now).position(|x| x == 0).expect("it recovers");
    Simulated {
        allowed,
        never,
        remaining: capacity.saturating_sub(used_now) / parts,
        retry_after,
        reset_after: reset.try_into().expect("it is short"),
        delay: if waits { departs - now } else { 0 },
    }
}

/// Plays a trace of (gap, cost) on both and compares what they say.
fn check(spec: Spec, tick: u64, trace: &[(u64, u64)]) -> (u32, u32) {
    let limit: Limit = spec.build().expect("the limit is valid");
    let policy = Policy::new("p", [limit]).expect("the policy is valid");
    let (mut model, mut history, mut now) = (Model::default(), Vec::new(), 40_000);
    let (mut admitted, mut denied) = (0, 0);
    for (index, (gap, cost)) in (0..).zip(trace) {
        now += gap;
        let check = Check { policy: &policy, key: b"k", cost: Cost::new(*cost).expect("small") };
        let lease = Some(Id::from_u128(index));
        let request =
            Request { operation: Operation::Check { lease }, checks: &[check], request_id: None };
        let found = model.decide(&request, Timestamp::from_micros(now)).expect("valid").remove(0);
        let simulated = simulate(&spec, tick, &mut history, now, *cost);
        assert_eq!(tell(&found), tell_simulated(&simulated), "{limit} cost {cost} at {now}");
        if found.allowed { admitted += 1 } else { denied += 1 }
    }
    (admitted, denied)
}

type Verdict = (bool, bool, u64, Option<u64>, Option<u64>, u64);

fn tell(it: &Expected) -> Verdict {
    let retry = it.retry_after.map(Micros::get);
    let reset = it.reset_after.map(Micros::get);
    (it.allowed, it.never, it.remaining, retry, reset, it.delay.get())
}

fn tell_simulated(it: &Simulated) -> Verdict {
    (it.allowed, it.never, it.remaining, it.retry_after, Some(it.reset_after), it.delay)
}

fn kinds() -> impl Strategy<Value = Kind> {
    let us = |n: &u64| Micros::new(*n);
    prop_oneof![
        (1_u64..8).prop_map(|burst| Kind::TokenBucket { burst }),
        (0_u64..8).prop_map(|places| Kind::Queue { places }),
        (0_u64..3).prop_map(move |it| Kind::Fixed { offset: us(&(it * 1_000)) }),
        Just(Kind::FixedFromFirst),
        Just(Kind::Log),
        Just(Kind::Sliding),
        (prop::sample::select(vec![1_000_u64, 3_000]), any::<bool>())
            .prop_map(move |(it, strict)| Kind::SlidingBy { precision: us(&it), strict }),
        Just(Kind::Concurrent),
    ]
}

fn traces() -> impl Strategy<Value = Vec<(u64, u64)>> {
    let gap = prop_oneof![3 => Just(0_u64), 5 => 1_u64..400, 1 => 400_u64..4_000];
    prop::collection::vec((gap, 0_u64..9), 1..24)
}

#[test]
fn every_kind_against_its_history() {
    let seed = [7; 32];
    let config = Config { cases: 400, failure_persistence: None, ..Config::default() };
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &seed);
    let (admitted, denied) = (std::cell::Cell::new(0), std::cell::Cell::new(0));
    TestRunner::new_with_rng(config, rng)
        .run(&(1_u64..8, kinds(), traces()), |(count, kind, trace)| {
            let pieces = matches!(kind, Kind::Fixed { .. } | Kind::SlidingBy { .. });
            let window = Micros::from_millis(if pieces { 3 } else { 1 });
            let spec = Spec::new(count, window, kind);
            let (yes, no) = check(spec, 1, &trace);
            admitted.set(admitted.get() + yes);
            denied.set(denied.get() + no);
            Ok(())
        })
        .expect("the model agrees with its history");
    assert!(admitted.get() > 1_000 && denied.get() > 1_000, "{admitted:?} {denied:?}");
}

/// A bucket that fits only with ticks of 10 us: 2 * capacity * 1000 is above 2^53.
#[test]
fn coarse_ticks_against_their_history() {
    const CAPACITY: u64 = 9_000_000_000_000;
    let kinds = [Kind::TokenBucket { burst: CAPACITY }, Kind::Queue { places: CAPACITY - 1 }];
    let (mut admitted, mut denied) = (0, 0);
    for kind in kinds {
        let spec = Spec::new(7, Micros::new(1_000), kind);
        for first in [CAPACITY - 20, CAPACITY - 3] {
            let mut trace = vec![(0, first), (3, 20)];
            trace.extend((0..60_u64).map(|n| (n * 7 % 53, n * 5 % 4)));
            let limit = spec.build().expect("it fits");
            let policy = Policy::new("p", [limit]).expect("the policy is valid");
            let (yes, no) = without_reset(&policy, &spec, &trace);
            admitted += yes;
            denied += no;
        }
    }
    assert!(admitted > 40 && denied > 40, "{admitted} {denied}");
}

/// As [`check`], but for what takes thousands of years to drain.
fn without_reset(policy: &Policy, spec: &Spec, trace: &[(u64, u64)]) -> (u32, u32) {
    let (mut model, mut history, mut now) = (Model::default(), Vec::new(), 40_004);
    let (mut admitted, mut denied) = (0, 0);
    for (gap, cost) in trace {
        now += gap;
        let check = Check { policy, key: b"k", cost: Cost::new(*cost).expect("in range") };
        let operation = Operation::Check { lease: None };
        let request = Request { operation, checks: &[check], request_id: None };
        let found = model.decide(&request, Timestamp::from_micros(now)).expect("valid").remove(0);
        let parts = spec.window.get();
        let admits = |used: u64| used + cost * parts <= spec.capacity() * parts;
        let retry = course(spec, 10, &history, now).position(admits).expect("it recovers");
        let allowed = retry == 0;
        let retry = (!allowed).then(|| retry.try_into().expect("it is short"));
        let said = (found.allowed, found.retry_after.map(Micros::get));
        assert_eq!(said, (allowed, retry), "{policy} cost {cost} at {now}");
        if allowed && *cost > 0 {
            history.push((now, *cost));
        }
        if allowed { admitted += 1 } else { denied += 1 }
    }
    (admitted, denied)
}
