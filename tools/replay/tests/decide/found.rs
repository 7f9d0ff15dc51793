//! Random logs, some lines late by less than is put in order, on one thread and on several.

use proptest::prelude::*;
use tollgate::Micros;

use crate::asking::{Request, alternatives, csv, log, options, replay};
use crate::plain::{peaks, plain};

/// Of every kind that a log can ask, single and joined.
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
            // Every other line in its order; some keys longer than what stands inline.
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
    fn a_replay_finds_what_is_found_line_by_line(requests in requests()) {
        let alternatives = alternatives(&LIMITS);
        for threads in [1, 2, 5] {
            let report = replay(&alternatives, options(threads), log(csv(&requests)));
            prop_assert_eq!(report.source.lines, requests.len() as u64);
            prop_assert_eq!(report.source.late, 0);
            prop_assert_eq!(report.offered.requests, requests.len() as u64);
            prop_assert_eq!(report.offered.cost, requests.iter().map(|it| it.cost).sum::<u64>());
            prop_assert_eq!(report.timeline.costs.iter().sum::<u64>(), report.offered.cost);
            for (limits, outcome) in LIMITS.iter().zip(&report.outcomes) {
                let plain = plain(limits, &requests);
                prop_assert_eq!(outcome.admitted, plain.admitted, "{}", limits);
                prop_assert_eq!(outcome.denied, plain.denied, "{}", limits);
                prop_assert_eq!(outcome.keys_denied, plain.keys.len() as u64);
                prop_assert_eq!(&outcome.longest_denial, &plain.longest);
                let over_time = outcome.admitted_over_time.iter().sum::<u64>();
                prop_assert_eq!(over_time, plain.admitted.cost);
                prop_assert_eq!(outcome.worst.len(), plain.keys.len());
                for it in &outcome.worst {
                    let found = (it.offered, it.denied, it.first_denied, it.longest_denial);
                    let key = String::from_utf8(it.key.clone()).unwrap();
                    prop_assert_eq!(Some(&found), plain.keys.get(&key), "{} {}", limits, key);
                }
                if threads == 1 {
                    let decisions = outcome.decisions.iter();
                    let decisions: Vec<_> =
                        decisions.map(|it| (it.time, it.is_admitted, it.cost)).collect();
                    prop_assert_eq!(decisions, plain.decisions);
                }
            }
            for it in &report.peaks {
                let wanted = peaks(it.window.get() / 1_000_000, &requests);
                prop_assert_eq!(&it.keys_by_cost, &wanted, "{:?}", it.window);
                let highest = it.highest.as_ref().map(|it| it.0);
                prop_assert_eq!(highest, wanted.last().map(|it| it.0));
            }
        }
    }
}

#[test]
fn late_lines_are_decided_when_they_come() {
    let request = |at: u64, key: &str| Request { at: at * 1_000_000, key: key.to_owned(), cost: 1 };
    let lines = [request(1_000, "a"), request(2_000, "a"), request(1_500, "a")];
    let alternatives = alternatives(&["1/1000s fixed"]);
    let report = replay(&alternatives, options(2), log(csv(&lines)));
    // In its own time it would have been denied by the first; decided a minute before the newest it
    // is too, and so is the newest.
    assert_eq!((report.source.late, report.outcomes[0].admitted.requests), (1, 2));
    let (first, last) = report.source.span.unwrap();
    assert_eq!(last.as_micros() - first.as_micros(), Micros::from_secs(1_000).get());
}
