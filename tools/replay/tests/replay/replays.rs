//! Replays of random logs on one and on several threads, replays that end early, and suggestions.

use std::sync::atomic::{AtomicBool, Ordering};

use proptest::prelude::*;
use tollgate::{Kind, Limit, Micros, Policy, Spec};
use tollgate_replay::generate::Traffic;
use tollgate_replay::{Options, Progress, Replay, ReplayError};

use crate::harness::{
    KeyField, Request, candidates, csv, log, log_in_files, options, replay, with_replay,
};
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

/// How late a request can be.
const LATE: Micros = Micros::from_secs(20);

fn requests() -> impl Strategy<Value = Vec<Request>> {
    let request = (0_u64..3_000_000, 0_u64..LATE.get(), 0_u32..6, 0_u64..4);
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
        for (threads, is_in_files) in [(1, false), (2, false), (2, true), (5, true)] {
            let log = match is_in_files {
                true => log_in_files(&requests, "replay_equals_reference"),
                false => log(csv(&requests)),
            };
            let options = Options { reorder: LATE, ..options(threads) };
            let report = replay(&candidates, options, log);
            prop_assert_eq!(report.source.lines, requests.len() as u64);
            prop_assert_eq!(report.source.late, 0);
            prop_assert_eq!(report.offered.requests, requests.len() as u64);
            let cost: u64 = requests.iter().map(|request| request.cost).sum();
            prop_assert_eq!(report.offered.cost, cost);
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
                        decisions.map(|one| (one.time, one.is_admitted, one.cost)).collect();
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
    let lines = [1_000, 2_000, 1_500].map(|at: u64| Request::new(at * 1_000_000, "a"));
    let candidates = candidates(&["1/1000s fixed"]);
    let report = replay(&candidates, options(2), log(csv(&lines)));
    // Only one of the two later lines fits into the window after the first.
    assert_eq!((report.source.late, report.outcomes[0].admitted.requests), (1, 2));
    let (first, last) = report.source.span.unwrap();
    assert_eq!(last.as_micros() - first.as_micros(), Micros::from_secs(1_000).get());
}

#[test]
fn a_stopped_replay_reports_the_requests_until_then() {
    let traffic: Traffic = "poisson rate 100000/s for 1d keys 100".parse().unwrap();
    let (stop, candidates) = (AtomicBool::new(false), candidates(&["10/s"]));
    let mut seen = Progress::default();
    let progress = &mut |progress: Progress| {
        seen = progress;
        stop.store(true, Ordering::Relaxed);
    };
    let replay = Replay { candidates: &candidates, options: options(2), stop: &stop, progress };
    let report = replay.synthetic(&traffic, "poisson".to_owned()).unwrap();
    assert!(report.source.interrupted);
    assert_eq!(report.offered.requests, seen.lines);
    let outcome = &report.outcomes[0];
    assert_eq!(outcome.admitted.requests + outcome.denied.requests, seen.lines);
}

#[test]
fn a_replay_of_a_log_that_is_stopped_reports_the_lines_until_then() {
    let (stop, candidates, requests) = (AtomicBool::new(false), candidates(&["10/s"]), ramp());
    let mut seen = Progress::default();
    let progress = &mut |progress: Progress| {
        seen = progress;
        stop.store(true, Ordering::Relaxed);
    };
    let replay = Replay { candidates: &candidates, options: options(2), stop: &stop, progress };
    let report = replay.parallel(log_in_files(&requests, "stopped_replay"), &KeyField).unwrap();
    assert!(report.source.interrupted);
    assert!((1..requests.len() as u64).contains(&seen.lines), "{seen:?}");
    assert_eq!(report.offered.requests, seen.lines);
    let outcome = &report.outcomes[0];
    assert_eq!(outcome.admitted.requests + outcome.denied.requests, seen.lines);
}

#[test]
fn the_first_invalid_line_ends_a_strict_replay() {
    let text = "time,key\n1,a\nx,a\n2,b\ny,c\n".to_owned();
    let options = Options { strict: true, ..options(2) };
    let replayed = with_replay(&candidates(&["10/s"]), options, |replay| {
        replay.parallel(log(text), &KeyField)
    });
    match replayed {
        Err(ReplayError::Strict(strict)) => {
            assert_eq!((&*strict.name, strict.line, &*strict.text), ("log", 3, "x,a"));
        }
        other => panic!("{other:?}"),
    }
}

/// Key k makes k requests in a second, and then one per second.
fn ramp() -> Vec<Request> {
    let mut all = Vec::new();
    for key in 1..=50_u64 {
        for place in 0..key + 20 {
            let at = if place < key { place * 1_000 } else { (place - key + 1) * 1_000_000 };
            all.push(Request::new(1_763_650_000_000_000 + at, format!("k{key}")));
        }
    }
    all.sort_by_key(|request| request.at);
    all
}

#[test]
fn no_lower_count_denies_as_few_keys() {
    let requests = ramp();
    for (text, ppm, keys) in [
        ("10/s", 0, 0),
        ("10/s burst 20", 100_000, 5),
        ("3/s fixed", 200_000, 10),
        ("100/10s log", 20_000, 1),
        ("7/10s sliding", 500_000, 25),
        ("60/min sliding by 1s", 40_000, 2),
        ("2/s fixed; 4/10s fixed", 100_000, 5),
        ("5/s queue 10", 100_000, 5),
    ] {
        let options = Options { suggest: Some(ppm), ..options(2) };
        let report = replay(&candidates(&[text]), options, log(csv(&requests)));
        let suggestion = report.outcomes[0].suggestion.clone().unwrap();
        let shown = |limits: &[Limit]| {
            limits.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
        };
        let denied = |limits: &str| reference(limits, &requests).keys.len();
        let limits = shown(&suggestion.limits);
        assert_eq!(denied(&limits) as u64, suggestion.keys_denied, "{limits}");
        assert!(denied(&limits) <= keys, "{text}: {limits}");
        // A count of one less in the first limit, in the same proportion, denies too many keys.
        let count = suggestion.limits[0].spec().count;
        if count > 1 {
            let policy: Policy = text.parse().unwrap();
            let first = policy.limits()[0].spec().count;
            let scaled = policy.limits().iter().map(|limit| {
                let scale = |number: u64| (number * (count - 1)).div_ceil(first);
                let kind = match limit.spec().kind {
                    Kind::TokenBucket { burst } => Kind::TokenBucket { burst: scale(burst) },
                    Kind::Queue { places } => Kind::Queue { places: scale(places) },
                    other => other,
                };
                let count = scale(limit.spec().count);
                Spec { count, kind, ..*limit.spec() }.build().unwrap()
            });
            let one_less = shown(&scaled.collect::<Vec<_>>());
            assert!(denied(&one_less) > keys, "{text}: {one_less} suffices, not only {limits}");
        }
    }
}

#[test]
fn suggestions_are_only_made_on_request() {
    let report = replay(&candidates(&["1/s"]), options(1), log(csv(&ramp())));
    assert!(report.outcomes[0].suggestion.is_none());
}
