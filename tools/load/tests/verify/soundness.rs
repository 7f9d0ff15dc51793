//! No trace of the engine is a violation, whatever the order and the delay of its responses.

use proptest::prelude::*;
use proptest::sample::select;
use tollgate::{Kind, Limit, Micros, Spec};
use tollgate_load::verify::{Admission, TimeSource, Verifier};

use crate::trace::{START, Trace, steps};

const MS: u64 = 1_000;
const SECOND: u64 = 1_000 * MS;

fn counts() -> impl Strategy<Value = u64> {
    prop_oneof![8 => 1_u64..20, 1 => 20_u64..200, 1 => select(vec![9_999_991, 2_147_483_647])]
}

pub(crate) fn limits() -> impl Strategy<Value = Limit> {
    let day = 86_400 * SECOND;
    let windows = vec![MS, 7 * MS, 100 * MS, SECOND, 60 * SECOND, day, 7 * day, 30 * day];
    let kinds = |window: u64| {
        let offset = (0..window / MS).prop_map(Micros::from_millis);
        let pieces: Vec<u64> =
            (1..=24).filter(|n| window.is_multiple_of(n * MS)).map(|n| window / n).collect();
        let precise = (select(pieces), any::<bool>());
        prop_oneof![
            2 => counts().prop_map(|burst| Kind::TokenBucket { burst }),
            1 => offset.prop_map(|offset| Kind::Fixed { offset }),
            1 => Just(Kind::FixedFromFirst),
            1 => Just(Kind::Log),
            2 => Just(Kind::Sliding),
            2 => precise.prop_map(|(precision, strict)| {
                Kind::SlidingBy { precision: Micros::new(precision), strict }
            }),
            2 => counts().prop_map(|count| Kind::Queue { places: count - 1 }),
            1 => Just(Kind::Concurrent),
        ]
    };
    let spec = select(windows).prop_flat_map(move |window| {
        (counts(), kinds(window), prop::bool::weighted(0.3)).prop_map(
            move |(count, kind, counts_denied)| {
                let spec = Spec::new(count, Micros::new(window), kind);
                if counts_denied { spec.with_count_denied() } else { spec }
            },
        )
    });
    spec.prop_filter_map("out of range", |spec| spec.build().ok())
}

fn check(limits: &[Limit], cost: u64, source: TimeSource, mut admissions: Vec<Admission>) {
    let verdict = Verifier::new(limits, cost, source).verify(&mut admissions);
    assert_eq!(verdict.worst, [], "{limits:?}");
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 3_000, failure_persistence: None, ..ProptestConfig::default()
    })]

    #[test]
    fn admissions_of_the_engine_are_valid_by_its_own_clock(
        limits in prop::collection::vec(limits(), 1..=3),
        cost in 1_u64..4,
        steps in steps(),
    ) {
        let mut trace = Trace::new(&limits, cost);
        trace.run(&steps);
        check(&limits, cost, TimeSource::Store, trace.admissions);
    }

    #[test]
    fn admissions_of_the_engine_are_valid_by_another_clock(
        limits in prop::collection::vec(limits(), 1..=3),
        cost in 1_u64..4,
        steps in steps(),
        drift in -1_i64..=1,
    ) {
        let mut trace = Trace::new(&limits, cost);
        trace.run(&steps);
        let client_time = |time: u64| {
            let passed = time.cast_signed() - START.cast_signed();
            u64::try_from(1_000_000 + passed + passed / 2_000 * drift).unwrap()
        };
        let admissions = trace.round_trips.iter().map(|(sent, received)| {
            Admission::between(0, client_time(*sent), client_time(*received))
        });
        check(&limits, cost, TimeSource::Client, admissions.collect());
    }
}
