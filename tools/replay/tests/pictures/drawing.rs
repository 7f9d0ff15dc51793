//! The pictures of reports.

use tollgate_replay::pictures::{burst, over_time, peaks, picture};
use tollgate_replay::report::Report;

use crate::cases::reports;
use crate::keep;
use crate::samples::{SECOND, edge_burst, report};

/// Draws all pictures and checks that they are well-formed, with finite numbers and without placeholder
/// colours.
pub(crate) fn check(name: &str, report: &Report) -> Vec<(&'static str, String)> {
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
