//! Queries of what policies track: rights, privacy, notes and repeated requests.

use serde_json::{Value, json};
use tollgate_daemon::Config;

use super::access;
use crate::forward_auth::ForwardedRequest;
use crate::openapi::assert_documented;
use crate::resp::RespClient;
use crate::support::daemon::{Daemon, POLICIES};

async fn get(daemon: &Daemon, path: &str) -> (u16, Value) {
    let response = daemon.connect().await.get(path).await.unwrap();
    assert_documented("GET", path.split('?').next().unwrap(), "", &response);
    (response.status, serde_json::from_str(&response.body).unwrap())
}

async fn inspect(daemon: &Daemon, key: &str) -> Value {
    let body = json!({ "policy": "tracked", "key": key }).to_string();
    let response = daemon.post("/v1/inspect", &body).await;
    assert_documented("POST", "/v1/inspect", &body, &response);
    serde_json::from_str(&response.body).unwrap()
}

#[tokio::test]
async fn each_decision_is_recorded_once_with_its_note() {
    let daemon = Daemon::start().await;
    let check = json!({
        "policy": "tracked", "key": "user:1", "cost": 2, "note": "GET /a", "request_id": "r",
    });
    for _ in 0..2 {
        daemon.post("/v1/check", &check.to_string()).await.assert(200, "", "the same request");
    }
    for (operation, status) in [("peek", 200), ("check", 429), ("penalize", 200)] {
        let body = json!({ "policy": "tracked", "key": "user:1", "note": "b" }).to_string();
        daemon.post(&format!("/v1/{operation}"), &body).await.assert(status, "", operation);
    }
    let mut resp = RespClient::connect(&daemon).await;
    resp.call("TOLLGATE.CHECK tracked user:1 COST 3 NOTE c").await;
    let record = inspect(&daemon, "user:1").await;
    let usage = &record["usage"];
    assert_eq!(
        (&usage["allowed"], &usage["denied"], &usage["cost"]),
        (&json!(1), &json!(2), &json!(2))
    );
    let notes: Vec<_> = record["recent"]
        .as_array()
        .unwrap()
        .iter()
        .map(|note| (note["answer"].as_str().unwrap(), note["cost"].clone(), note["note"].clone()))
        .collect();
    // The clock stands still, so the order among these is that of their arrival, or not.
    assert_eq!(notes.len(), 3, "{notes:?}");
    for expected in [
        ("allowed", json!(2), json!("GET /a")),
        ("denied", json!(1), json!("b")),
        ("never", json!(3), json!("c")),
    ] {
        assert!(notes.contains(&expected), "{expected:?} in {notes:?}");
    }
    assert_eq!(record["timeline"]["intervals"][0]["denied"], 2);
    assert_eq!(inspect(&daemon, "user:2").await.get("usage"), None);
    let long = json!({ "policy": "bucket", "key": "k", "note": "n".repeat(257) }).to_string();
    daemon.post("/v1/check", &long).await.assert(400, "note has 257 bytes", "a long note");
}

/// The notes of a key, the newest first.
fn notes(record: &Value) -> Vec<Value> {
    record["recent"].as_array().unwrap().iter().map(|note| note["note"].clone()).collect()
}

#[tokio::test]
async fn a_rule_notes_a_value_of_the_request() {
    let daemon = Daemon::start_with(
        "trusted_proxies: [127.0.0.1]\n\
         policies: { tracked: { limits: [100/s], track: { recent: 5 } } }\n\
         rules: [{ policy: tracked, key: \"{ip}\", note: \"{method} of {header.x-user}\" }]\n",
    )
    .await;
    let long = format!("x-user: {}", "ü".repeat(200));
    for headers in [&["x-user: ada"][..], &[], &["x-user: ada", "x-user: bob"], &[&long]] {
        let request = ForwardedRequest::to("/a").before(headers);
        request.send(&daemon, "nginx").await.assert(200, "", "a note changes no decision");
    }
    let mut found = notes(&inspect(&daemon, "203.0.113.7").await);
    // The clock stands still, so the order is not that of the requests.
    found.sort_by_key(Value::to_string);
    // 256 bytes less the 7 before the value, in characters of two bytes.
    let shortened = format!("GET of {}", "ü".repeat(124));
    assert_eq!(found, [json!("GET of ada"), json!(shortened), json!(null), json!(null)]);
}

#[tokio::test]
async fn an_entry_of_a_descriptor_is_the_note_and_no_part_of_the_key() {
    let daemon = Daemon::start_with(
        "envoy: { note_entry: user }\n\
         policies: { tracked: { limits: [1/h log], track: { recent: 5 } } }\n",
    )
    .await;
    let entry = |key: &str, value: &str| json!({ "key": key, "value": value });
    let check = async |entries: Vec<Value>| {
        let body = json!({ "domain": "tracked", "descriptors": [{ "entries": entries }] });
        daemon.post("/json", &body.to_string()).await
    };
    let address = entry("address", "203.0.113.7");
    let code = |response: &crate::support::client::Response| {
        let answer: Value = serde_json::from_str(&response.body).unwrap();
        answer["overallCode"].clone()
    };
    let first = check(vec![entry("user", "ada"), address.clone()]).await;
    let second = check(vec![address, entry("user", &"b".repeat(300))]).await;
    assert_eq!((code(&first), code(&second)), (json!("OK"), json!("OVER_LIMIT")), "one key");
    let mut found = notes(&inspect(&daemon, "address=203.0.113.7").await);
    found.sort_by_key(Value::to_string);
    assert_eq!(found, [json!("ada"), json!("b".repeat(256))]);
    let alone = check(vec![entry("user", "ada")]).await;
    alone.assert(400, "", "a descriptor without a key");
}

#[tokio::test]
async fn privacy_applies_to_listed_keys() {
    for (privacy, shown, prefix) in
        [("plain", "user:4217", 200), ("masked", "us…(≤16)", 400), ("hashed", "", 400)]
    {
        let daemon = Daemon::start_with(&format!("privacy: {privacy}\n{POLICIES}")).await;
        let check = r#"{"policy":"tracked","key":"user:4217"}"#;
        daemon.post("/v1/check", check).await.assert(200, "", privacy);
        let (_, page) = get(&daemon, "/v1/keys?policy=tracked").await;
        let key = page["keys"][0]["key"].as_str().unwrap();
        assert!(key == shown || shown.is_empty() && key.len() == 16, "{privacy}: {key}");
        let (status, page) = get(&daemon, "/v1/keys?policy=tracked&prefix=use").await;
        assert_eq!(status, prefix, "{privacy}: {page}");
    }
}

#[tokio::test]
async fn queries_need_the_right_to_read_the_policy() {
    let daemon = access::start().await;
    for (token, path, status) in [
        ("read", "/v1/keys?policy=tracked", 200),
        ("admin", "/v1/keys?policy=tracked", 200),
        ("check", "/v1/keys?policy=tracked", 403),
        ("narrow", "/v1/keys?policy=tracked", 403),
        ("read", "/v1/keys?policy=nothing", 404),
        ("read", "/v1/keys", 404),
        ("read", "/v1/keys?policy=bucket", 400),
    ] {
        let request =
            crate::support::client::encode_request("GET", path, &access::bearer(token), "");
        let response = daemon.send(&request).await.read_response().await.unwrap();
        response.assert(status, "", format_args!("{token} {path}"));
    }
}

#[tokio::test]
async fn a_key_that_is_not_utf_8_is_also_listed_in_base64() {
    let daemon = Daemon::start_unchanged(Config::from_yaml(POLICIES).unwrap()).await;
    let check = r#"{"policy":"tracked","key_base64":"/w=="}"#;
    daemon.post("/v1/check", check).await.assert(200, "", "a key");
    let (_, page) = get(&daemon, "/v1/keys?policy=tracked&prefix=%FF").await;
    assert_eq!(
        (&page["keys"][0]["key"], &page["keys"][0]["key_base64"]),
        (&json!("\\xff"), &json!("/w=="))
    );
}
