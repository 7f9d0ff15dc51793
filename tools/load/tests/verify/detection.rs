//! Limiters that admit more than they should are detected.

use proptest::prelude::*;
use tollgate::{Kind, Limit, Spec};
use tollgate_load::verify::{TimeSource, Verifier};

use crate::soundness::limits;
use crate::trace::{Move, Trace};

/// The same limit with a capacity of one more.
fn with_one_more(limit: &Limit) -> Option<Limit> {
    let spec = *limit.spec();
    let more = match spec.kind {
        Kind::TokenBucket { burst } => {
            Spec { kind: Kind::TokenBucket { burst: burst + 1 }, ..spec }
        }
        Kind::Queue { places } => Spec { kind: Kind::Queue { places: places + 1 }, ..spec },
        _ => Spec { count: spec.count + 1, ..spec },
    };
    more.build().ok()
}

fn fill(trace: &mut Trace) {
    while trace.request(0, 0) {}
}

fn violations(limit: &Limit, cost: u64, mut trace: Trace) -> usize {
    let verifier = Verifier::new(&[*limit], cost, TimeSource::Store);
    verifier.verify(&mut trace.admissions).violations
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 1_000, failure_persistence: None, ..ProptestConfig::default()
    })]

    #[test]
    fn one_request_above_the_bound_is_detected(
        limit in limits().prop_filter("small", |limit| limit.capacity() < 200),
    ) {
        let Some(broken) = with_one_more(&limit) else { return Ok(()) };
        for (tested, expected) in [(limit, 0), (broken, 1)] {
            let mut trace = Trace::new(&[tested], 1);
            // A window may open with the first charge, so its edge is approached from both sides.
            trace.request(0, 0);
            if limit.spec().kind == Kind::FixedFromFirst {
                trace.advance(Move::Window(1_000, 1));
            }
            fill(&mut trace);
            trace.advance(Move::By(1));
            fill(&mut trace);
            prop_assert_eq!(violations(&limit, 1, trace), expected, "{} as {}", tested, limit);
        }
    }

    #[test]
    fn a_count_of_one_more_is_detected(
        limit in limits().prop_filter("small", |limit| {
            limit.capacity() < 100 && limit.spec().count < 30 && limit.can_reserve()
        }),
    ) {
        let spec = limit.spec();
        // Requests are frequent enough to show the difference.
        let step = spec.window.get() / (2 * spec.count * (spec.count + 1));
        prop_assume!(step > 0);
        let Ok(broken) = (Spec { count: spec.count + 1, ..*spec }).build() else { return Ok(()) };
        for (tested, expected) in [(limit, 0), (broken, 1)] {
            let mut trace = Trace::new(&[tested], 1);
            for _ in 0..5 * spec.count * (spec.count + 1) {
                fill(&mut trace);
                trace.advance(Move::By(step));
            }
            prop_assert_eq!(violations(&limit, 1, trace), expected, "{} as {}", tested, limit);
        }
    }
}
