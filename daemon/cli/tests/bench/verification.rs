//! Tollgate passes the verification of every kind of limit, and other limiters fail it.

use serde_json::Value;

use crate::mock::{Action, Mock};
use crate::process::Daemon;
use crate::tool::{bench, json};

/// Limits whose windows end many times during a test.
const LIMITS: &[&str] = &[
    "100/s burst 20",
    "20/100ms fixed",
    "20/100ms fixed offset 30ms",
    "20/100ms fixed from-first",
    "20/100ms log",
    "20/100ms sliding",
    "20/100ms sliding by 10ms",
    "20/100ms sliding by 10ms strict",
    "200/s queue 20",
    "5 concurrent lease 1s",
    "20/100ms fixed count-denied; 500/s burst 50; 300/min log",
    "5 concurrent lease 1s; 100/s queue 50",
];

fn check(target: &str, limit: &str, more: &str) {
    let hold = "--hold 3ms --duration 300ms --verify --keys 2 -c 20";
    let (code, value) = json(&format!("{target} --limit \"{limit}\" {hold} {more}"));
    let verify = &value["verify"];
    assert_eq!(
        (code, &verify["violations"]),
        (0, &0.into()),
        "{limit} {more} at {target}: {value}"
    );
    assert!(verify["admissions"].as_u64() > Some(10), "{limit} {more} at {target}: {value}");
    assert_eq!(verify["admissions"], value["allowed"]);
    assert_eq!((&verify["not_kept"], &verify["without_bound"]), (&0.into(), &Value::from([(); 0])));
}

fn check_all(target: &str) {
    for limit in LIMITS {
        check(target, limit, "");
    }
    check(target, "20/100ms sliding by 10ms; 500/s", "--cost 3");
    check(target, "100/s burst 20", "--rate 3000");
}

/// Without a token, inline limits are for operators.
const INLINE_LIMITS: &str = "{ policies: {}, operators: loopback }";

#[test]
fn every_kind_of_limit_is_valid_over_http() {
    let daemon = Daemon::with_listener("--http", &[("tollgate.yaml", INLINE_LIMITS)]);
    check_all(&daemon.url);
}

#[test]
fn every_kind_of_limit_is_valid_over_resp() {
    let daemon = Daemon::with_listener("--resp", &[("tollgate.yaml", INLINE_LIMITS)]);
    let target = &daemon.url;
    check_all(target);
    check(target, "20/100ms log", "--pipeline 8");
    check(target, "100/s burst 20", "--command throttle --pipeline 8");
}

#[test]
fn every_kind_of_limit_is_valid_in_process() {
    check_all("memory --threads 1");
}

#[test]
fn the_daemon_reports_the_limits_of_a_policy() {
    let config = r#"policies: { api: { limits: ["20/100ms fixed", "100/s"] } }"#;
    for flag in ["--http", "--resp"] {
        let daemon = Daemon::with_listener(flag, &[("tollgate.yaml", config)]);
        let (code, value) = json(&format!("{} --policy api --verify -n 500 --keys 1", daemon.url));
        assert_eq!(code, 0, "{value}");
        let limits = serde_json::json!(["100/s", "20/100ms fixed"]);
        assert_eq!(value["verify"]["limits"], limits, "{value}");
    }
}

#[test]
fn degraded_decisions_are_counted_separately_and_not_verified() {
    // Port 1 refuses connections.
    let config = r#"
store: { url: "redis://127.0.0.1:1" }
policies:
  open: { limits: [10/d], on_store_error: allow }
  shut: { limits: [10/d], on_store_error: deny }
"#;
    for flag in ["--http", "--resp"] {
        let daemon = Daemon::with_listener(flag, &[("tollgate.yaml", config)]);
        for (policy, answer) in [("open", "allowed"), ("shut", "denied")] {
            let target = &daemon.url;
            let (code, value) =
                json(&format!("{target} --policy {policy} -n 30 --verify --against 1/d"));
            assert_eq!(code, 0, "{value}");
            assert_eq!(value["degraded"][answer], 30, "{value}");
            assert_eq!((&value["allowed"], &value["denied"]), (&0.into(), &0.into()), "{value}");
            assert_eq!(value["verify"]["admissions"], 0, "{value}");
        }
    }
}

#[test]
fn a_server_that_allows_everything_violates_every_kind_of_limit() {
    let mock = Mock::start(|_| Action::Allow);
    for limit in LIMITS {
        let words = format!("{} --limit \"{limit}\" --verify --keys 1 -n 400", mock.url());
        let (code, value) = json(&words);
        assert_eq!(code, 1, "{limit}: {value}");
        let worst = &value["verify"]["worst"][0];
        assert!(worst["admitted"].as_u64() > worst["bound"].as_u64(), "{limit}: {value}");
        assert!(worst["key"].as_str().unwrap().starts_with("bench-"), "{value}");
    }
}

#[test]
fn one_admission_above_the_limit_is_reported() {
    let words = "memory --limit \"11/d log\" --keys 1 -n 20 --verify --key-prefix k";
    let (code, table, _) = bench(&format!("{words} --against \"10/d log\""));
    assert_eq!(code, 1, "{table}");
    assert!(
        table.contains("VIOLATION in 1 case: more was admitted than 10/d log allows"),
        "{table}"
    );
    assert!(table.contains("k0: 11 within") && table.contains("at most 10 by 10/d log"), "{table}");
    let (code, table, _) = bench(&format!("{words} --against \"11/d log\""));
    assert_eq!(code, 0, "{table}");
}
