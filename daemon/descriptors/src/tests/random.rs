//! Random configurations and requests.

use std::collections::HashMap;
use std::hint::black_box;

use proptest::prelude::*;

use super::*;

/// Random texts of fragments of configurations.
fn yaml() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        Just("domain: d\n"),
        Just("descriptors:\n"),
        Just("  - key: k\n"),
        Just("    value: v*\n"),
        Just("    rate_limit:\n"),
        Just("      unit: day\n"),
        Just("      requests_per_unit: 5\n"),
        Just("      limit: [10/s, 5/min]\n"),
        Just("    descriptors:\n"),
        Just("    metadata: "),
        Just("{"),
        Just("}"),
        Just("["),
        Just("]"),
        Just(": "),
        Just(", "),
        Just("- "),
        Just("\n"),
        Just("*a"),
        Just("&a "),
        Just("<<: "),
        Just("'"),
        Just("|\n"),
        Just("!!str "),
        Just("0.5"),
        Just("---\n"),
        Just("~"),
        Just("é\u{0}"),
    ];
    prop::collection::vec(part, 0..40).prop_map(|x| x.concat())
}

/// Random texts with many separators and escapes.
fn text() -> impl Strategy<Value = String> {
    "([ab_%;=*.]|25|3B|3D|\\PC){0,5}"
}

type Entries = Vec<(String, String)>;

fn requests() -> impl Strategy<Value = Vec<Entries>> {
    prop::collection::vec(prop::collection::vec((text(), text()), 0..4), 1..20)
}

fn borrowed(entries: &Entries) -> Vec<(&str, &str)> {
    entries.iter().map(|(key, value)| (&**key, &**value)).collect()
}

proptest! {
    #[test]
    fn arbitrary_text_never_panics(text in prop_oneof![yaml(), "\\PC*"]) {
        for merge_domains in [false, true] {
            let options = ReadOptions { merge_domains, ..ReadOptions::default() };
            let sources = [Source::new("a", text.as_str()), Source::new("b", text.as_str())];
            if let Ok(domains) = Domains::from_yaml(&sources, &options) {
                black_box((domains.find("d", &[("k", "v"), ("k", "v1")]), domains.dump()));
            }
        }
    }

    #[test]
    fn different_requests_never_share_a_key(requests in requests()) {
        let level = |inner: &str| format!(
            "[{{key: '*', rate_limit: {{unit: day, requests_per_unit: 1}}, descriptors: {inner}}}]"
        );
        let levels = level(&level(&level("[]")));
        let domains = read(&format!("{{domain: a/b, descriptors: {levels}}}"));
        let mut seen = HashMap::new();
        for entries in &requests {
            let found = domains.find("a/b", &borrowed(entries));
            let overridden = [Unit::Hour, Unit::Week]
                .map(|unit| (Some(unit), domains.find_with_override("a/b", &borrowed(entries), 1, unit)));
            for (unit, lookup) in [(None, found)].into_iter().chain(overridden) {
                if let Lookup::Rule(matched) = lookup {
                    let previous = seen.insert(matched.key, (unit, entries));
                    prop_assert!(previous.is_none_or(|previous| previous == (unit, entries)));
                } else {
                    prop_assert!(entries.is_empty());
                }
            }
        }
    }

    #[test]
    fn arbitrary_requests_never_panic(
        requests in requests(),
        rules in prop::collection::vec((text(), text(), any::<[bool; 4]>()), 0..8),
    ) {
        let rules = rules.iter().filter(|(key, ..)| !key.is_empty()).map(|(key, value, flags)| {
            let [deep, detailed, measured, shared] = flags;
            let shared = *shared && (key.contains('*') || value.contains('*'));
            let inner = if *deep { "[{key: '*', rate_limit: {unit: day}}]" } else { "[]" };
            let quote = |text: &str| serde_json::to_string(text).unwrap();
            format!(
                "{{key: {}, value: {}, detailed_metric: {detailed}, value_to_metric: {measured}, \
                 share_threshold: {shared}, rate_limit: {{unit: day}}, descriptors: {inner}}}",
                quote(key), quote(value),
            )
        });
        let text = format!("{{domain: d, descriptors: [{}]}}", rules.collect::<Vec<_>>().join(","));
        if let Ok(domains) = Domains::from_yaml(&[Source::new("f", text)], &ReadOptions::default()) {
            for entries in &requests {
                if let Lookup::Rule(matched) = domains.find("d", &borrowed(entries)) {
                    prop_assert!(matched.stat.starts_with("d."));
                    prop_assert!(!matched.key.is_empty());
                }
            }
        }
    }
}
