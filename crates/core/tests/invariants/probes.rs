//! Predictions of a decision, verified: retry, remaining, reset. Peeks and denials change nothing.

use std::cell::Cell;

use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use tollgate_core::{Decision, Micros, Policy, Timestamp};

use crate::trace::{Key, START, Step, config, policy, steps};

fn counts(policy: &Policy) -> bool {
    !policy.has_concurrent()
}

/// Plays a trace and calls `probe` after each step.
fn each_step(
    policy: &Policy,
    steps: &[Step],
    mut probe: impl FnMut(&Key, u64, Decision, Timestamp) -> Result<(), TestCaseError>,
) -> Result<(), TestCaseError> {
    let (mut key, mut now) = (Key::new(policy), START);
    for step in steps {
        now = now.saturating_add(step.later);
        let decision = key.check(step.cost, now);
        probe(&key, step.cost, decision, now)?;
    }
    Ok(())
}

proptest! {
    #![proptest_config(config(1_000))]

    #[test]
    fn exactly_the_remaining_cost_is_admitted(policy in policy(), steps in steps()) {
        each_step(&policy, &steps, |key, _, decision, now| {
            prop_assert!(key.peek(decision.remaining, now).allowed || decision.remaining == 0);
            prop_assert!(!key.peek(decision.remaining + 1, now).allowed);
            Ok(())
        })?;
    }

    #[test]
    fn after_its_reset_a_key_is_like_an_unknown_one(policy in policy(), steps in steps()) {
        each_step(&policy, &steps, |key, _, decision, now| {
            let reset = decision.reset_after.unwrap();
            prop_assert!(key.state.is_untouched(now.saturating_add(reset)), "{decision:?}");
            if reset > Micros::ZERO {
                let before = now.saturating_add(reset).saturating_sub(Micros::new(1));
                prop_assert!(!key.state.is_untouched(before), "{decision:?}");
            }
            Ok(())
        })?;
    }

    #[test]
    fn peeks_and_denials_do_not_change_state(policy in policy(), steps in steps()) {
        let (mut key, mut now) = (Key::new(&policy), START);
        for step in &steps {
            now = now.saturating_add(step.later);
            let before = format!("{:?}", key.state);
            let peeked = key.peek(step.cost, now);
            let decision = key.check(step.cost, now);
            prop_assert_eq!(peeked.allowed, decision.allowed);
            prop_assert_eq!(peeked.retry_after, decision.retry_after);
            prop_assert_eq!(peeked.delay, decision.delay);
            let plain_denial = !decision.allowed && !before.contains("policy: None");
            if plain_denial {
                prop_assert_eq!(before, format!("{:?}", key.state));
            }
        }
    }

    #[test]
    fn removing_denials_from_a_trace_changes_no_decision(policy in policy(), steps in steps()) {
        let (mut full, mut erased, mut now) = (Key::new(&policy), Key::new(&policy), START);
        for step in &steps {
            now = now.saturating_add(step.later);
            let decision = full.check(step.cost, now);
            if decision.allowed {
                let same = erased.check(step.cost, now);
                prop_assert_eq!(decision.remaining, same.remaining);
                prop_assert_eq!(decision.reset_after, same.reset_after);
                prop_assert_eq!(decision.delay, same.delay);
            }
        }
    }

    #[test]
    fn all_limits_of_a_policy_are_charged_or_none(policy in policy(), steps in steps()) {
        each_step(&policy, &steps, |key, cost, decision, now| {
            let limits = decision.limits();
            prop_assert_eq!(decision.allowed, limits.iter().all(|limit| limit.allowed));
            prop_assert_eq!(decision.granted, if decision.allowed { cost } else { 0 });
            prop_assert_eq!(limits.iter().filter(|limit| limit.binding).count(), 1);
            let least = limits.iter().map(|limit| limit.remaining).min();
            prop_assert_eq!(Some(decision.remaining), least);
            let _ = (key, now);
            Ok(())
        })?;
    }

    #[test]
    fn a_clock_that_steps_back_neither_admits_more_nor_locks_a_key(
        policy in policy().prop_filter("counts", counts),
        steps in steps(),
        back in prop_oneof![1_u64..5_000, 1_u64..100_000_000, Just(315_360_000_000_000)],
        cost in 1_u64..4,
    ) {
        let (mut key, mut now) = (Key::new(&policy), START);
        for step in &steps {
            now = now.saturating_add(step.later);
            key.check(step.cost, now);
        }
        let earlier = key.peek(cost, now.saturating_sub(Micros::new(back)));
        let here = key.peek(cost, now);
        if let Some(retry) = earlier.retry_after {
            let longest = back + here.reset_after.unwrap().get() + 60_000_000;
            prop_assert!(retry.get() <= longest, "{retry} s");
        }
        // Ten years back the state is implausible and ignored.
        if back > 100_000_000 {
            prop_assert_eq!(earlier.remaining, key_capacity(&policy));
        }
    }
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

fn key_capacity(policy: &Policy) -> u64 {
    policy.limits().iter().map(|limit| limit.capacity()).min().unwrap()
}

/// Counts the probes: a property without any denial would prove nothing.
#[test]
fn a_retry_is_admitted_exactly_at_its_time() {
    let (admissions, retries) = (Cell::new(0), Cell::new(0));
    let probe = |key: &Key, cost, decision: Decision, now: Timestamp| {
        let Some(retry) = decision.retry_after else {
            admissions.set(admissions.get() + 1);
            prop_assert!(decision.allowed || decision.never);
            return Ok(());
        };
        retries.set(retries.get() + 1);
        prop_assert!(retry > Micros::ZERO && !decision.allowed);
        let then = now.saturating_add(retry);
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
