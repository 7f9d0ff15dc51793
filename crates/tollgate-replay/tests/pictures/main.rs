//! Pictures and pages of reports: what they show, and that they hold whatever a report holds.
#![allow(clippy::panic, clippy::unwrap_used, reason = "a test")]

mod samples;

use std::fs;
use std::path::Path;

use tollgate_replay::pictures::{burst, over_time, peaks};
use tollgate_replay::report::Report;

use self::samples::{SECOND, edge_burst, hostile, report, waves};

/// Keeps a picture below the target directory, where it can be looked at.
fn keep(name: &str, text: &str) {
    fs::write(Path::new(env!("CARGO_TARGET_TMPDIR")).join(name), text).unwrap();
}

const KINDS: &[&str] = &["100/min", "100/min fixed", "100/min sliding", "100/min log"];

/// Reports with what is rare in logs: name and report.
fn reports() -> Vec<(&'static str, Report)> {
    vec![
        ("empty", report(&[], SECOND, &["10/s"])),
        (
            "waves",
            report(&waves(), SECOND, &["1/s", "10/min fixed", "5/s fixed; 60/h sliding by 1m"]),
        ),
        ("edge", report(&edge_burst(), SECOND / 10, KINDS)),
        ("hostile", hostile()),
    ]
}

#[test]
fn pictures_are_xml_whatever_the_report_holds() {
    for (name, report) in reports() {
        for (picture, svg) in [
            ("over-time", over_time(&report)),
            ("burst", burst(&report)),
            ("peaks", peaks(&report)),
        ] {
            keep(&format!("{name}-{picture}.svg"), &svg);
            roxmltree::Document::parse(&svg).unwrap_or_else(|error| panic!("{name}: {error}"));
        }
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
