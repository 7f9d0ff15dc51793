//! Invalid patterns, limits and tiers, and their messages.

use tollgate::{OverrideError, Overrides, Policies, TierError, Tiers};

#[test]
fn an_invalid_pattern_is_rejected_with_a_hint() {
    let long = "k".repeat(65_537);
    for (pattern, expected) in [
        ("", "the pattern is empty; write a key such as user:42"),
        ("*", "* alone matches every key; change the limits of the policy instead"),
        ("a*b", r"* matches the rest of a key and must come last; write \* for a literal star"),
        ("a**", r"* matches the rest of a key and must come last; write \* for a literal star"),
        (r"a\b", r"a backslash must precede *, / or \; write \\ for a literal backslash"),
        (r"a\", r"a backslash must precede *, / or \; write \\ for a literal backslash"),
        ("10.0.0.1/8", "the address has bits set beyond the prefix length; write 10.0.0.0/8"),
        (
            "2001:db8::1/32",
            "the address has bits set beyond the prefix length; write 2001:db8::/32",
        ),
        (
            "::ffff:10.0.0.1/104",
            "the address has bits set beyond the prefix length; write 10.0.0.0/8",
        ),
        ("ip=10.0.0.1/8", "the address has bits set beyond the prefix length; write 10.0.0.0/8"),
        ("10.0.0.0/33", r"the prefix length is at most 32; write \/ for a literal slash"),
        ("2001:db8::/999", r"the prefix length is at most 128; write \/ for a literal slash"),
        (
            "10.0.0/8",
            r"incomplete network address; write it as 10.0.0.0/8 or 2001:db8::/32, or write \/ for a literal slash",
        ),
        (
            "2001:db8:/32",
            r"incomplete network address; write it as 10.0.0.0/8 or 2001:db8::/32, or write \/ for a literal slash",
        ),
        (&long, "the pattern is 65537 bytes long; a key has at most 65536"),
    ] {
        let error = Overrides::builder().add(pattern, "1/s").unwrap_err();
        assert!(matches!(error, OverrideError::Pattern(_)), "{pattern}");
        assert_eq!(error.to_string(), expected, "{pattern}");
    }
}

#[test]
fn a_duplicate_pattern_reports_the_first_row() {
    let mut rows = Overrides::builder();
    for (pattern, first) in [
        ("vip", None),
        ("bot-*", None),
        ("10.0.0.0/8", None),
        ("vip", Some(0)),
        (r"bot-\*", None),
        ("bot-*", Some(1)),
        ("::ffff:10.0.0.0/104", Some(2)),
        ("ip=10.0.0.0/8", Some(2)),
        (r"bot-\*", Some(3)),
        ("10.0.0.0/9", None),
    ] {
        let added = rows.add(pattern, "1/s");
        let expected = first.map_or(Ok(()), |first| Err(OverrideError::Duplicate { first }));
        assert_eq!(added, expected, "{pattern}");
    }
    assert_eq!((rows.len(), rows.build().len()), (5, 5));
}

#[test]
fn invalid_limits_are_rejected() {
    let mut rows = Overrides::builder();
    for limits in ["", "10", "unlimted", "unlimited; 1/s", "=1/s"] {
        let error = rows.add("vip", limits).unwrap_err();
        assert!(matches!(error, OverrideError::Limits(_)), "{limits}: {error}");
        assert!(error.to_string().ends_with(" (write unlimited for no limit)"), "{error}");
    }
    rows.add("vip", " unlimited ").unwrap();
    assert_eq!(rows.build().len(), 1);
}

#[test]
fn more_than_a_million_rows_are_rejected() {
    let mut rows = Overrides::builder();
    for n in 0..tollgate::MAX_OVERRIDES {
        rows.add(&n.to_string(), "1/s").unwrap();
    }
    assert_eq!(rows.add("one more", "1/s"), Err(OverrideError::TooMany));
    assert_eq!(rows.build().len(), tollgate::MAX_OVERRIDES);
}

#[test]
fn an_unknown_tier_is_an_error_whatever_the_key() {
    let mut policies = Policies::new();
    policies.define("api", "10/s").unwrap();
    let message = |policies: &Policies, name: &str, tier| {
        policies.resolve(name, b"vip", tier).unwrap_err().to_string()
    };
    assert_eq!(
        message(&policies, "api", Some("pro")),
        r#"policy "api" has no tier "pro"; it has no tiers: omit the tier or define it"#
    );
    let mut rows = Overrides::builder();
    rows.add("vip", "unlimited").unwrap();
    policies.set_overrides("api", &rows.build()).unwrap();
    let mut tiers = Tiers::new();
    for name in ["pro", "free"] {
        tiers.add(name, "1/s").unwrap();
    }
    policies.set_tiers("api", &tiers).unwrap();
    assert_eq!(
        message(&policies, "api", Some("Pro")),
        r#"policy "api" has no tier "Pro"; it has free, pro"#
    );
    assert_eq!(
        message(&policies, "api", Some("")),
        r#"policy "api" has no tier ""; it has free, pro"#
    );
    assert_eq!(message(&policies, "apj", None), r#"there is no policy "apj"; did you mean "api"?"#);
    for tier in 0..9 {
        tiers.add(&format!("t{tier}"), "1/s").unwrap();
    }
    policies.set_tiers("api", &tiers).unwrap();
    assert_eq!(
        message(&policies, "api", Some("x")),
        r#"policy "api" has no tier "x"; it has free, pro, t0, t1, t2, t3, t4, t5, …"#
    );
}

#[test]
fn tier_names_are_unique_and_valid() {
    let mut tiers = Tiers::new();
    assert_eq!(tiers.add("pro", "1/s"), Ok(()));
    assert_eq!(tiers.add("pro", "2/s"), Err(TierError::Duplicate));
    for name in ["", "a b", "a\n", &"x".repeat(129)] {
        assert_eq!(tiers.add(name, "1/s"), Err(TierError::Name), "{name:?}");
    }
    assert!(matches!(tiers.add("free", "1"), Err(TierError::Limits(_))));
    assert_eq!(tiers.names().collect::<Vec<_>>(), ["pro"]);
}
