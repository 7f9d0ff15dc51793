//! The lookup of rules.

use super::*;

const SHOP: &str = "
domain: shop
descriptors:
  - key: tenant
    value: acme
    descriptors:
      - key: user
        rate_limit: { unit: second, requests_per_unit: 5 }
      - key: user
        value: robot
        rate_limit: { unit: Second, requests_per_unit: 10 }
  - key: plan
    rate_limit: { unit: minute, requests_per_unit: 20 }
  - key: plan
    value: pro
    rate_limit: { unit: MINUTE, requests_per_unit: 30 }
  # Nothing limits this one.
  - { key: plan, value: staff }
  - key: export
    rate_limit: { unit: hour, requests_per_unit: 1 }
  - key: report
    rate_limit: { name: reports, unit: day, requests_per_unit: 1 }
  - key: region
    value: eu
    rate_limit: { unit: day, requests_per_unit: 15 }
    descriptors:
      - key: city
        value: oslo
        rate_limit: { unit: week, requests_per_unit: 25 }
  - key: health
    rate_limit: { unlimited: true }
  - key: path
    detailed_metric: true
    rate_limit: { unit: month, requests_per_unit: 70 }
  - key: blocked
    rate_limit: { unit: year, requests_per_unit: 0, replaces: [{ name: reports }, { name: other }] }
  - key: silent
    shadow_mode: true
    quota_mode: true
    rate_limit: { unit: minute, requests_per_unit: 2 }
";

#[test]
fn last_entry_selects_the_rule() {
    let shop = read(SHOP);
    check(
        &shop,
        "shop",
        &[
            ("", "no rule"),
            ("tenant=other", "no rule"),
            ("tenant=acme", "no rule"),
            ("tenant=acme user=ann", "shop.tenant_acme.user 5/SECOND"),
            ("tenant=acme user=robot", "shop.tenant_acme.user_robot 10/SECOND"),
            ("tenant=acme user=ann extra=1", "no rule"),
            ("user=ann tenant=acme", "no rule"),
            ("plan=free", "shop.plan 20/MINUTE"),
            ("plan=", "shop.plan 20/MINUTE"),
            ("plan=pro", "shop.plan_pro 30/MINUTE"),
            ("plan=staff", "no rule"),
            ("plan=pro user=ann", "no rule"),
            ("export=x", "shop.export 1/HOUR"),
            ("report=x", "shop.report 1/DAY name reports"),
            ("region=eu", "shop.region_eu 15/DAY"),
            ("region=eu city=rome", "no rule"),
            ("region=eu city=oslo", "shop.region_eu.city_oslo 25/WEEK"),
            ("health=x", "shop.health unlimited"),
            ("path=/a", "shop.path_/a 70/MONTH"),
            ("path=/b", "shop.path_/b 70/MONTH"),
            ("blocked=x", "shop.blocked 0/YEAR replaces reports replaces other"),
            ("silent=x", "shop.silent 2/MINUTE shadow quota"),
            // envoyproxy/ratelimit looks up key and value as one text.
            ("tenant_acme=x", "no rule"),
            ("plan_pro=x", "shop.plan_pro 30/MINUTE"),
        ],
    );
    assert_eq!(found(&shop, "other", "plan=pro"), "unknown domain");
    assert_eq!(found(&shop, "other", ""), "unknown domain");
    assert_eq!(shop.domains().collect::<Vec<_>>(), ["shop"]);
}

#[test]
fn key_and_value_are_matched_as_one_text() {
    let domains = read(
        "domain: d
descriptors:
  - { key: a_b, value: c, rate_limit: { unit: day, requests_per_unit: 1 } }
  - { key: x_y, rate_limit: { unit: day, requests_per_unit: 2 } }",
    );
    check(
        &domains,
        "d",
        &[
            ("a_b=c", "d.a_b_c 1/DAY"),
            ("a=b_c", "d.a_b_c 1/DAY"),
            ("x=y", "d.x_y 2/DAY"),
            ("x_y=z", "d.x_y 2/DAY"),
            ("x_y=", "d.x_y 2/DAY"),
        ],
    );
}

#[test]
fn files_of_one_domain_are_merged_on_request() {
    let files = [
        Source::new(
            "one.yaml",
            "{domain: d, descriptors: [{key: a, rate_limit: {unit: day, requests_per_unit: 1}}]}",
        ),
        Source::new("else.yaml", "domain: e"),
        Source::new(
            "two.yaml",
            "{domain: d, descriptors: [{key: b, rate_limit: {unit: day, requests_per_unit: 2}}]}",
        ),
    ];
    let options = ReadOptions { merge_domains: true, ..ReadOptions::default() };
    let domains = Domains::from_yaml(&files, &options).unwrap();
    check(&domains, "d", &[("a=1", "d.a 1/DAY"), ("b=1", "d.b 2/DAY"), ("c=1", "no rule")]);
    check(&domains, "e", &[("a=1", "no rule")]);
    assert_eq!(domains.domains().collect::<Vec<_>>(), ["d", "e"]);
    assert_eq!(domains.policies().map(|(domain, _)| domain).collect::<Vec<_>>(), ["d", "d"]);
}

#[test]
fn empty_configuration_has_no_domains() {
    let domains = Domains::from_yaml(&[], &ReadOptions::default()).unwrap();
    assert!(domains.is_empty() && Domains::default().is_empty());
    assert_eq!(found(&domains, "d", "a=b"), "unknown domain");
    assert_eq!(domains.dump(), "");
}

#[test]
fn anchors_and_merge_keys_are_read() {
    let domains = read(
        "domain: d
descriptors:
  - key: a
    rate_limit: &daily { unit: day, requests_per_unit: 7 }
  - { key: b, rate_limit: *daily }
  - { key: c, rate_limit: { <<: *daily, requests_per_unit: 8 } }",
    );
    check(&domains, "d", &[("a=1", "d.a 7/DAY"), ("b=1", "d.b 7/DAY"), ("c=1", "d.c 8/DAY")]);
}

#[test]
fn dump_has_one_line_per_rule() {
    let dump = read(SHOP).dump();
    let lines = dump.lines().collect::<Vec<_>>();
    assert_eq!(lines.len(), 12);
    assert_eq!(
        lines[0],
        "shop.tenant_acme.user: unit=SECOND requests_per_unit=5, shadow_mode: false, quota_mode: false"
    );
    assert_eq!(
        lines[8],
        "shop.health: unit=UNKNOWN requests_per_unit=0, shadow_mode: false, quota_mode: false"
    );
    assert_eq!(
        lines[11],
        "shop.silent: unit=MINUTE requests_per_unit=2, shadow_mode: true, quota_mode: true"
    );
}
