//! Upper bounds on what is admitted in any interval.

use proptest::prelude::*;
use tollgate_core::{Kind, Limit};

use crate::trace::{Admitted, config, limit, play, steps};

/// The sum of costs and the duration of each interval, from its first to its last admission.
fn intervals(admitted: &[Admitted]) -> impl Iterator<Item = (u64, u64)> {
    (0..admitted.len()).flat_map(move |from| {
        let mut sum = 0;
        admitted[from..].iter().map(move |a| {
            sum += a.cost;
            (a.at - admitted[from].at, sum)
        })
    })
}

/// Whether at most `max` is admitted in any span shorter than `window`.
fn within(admitted: &[Admitted], window: u64, max: u64) -> bool {
    intervals(admitted).all(|(span, sum)| span >= window || sum <= max)
}

fn holds(limit: &Limit, admitted: &[Admitted]) -> bool {
    let (count, window) = (limit.spec().count, limit.spec().window.get());
    match limit.spec().kind {
        Kind::TokenBucket { burst } => {
            intervals(admitted).all(|(span, sum)| sum * window <= burst * window + count * span)
        }
        Kind::Fixed { .. } => {
            let in_window = |at: u64| {
                let same =
                    admitted.iter().filter(move |admitted| admitted.at / window == at / window);
                same.map(|same| same.cost).sum::<u64>()
            };
            admitted.iter().all(|admitted| in_window(admitted.at) <= count)
                && within(admitted, window, 2 * count)
        }
        Kind::FixedFromFirst => within(admitted, window, 2 * count),
        Kind::Log => within(admitted, window, count),
        Kind::Sliding => intervals(admitted).all(|(span, sum)| {
            let rising = count * (window + span) / window + 1;
            sum <= if span < window { rising.min(2 * count) } else { u64::MAX }
        }),
        Kind::SlidingBy { precision, strict } => {
            let shorter = if strict { 0 } else { precision.get() };
            within(admitted, window - shorter, count) && within(admitted, window, 2 * count)
        }
        Kind::Queue { places } => departures_are_spaced(admitted, count, window, places),
        _ => false,
    }
}

/// Whether each request departs at least the share of its predecessor later, up to the rounding to a
/// µs, and no more requests wait than there are places.
fn departures_are_spaced(admitted: &[Admitted], count: u64, window: u64, places: u64) -> bool {
    let spaced = admitted
        .windows(2)
        .all(|pair| (pair[1].departs + 1 - pair[0].departs) * count >= pair[0].cost * window);
    let waiting = |at: u64| {
        let queued =
            admitted.iter().filter(move |admitted| admitted.at <= at && admitted.departs > at);
        queued.map(|queued| queued.cost).sum::<u64>()
    };
    spaced && admitted.iter().all(|admitted| waiting(admitted.at) <= places + 1)
}

proptest! {
    #![proptest_config(config(2_000))]

    #[test]
    fn limits_admit_no_more_than_their_bound(limit in limit(), steps in steps()) {
        let limit: Limit = limit.parse().unwrap();
        let admitted = play(&limit, &steps);
        prop_assert!(holds(&limit, &admitted), "{limit}: {admitted:?}");
    }

    /// The checker itself detects one admission too many.
    #[test]
    fn one_more_admission_exceeds_the_bound(limit in limit()) {
        let limit: Limit = limit.parse().unwrap();
        let at = crate::trace::START.as_micros();
        let one_more = [Admitted { at, departs: at, cost: 2 * limit.capacity() + 2 }];
        let queue = matches!(limit.spec().kind, Kind::Queue { .. });
        let found = !holds(&limit, &one_more) || queue;
        prop_assert!(found, "{limit}");
    }
}
