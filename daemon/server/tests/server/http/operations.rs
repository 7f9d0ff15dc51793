//! Every operation: requests, statuses and JSON.

use tollgate_core::MAX_KEY_LEN;

use crate::support::daemon::Daemon;
use crate::support::rows;

#[tokio::test]
async fn operations_match_the_rows() {
    let daemon = Daemon::start().await;
    let checked = rows::check_all(&daemon, include_str!("operations.rows")).await;
    assert!(checked > 40, "only {checked} rows were found");
}

/// The value of a string field.
fn field<'a>(json: &'a str, name: &str) -> Option<&'a str> {
    json.split_once(&format!(r#""{name}":""#))?.1.split('"').next()
}

#[tokio::test]
async fn omitted_ids_are_generated_and_usable() {
    let daemon = Daemon::start().await;
    for (operation, policy, id, undo) in [
        ("check", "slots", "lease_id", "release"),
        ("acquire", "slots", "lease_id", "release"),
        ("reserve", "bucket", "reservation_id", "cancel"),
    ] {
        // A reservation without a wait cannot be cancelled, so the bucket is emptied first.
        let body = format!(r#"{{"policy":"{policy}","key":"{operation}","cost":2}}"#);
        daemon.post("/v1/reserve", &body).await;
        let body = format!(r#"{{"policy":"{policy}","key":"{operation}"}}"#);
        let first = daemon.post(&format!("/v1/{operation}"), &body).await.body;
        let second = daemon.post(&format!("/v1/{operation}"), &body).await.body;
        let (first, second) = (field(&first, id).unwrap(), field(&second, id).unwrap());
        assert_eq!(first.len(), 32);
        assert_ne!(first, second);
        let body = format!(r#"{{"policy":"{policy}","key":"{operation}","{id}":"{second}"}}"#);
        for changed in [true, false] {
            let response = daemon.post(&format!("/v1/{undo}"), &body).await.body;
            assert!(response.contains(&format!(r#""changed":{changed}"#)), "{response}");
        }
    }
}

#[tokio::test]
async fn a_replayed_request_returns_the_id_generated_first() {
    let daemon = Daemon::start().await;
    for (operation, policy, id) in [
        ("check", "slots", "lease_id"),
        ("acquire", "slots", "lease_id"),
        ("reserve", "bucket", "reservation_id"),
    ] {
        let body = format!(r#"{{"policy":"{policy}","key":"k","request_id":"{operation}"}}"#);
        let first = daemon.post(&format!("/v1/{operation}"), &body).await;
        let second = daemon.post(&format!("/v1/{operation}"), &body).await;
        assert_eq!((first.status, second.status), (200, 200), "{}", second.body);
        assert_eq!(field(&first.body, id), field(&second.body, id), "{operation}");
        assert!(field(&first.body, id).is_some(), "{}", first.body);
        assert!(second.body.contains(r#""replayed":true"#), "{}", second.body);
    }
}

const TIERED_POLICIES: &str = r#"
policies:
  api:
    limits: ["2/d log"]
    deny: ["10.6.6.6"]
    overrides: { vip: ["5/d log"], "10.0.0.0/8": unlimited }
    tiers: { pro: ["9/d log"], free: ["1/d log"] }
  queue:
    limits: ["1/h queue 2"]
    overrides: { vip: ["1/h queue 5"] }
    tiers: { pro: ["1/h queue 9"] }
  slots:
    limits: ["2 concurrent lease 60s"]
    overrides: { vip: ["5 concurrent lease 60s"] }
    tiers: { pro: ["9 concurrent lease 60s"] }
  bare: { limits: ["2/d log"] }
"#;

/// For each policy, the limits of the override for `vip` and of the tier `pro`.
const OVERRIDES: &[(&str, &str, &str)] = &[
    ("api", "5/d log", "9/d log"),
    ("queue", "1/h queue 5", "1/h queue 9"),
    ("slots", "5 concurrent lease 1min", "9 concurrent lease 1min"),
];

/// The fields that an operation needs besides policy and key, and the policies that it supports.
const OPERATIONS: &[(&str, &str, &[&str])] = &[
    ("check", "", &["api", "queue", "slots"]),
    ("peek", "", &["api", "queue", "slots"]),
    ("take", r#","cost":3"#, &["api", "queue"]),
    ("reserve", r#","max_wait":"3h""#, &["queue"]),
    ("cancel", r#","reservation_id":"0000000000000000000000000000000a""#, &["queue"]),
    ("refund", "", &["api", "queue"]),
    ("penalize", "", &["api", "queue"]),
    ("reset", "", &["api", "queue", "slots"]),
    ("block", r#","for":"1s""#, &["api", "queue", "slots"]),
    ("unblock", "", &["api", "queue", "slots"]),
    ("acquire", "", &["slots"]),
    ("renew", r#","lease_id":"0000000000000000000000000000000a""#, &["slots"]),
    ("release", r#","lease_id":"0000000000000000000000000000000a""#, &["slots"]),
    ("inspect", "", &["api", "queue", "slots"]),
];

#[tokio::test]
async fn overrides_and_tiers_match_the_rows() {
    let daemon = Daemon::start_with(TIERED_POLICIES).await;
    let checked = rows::check_all(&daemon, include_str!("overrides.rows")).await;
    assert!(checked > 12, "only {checked} rows were found");
}

#[tokio::test]
async fn every_operation_applies_overrides_and_tiers() {
    let daemon = Daemon::start_with(TIERED_POLICIES).await;
    for (operation, fields, policies) in OPERATIONS {
        for (policy, by_key, by_tier) in OVERRIDES.iter().filter(|row| policies.contains(&row.0)) {
            for (key, tier, limits) in [
                ("vip", "", by_key),
                ("vip", r#","tier":"pro""#, by_key),
                ("user", r#","tier":"pro""#, by_tier),
            ] {
                let body = format!(r#"{{"policy":"{policy}","key":"{key}"{tier}{fields}}}"#);
                let response = daemon.post(&format!("/v1/{operation}?status=200"), &body).await;
                assert_eq!(response.status, 200, "{operation} {body}: {}", response.body);
                let expected = format!(r#""limit":"{limits}""#);
                assert!(response.body.contains(&expected), "{operation} {body}: {}", response.body);
            }
        }
    }
}

#[tokio::test]
async fn bad_input_is_rejected_and_charges_nothing() {
    let daemon = Daemon::start().await;
    let checked = rows::check_all(&daemon, include_str!("bad_input.rows")).await;
    assert!(checked > 70, "only {checked} rows were found");
    for policy in ["bucket", "log", "pair", "slots"] {
        for key in ["a", "b"] {
            let body = format!(r#"{{"policy":"{policy}","key":"{key}"}}"#);
            let state = daemon.post("/v1/inspect", &body).await.body;
            assert_eq!(state.matches(r#""used":0"#).count(), state.matches("used").count());
            assert!(state.contains(r#""block":null"#), "{state}");
        }
    }
}

#[tokio::test]
async fn keys_longer_than_65536_bytes_are_rejected() {
    let yaml = "limits: { body: 1MiB }\npolicies: { log: { limits: [2/min log] } }";
    let daemon = Daemon::start_with(yaml).await;
    for (bytes, status) in [(1, 200), (MAX_KEY_LEN, 200), (MAX_KEY_LEN + 1, 400)] {
        let key = "k".repeat(bytes);
        let body = format!(r#"{{"policy":"log","key":"{key}"}}"#);
        let response = daemon.post("/v1/check", &body).await;
        assert_eq!(response.status, status, "{bytes}: {}", response.body);
        if status == 400 {
            assert!(response.body.contains("key has 65537 bytes"), "{}", response.body);
        }
    }
}

#[tokio::test]
async fn requests_with_more_than_32_checks_are_rejected() {
    let daemon = Daemon::start().await;
    for (checks, status) in [(32, 200), (33, 400), (1_000, 400)] {
        let list: Vec<_> =
            (0..checks).map(|key| format!(r#"{{"policy":"log","key":"{key}"}}"#)).collect();
        let body = format!(r#"{{"checks":[{}]}}"#, list.join(","));
        let response = daemon.post("/v1/check", &body).await;
        assert_eq!(response.status, status, "{checks}: {}", response.body);
    }
}

#[tokio::test]
async fn deep_and_malformed_bodies_are_rejected() {
    let daemon = Daemon::start().await;
    let deep = "[".repeat(60_000);
    let nested = format!(r#"{{"policy":{deep}"#);
    for body in [&*deep, &nested, "\0", "{\"policy\":\"\u{7f}\"}", "\u{feff}{}"] {
        assert_eq!(daemon.post("/v1/check", body).await.status / 100, 4);
    }
    let mut client = daemon.connect().await;
    client.send("POST /v1/check HTTP/1.1\r\nhost: t\r\ncontent-length: 3\r\n\r\n").await.unwrap();
    tokio::io::AsyncWriteExt::write_all(&mut client.0, b"\xff{}").await.unwrap();
    let response = client.read_response().await.unwrap();
    assert_eq!(response.status, 400);
    assert!(response.body.contains("not valid UTF-8 at byte 0"), "{}", response.body);
}
