//! What cannot be written, and what is said of it.

use tollgate::{OverrideError, Overrides, Policies, TierError, Tiers};

#[test]
fn a_pattern_that_is_wrong_is_told_what_to_write() {
    let long = "k".repeat(65_537);
    for (pattern, expected) in [
        ("", "it is empty; write a key, such as user:42"),
        ("*", "a star alone would be every key; change the limits of the policy instead"),
        (
            "a*b",
            r"a star stands for the rest of a key, at the end only; write \* for a star itself",
        ),
        (
            "a**",
            r"a star stands for the rest of a key, at the end only; write \* for a star itself",
        ),
        (r"a\b", r"a backslash stands before *, / or \ only; write \\ for one itself"),
        (r"a\", r"a backslash stands before *, / or \ only; write \\ for one itself"),
        ("10.0.0.1/8", "the address has bits beyond the length; write 10.0.0.0/8"),
        ("2001:db8::1/32", "the address has bits beyond the length; write 2001:db8::/32"),
        ("::ffff:10.0.0.1/104", "the address has bits beyond the length; write 10.0.0.0/8"),
        ("ip=10.0.0.1/8", "the address has bits beyond the length; write 10.0.0.0/8"),
        (
            "10.0.0.0/33",
            r"such a network has a length of at most 32; write \/ for the slash of a key",
        ),
        (
            "2001:db8::/999",
            r"such a network has a length of at most 128; write \/ for the slash of a key",
        ),
        (
            "10.0.0/8",
            r"it looks like a network, but has no whole address before the slash; write it as 10.0.0.0/8 or 2001:db8::/32, or \/ for the slash of a key",
        ),
        (
            "2001:db8:/32",
            r"it looks like a network, but has no whole address before the slash; write it as 10.0.0.0/8 or 2001:db8::/32, or \/ for the slash of a key",
        ),
        (&long, "it is 65537 bytes long; a key has at most 65536"),
    ] {
        let error = Overrides::builder().add(pattern, "1/s").unwrap_err();
        assert!(matches!(error, OverrideError::Pattern(_)), "{pattern}");
        assert_eq!(error.to_string(), expected, "{pattern}");
    }
}

#[test]
fn a_second_row_of_the_same_keys_is_told_which_is_the_first() {
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
fn limits_that_are_wrong_are_told_so() {
    let mut rows = Overrides::builder();
    for limits in ["", "10", "unlimted", "unlimited; 1/s", "=1/s"] {
        let error = rows.add("vip", limits).unwrap_err();
        assert!(matches!(error, OverrideError::Limits(_)), "{limits}: {error}");
        assert!(error.to_string().ends_with(" (for no limit write unlimited)"), "{error}");
    }
    rows.add("vip", " unlimited ").unwrap();
    assert_eq!(rows.build().len(), 1);
}

#[test]
fn there_are_at_most_a_million() {
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
    let said = |policies: &Policies, name: &str, tier| {
        policies.resolve(name, b"vip", tier).unwrap_err().to_string()
    };
    assert_eq!(
        said(&policies, "api", Some("pro")),
        r#"policy "api" has no tier "pro"; it has none: leave the tier out, or define it"#
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
        said(&policies, "api", Some("Pro")),
        r#"policy "api" has no tier "Pro"; it has free, pro"#
    );
    assert_eq!(
        said(&policies, "api", Some("")),
        r#"policy "api" has no tier ""; it has free, pro"#
    );
    assert_eq!(said(&policies, "apj", None), r#"there is no policy "apj"; did you mean "api"?"#);
    for tier in 0..9 {
        tiers.add(&format!("t{tier}"), "1/s").unwrap();
    }
    policies.set_tiers("api", &tiers).unwrap();
    assert_eq!(
        said(&policies, "api", Some("x")),
        r#"policy "api" has no tier "x"; it has free, pro, t0, t1, t2, t3, t4, t5, …"#
    );
}

#[test]
fn a_tier_has_a_name_once() {
    let mut tiers = Tiers::new();
    assert_eq!(tiers.add("pro", "1/s"), Ok(()));
    assert_eq!(tiers.add("pro", "2/s"), Err(TierError::Duplicate));
    for name in ["", "a b", "a\n", &"x".repeat(129)] {
        assert_eq!(tiers.add(name, "1/s"), Err(TierError::Name), "{name:?}");
    }
    assert!(matches!(tiers.add("free", "1"), Err(TierError::Limits(_))));
    assert_eq!(tiers.names().collect::<Vec<_>>(), ["pro"]);
}
