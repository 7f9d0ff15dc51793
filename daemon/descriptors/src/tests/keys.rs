//! The key of a request's counter.

use super::*;

/// The key of a request, and the name of its policy.
fn counted(domains: &Domains, domain: &str, entries: &[(&str, &str)]) -> (String, String) {
    match domains.find(domain, entries) {
        Lookup::Rule(rule) => {
            let name = rule.rule.policy().map_or("", |policy| policy.name()).to_owned();
            (rule.key, name)
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn keys_are_readable_and_unambiguous() {
    let domains = read(
        "domain: d
descriptors:
  - key: '*'
    rate_limit: { unit: day, requests_per_unit: 1 }
    descriptors: [{ key: '*', rate_limit: { unit: day, requests_per_unit: 1 } }]",
    );
    let rows: &[(&[(&str, &str)], &str)] = &[
        (&[("user", "7")], "user=7"),
        (&[("user", "")], "user="),
        (&[("", "")], "%="),
        (&[("", "7")], "%=7"),
        (&[("%", "7")], "%25=7"),
        (&[("a", "b"), ("c", "d")], "a=b;c=d"),
        (&[("a", "b;c=d")], "a=b%3Bc%3Dd"),
        (&[("a=b;c", "d")], "a%3Db%3Bc=d"),
        (&[("path", "/a%2F?b=c&d=%3D")], "path=/a%252F?b%3Dc&d%3D%253D"),
        (&[("a_b", "c")], "a_b=c"),
        (&[("a", "b_c")], "a=b_c"),
        (&[("måned", "føre")], "måned=føre"),
    ];
    for (entries, key) in rows {
        assert_eq!(counted(&domains, "d", entries), (key.to_string(), "@envoy.d".to_owned()));
    }
}

#[test]
fn key_contains_a_domain_that_the_policy_name_cannot_express() {
    let long = "x".repeat(122);
    let rows = [
        ("shop.eu-1", "@envoy.shop.eu-1", "a=b"),
        ("1", "@envoy.1", "a=b"),
        ("shop/eu", "@envoy.shop_eu", "=shop/eu;a=b"),
        ("shop_eu", "@envoy.shop_eu", "a=b"),
        ("100%;=", "@envoy.100___", "=100%25%3B%3D;a=b"),
        ("butikk på nett", "@envoy.butikk_p__nett", "=butikk på nett;a=b"),
        (&long[..121], &format!("@envoy.{}", &long[..121]), "a=b"),
        (&long, &format!("@envoy.{}", &long[..121]), &format!("={long};a=b")),
    ];
    for (domain, name, key) in rows {
        let rule = "{key: a, rate_limit: {unit: day, requests_per_unit: 1}}";
        let domains = read(&format!("domain: '{domain}'\ndescriptors: [{rule}]"));
        let expected = (key.to_owned(), name.to_owned());
        assert_eq!(counted(&domains, domain, &[("a", "b")]), expected);
    }
}

#[test]
fn values_that_share_a_counter_share_a_key() {
    let domains = stats::shared();
    let rows = [
        ("file=f/a.pdf", "file=f/*"),
        ("file=f/*", "file=f/*"),
        ("in=outer file=n/1", "in=outer;file=n/*"),
        ("file=top/1 file=n/2", "file=top/*;file=n/*"),
        ("route=api/v1 method=GET", "route=api/*;method=GET"),
        ("path=p/a leaf=l/b type=pdf", "path=p/*;leaf=l/b;type=pdf"),
        ("doc=one", "doc=one"),
        ("doc=other", "doc=o*"),
        ("mid=/api/v1", "mid=/api*v1"),
    ];
    for (request, key) in rows {
        assert_eq!(counted(&domains, "d", &entries(request)).0, key, "{request}");
    }
}

#[test]
fn keys_that_are_too_long_are_reported_and_not_truncated() {
    let domains =
        read("{domain: d, descriptors: [{key: k, rate_limit: {unit: day, requests_per_unit: 1}}]}");
    let rows = [(65_534, None), (65_535, Some(65_537))];
    for (bytes, too_long) in rows {
        let value = "x".repeat(bytes);
        match domains.find("d", &[("k", &value)]) {
            Lookup::Rule(rule) => assert_eq!((rule.key.len(), None), (bytes + 2, too_long)),
            Lookup::KeyTooLong(key_too_long) => assert_eq!(Some(key_too_long), too_long),
            other => panic!("{other:?}"),
        }
    }
    let special = ";".repeat(30_000);
    assert_eq!(outcome(&domains.find("d", &[("k", &special)])), "a key of 90002 bytes");
    assert_eq!(outcome(&domains.find("d", &[("other", &special)])), "no rule");
    let overridden = domains.find_with_override("d", &[("k", &special)], 1, Unit::Day);
    assert_eq!(outcome(&overridden), "a key of 90002 bytes");
}
