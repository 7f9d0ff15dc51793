//! Every operation: requests, statuses and JSON.

use tokio::io::AsyncWriteExt;
use tollgate::Micros;
use tollgate_algorithms::MAX_KEY_LEN;

use crate::openapi;
use crate::support::ID;
use crate::support::daemon::{Daemon, POLICIES};

/// The fields of an ordinary decision, abbreviated as `~`.
const ORDINARY: &str = r#""source":"store","degraded":false,"replayed":false"#;

fn expand(text: &str) -> String {
    let other = ID.replace('a', "b");
    text.replace('~', ORDINARY).replace("{A}", ID).replace("{B}", &other)
}

/// Sends the requests of the rows and compares the responses. Returns the number of requests.
async fn check_all(daemon: &Daemon, rows: &str) -> usize {
    let rows = rows.lines().enumerate();
    let mut rows = rows.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    let mut checked = 0;
    while let Some((line, request)) = rows.next() {
        if let Some(micros) = request.strip_prefix("+ ") {
            daemon.clock.advance(Micros::new(micros.parse().unwrap()));
            continue;
        }
        let status = rows.next().unwrap().1.strip_prefix("< ").unwrap();
        let json = expand(rows.next().unwrap().1);
        check(daemon, &format!("line {}: {request}", line + 1), request, status, &json).await;
        checked += 1;
    }
    checked
}

async fn check(daemon: &Daemon, row: &str, request: &str, status: &str, json: &str) {
    let request = expand(request);
    let (method, rest) = request.strip_prefix("> ").unwrap().split_once(' ').unwrap();
    let (path, body) = rest.split_once(' ').unwrap_or((rest, ""));
    let response = daemon.connect().await.request(method, path, body).await.unwrap();
    openapi::assert_documented(method, path, body, &response);
    let retry_after = response.header("retry-after").map_or(String::new(), |s| format!(" {s}"));
    assert_eq!(response.body, json, "{row}");
    assert_eq!(format!("{}{retry_after}", response.status), status, "{row}");
    let is_problem = json.starts_with(r#"{"type""#);
    let kind = if is_problem { "application/problem+json" } else { "application/json" };
    assert_eq!(response.header("content-type"), Some(kind), "{row}");
    assert_eq!(response.header("cache-control"), Some("no-store"), "{row}");
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
async fn operations_overrides_and_tiers_match_the_rows() {
    for (policies, rows, min) in [
        (POLICIES, include_str!("operations.rows"), 40),
        (TIERED_POLICIES, include_str!("overrides.rows"), 12),
    ] {
        let checked = check_all(&Daemon::start_with(policies).await, rows).await;
        assert!(checked > min, "only {checked} rows were found");
    }
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
                let expected = format!(r#""limit":"{limits}""#);
                response.assert(200, &expected, format_args!("{operation} {body}"));
            }
        }
    }
}

#[tokio::test]
async fn bad_input_is_rejected_and_charges_nothing() {
    let daemon = Daemon::start().await;
    let checked = check_all(&daemon, include_str!("bad_input.rows")).await;
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
async fn keys_longer_than_the_bound_are_rejected() {
    let policies = "policies: { log: { limits: [2/min log] } }";
    for (limits, bound) in [("", 4_096), ("key_bytes: 64KiB", MAX_KEY_LEN)] {
        let yaml = format!("limits: {{ body: 1MiB, {limits} }}\n{policies}");
        let daemon = Daemon::start_with(&yaml).await;
        for (bytes, status) in [(1, 200), (bound, 200), (bound + 1, 400)] {
            let key = "k".repeat(bytes);
            let body = format!(r#"{{"policy":"log","key":"{key}"}}"#);
            let response = daemon.post("/v1/check", &body).await;
            let reason = format!("key has {bytes} bytes, more than the maximum of {bound}");
            response.assert(status, if status == 400 { &reason } else { "" }, bytes);
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
        response.assert(status, "", checks);
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
    let head = "POST /v1/check HTTP/1.1\r\nhost: localhost\r\ncontent-length: 3\r\n\r\n";
    let mut client = daemon.send(head).await;
    client.0.write_all(b"\xff{}").await.unwrap();
    let response = client.read_response().await.unwrap();
    response.assert(400, "not valid UTF-8 at byte 0", "invalid UTF-8");
}
