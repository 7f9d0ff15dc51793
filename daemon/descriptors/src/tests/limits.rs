//! The limits of a rule.

use super::*;
use tollgate::OnStoreError;

/// The policy of the only rule of a file, or its limits.
fn limits(rate_limit: &str, more: &str, options: &ReadOptions) -> Result<String, String> {
    let text = format!("domain: d\ndescriptors:\n- key: k\n  rate_limit: {rate_limit}\n{more}");
    let domains = Domains::from_yaml(&[Source::new("f", text)], options)
        .map_err(|error| format!("{:?} {}", error.line, error.message))?;
    let Lookup::Rule(value) = domains.find("d", &[("k", "v")]) else { panic!("no rule") };
    assert_eq!(
        domains.policies().map(|value| value.1).collect::<Vec<_>>(),
        value.rule.policy().into_iter().collect::<Vec<_>>()
    );
    Ok(match &value.rule.limits {
        Limits::Unlimited => "unlimited".to_owned(),
        Limits::DenyAll => "nothing".to_owned(),
        Limits::Policy(policy) => {
            format!("{policy}{}", if policy.is_shadow() { " shadow" } else { "" })
        }
    })
}

/// Checks the limits with either way of charging.
#[track_caller]
fn check_limits(rate_limit: &str, more: &str, atomic: &str, reference: &str) {
    for (charging, expected) in [(Charging::Atomic, atomic), (Charging::Reference, reference)] {
        let options = ReadOptions { charging, ..ReadOptions::default() };
        let limits = limits(rate_limit, more, &options);
        assert_eq!(limits.as_deref(), Ok(expected), "{rate_limit} {more}");
    }
}

#[test]
fn limits_per_unit_are_fixed_windows() {
    let rows = [
        ("{unit: second, requests_per_unit: 1}", "1/s fixed", "1/s fixed count-denied"),
        ("{unit: Minute, requests_per_unit: 20}", "20/min fixed", "20/min fixed count-denied"),
        ("{unit: HOUR, requests_per_unit: 5}", "5/h fixed", "5/h fixed count-denied"),
        ("{unit: day, requests_per_unit: 5}", "5/d fixed", "5/d fixed count-denied"),
        // Weeks begin on Thursday in envoyproxy/ratelimit, as the Unix epoch did.
        ("{unit: week, requests_per_unit: 5}", "5/w fixed", "5/w fixed offset 3d count-denied"),
        ("{unit: month, requests_per_unit: 5}", "5/30d fixed", "5/30d fixed count-denied"),
        ("{unit: year, requests_per_unit: 5}", "5/365d fixed", "5/365d fixed count-denied"),
        (
            "{unit: year, requests_per_unit: 4294967295}",
            "4294967295/365d fixed",
            "4294967295/365d fixed count-denied",
        ),
        ("{unit: day, requests_per_unit: 0}", "nothing", "nothing"),
        ("{unit: day}", "nothing", "nothing"),
        ("{unlimited: true}", "unlimited", "unlimited"),
        ("{unlimited: yes, requests_per_unit: 7, unit: fortnight}", "unlimited", "unlimited"),
    ];
    for (text, atomic, reference) in rows {
        check_limits(text, "", atomic, reference);
    }
}

#[test]
fn shadow_and_quotas_with_atomic_charging_never_deny() {
    let rows = [
        ("  shadow_mode: true", "1/s fixed shadow", "1/s fixed count-denied shadow"),
        ("  quota_mode: true", "1/s fixed shadow", "1/s fixed count-denied"),
        (
            "  shadow_mode: true\n  quota_mode: true",
            "1/s fixed shadow",
            "1/s fixed count-denied shadow",
        ),
        ("  shadow_mode: off", "1/s fixed", "1/s fixed count-denied"),
    ];
    for (more, atomic, reference) in rows {
        check_limits("{unit: second, requests_per_unit: 1}", more, atomic, reference);
    }
}

#[test]
fn limits_can_use_the_notation_of_tollgate() {
    let rows = [
        ("{limit: 100/min sliding}", "100/min sliding"),
        ("{limit: 10/s burst 20; 1000/h}", "10/s burst 20; 1000/h"),
        ("{limit: [10/s burst 20, 1000/h], name: n}", "10/s burst 20; 1000/h"),
        ("{limit: ['10/s; 20/min log', 1000/h fixed]}", "10/s; 1000/h fixed; 20/min log"),
        ("\n    limit:\n      - 10/s\n      - 10/s", "10/s"),
    ];
    for (text, expected) in rows {
        check_limits(text, "", expected, expected);
    }
}

#[test]
fn invalid_limits_are_reported_with_their_line() {
    let both = "limit cannot be combined with unit, requests_per_unit or unlimited; use one of \
                them";
    let rows = [
        (
            "{limit: 10/month}",
            "Some(4) rate_limit.limit: in \"10/month\", column 4: \"month\" is not accepted; months differ in length: write 30d, or 1d windows",
        ),
        ("\n    limit:\n      - 10/s\n      - ten", "Some(7) rate_limit.limit: in \"ten\", "),
        ("{limit: 0/s}", "Some(4) rate_limit.limit: in \"0/s\", "),
        ("{limit: []}", "Some(4) rate_limit.limit: a policy needs a limit, such as \"10/s\""),
        ("{limit: }", "Some(4) rate_limit.limit: in \"\", "),
        (
            "{limit: [{a: b}]}",
            "error loading config file: yaml: unmarshal errors:\n  line 4: cannot unmarshal !!map into string",
        ),
        (
            "{limit: 5 concurrent lease 1min}",
            "Some(4) rate_limit.limit: 5 concurrent lease 1min is a concurrent limit",
        ),
        ("{limit: 10/s, unit: second}", both),
        ("{limit: 10/s, requests_per_unit: 5}", both),
        ("{limit: 10/s, unlimited: false}", both),
        ("{unit: day}\n  limit: 10/s", "config error, unknown key 'limit'"),
    ];
    for (text, expected) in rows {
        let message = limits(text, "", &ReadOptions::default()).unwrap_err();
        assert!(message.contains(expected), "{text}: {message}");
    }
}

#[test]
fn rule_has_the_numbers_of_its_first_limit() {
    let rows = [
        ("{limit: [1000/h, 10/s burst 20]}", "d.k 1000/HOUR"),
        ("{limit: 1/10min}", "d.k 1/UNKNOWN"),
        ("{limit: 5000000000/d fixed}", "d.k 4294967295/DAY"),
    ];
    for (text, expected) in rows {
        let domains = read(&format!("domain: d\ndescriptors:\n- key: k\n  rate_limit: {text}"));
        assert_eq!(found(&domains, "d", "k=v"), expected);
    }
    let dump =
        read("domain: d\ndescriptors:\n- {key: k, rate_limit: {limit: 10/s; 1000/h}}").dump();
    let expected = "d.k: unit=SECOND requests_per_unit=10, shadow_mode: false, quota_mode: false, \
                    limit: 10/s; 1000/h\n";
    assert_eq!(dump, expected);
}

#[test]
fn equal_limits_share_a_policy_and_the_store_error_decision() {
    let options = ReadOptions { on_store_error: OnStoreError::Allow, ..ReadOptions::default() };
    let text = "domain: d
descriptors:
  - { key: a, rate_limit: { unit: day, requests_per_unit: 1 } }
  - { key: b, rate_limit: { unit: day, requests_per_unit: 1 } }
  - { key: c, rate_limit: { limit: 1/d } }";
    let domains = Domains::from_yaml(&[Source::new("f", text)], &options).unwrap();
    let policies = domains.policies().map(|policy| policy.1).collect::<Vec<_>>();
    assert!(policies[0].ptr_eq(policies[1]) && !policies[1].ptr_eq(policies[2]));
    assert!(policies.iter().all(|policy| policy.name() == "@envoy.d"));
    assert!(policies.iter().all(|policy| policy.on_store_error() == OnStoreError::Allow));
}
