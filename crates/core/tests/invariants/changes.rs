//! Metamorphic properties: decisions after a change of the state, the limit, the time or the scale, and
//! after refunds.

use proptest::prelude::*;
use tollgate_core::{Kind, Limit, Micros, Operation, Policy, Spec};

use crate::trace::{Key, START, Step, config, cost, limit, policy, steps};

fn named(limits: &str) -> Policy {
    Policy::new("p", tollgate_core::parse_limits(limits).unwrap()).unwrap()
}

/// The same limit with count, burst and places multiplied.
fn scaled(limit: &Limit, by: u64) -> Limit {
    let spec = *limit.spec();
    let kind = match spec.kind {
        Kind::TokenBucket { burst } => Kind::TokenBucket { burst: burst * by },
        Kind::Queue { places } => Kind::Queue { places: (places + 1) * by - 1 },
        kind => kind,
    };
    Spec { count: spec.count * by, kind, ..spec }.build().unwrap()
}

fn play(key: &mut Key, steps: &[Step]) -> tollgate_core::Timestamp {
    let mut now = START;
    for step in steps {
        now = now.saturating_add(step.later);
        key.check(step.cost, now);
    }
    now
}

proptest! {
    #![proptest_config(config(1_000))]

    #[test]
    fn an_immediate_refund_undoes_a_charge(
        limit in limit(), steps in steps(), taken in 1_u64..6, later in 0_u64..60_000,
    ) {
        let mut key = Key::new(&named(&limit));
        let now = play(&mut key, &steps);
        let untouched = key.clone();
        let decision = key.check(cost(taken), now);
        prop_assume!(decision.allowed);
        let back = key.decide(Operation::Refund { time: Some(now) }, taken, now);
        prop_assert_eq!(back.granted, taken);
        for units in 1..=decision.capacity {
            let then = now.saturating_add(Micros::new(later));
            let (a, b) = (key.peek(units, then), untouched.peek(units, then));
            prop_assert_eq!((a.allowed, a.retry_after), (b.allowed, b.retry_after));
        }
    }

    #[test]
    fn a_refund_returns_at_most_the_use(limit in limit(), steps in steps(), n in 1_u64..99) {
        let mut key = Key::new(&named(&limit));
        let now = play(&mut key, &steps);
        let before = key.peek(1, now);
        let back = key.decide(Operation::Refund { time: None }, n, now);
        prop_assert!(back.remaining <= back.capacity && back.granted <= n);
        prop_assert!(back.remaining >= before.remaining);
    }

    #[test]
    fn more_use_admits_no_more(
        policy in policy(), steps in steps(), extra in 1_u64..9, units in 1_u64..9, later in 0_u64..60_000,
    ) {
        let mut less = Key::new(&policy);
        let now = play(&mut less, &steps);
        let mut more = less.clone();
        more.decide(Operation::Penalize, extra, now);
        let then = now.saturating_add(Micros::new(later));
        prop_assert!(less.peek(units, then).allowed || !more.peek(units, then).allowed);
        prop_assert!(less.peek(units, then).remaining >= more.peek(units, then).remaining);
    }

    #[test]
    fn a_higher_limit_admits_no_less(limit in limit(), steps in steps(), units in 1_u64..9) {
        let lower = named(&limit);
        let higher = Policy::new("p", [scaled(&lower.limits()[0], 2)]).unwrap();
        let mut key = Key::new(&lower);
        let now = play(&mut key, &steps);
        let here = key.peek(units, now);
        key.policy = higher;
        prop_assert!(key.peek(units, now).allowed || !here.allowed);
    }

    #[test]
    fn a_shift_by_whole_windows_changes_no_decision(limit in limit(), steps in steps(), k in 1_u64..999) {
        let policy = named(&limit);
        let shift = Micros::new(k * policy.limits()[0].spec().window.get());
        let (mut here, mut there, mut now) = (Key::new(&policy), Key::new(&policy), START);
        for step in &steps {
            now = now.saturating_add(step.later);
            let (a, b) = (here.check(step.cost, now), there.check(step.cost, now.saturating_add(shift)));
            prop_assert_eq!(a.limits(), b.limits());
        }
    }

    #[test]
    fn scaling_costs_and_limit_changes_no_verdict(limit in limit(), steps in steps(), k in 2_u64..9) {
        let small = named(&limit);
        prop_assume!(small.limits()[0].spec().kind != Kind::Sliding);
        let large = Policy::new("p", [scaled(&small.limits()[0], k)]).unwrap();
        let (mut a, mut b, mut now) = (Key::new(&small), Key::new(&large), START);
        for step in &steps {
            now = now.saturating_add(step.later);
            let (a, b) = (a.check(step.cost, now), b.check(step.cost * k, now));
            prop_assert_eq!((a.allowed, a.retry_after), (b.allowed, b.retry_after));
            prop_assert_eq!((a.delay, a.reset_after), (b.delay, b.reset_after));
        }
    }
}
