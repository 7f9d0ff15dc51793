//! The report for every mistake: `mistakes.txt` contains the files, each followed by its report.

use std::collections::BTreeSet;

use tollgate_config::{Layers, config_fields};
use tollgate_testkit::assert_up_to_date;

const FILE: &str = "=== file\n";
const REPORT: &str = "=== report\n";

/// The configuration files of the cases.
fn cases() -> Vec<&'static str> {
    let cases = include_str!("mistakes.txt").split(FILE).skip(1);
    cases.map(|case| case.split_once(REPORT).unwrap().0.trim_end_matches('\n')).collect()
}

#[test]
fn reports_match_mistakes_txt() {
    let mut all = String::new();
    for yaml in cases() {
        let errors = match Layers::new().named_yaml("tollgate.yaml", yaml).read() {
            Ok(_) => panic!("no mistake in this file: {yaml}"),
            Err(error) => error,
        };
        let report = errors.report();
        all.push_str(&format!("{FILE}{yaml}\n{REPORT}{report}\n"));
        for error in errors.iter() {
            assert!(report.contains(error.message()), "{report}");
            assert!(errors.to_string().contains(&error.to_string()), "{errors}");
        }
    }
    let all = format!("{}\n", all.trim_end());
    let file = "daemon/config/tests/config/mistakes.txt";
    assert_up_to_date(file, &all, "tollgate-config", "config");
}

#[test]
fn every_field_has_a_mistake() {
    let mut without: BTreeSet<_> = config_fields().into_iter().collect();
    for yaml in cases() {
        let Err(errors) = Layers::new().named_yaml("tollgate.yaml", yaml).read() else { continue };
        for error in errors.iter() {
            without.remove(&generalized(error.field().unwrap_or_default()));
        }
    }
    assert_eq!(without, BTreeSet::new(), "add a mistake in each of these to mistakes.txt");
}

/// `rules[7].match.headers.x` is `rules[].match.headers`, and `policies.api.limits[0]` is
/// `policies.*.limits`.
fn generalized(field: &str) -> String {
    let mut path = String::new();
    let mut parts = field.split('.').peekable();
    while let Some(part) = parts.next() {
        let (name, is_place) = part.split_once('[').map_or((part, false), |(name, _)| (name, true));
        path.push_str(if path == "policies." { "*" } else { name });
        if matches!(name, "overrides" | "tiers" | "headers" | "address_map") {
            break;
        }
        if parts.peek().is_some() {
            path.push_str(if is_place { "[]." } else { "." });
        }
    }
    path
}

#[test]
fn reports_contain_no_secrets() {
    let all = include_str!("mistakes.txt").split(REPORT).skip(1);
    for report in all.map(|x| x.split(FILE).next().unwrap()) {
        for secret in ["secret@", "s3cret", "hidden text"] {
            assert!(!report.contains(secret), "{report}");
        }
    }
}
