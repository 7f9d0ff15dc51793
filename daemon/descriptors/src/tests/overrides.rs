//! Limits that requests supply.

use super::super::limits::{MAX_CACHED, OverrideRules, PolicyFactory};
use super::*;

const RULES: &str = "
domain: d
descriptors:
  - key: a
    value: b
    descriptors:
      - { key: c, shadow_mode: true, rate_limit: { name: n, unit: second, requests_per_unit: 5 } }
  - { key: zero, rate_limit: { unit: day, requests_per_unit: 0 } }
  - { key: free, rate_limit: { unlimited: true } }
  - { key: slow, rate_limit: { limit: 10/d sliding } }
  - { key: w, value: x*, share_threshold: true, rate_limit: { unit: day, requests_per_unit: 1 } }
";

#[test]
fn overrides_replace_configured_rules_and_count_separately_by_unit() {
    let rows = [
        ("a=b c=x", 10, Unit::Day, "d.a_b.c_x 10/DAY", "a=b;c=x;=DAY"),
        ("a=b c=x", 42, Unit::Hour, "d.a_b.c_x 42/HOUR", "a=b;c=x;=HOUR"),
        ("a=b c=y", 42, Unit::Hour, "d.a_b.c_y 42/HOUR", "a=b;c=y;=HOUR"),
        // The configured rule has the same unit, so that both share a counter.
        ("a=b c=x", 42, Unit::Second, "d.a_b.c_x 42/SECOND", "a=b;c=x"),
        ("zero=1", 3, Unit::Day, "d.zero_1 3/DAY", "zero=1"),
        ("zero=1", 3, Unit::Hour, "d.zero_1 3/HOUR", "zero=1;=HOUR"),
        ("free=1", 3, Unit::Day, "d.free_1 3/DAY", "free=1;=DAY"),
        ("slow=1", 3, Unit::Day, "d.slow_1 3/DAY", "slow=1;=DAY"),
        ("w=x1", 3, Unit::Day, "d.w_x1 3/DAY", "w=x1;=DAY"),
        ("new=1", 0, Unit::Week, "d.new_1 0/WEEK", "new=1;=WEEK"),
        ("new=", 1, Unit::Year, "d.new 1/YEAR", "new=;=YEAR"),
        ("", 1, Unit::Year, "d. 1/YEAR", "=YEAR"),
    ];
    let domains = read(RULES);
    for (request, count, unit, expected, key) in rows {
        let found = domains.find_with_override("d", &entries(request), count, unit);
        assert_eq!(outcome(&found), expected);
        let Lookup::Rule(value) = found else { panic!("{request}") };
        assert_eq!(value.key, key, "{request}");
        assert_eq!(value.rule.is_always_over(), count == 0);
    }
    let unknown = domains.find_with_override("other", &[("a", "b")], 1, Unit::Day);
    assert_eq!(outcome(&unknown), "unknown domain");
}

#[test]
fn domain_in_a_key_precedes_the_entries() {
    let domains = read("domain: a/b");
    let Lookup::Rule(rule) = domains.find_with_override("a/b", &[], 1, Unit::Day) else { panic!() };
    assert_eq!((&*rule.key, &*rule.stat), ("=a/b;=DAY", "a/b."));
}

#[test]
fn override_rules_are_cached_and_bounded() {
    let rules = OverrideRules::new(PolicyFactory::new("d", &ReadOptions::default()));
    let first = rules.rule(1, Unit::Day);
    assert!(std::sync::Arc::ptr_eq(&first, &rules.rule(1, Unit::Day)));
    for count in 0..5_000 {
        assert_eq!(rules.rule(count, Unit::Minute).requests_per_unit, count);
        assert!(rules.len() <= MAX_CACHED);
    }
}
