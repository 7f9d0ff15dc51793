//! Tests of the row language: valid and invalid lines, and reports of failures.

use tollgate_algorithms::{Micros, Timestamp};
use tollgate_state::{ManualClock, MemoryStore};

use super::spans::{moment, span};
use super::*;
use crate::system::ready;

fn report(text: &str) -> Report {
    let rows = Rows::parse("a.rows", text).unwrap();
    let clock = ManualClock::default();
    let fresh = || MemoryStore::builder().clock(clock.clone()).build();
    ready(run(&rows, fresh, |time| clock.set(time)))
}

#[test]
fn spans_are_sums_of_terms() {
    let rows = [
        ("0", Some(0)),
        ("1.5", Some(1_500_000)),
        ("0.000001s", Some(1)),
        ("1h5m", Some(3_900_000_000)),
        ("1d2h3min4s5ms6us", Some(93_784_005_006)),
        ("60s-1us", Some(59_999_999)),
        ("1y", Some(365 * 86_400_000_000)),
        ("", None),
        ("s", None),
        ("1x", None),
        ("1us-2us", None),
        ("0.5us", None),
        ("1.", Some(1_000_000)),
    ];
    for (text, micros) in rows {
        assert_eq!(span(text).ok().map(Micros::get), micros, "{text}");
    }
}

#[test]
fn times_are_relative_to_the_base_or_its_day_or_absolute() {
    let base = Timestamp::from_micros(1_795_172_340_000_000);
    let rows = [
        ("0", "1795172340"),
        ("-1us", "1795172339.999999"),
        ("1h-1us", "1795175939.999999"),
        ("00:00:00", "1795132800"),
        ("10:59:58.5", "1795172398.5"),
        ("10:59:00-1us", "1795172339.999999"),
        ("2026-11-20T10:59:00Z", "1795172340"),
        ("1970-01-01T00:00:00Z+1ms", "0.001"),
    ];
    for (text, seconds) in rows {
        assert_eq!(moment(text, base).unwrap().to_string(), seconds, "{text}");
    }
    assert!(moment("-60y", base).is_err(), "before the epoch");
}

#[test]
fn each_section_has_its_own_store() {
    let text = "policy p  1/s burst 2\n== one\nat 0s 2x check p k -> allowed remaining 1..0\n\
                == two\nat 0s check p k -> allowed remaining 1\nrows 2\n";
    let report = report(text);
    assert_eq!(report.to_string(), "2 rows, 3 requests, 0 failures");
}

#[test]
fn failure_names_its_line_and_both_values() {
    let text = "== burst\npolicy p  1/s burst 2\n\nat 0s 3x check p k  -> allowed remaining 1 # why\n\
                rows 1\n";
    let expected = "a.rows:4: in \"burst\"\n    at 0s 3x check p k  -> allowed remaining 1\n    \
                    remaining: expected 1, got 0, in turn 2\n1 rows, 3 requests, 1 failures";
    assert_eq!(report(text).to_string(), expected);
}

#[test]
fn limits_and_checks_are_named_in_failures() {
    let text = "== both\npolicy p  2/min fixed; 1/s fixed\n\
                at 0s check p k 2 -> denied binding 2 ; limit 1: allowed remaining 1\n\
                at 0s check p k and p j -> allowed | allowed | denied\nrows 2\n";
    let found: Vec<_> = report(text).failures.iter().map(Failure::to_string).collect();
    let of = |line: &str, field: &str| {
        found.iter().any(|found| found.contains(line) && found.contains(field))
    };
    assert!(of("a.rows:3", "verdict: expected denied, got never"), "{found:?}");
    assert!(of("a.rows:3", "limit 1: remaining: expected 1, got 2"), "{found:?}");
    assert!(of("a.rows:4", "check 2: verdict: expected denied, got allowed"), "{found:?}");
}

#[test]
fn invalid_lines_are_errors() {
    let rows = [
        ("at 0s check p k -> allowed", "a row stands in a section"),
        ("== a\nat 0s check q k -> allowed", "\"q\" is no policy"),
        ("== a\nat 0s check p k -> alowed", "\"alowed\" is no field"),
        ("== a\nat 0s check p k -> remaining 3", "the verdict comes first"),
        ("== a\nat 0s check p k -> allowed remaining", "remaining is missing"),
        ("== a\nat 0s 4x check p k -> allowed remaining 4..0", "whole steps over 4 turns"),
        ("== a\nat 0s check p k -> allowed | allowed", "one check has one answer"),
        ("== a\nat 0s check p k and p j -> allowed | allowed", "2 checks, but 1 answers"),
        ("== a\nat 0s check p k -> allowed ; limit 2: allowed", "there is no limit 2"),
        ("== a\nat 0s peek p k as a -> allowed", "peek has no id"),
        ("== a\nat 0s check p k for 3s -> allowed", "check has no such option"),
        ("== a\nat 0s reserve p k as a -> allowed", "reserve needs a max-wait"),
        ("== a\nat 0s check p k", "`->` is missing"),
        ("== a\nat 0s check p k -> error", "the words of the error are missing"),
        ("policy q  1/parsec", "unknown"),
        ("policy q shade 1/s", "\"shade\" is no option"),
        ("chek p k", "\"chek\" begins no line"),
        ("== a\nat 0s check p k -> allowed", "the plan is missing: `rows 1`"),
        ("== a\nrows 1", "1 rows are planned, 0 found"),
        ("== a\nrows 0", "0 rows are planned, 0 found"),
        ("rows 0\n== a", "the plan is the last line"),
    ];
    for (text, words) in rows {
        let error = Rows::parse("a.rows", &format!("policy p  1/s\n{text}\n")).unwrap_err();
        assert!(error.to_string().contains(words), "{text}: {error}");
    }
}
