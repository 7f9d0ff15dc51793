//! The content of text, HTML and JSON reports.

use serde_json::Value;
use tollgate::{Micros, Timestamp};
use tollgate_replay::page;
use tollgate_replay::report::{
    Amount, Denial, InvalidLine, Outcome, Peaks, Report, RequestOutcome, Source, Suggestion,
    Timeline, WorstKey,
};

use crate::samples::{NOW, reports};
use crate::{keep, read};

/// A small report with every element.
fn full() -> Report {
    let at = |micros| Timestamp::from_micros(NOW + micros);
    let amount = |requests, cost| Amount { requests, cost };
    let denial = Denial { key: b"user:1".to_vec(), start: at(0), length: Micros::new(90_000_000) };
    Report {
        source: Source {
            command: Some("tollgate replay a.log --limit 10/s".to_owned()),
            names: vec!["a.log".to_owned(), "-".to_owned()],
            format: Some("combined"),
            lines: 12_350,
            invalid: 3,
            invalid_samples: vec![InvalidLine {
                name: "a.log".to_owned(),
                line: 7,
                text: "<b>\\x00".to_owned(),
                reason: "no time found".to_owned(),
            }],
            keyless: 2,
            key_alternatives: Vec::new(),
            unruled: 5,
            late: 1,
            spread: true,
            interrupted: true,
            failed: None,
            span: Some((at(0), at(3_600_250_000))),
        },
        offered: amount(12_345, 20_000),
        keys: 300,
        timeline: Timeline { start: at(0), width: Micros::from_secs(60), costs: vec![20_000] },
        outcomes: vec![Outcome {
            name: "10/s".to_owned(),
            limits: vec!["10/s".parse().unwrap()],
            admitted: amount(12_000, 19_000),
            denied: amount(345, 1_000),
            keys_denied: 3,
            admitted_over_time: vec![19_000],
            decisions: vec![RequestOutcome { time: at(0), is_admitted: true, cost: 1 }],
            longest_denial: Some(denial),
            worst: vec![WorstKey {
                key: b"user:\xff\x1b[0m".to_vec(),
                policy: Some("api".to_owned()),
                offered: amount(1_000, 2_000),
                denied: amount(345, 1_000),
                first_denied: at(1_500_000),
                longest_denial: Micros::new(250_000),
            }],
            suggestion: Some(Suggestion {
                share_ppm: 1_000,
                limits: vec!["20/s burst 40".parse().unwrap()],
                keys_denied: 1,
            }),
            bytes_per_key: 96,
        }],
        peaks: vec![Peaks {
            window: Micros::from_secs(1),
            keys_by_cost: vec![(1, 200), (7, 99), (1_100, 1)],
            highest: Some((1_100, b"user:1".to_vec())),
        }],
    }
}

#[test]
fn a_text_report_is_complete_in_eighty_columns() {
    assert_eq!(full().table(80), include_str!("full.txt"));
}

#[test]
fn a_page_is_complete() {
    let html = page(&full());
    let document = read(&html).unwrap();
    let body = document.descendants().find(|node| node.has_tag_name("body")).unwrap();
    let texts = body.descendants().filter(|node| node.is_text()).filter_map(|node| node.text());
    let text: Vec<_> = texts.flat_map(str::split_whitespace).collect();
    let text = text.join(" ");
    for expected in [
        "Replay of a.log, -",
        "12,345 requests of 300 keys, cost 20,000 in all, 2025-11-20 14:46:40 to",
        "; format combined",
        "tollgate replay a.log --limit 10/s",
        "interrupted: this report covers only the first part",
        "3 of 12,350 lines could not be read",
        "2 of 12,350 lines had no key",
        "1 line arrived too late to be put in order (see --reorder)",
        "times of whole seconds were spread evenly over their second (see --stamps)",
        "10/s 12,000 345 2.8 % 3 1.0 % 1 min 30 s 96 bytes per key",
        "10/s 19,000 1,000 5.0 %",
        "the key user:1 had the longest denial, 1 min 30 s from 2025-11-20 14:46:40",
        "To deny at most 0.1 % of the keys: 20/s burst 40 , which denies 1 key (0.3 %).",
        "api user:\\xff\\u{1b}[0m 345 1,000 34.5 % 250 ms 2025-11-20 14:46:41",
        "1 s 1 7 1,100 user:1",
        "a.log 7 no time found <b>\\x00",
    ] {
        assert!(text.contains(expected), "{expected}\nis not in\n{text}");
    }
}

#[test]
fn json_is_complete() {
    let text = serde_json::to_string(&full()).unwrap();
    let value: Value = serde_json::from_str(&text).unwrap();
    let expected: Value = serde_json::from_str(include_str!("full.json")).unwrap();
    assert_eq!(value, expected);
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
fn a_page_has_no_external_resources_and_no_scripts() {
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
