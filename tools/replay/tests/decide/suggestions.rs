//! Suggestions are the lowest limits that deny few enough keys.

use tollgate_replay::Options;

use crate::harness::{Request, candidates, csv, log, options, replay};
use crate::reference::reference;

/// Key k makes k requests in a second, and then one per second.
fn requests() -> Vec<Request> {
    let mut all = Vec::new();
    for key in 1..=50_u64 {
        for place in 0..key + 20 {
            let at = if place < key { place * 1_000 } else { (place - key + 1) * 1_000_000 };
            all.push(Request { at: 1_763_650_000_000_000 + at, key: format!("k{key}"), cost: 1 });
        }
    }
    all.sort_by_key(|request| request.at);
    all
}

#[test]
fn no_lower_count_denies_as_few_keys() {
    let requests = requests();
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
        let shown = |limits: &[tollgate::Limit]| {
            limits.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
        };
        let denied = |limits: &str| reference(limits, &requests).keys.len();
        let limits = shown(&suggestion.limits);
        assert_eq!(denied(&limits) as u64, suggestion.keys_denied, "{limits}");
        assert!(denied(&limits) <= keys, "{text}: {limits}");
        // A count of one less in the first limit, in the same proportion, denies too many keys.
        let count = suggestion.limits[0].spec().count;
        if count > 1 {
            let one_less = text.parse::<tollgate::Policy>().unwrap();
            let first = one_less.limits()[0].spec().count;
            let scaled = one_less.limits().iter().map(|limit| {
                let scale = |number: u64| (number * (count - 1)).div_ceil(first);
                let kind = match limit.spec().kind {
                    tollgate::Kind::TokenBucket { burst } => {
                        tollgate::Kind::TokenBucket { burst: scale(burst) }
                    }
                    tollgate::Kind::Queue { places } => {
                        tollgate::Kind::Queue { places: scale(places) }
                    }
                    other => other,
                };
                tollgate::Spec { count: scale(limit.spec().count), kind, ..*limit.spec() }
                    .build()
                    .unwrap()
            });
            let one_less = shown(&scaled.collect::<Vec<_>>());
            assert!(denied(&one_less) > keys, "{text}: {one_less} suffices, not only {limits}");
        }
    }
}

#[test]
fn suggestions_are_only_made_on_request() {
    let report = replay(&candidates(&["1/s"]), options(1), log(csv(&requests())));
    assert!(report.outcomes[0].suggestion.is_none());
}
