//! The retry, remaining cost and reset of a decision are exact, after each step of random traces;
//! peeks and denials leave the state as it is.
//!
//! The other properties of decisions are in the conformance suite, which runs them on every store.
#![allow(clippy::unwrap_used, reason = "a test")]

use std::cell::Cell;

use proptest::prelude::*;
use proptest::test_runner::{RngSeed, TestRunner};
use tollgate_algorithms::{
    Anomalies, Block, CheckContext, Decision, Id, KeyState, Micros, Operation, Policy, Timestamp,
    decide_one,
};

/// Deterministic cases.
fn config(cases: u32) -> ProptestConfig {
    let rng_seed = RngSeed::Fixed(20_261_120);
    ProptestConfig { rng_seed, failure_persistence: None, ..ProptestConfig::with_cases(cases) }
}

/// A Friday that is not at the edge of any window.
const START: Timestamp = Timestamp::from_micros(1_763_650_000_123_457);

/// A key under a policy.
#[derive(Clone)]
struct Key {
    policy: Policy,
    state: KeyState,
    block: Option<Block>,
    leases: u128,
}

impl Key {
    fn new(policy: &Policy) -> Self {
        Key { policy: policy.clone(), state: KeyState::default(), block: None, leases: 0 }
    }

    fn decide(&mut self, operation: Operation, cost: u64, now: Timestamp) -> Decision {
        let Key { policy, state, block, .. } = self;
        let mut context = CheckContext { policy, state, block, cost };
        decide_one(&operation, &mut context, now, &mut Anomalies::default())
    }

    fn check(&mut self, cost: u64, now: Timestamp) -> Decision {
        self.leases += 1;
        let lease = self.policy.has_concurrent().then(|| Id::from_u128(self.leases));
        self.decide(Operation::Check { lease }, cost, now)
    }

    fn peek(&self, cost: u64, now: Timestamp) -> Decision {
        self.clone().decide(Operation::Peek, cost, now)
    }
}

/// The delay and the cost of each step of a trace.
fn steps() -> impl Strategy<Value = Vec<(u64, u64)>> {
    let delay = prop_oneof![Just(0), 0_u64..400, 0_u64..4_000, 0_u64..40_000];
    let cost = prop_oneof![4 => Just(1_u64), 2 => 0_u64..4, 1 => 1_u64..25];
    prop::collection::vec((delay, cost), 1..60)
}

/// A limit with small numbers of any kind except concurrency.
fn limit() -> impl Strategy<Value = String> {
    let window = prop_oneof![Just(1_u64), Just(2), Just(6), Just(10), Just(60)];
    (1_u64..20, window, 0..9_u8, 1_u64..25).prop_map(|(count, ms, kind, other)| {
        let rate = format!("{count}/{ms}ms");
        let precision = if ms % 2 == 0 { ms / 2 } else { ms };
        match kind {
            0 => rate,
            1 => format!("{rate} burst {other}"),
            2 => format!("{rate} fixed"),
            3 => format!("{rate} fixed from-first"),
            4 => format!("{rate} log"),
            5 => format!("{rate} sliding"),
            6 => format!("{rate} sliding by {precision}ms"),
            7 => format!("{rate} sliding by {precision}ms strict"),
            _ => format!("{rate} queue {other}"),
        }
    })
}

/// One to three limits of any kind.
fn policy() -> impl Strategy<Value = Policy> {
    let concurrent =
        (1_u64..6, 1_u64..20).prop_map(|(n, ms)| format!("{n} concurrent lease {ms}ms"));
    let limits = prop::collection::vec(prop_oneof![6 => limit(), 1 => concurrent], 1..4);
    limits.prop_map(|limits| limits.join("; ").parse().unwrap())
}

/// Plays a trace and calls `probe` with the key, the cost and the decision after each step.
fn each_step(
    policy: &Policy,
    steps: &[(u64, u64)],
    probe: impl Fn(&Key, u64, Decision) -> Result<(), TestCaseError>,
) -> Result<(), TestCaseError> {
    let (mut key, mut now) = (Key::new(policy), START);
    for (delay, cost) in steps {
        now = now.saturating_add(Micros::new(*delay));
        let decision = key.check(*cost, now);
        probe(&key, *cost, decision)?;
    }
    Ok(())
}

proptest! {
    #![proptest_config(config(1_000))]

    #[test]
    fn exactly_the_remaining_cost_is_admitted(policy in policy(), steps in steps()) {
        each_step(&policy, &steps, |key, _, decision| {
            let (remaining, now) = (decision.remaining, decision.time);
            prop_assert!(key.peek(remaining, now).allowed || remaining == 0);
            prop_assert!(!key.peek(remaining + 1, now).allowed);
            Ok(())
        })?;
    }

    #[test]
    fn after_its_reset_a_key_is_like_an_unknown_one(policy in policy(), steps in steps()) {
        each_step(&policy, &steps, |key, _, decision| {
            let reset_after = decision.reset_after.unwrap();
            let reset = decision.time.saturating_add(reset_after);
            prop_assert!(key.state.is_untouched(reset), "{decision:?}");
            if reset_after > Micros::ZERO {
                let before = reset.saturating_sub(Micros::new(1));
                prop_assert!(!key.state.is_untouched(before), "{decision:?}");
            }
            Ok(())
        })?;
    }

    #[test]
    fn peeks_and_denials_do_not_change_state(policy in policy(), steps in steps()) {
        let (mut key, mut now) = (Key::new(&policy), START);
        for (delay, cost) in steps {
            now = now.saturating_add(Micros::new(delay));
            let before = format!("{:?}", key.state);
            let peeked = key.decide(Operation::Peek, cost, now);
            prop_assert_eq!(&before, &format!("{:?}", key.state));
            let decision = key.check(cost, now);
            prop_assert_eq!(peeked.allowed, decision.allowed);
            prop_assert_eq!(peeked.retry_after, decision.retry_after);
            prop_assert_eq!(peeked.delay, decision.delay);
            if !decision.allowed {
                prop_assert_eq!(before, format!("{:?}", key.state));
            }
        }
    }
}

/// Counts the probes: a property without any denial would prove nothing.
#[test]
fn a_retry_is_admitted_exactly_at_its_time() {
    let (admissions, retries) = (Cell::new(0), Cell::new(0));
    let probe = |key: &Key, cost, decision: Decision| {
        let Some(retry) = decision.retry_after else {
            admissions.set(admissions.get() + 1);
            prop_assert!(decision.allowed || decision.never);
            return Ok(());
        };
        retries.set(retries.get() + 1);
        prop_assert!(retry > Micros::ZERO && !decision.allowed);
        let then = decision.time.saturating_add(retry);
        prop_assert!(key.peek(cost, then).allowed, "denied at the retry: {decision:?}");
        let before = then.saturating_sub(Micros::new(1));
        prop_assert!(!key.peek(cost, before).allowed, "admitted before it: {decision:?}");
        Ok(())
    };
    let mut runner = TestRunner::new(config(2_000));
    runner.run(&(policy(), steps()), |(policy, steps)| each_step(&policy, &steps, probe)).unwrap();
    assert!(admissions.get() > 5_000, "{admissions:?} admissions");
    assert!(retries.get() > 5_000, "{retries:?} denials");
}

/// Regression: a bucket that takes a million years to refill overflowed.
#[test]
fn a_bucket_that_refills_after_the_last_timestamp_does_not_overflow() {
    for limit in ["1/366d burst 1000000", "1/366d queue 100000000"] {
        let policy: Policy = limit.parse().unwrap();
        let mut key = Key::new(&policy);
        let capacity = policy.limits()[0].capacity();
        assert!(key.check(capacity, START).allowed);
        let denied = key.check(capacity, START);
        assert!(denied.retry_after > Some(Micros::from_secs(366 * 86_400)), "{denied:?}");
        assert!(key.peek(1, START.saturating_sub(Micros::from_secs(60))).retry_after.is_some());
    }
}
