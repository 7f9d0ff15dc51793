//! What is said of every mistake: `mistakes.txt` has the files, and below each the report.

use std::collections::BTreeSet;

use tollgate_config::{Layers, config_fields};

use crate::assert_up_to_date;

const FILE: &str = "=== file\n";
const SAID: &str = "=== said\n";

/// The files of the cases.
fn cases() -> Vec<&'static str> {
    let cases = include_str!("mistakes.txt").split(FILE).skip(1);
    cases.map(|case| case.split_once(SAID).unwrap().0.trim_end_matches('\n')).collect()
}

#[test]
fn every_mistake_is_said_as_it_is_written_down() {
    let mut all = String::new();
    for yaml in cases() {
        let errors = match Layers::new().named_yaml("tollgate.yaml", yaml).read() {
            Ok(_) => panic!("there is no mistake in this: {yaml}"),
            Err(error) => error,
        };
        let report = errors.report();
        all.push_str(&format!("{FILE}{yaml}\n{SAID}{report}\n"));
        for error in errors.iter() {
            assert!(report.contains(error.message()), "{report}");
            assert!(errors.to_string().contains(&error.to_string()), "{errors}");
        }
    }
    let all = format!("{}\n", all.trim_end());
    assert_up_to_date("daemon/config/tests/config/mistakes.txt", &all);
}

#[test]
fn no_field_is_without_a_mistake() {
    let mut without: BTreeSet<_> = config_fields().into_iter().collect();
    for yaml in cases() {
        let Err(errors) = Layers::new().named_yaml("tollgate.yaml", yaml).read() else { continue };
        for error in errors.iter() {
            without.remove(&general(error.field().unwrap_or_default()));
        }
    }
    assert_eq!(without, BTreeSet::new(), "add a mistake in each of these to mistakes.txt");
}

/// `rules[7].match.headers.x` is `rules[].match.headers`, and `policies.api.limits[0]` is
/// `policies.*.limits`.
fn general(field: &str) -> String {
    let mut general = String::new();
    let mut parts = field.split('.').peekable();
    while let Some(part) = parts.next() {
        let (name, is_place) = part.split_once('[').map_or((part, false), |(name, _)| (name, true));
        general.push_str(if general == "policies." { "*" } else { name });
        if matches!(name, "overrides" | "tiers" | "headers") {
            break;
        }
        if parts.peek().is_some() {
            general.push_str(if is_place { "[]." } else { "." });
        }
    }
    general
}

#[test]
fn nothing_secret_is_said() {
    let all = include_str!("mistakes.txt").split(SAID).skip(1);
    for said in all.map(|x| x.split(FILE).next().unwrap()) {
        for secret in ["secret@", "s3cret", "tell nobody"] {
            assert!(!said.contains(secret), "{said}");
        }
    }
}
