//! Policies and limits in configurations, and decisions in logs.

#![allow(clippy::unwrap_used, reason = "a test")]

use std::time::Duration;

use serde_json::{Value, from_str, from_value, json, to_value};
use tollgate_algorithms::{
    Ban, Cost, Decision, Id, Limit, Listed, Micros, OnStoreError, Policy, Timestamp,
};

fn policy(name: &str, limits: &str) -> Policy {
    Policy::named(name, limits).unwrap()
}

#[test]
fn policies_are_written_as_their_configuration_and_read_back() {
    let ban = Ban::new(10, Duration::from_secs(600), Duration::from_secs(3_600)).unwrap();
    let lists = |keys: [&str; 2]| keys.into_iter().collect();
    for (policy, expected) in [
        (policy("api", "10/s burst 20"), json!({"name": "api", "limits": "10/s burst 20"})),
        (
            policy("api", "1000/h sliding by 1m; 10/s").shadow(),
            json!({"name": "api", "limits": "10/s; 1000/h sliding by 1min", "shadow": true}),
        ),
        (
            policy("login", "5/min").with_ban(ban).with_on_store_error(OnStoreError::Deny),
            json!({"name": "login", "limits": "5/min", "on_store_error": "deny",
                "ban": {"denials": 10, "within": "10min", "for": "1h"}}),
        ),
        (
            policy("a", "1/d log")
                .with_allow_list(lists(["internal:*", "health"]))
                .with_deny_list(lists(["bot-*", "x"]))
                .with_max_keys(7)
                .with_log_entries(100),
            json!({"name": "a", "limits": "1/d log", "allow": ["health", "internal:*"],
                "deny": ["x", "bot-*"], "max_keys": 7, "log_entries": 100}),
        ),
        (Policy::reserved("@proxy", ["1/s".parse().unwrap()]).unwrap(), {
            json!({"name": "@proxy", "limits": "1/s"})
        }),
        ("5/h".parse().unwrap(), json!({"limits": "5/h"})),
        (
            policy("hot", "1000/s; 9/s log").leased(None).unwrap(),
            json!({"name": "hot", "limits": "1000/s; 9/s log", "mode": "leased", "hold": "20ms"}),
        ),
    ] {
        assert_eq!(to_value(&policy).unwrap(), expected, "{policy:?}");
        assert_eq!(from_value::<Policy>(expected).unwrap(), policy);
    }
}

#[test]
fn limits_of_a_policy_are_a_text_or_a_list_of_texts() {
    let expected = policy("api", "10/s; 1000/h; 5/d log");
    for limits in [json!("10/s; 1000/h; 5/d log"), json!(["5/d log", "10/s; 1000/h"])] {
        let read: Policy = from_value(json!({"name": "api", "limits": limits})).unwrap();
        assert_eq!(read, expected);
    }
    let unnamed: Policy = from_value(json!("10/s; 1000/h")).unwrap();
    assert_eq!(unnamed, "10/s; 1000/h".parse().unwrap());
    assert!(!unnamed.is_named());
}

#[test]
fn mistakes_in_a_policy_are_reported() {
    for (text, expected) in [
        (r#""10/s burts 3""#, "did you mean \"burst\"?"),
        (r#"{"name":"api"}"#, "missing field `limits`"),
        (r#"{"name":"api","limits":["10/s","5"]}"#, "write it after the count, as in 10/s"),
        (r#"{"name":"api","limits":[]}"#, "limit"),
        (r#"{"name":"log in","limits":"1/s"}"#, "most 128 in all; did you mean \"log-in\"?"),
        (r#"{"name":"=1/s","limits":"1/s"}"#, "the name \"=1/s\" is invalid: a policy's name is"),
        (r#"{"limits":"1/s","shadows":true}"#, "unknown field `shadows`"),
        (r#"{"limits":"1/s","on_store_error":"pass"}"#, "unknown variant `pass`"),
        (r#"{"limits":"1/s","ban":{"denials":0,"within":"1s","for":"1s"}}"#, "denials is 0"),
        (r#"{"limits":"1/s","ban":{"denials":1,"within":"1","for":"1s"}}"#, "unit"),
        ("5", "expected limits, such as"),
    ] {
        let error = from_str::<Policy>(text).unwrap_err().to_string();
        assert!(error.contains(expected), "{text}: {error}");
    }
}

#[test]
fn a_list_with_a_key_that_is_not_text_is_not_written() {
    let list = [&b"\xff"[..]].into_iter().collect();
    let error = to_value(policy("api", "1/s").with_deny_list(list)).unwrap_err();
    assert_eq!(error.to_string(), "a key of a list is not UTF-8");
}

#[test]
fn limits_costs_and_ids_are_read_and_written() {
    let limit: Limit = "240 / 60 minutes strict sliding by 60s".parse().unwrap();
    assert_eq!(to_value(limit).unwrap(), json!("240/h sliding by 1min strict"));
    assert_eq!(from_str::<Limit>("\"240/h sliding by 1min strict\"").unwrap(), limit);
    assert_eq!(to_value(Cost::MAX).unwrap(), json!((1_u64 << 53) - 1));
    assert_eq!(from_str::<Cost>("5").unwrap(), Cost::from(5));
    let error = from_str::<Cost>("9007199254740992").unwrap_err().to_string();
    assert!(error.starts_with("a cost of 9007199254740992 is too large"), "{error}");
    let id = Id::from_u128(10);
    assert_eq!(to_value(id).unwrap(), json!("0000000000000000000000000000000a"));
    assert_eq!(from_str::<Id>("\"0000000000000000000000000000000a\"").unwrap(), id);
    assert!(from_str::<Id>("\"0a\"").is_err());
}

#[test]
fn decisions_are_written_with_times_in_microseconds() {
    let time = Timestamp::from_micros(1_763_650_000_000_001);
    let denied = Decision::from_store(false, Some(Micros::new(59_933_800)), time);
    let expected = json!({
        "allowed": false, "reason": "store", "never": false, "capacity": 0, "remaining": 0,
        "retry_after_us": 59_933_800, "reset_after_us": null, "delay_us": 0, "granted": 0,
        "changed": false, "source": "store", "degraded": false, "replayed": false, "shadow": false,
        "time_us": 1_763_650_000_000_001_u64, "limits": [],
    });
    assert_eq!(to_value(&denied).unwrap(), expected);

    let mut leased = Decision::from_list(Listed::Allow, time);
    leased.lease = Some(Id::from_u128(1));
    let written = to_value(&leased).unwrap();
    assert_eq!(written["lease_id"], json!("00000000000000000000000000000001"));
    assert_eq!(written.get("reservation_id"), None);
    assert_eq!(written["reason"], json!("allow_list"));

    let one = Decision::default();
    let Value::Array(limits) = to_value(&one).unwrap()["limits"].take() else {
        unreachable!("a list")
    };
    let expected = json!({"allowed": false, "never": false, "binding": true, "capacity": 0,
        "remaining": 0, "retry_after_us": null, "reset_after_us": 0});
    assert_eq!(limits, [expected]);
}
