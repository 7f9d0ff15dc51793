//! Random logs with late lines, on one and on several threads.

use proptest::prelude::*;
use tollgate::Micros;

use crate::harness::{Request, candidates, csv, log, options, replay};
use crate::reference::{peaks, reference};

/// Every kind of limit that a log without operations supports, single and combined.
const LIMITS: [&str; 9] = [
    "3/s",
    "20/min burst 4",
    "5/10s fixed",
    "5/10s fixed from-first count-denied",
    "4/10s log",
    "6/10s sliding",
    "6/10s sliding by 1s strict",
    "1/s queue 3",
    "3/s fixed; 8/10s log; 20/min sliding",
];

fn requests() -> impl Strategy<Value = Vec<Request>> {
    let request = (0_u64..3_000_000, 0_u64..20_000_000, 0_u32..6, 0_u64..4);
    prop::collection::vec(request, 0..200).prop_map(|all| {
        let mut now = 1_763_650_000_000_000;
        let request = |(step, late, key, cost): (u64, u64, u32, u64)| {
            now += step;
            // Every other line is in order; some keys are not stored inline.
            let at = if late.is_multiple_of(2) { now } else { now - late };
            let key = if key == 5 {
                "a key of more than twenty-two bytes".to_owned()
            } else {
                format!("k{key}")
            };
            Request { at, key, cost }
        };
        all.into_iter().map(request).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn a_replay_equals_the_reference(requests in requests()) {
        let candidates = candidates(&LIMITS);
        for threads in [1, 2, 5] {
            let report = replay(&candidates, options(threads), log(csv(&requests)));
            prop_assert_eq!(report.source.lines, requests.len() as u64);
            prop_assert_eq!(report.source.late, 0);
            prop_assert_eq!(report.offered.requests, requests.len() as u64);
            prop_assert_eq!(report.offered.cost, requests.iter().map(|request| request.cost).sum::<u64>());
            prop_assert_eq!(report.timeline.costs.iter().sum::<u64>(), report.offered.cost);
            for (limits, outcome) in LIMITS.iter().zip(&report.outcomes) {
                let reference = reference(limits, &requests);
                prop_assert_eq!(outcome.admitted, reference.admitted, "{}", limits);
                prop_assert_eq!(outcome.denied, reference.denied, "{}", limits);
                prop_assert_eq!(outcome.keys_denied, reference.keys.len() as u64);
                prop_assert_eq!(&outcome.longest_denial, &reference.longest);
                let over_time = outcome.admitted_over_time.iter().sum::<u64>();
                prop_assert_eq!(over_time, reference.admitted.cost);
                prop_assert_eq!(outcome.worst.len(), reference.keys.len());
                for worst in &outcome.worst {
                    let found =
                        (worst.offered, worst.denied, worst.first_denied, worst.longest_denial);
                    let key = String::from_utf8(worst.key.clone()).unwrap();
                    prop_assert_eq!(Some(&found), reference.keys.get(&key), "{} {}", limits, key);
                }
                if threads == 1 {
                    let decisions = outcome.decisions.iter();
                    let decisions: Vec<_> =
                        decisions.map(|made| (made.time, made.is_admitted, made.cost)).collect();
                    prop_assert_eq!(decisions, reference.decisions);
                }
            }
            for peak in &report.peaks {
                let expected = peaks(peak.window.get() / 1_000_000, &requests);
                prop_assert_eq!(&peak.keys_by_cost, &expected, "{:?}", peak.window);
                let highest = peak.highest.as_ref().map(|(cost, _)| *cost);
                prop_assert_eq!(highest, expected.last().map(|(cost, _)| *cost));
            }
        }
    }
}

#[test]
fn lines_beyond_the_reorder_limit_are_decided_when_they_arrive() {
    let request = |at: u64, key: &str| Request { at: at * 1_000_000, key: key.to_owned(), cost: 1 };
    let lines = [request(1_000, "a"), request(2_000, "a"), request(1_500, "a")];
    let candidates = candidates(&["1/1000s fixed"]);
    let report = replay(&candidates, options(2), log(csv(&lines)));
    // Only one of the two later lines fits into the window after the first.
    assert_eq!((report.source.late, report.outcomes[0].admitted.requests), (1, 2));
    let (first, last) = report.source.span.unwrap();
    assert_eq!(last.as_micros() - first.as_micros(), Micros::from_secs(1_000).get());
}
