//! The pictures of reports, real and with arbitrary numbers.

use proptest::prelude::*;
use tollgate::{Micros, Timestamp};
use tollgate_replay::page;
use tollgate_replay::pictures::{burst, over_time, peaks, picture};
use tollgate_replay::report::{Amount, Outcome, Peaks, Report, RequestOutcome, Timeline};

use crate::samples::{edge_burst, report, reports};
use crate::{keep, read};

/// Draws all pictures and checks that they are well-formed, with finite numbers and without
/// placeholder colours.
fn check(name: &str, report: &Report) -> Vec<(&'static str, String)> {
    let pictures = vec![
        ("over-time", over_time(report)),
        ("burst", burst(report)),
        ("peaks", peaks(report)),
        ("picture", picture(report)),
    ];
    for (which, svg) in &pictures {
        let document = roxmltree::Document::parse(svg)
            .unwrap_or_else(|error| panic!("{name} {which}: {error}"));
        for node in document.descendants().filter(|node| node.is_element()) {
            for attribute in node.attributes() {
                let (attribute, value) = (attribute.name(), attribute.value());
                let is_shape = !["id", "class", "aria-labelledby"].contains(&attribute);
                let is_odd = value.contains("NaN") || value.contains("inf");
                assert!(!(is_shape && is_odd), "{name} {which}: {attribute}={value}");
                assert!(!value.starts_with("#01FE"), "{name} {which}: {attribute} has no colour");
            }
        }
    }
    pictures
}

#[test]
fn pictures_of_all_reports_are_well_formed() {
    for (name, report) in reports() {
        for (which, svg) in check(name, &report) {
            keep(&format!("{name}-{which}.svg"), &svg);
        }
    }
}

#[test]
fn the_picture_of_a_fixed_window_shows_twice_its_count() {
    let svg = burst(&report(&edge_burst(), &["100/min fixed", "100/min log"]));
    let document = roxmltree::Document::parse(&svg).unwrap();
    let texts: Vec<_> =
        document.descendants().filter_map(|node| node.text()).map(str::trim).collect();
    for expected in
        ["up to 199 within 1 min: 2.0 × the limit", "up to 100 within 1 min: 1.0 × the limit"]
    {
        assert!(texts.contains(&expected), "{expected}: {texts:?}");
    }
}

/// Numbers of every size, consistent or not.
fn any_report() -> impl Strategy<Value = Report> {
    let number = prop_oneof![0..50_u64, 0..1_000_000_u64, any::<u64>()];
    let numbers = || prop::collection::vec(number.clone(), 0..12);
    let text = ".{0,300}";
    (numbers(), numbers(), numbers(), prop::collection::vec((text, any::<bool>()), 0..4)).prop_map(
        |(some, offered, admitted, outcomes)| {
            let at = |index: usize| some.get(index).copied().unwrap_or_default();
            let time = |index: usize| Timestamp::from_micros(at(index));
            let amount = |index: usize| Amount { requests: at(index), cost: at(index + 1) };
            let outcome = |(name, has_decisions): (String, bool)| Outcome {
                limits: ["5/s", "100/min fixed offset 1s", "9/w fixed", "3 concurrent lease 9s"]
                    .map(|limit| limit.parse().unwrap())
                    .to_vec(),
                admitted: amount(0),
                denied: amount(1),
                admitted_over_time: admitted.clone(),
                decisions: (0..some.len() * usize::from(has_decisions))
                    .map(|n| RequestOutcome { time: time(n), is_admitted: n % 2 == 0, cost: at(n) })
                    .collect(),
                name,
                ..Outcome::default()
            };
            Report {
                offered: amount(2),
                keys: at(3),
                timeline: Timeline { start: time(4), width: Micros::new(at(5)), costs: offered },
                outcomes: outcomes.into_iter().map(outcome).collect(),
                peaks: vec![Peaks {
                    window: Micros::new(at(6)),
                    keys_by_cost: some.iter().copied().zip(some.iter().copied().skip(1)).collect(),
                    highest: None,
                }],
                ..Report::default()
            }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(300) })]

    #[test]
    fn any_report_can_be_drawn(report in any_report()) {
        check("random", &report);
        read(&page(&report)).unwrap();
        let json = serde_json::to_string(&report).unwrap();
        let value: serde_json::Value = serde_json::from_str(&json).unwrap();
        let costs = serde_json::to_value(&report.timeline.costs).unwrap();
        prop_assert_eq!(&value["timeline"]["costs"], &costs);
        let _ = report.table(80);
    }
}
