//! Which override or tier decides for a key.

use tollgate::{
    Cost, Key, KeyList, KeyPattern, ManualClock, MemoryLimiter, OnStoreError, Overrides, Policies,
    Policy, Reason, Tiers,
};

const OVERRIDES: &[(&str, &str)] = &[
    ("vip", "100/s"),
    ("bot-*", "1/s"),
    ("bot-google*", "2/s"),
    ("bot-google-1", "3/s; 100/h"),
    ("10.0.0.0/8", "unlimited"),
    ("10.1.0.0/16", "4/s"),
    ("10.1.2.3", "5/s"),
    ("2001:db8::/32", "6/s"),
    ("2001:db8:0:1::/64", "7/s"),
    ("10.9.*", "8/s"),
    (r"star\*", "9/s"),
    (r"10.0.0.0\/8", "11/s"),
    (r"back\\slash", "12/s"),
    ("1.2.3.4/login", "13/s"),
    ("acme/42", "14/s"),
    ("ip=192.0.2.0/24", "15/s"),
    ("0.0.0.0/0", "16/s"),
    ("same", "  21/s "),
    ("same-*", "21/s burst 21"),
];

/// A second set, as from a file.
const MORE: &[(&str, &str)] = &[
    ("bot-bing-*", "31/s"),
    ("bot-google-2", "32/s"),
    ("vip", "33/s"),
    ("bot-*", "34/s"),
    ("10.1.2.0/24", "35/s"),
    ("only", "36/s"),
    ("10.9.8.7", "37/s"),
];

const TIERS: &[(&str, &str)] = &[("pro", "50/s"), ("free", "5/h"), ("internal", "unlimited")];

/// Key, tier, the limits that decide.
const ROWS: &[(&str, &str, &str)] = &[
    ("user:42", "", "10/s burst 20"),
    ("vip", "", "100/s"),
    ("vip2", "", "10/s burst 20"),
    ("vi", "", "10/s burst 20"),
    // The longest prefix; the more specific row of both sets.
    ("bot-", "", "1/s"),
    ("bot-7", "", "1/s"),
    ("bot-googl", "", "1/s"),
    ("bot-google", "", "2/s"),
    ("bot-google-3", "", "2/s"),
    ("bot-google-1", "", "3/s; 100/h"),
    ("bot-google-2", "", "32/s"),
    ("bot-bing-1", "", "31/s"),
    ("bot-bing", "", "1/s"),
    ("only", "", "36/s"),
    // Addresses: the exact key, then a prefix, then the smallest network.
    ("10.2.0.1", "", "unlimited"),
    ("10.1.0.1", "", "4/s"),
    ("10.1.2.1", "", "35/s"),
    ("10.1.2.3", "", "5/s"),
    ("ip=10.1.2.3", "", "35/s"),
    ("ip=10.2.0.1", "", "unlimited"),
    ("header.x-key=10.2.0.1", "", "10/s burst 20"),
    ("10.9.1.1", "", "8/s"),
    ("10.9.8.7", "", "37/s"),
    ("::ffff:10.2.0.1", "", "unlimited"),
    ("192.0.2.1", "", "15/s"),
    ("ip=192.0.2.1", "", "15/s"),
    ("11.0.0.1", "", "16/s"),
    ("10.2.0.0/16", "", "unlimited"),
    ("10.0.0.0/7", "", "16/s"),
    ("2001:db8::1", "", "6/s"),
    ("2001:db8::/64", "", "6/s"),
    ("2001:db8:0:1::/64", "", "7/s"),
    ("ip=2001:db8:0:1::/64", "", "7/s"),
    ("2001:db8:0:1::9", "", "7/s"),
    ("2001:db8::/31", "", "10/s burst 20"),
    ("2001:db9::1", "", "10/s burst 20"),
    ("::1", "", "10/s burst 20"),
    // Not an address.
    ("10.2.0.1:80", "", "10/s burst 20"),
    ("[2001:db8::1]", "", "10/s burst 20"),
    ("10.2.0", "", "10/s burst 20"),
    ("10.02.0.1", "", "10/s burst 20"),
    (" 10.2.0.1", "", "10/s burst 20"),
    ("ip=ip=10.2.0.1", "", "10/s burst 20"),
    // With and without escapes.
    ("star*", "", "9/s"),
    ("star", "", "10/s burst 20"),
    ("stars", "", "10/s burst 20"),
    (r"star\*", "", "10/s burst 20"),
    ("10.0.0.0/8", "", "11/s"),
    (r"back\slash", "", "12/s"),
    ("1.2.3.4/login", "", "13/s"),
    ("acme/42", "", "14/s"),
    ("same", "", "21/s"),
    ("same-1", "", "21/s"),
    // Tiers: an override wins over a tier.
    ("user:42", "pro", "50/s"),
    ("user:42", "free", "5/h"),
    ("user:42", "internal", "unlimited"),
    ("vip", "free", "100/s"),
    ("only", "free", "36/s"),
    ("bot-7", "pro", "1/s"),
    ("10.2.0.1", "free", "unlimited"),
    ("2001:db9::1", "pro", "50/s"),
];

pub(crate) fn overrides(rows: &[(&str, &str)]) -> Overrides {
    let mut builder = Overrides::builder();
    for (pattern, limits) in rows {
        builder.add(pattern, limits).unwrap_or_else(|error| panic!("{pattern} {limits}: {error}"));
    }
    builder.build()
}

fn policies() -> Policies {
    let mut policies = Policies::new();
    policies.define("api", "10/s burst 20").unwrap();
    policies.set_overrides("api", &overrides(OVERRIDES)).unwrap();
    policies.set_additional_overrides("api", &overrides(MORE)).unwrap();
    let mut tiers = Tiers::new();
    TIERS.iter().for_each(|(name, limits)| tiers.add(name, limits).unwrap());
    policies.set_tiers("api", &tiers).unwrap();
    policies
}

/// Returns the limits that decide, or `unlimited`.
fn decides(policies: &Policies, key: &[u8], tier: Option<&str>) -> String {
    let variant = policies.resolve("api", key, tier).unwrap();
    assert_eq!(variant.name(), "api");
    match variant.listed(key) {
        Some(_) => "unlimited".to_owned(),
        None => variant.to_string(),
    }
}

#[test]
fn each_row_decides_as_documented() {
    let policies = policies();
    for (key, tier, expected) in ROWS {
        let tier = Some(*tier).filter(|x| !x.is_empty());
        assert_eq!(decides(&policies, key.as_bytes(), tier), *expected, "{key} {tier:?}");
    }
}

#[test]
fn keys_that_are_not_utf8_can_have_overrides() {
    let mut builder = Overrides::builder();
    builder.add_pattern(KeyPattern::exact(b"\xff\0*").unwrap(), "1/s").unwrap();
    builder.add("é*", "2/s").unwrap();
    let mut policies = Policies::new();
    policies.define("api", "10/s").unwrap();
    policies.set_overrides("api", &builder.build()).unwrap();
    for (key, expected) in
        [(&b"\xff\0*"[..], "1/s"), (b"\xff\0", "10/s"), ("é1".as_bytes(), "2/s"), (b"\xc3", "10/s")]
    {
        assert_eq!(decides(&policies, key, None), expected, "{key:?}");
    }
}

#[test]
fn replacing_one_set_keeps_the_other_and_the_tiers() {
    let mut policies = policies();
    let old = policies.clone();
    policies
        .set_additional_overrides("api", &overrides(&[("only", "41/s"), ("new", "42/s")]))
        .unwrap();
    for (key, tier, expected) in [
        ("vip", None, "100/s"),
        ("only", None, "41/s"),
        ("new", None, "42/s"),
        ("bot-google-2", None, "2/s"),
        ("user:42", Some("pro"), "50/s"),
    ] {
        assert_eq!(decides(&policies, key.as_bytes(), tier), expected, "{key}");
    }
    assert_eq!(decides(&old, b"only", None), "36/s", "a clone keeps its rows");
    policies.set_overrides("api", &Overrides::default()).unwrap();
    policies.set_additional_overrides("api", &Overrides::default()).unwrap();
    policies.set_tiers("api", &Tiers::new()).unwrap();
    assert_eq!(decides(&policies, b"vip", None), "10/s burst 20");
    assert!(policies.resolve("api", b"vip", None).unwrap().ptr_eq(policies.get("api").unwrap()));
}

#[test]
fn a_variant_differs_from_its_policy_only_in_limits() {
    let list = |keys: &[&str]| keys.iter().collect::<KeyList>();
    let base = Policy::new("api", ["10/s".parse().unwrap()])
        .unwrap()
        .shadow()
        .with_on_store_error(OnStoreError::Allow)
        .with_max_keys(7)
        .with_log_entries(100)
        .with_allow_list(list(&["root"]))
        .with_deny_list(list(&["eve"]));
    let mut policies = Policies::new();
    policies.add(base.clone()).unwrap();
    policies.set_overrides("api", &overrides(&[("vip", "100/s"), ("free", "unlimited")])).unwrap();
    let vip = policies.resolve("api", b"vip", None).unwrap();
    assert_eq!(*vip, base.with_limits_of(&"100/s".parse().unwrap()));
    assert_eq!(vip.limits().len(), 1);
    assert!(vip.is_shadow() && vip.on_store_error() == OnStoreError::Allow);
    assert_eq!((vip.max_keys(), vip.log_entries()), (Some(7), 100));
    assert!(vip.listed(b"root").is_some() && vip.listed(b"eve").is_some());
    let free = policies.resolve("api", b"free", None).unwrap();
    assert_eq!(*free, base.with_allow_list(list(&["*"])));
}

#[test]
fn unlimited_acts_as_an_allow_list_and_a_deny_list_wins() {
    let limiter = MemoryLimiter::builder().clock(ManualClock::default()).build();
    let mut policies = Policies::new();
    let deny: KeyList = ["10.6.6.6"].into_iter().collect();
    let base = Policy::new("api", ["1/h".parse().unwrap()]).unwrap().with_deny_list(deny);
    policies.add(base).unwrap();
    policies.set_overrides("api", &overrides(&[("10.0.0.0/8", "unlimited")])).unwrap();
    let check = |key: &str| {
        let variant = policies.resolve("api", key.as_bytes(), None).unwrap();
        limiter.check_cost(variant, Key::new(key).unwrap(), Cost::from(1))
    };
    for _ in 0..3 {
        let decision = check("10.0.0.1");
        assert!(decision.allowed);
        assert_eq!(decision.reason, Reason::AllowList);
        let most = Cost::MAX.get();
        assert_eq!((decision.capacity, decision.remaining), (most, most), "it is not exhausted");
    }
    assert_eq!(limiter.stats().keys, 0, "nothing is charged");
    assert_eq!(check("10.6.6.6").reason, Reason::DenyList);
    assert!(check("11.0.0.1").allowed && !check("11.0.0.1").allowed);
}

#[test]
fn a_key_keeps_its_usage_when_an_override_is_added_or_removed() {
    for (base, other, left) in [
        ("10/d fixed", "100/d fixed", [9, 98, 7]),
        ("10/d log", "100/d log", [9, 98, 7]),
        ("10/366d burst 10", "100/366d burst 100", [9, 98, 7]),
    ] {
        let limiter = MemoryLimiter::builder().clock(ManualClock::default()).build();
        let mut policies = Policies::new();
        policies.define("api", base).unwrap();
        for (index, left) in left.into_iter().enumerate() {
            let rows = if index == 1 { overrides(&[("vip", other)]) } else { Overrides::default() };
            policies.set_overrides("api", &rows).unwrap();
            let variant = policies.resolve("api", b"vip", None).unwrap();
            let decision = limiter.check(variant, Key::new("vip").unwrap());
            assert_eq!(decision.remaining, left, "{base} {other} {index}");
        }
    }
}
