//! A limiter that admits one more than it may.

use proptest::prelude::*;
use tollgate::{Kind, Limit, Spec};
use tollgate_load::verify::{Times, Verifier};

use crate::play::{Move, Played};
use crate::sound::limits;

/// The same limit with room for one more.
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

fn fill(played: &mut Played) {
    while played.ask(0, 0) {}
}

fn found(limit: &Limit, cost: u64, mut played: Played) -> usize {
    let verifier = Verifier::new(&[*limit], cost, Times::Store);
    verifier.verify(&mut played.admissions).violations
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn one_more_than_the_bound_is_found(
        limit in limits().prop_filter("few", |it| it.capacity() < 200),
    ) {
        let Some(broken) = with_one_more(&limit) else { return Ok(()) };
        for (tried, expected) in [(limit, 0), (broken, 1)] {
            let mut played = Played::new(&[tried], 1);
            // A window may open with the first charge, so that its edge is met from both sides.
            played.ask(0, 0);
            if limit.spec().kind == Kind::FixedFromFirst {
                played.advance(Move::Window(1_000, 1));
            }
            fill(&mut played);
            played.advance(Move::By(1));
            fill(&mut played);
            prop_assert_eq!(found(&limit, 1, played), expected, "{} as {}", tried, limit);
        }
    }

    #[test]
    fn a_rate_one_higher_is_found(
        limit in limits().prop_filter("few", |it| {
            it.capacity() < 100 && it.spec().count < 30 && it.can_reserve()
        }),
    ) {
        let spec = limit.spec();
        // Asked often enough to see the difference.
        let step = spec.window.get() / (2 * spec.count * (spec.count + 1));
        prop_assume!(step > 0);
        let Ok(broken) = (Spec { count: spec.count + 1, ..*spec }).build() else { return Ok(()) };
        for (tried, expected) in [(limit, 0), (broken, 1)] {
            let mut played = Played::new(&[tried], 1);
            for _ in 0..5 * spec.count * (spec.count + 1) {
                fill(&mut played);
                played.advance(Move::By(step));
            }
            prop_assert_eq!(found(&limit, 1, played), expected, "{} as {}", tried, limit);
        }
    }
}
