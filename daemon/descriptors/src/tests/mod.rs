//! The configuration of envoyproxy/ratelimit as tables of cases.

mod document;
mod keys;
mod limits;
mod matching;
mod metadata;
mod model;
mod overrides;
mod random;
mod rejected;
mod scalars;
mod stats;
mod wildcards;
mod xds;

use super::*;

/// The domains of a file.
fn read(text: &str) -> Domains {
    Domains::from_yaml(&[Source::new("limits.yaml", text)], &ReadOptions::default()).unwrap()
}

/// `user=7 plan=` as entries.
fn entries(request: &str) -> Vec<(&str, &str)> {
    request.split_whitespace().map(|word| word.split_once('=').unwrap()).collect()
}

/// The limit and stat for a request, or the reason why there is none.
fn found(domains: &Domains, domain: &str, request: &str) -> String {
    outcome(&domains.find(domain, &entries(request)))
}

fn outcome(lookup: &Lookup<'_>) -> String {
    match lookup {
        Lookup::UnknownDomain => "unknown domain".to_owned(),
        Lookup::NoRule => "no rule".to_owned(),
        Lookup::KeyTooLong(bytes) => format!("a key of {bytes} bytes"),
        Lookup::Rule(value) => {
            format!("{} {}{}", value.stat, limit(&value.rule), flags(&value.rule))
        }
    }
}

/// `5/SECOND`.
fn limit(rule: &Rule) -> String {
    let unit = rule.unit.map_or("UNKNOWN", Unit::name);
    if rule.is_unlimited() {
        "unlimited".to_owned()
    } else {
        format!("{}/{unit}", rule.requests_per_unit)
    }
}

fn flags(rule: &Rule) -> String {
    let name = rule.name.iter().map(|name| format!(" name {name}"));
    let replaces = rule.replaces.iter().map(|replace| format!(" replaces {replace}"));
    let modes = [(rule.shadow, " shadow"), (rule.quota, " quota")];
    let modes = modes.into_iter().filter(|(is, _)| *is).map(|(_, x)| x.to_owned());
    name.chain(replaces).chain(modes).collect()
}

/// Rows of a request and the expected lookup.
#[track_caller]
fn check(domains: &Domains, domain: &str, rows: &[(&str, &str)]) {
    for (request, expected) in rows {
        assert_eq!(found(domains, domain, request), *expected, "{request}");
    }
}
