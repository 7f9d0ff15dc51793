//! Pictures and pages of reports: what they show, and that they hold whatever a report holds.
#![allow(clippy::panic, clippy::unwrap_used, reason = "a test")]

mod samples;

use std::fs;
use std::path::Path;

use proptest::prelude::*;
use tollgate::{Micros, Timestamp};
use tollgate_replay::page;
use tollgate_replay::pictures::{burst, over_time, peaks, picture};
use tollgate_replay::report::{Amount, Decided, Outcome, Peaks, Report, Timeline};

use self::samples::{Asked, NOW, SECOND, edge_burst, hostile, report, waves};

const DAY: u64 = 86_400 * SECOND;
const WAVES: &[&str] = &["1/s", "10/min fixed", "5/s fixed; 60/h sliding by 1m"];
const EDGE: &[&str] = &["100/min", "100/min fixed", "100/min sliding", "100/min log"];
/// One of each algorithm.
const KINDS: &[&str] = &[
    "100/min",
    "100/min fixed",
    "100/min fixed from-first",
    "100/min log",
    "100/min sliding",
    "100/min sliding by 10s",
    "100/min queue 20",
    "20 concurrent lease 10s",
];

/// Keeps a picture below the target directory, where it can be looked at.
fn keep(name: &str, text: &str) {
    fs::write(Path::new(env!("CARGO_TARGET_TMPDIR")).join(name), text).unwrap();
}

/// Reports with what is rare in logs: name and report.
fn reports() -> Vec<(&'static str, Report)> {
    let one = edge_burst().into_iter().take(1).collect::<Vec<_>>();
    let same_time: Vec<_> = edge_burst().into_iter().map(|it| Asked { time: NOW, ..it }).collect();
    let dear: Vec<_> = waves().into_iter().map(|it| Asked { cost: 100, ..it }).collect();
    let years = (0..2_000).map(|at| Asked { time: NOW + at * 2 * DAY, ..one[0].clone() });
    let long_name =
        "5/s; 60/min fixed; 600/h sliding by 1m; 9000/d; 20000/7d fixed; 100000/30d log";
    vec![
        ("empty", report(&[], SECOND, &["10/s"])),
        ("no-limit", report(&waves(), SECOND, &[])),
        ("one", report(&one, SECOND, &["10/s"])),
        ("one-bin", report(&same_time, SECOND, &["10/s", "100/min fixed"])),
        ("denied", report(&dear, SECOND, &["10/s", "99/min fixed"])),
        ("years", report(&years.collect::<Vec<_>>(), DAY, &["10/w fixed", "10/30d"])),
        ("many", report(&edge_burst(), SECOND, &["100/min fixed"; 20])),
        ("long-name", report(&waves(), SECOND, &[long_name, "10/s"])),
        ("waves", report(&waves(), SECOND, WAVES)),
        ("edge", report(&edge_burst(), SECOND / 10, EDGE)),
        ("kinds", report(&edge_burst(), SECOND / 10, KINDS)),
        ("hostile", hostile()),
    ]
}

/// Numbers of every size, consistent or not: whoever fills a report may err, and pictures hold.
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
                    .map(|it| it.parse().unwrap())
                    .to_vec(),
                admitted: amount(0),
                denied: amount(1),
                admitted_over_time: admitted.clone(),
                decisions: (0..some.len() * usize::from(has_decisions))
                    .map(|it| Decided { time: time(it), is_admitted: it % 2 == 0, cost: at(it) })
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

fn read(html: &str) -> Result<roxmltree::Document<'_>, roxmltree::Error> {
    let options = roxmltree::ParsingOptions { allow_dtd: true, ..Default::default() };
    roxmltree::Document::parse_with_options(html, options)
}

#[test]
fn pictures_are_xml_whatever_the_report_holds() {
    for (name, report) in reports() {
        for (which, svg) in check(name, &report) {
            keep(&format!("{name}-{which}.svg"), &svg);
        }
    }
}

#[test]
fn a_fixed_window_is_seen_to_let_twice_its_count_pass() {
    let svg = burst(&report(&edge_burst(), SECOND, &["100/min fixed", "100/min log"]));
    let document = roxmltree::Document::parse(&svg).unwrap();
    let texts: Vec<_> =
        document.descendants().filter_map(|node| node.text()).map(str::trim).collect();
    for expected in
        ["up to 199 within 1 min: 2.0 × the limit", "up to 100 within 1 min: 1.0 × the limit"]
    {
        assert!(texts.contains(&expected), "{expected}: {texts:?}");
    }
}

#[test]
fn a_table_fits_its_terminal() {
    for (name, report) in reports() {
        for width in [0, 40, 80, 200] {
            let table = report.table(width);
            keep(&format!("{name}-{width}.txt"), &table);
            let is_control = |letter: char| letter.is_control() && letter != '\n';
            assert!(!table.contains(is_control), "{name} at {width}: {table}");
        }
    }
}

#[test]
fn a_page_takes_nothing_from_elsewhere_and_runs_nothing() {
    for (name, report) in reports() {
        let html = page(&report);
        keep(&format!("{name}.html"), &html);
        let document = read(&html).unwrap_or_else(|error| panic!("{name}: {error}"));
        let mut ids = Vec::new();
        for node in document.descendants().filter(|node| node.is_element()) {
            let tag = node.tag_name().name();
            let forbidden = ["script", "img", "iframe", "object", "embed", "link", "base", "form"];
            assert!(!forbidden.contains(&tag), "{name}: {tag}");
            for attribute in node.attributes() {
                let (attribute, value) = (attribute.name(), attribute.value());
                assert!(!attribute.starts_with("on"), "{name}: {attribute}");
                let is_inside = value.starts_with('#') || value.starts_with("url(#");
                let is_link = ["href", "src", "action", "srcset"].contains(&attribute);
                assert!(is_inside || !(is_link || value.contains("url(")), "{name}: {value}");
            }
            ids.extend(node.attribute("id"));
        }
        let count = ids.len();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), count, "{name}: an id stands twice");
    }
}
