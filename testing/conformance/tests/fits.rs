//! A limit is accepted if the model finds a tick for it, including the largest limits.
#![allow(clippy::panic, reason = "a test")]

use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use tollgate_algorithms::{
    Check, Cost, Kind, LimitError, Micros, Operation, Policy, Request, Spec, Timestamp,
};
use tollgate_conformance::model;
use tollgate_conformance::system::{MemorySystem, SystemUnderTest};

fn numbers() -> impl Strategy<Value = u64> {
    let near = |exponent: u32| (0_u64..40).prop_map(move |offset| (1 << exponent) - 20 + offset);
    let exponents = prop_oneof![Just(20_u32), Just(30), Just(40), Just(51), Just(52), Just(53)];
    prop_oneof![1_u64..1_000, 1_u64..1 << 53, exponents.prop_flat_map(near)]
}

fn specs() -> impl Strategy<Value = Spec> {
    let windows = prop::sample::select(vec![
        1,
        7,
        1_000,
        3_000,
        60_000,
        3_600_000,
        86_400_000,
        2_592_000_000,
        31_622_400_000_u64,
    ]);
    (windows, numbers(), numbers(), 0_u8..6).prop_map(|(ms, count, capacity, kind)| {
        let window = Micros::from_millis(ms);
        let kind = match kind {
            0 => Kind::TokenBucket { burst: capacity },
            1 => Kind::Queue { places: capacity - 1 },
            2 => Kind::Fixed { offset: Micros::ZERO },
            3 => Kind::Log,
            4 => Kind::Sliding,
            _ => {
                let pieces = if ms % 10 == 0 { 10 } else { 1 };
                let precision = Micros::from_millis(ms / pieces);
                Kind::SlidingBy { precision, strict: count % 2 == 0 }
            }
        };
        Spec::new(count, window, kind)
    })
}

#[test]
fn limit_is_accepted_if_it_is_exact() {
    let config = Config { cases: 20_000, failure_persistence: None, ..Config::default() };
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[5; 32]);
    let (accepted, rejected) = (std::cell::Cell::new(0), std::cell::Cell::new(0));
    let outcome = TestRunner::new_with_rng(config, rng).run(&specs(), |spec| {
        match (model::tick_of(&spec), spec.build()) {
            (Some(_), Ok(_)) => accepted.set(accepted.get() + 1),
            (None, Err(LimitError::Inexact { nearest, .. })) => {
                rejected.set(rejected.get() + 1);
                prop_assert!(
                    nearest.build().is_ok(),
                    "{spec} suggests {nearest}, which is invalid"
                );
                let lower = nearest.count <= spec.count && nearest.capacity() <= spec.capacity();
                prop_assert!(lower, "{spec} suggests {nearest}, which is not lower");
            }
            (tick, built) => prop_assert!(false, "{spec}: tick {tick:?}, {built:?}"),
        }
        Ok(())
    });
    outcome.unwrap_or_else(|error| panic!("{error}"));
    assert!(accepted.get() > 1_000 && rejected.get() > 1_000, "{accepted:?} {rejected:?}");
}

/// The recovery time exceeds the representable times.
#[test]
fn limit_with_unrepresentable_recovery_is_decided() {
    let mut system = MemorySystem::new();
    system.set_time(Timestamp::from_micros(1_763_650_000_000_000));
    for text in ["1/w burst 2147483647", "1/10ms burst 4503599627370449", "1/w queue 2147483646"] {
        let policy: Policy = text.parse().unwrap_or_else(|error| panic!("{error}"));
        let capacity = policy.limits()[0].capacity();
        let mut check = |cost| {
            let cost = Cost::new(cost).unwrap_or(Cost::MAX);
            let checks = [Check { policy: &policy, key: b"k", cost }];
            let operation = Operation::Check { lease: None };
            let request = Request { operation, checks: &checks, request_id: None };
            system.decide(&request).unwrap_or_else(|error| panic!("{error:?}")).remove(0)
        };
        let first = check(capacity);
        assert!(first.allowed && first.remaining == 0, "{text}: {first:?}");
        let denied = check(capacity);
        let endless = Some(Micros::new(1 << 63));
        assert!(!denied.allowed && denied.retry_after > endless, "{text}: {denied:?}");
    }
}
