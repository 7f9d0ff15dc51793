//! Everything in the document occurs: each status of each operation, and each field. Undocumented
//! fields are rejected.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::document::{DOCUMENT, assert_documented};
use super::{envoy, gateways};
use crate::http::access::{bearer, token};
use crate::support::client::{Client, Response, encode_request};
use crate::support::daemon::{Daemon, POLICIES};
use crate::support::unreachable_store;

const ID: &str = "0000000000000000000000000000000a";

/// Daemons that together produce every status.
pub(super) struct Daemons {
    pub(super) ordinary: Daemon,
    /// Requires a token.
    pub(super) guarded: Daemon,
    /// Has a short header timeout.
    pub(super) impatient: Daemon,
    /// Has an unreachable store.
    pub(super) without_store: Daemon,
}

impl Daemons {
    pub(super) async fn start() -> Self {
        let policies = "policies: { bucket: { limits: [2/s] }, log: { limits: [2/min log] }, \
                        slots: { limits: [2 concurrent lease 60s] } }";
        let impatient = format!("limits: {{ header_timeout: 100ms }}\n{policies}");
        let without_store = format!("store: {{ url: '{}' }}\n{policies}", unreachable_store());
        Daemons {
            ordinary: Daemon::start().await,
            guarded: Daemon::start_with_options(|config| {
                config.tokens = vec![token("nothing", "admin", "none")];
            })
            .await,
            impatient: Daemon::start_with(&impatient).await,
            without_store: Daemon::start_on_store(&without_store).await,
        }
    }

    /// Sends a request that has this status. Returns its body and the response.
    async fn provoke(&self, method: &str, path: &str, status: u16) -> (String, Response) {
        let operation = path.strip_prefix("/v1/").unwrap_or("");
        let key = format!("{method}-{status}");
        let body = body(operation, &key);
        let mut sent = body.clone();
        let daemon = match status {
            401 | 403 => &self.guarded,
            408 => &self.impatient,
            503 => &self.without_store,
            _ => &self.ordinary,
        };
        let mut client = daemon.connect().await;
        let mut headers = String::new();
        match (status, path) {
            (200 | 401 | 408 | 413 | 503, _) => {}
            (400, _) => {
                sent.insert("cots".to_owned(), json!(1));
            }
            (403, _) => headers = bearer("nothing"),
            (404, _) => {
                sent.insert("policy".to_owned(), json!("nothing"));
            }
            (405, _) => {
                return (String::new(), client.request("PUT", path, "").await.unwrap());
            }
            (409, _) => {
                sent.insert("request_id".to_owned(), json!(path));
                assert_eq!(post(&mut client, path, &sent).await.status, 200, "{path}");
                sent.insert("key".to_owned(), json!("another"));
            }
            (422, _) => {
                sent.insert("cost".to_owned(), json!(3));
            }
            (429, _) => {
                let block = Map::from_iter(
                    ["policy", "key"].map(|name| (name.to_owned(), body[name].clone())),
                );
                assert_eq!(post(&mut client, "/v1/block", &block).await.status, 200);
            }
            (status, path) => panic!("no test has the status {status} at {path}"),
        }
        let sent = Value::Object(sent).to_string();
        match (method, status) {
            (_, 408) => {
                let whole = encode_request("POST", path, "", &sent);
                client.send(whole.strip_suffix('}').unwrap()).await.unwrap();
            }
            (_, 413) => {
                let head =
                    format!("POST {path} HTTP/1.1\r\nhost: t\r\ncontent-length: 999999\r\n\r\n");
                client.send(&head).await.unwrap();
            }
            (method, _) => {
                let (path, body) = match method {
                    "POST" => (path.to_owned(), &*sent),
                    _ => (format!("{path}?{}", query(&sent)), ""),
                };
                let path =
                    if operation.is_empty() { path.split('?').next().unwrap() } else { &*path };
                client.send(&encode_request(method, path, &headers, body)).await.unwrap();
            }
        }
        (sent, client.read_response().await.unwrap())
    }
}

async fn post(client: &mut Client, path: &str, body: &Map<String, Value>) -> Response {
    client.post(path, &Value::Object(body.clone()).to_string()).await.unwrap()
}

/// A valid body for the operation.
fn body(operation: &str, key: &str) -> Map<String, Value> {
    let on_slots = matches!(operation, "acquire" | "renew" | "release");
    let policy = if on_slots { "slots" } else { "bucket" };
    let mut body = json!({ "policy": policy, "key": format!("{operation}-{key}") });
    if on_slots {
        body["lease_id"] = json!(ID);
    }
    if operation == "cancel" {
        body["reservation_id"] = json!(ID);
    }
    body.as_object().unwrap().clone()
}

fn query(body: &str) -> String {
    let body: Map<String, Value> = serde_json::from_str(body).unwrap();
    let pair = |(name, value): (&String, &Value)| match value {
        Value::String(text) => format!("{name}={text}"),
        other => format!("{name}={other}"),
    };
    body.iter().map(pair).collect::<Vec<_>>().join("&")
}

/// The documented operations, except those of gateways and Envoy, which have their own tests.
fn operations() -> impl Iterator<Item = (&'static str, String, &'static Value)> {
    let paths = DOCUMENT["paths"].as_object().unwrap().iter();
    let paths = paths.filter(|(path, _)| !path.starts_with(gateways::PREFIX));
    let paths = paths.filter(|(path, _)| !envoy::PATHS.contains(&&***path));
    paths.flat_map(|(path, operations)| {
        let operations = operations.as_object().unwrap().iter();
        operations.map(|(method, operation)| (&**path, method.to_uppercase(), operation))
    })
}

#[tokio::test]
async fn every_documented_status_occurs() {
    let daemons = Daemons::start().await;
    let mut occurred = 0;
    for (path, method, operation) in operations() {
        for status in operation["responses"].as_object().unwrap().keys() {
            let status = status.parse().unwrap();
            if (path, status) == ("/readyz", 503) {
                // Tested below, with a daemon that stops.
                continue;
            }
            let (body, response) = daemons.provoke(&method, path, status).await;
            assert_eq!(response.status, status, "{method} {path} {body}: {}", response.body);
            assert_documented(&method, path, &body, &response);
            occurred += 1;
        }
    }
    assert!(occurred > 150, "only {occurred}");
    let mut stopping = Daemon::start().await;
    let mut client = stopping.connect().await;
    client.get("/readyz").await.unwrap();
    stopping.stop();
    let response = loop {
        let response = client.get("/readyz").await.unwrap();
        if response.status != 200 {
            break response;
        }
    };
    assert_documented("GET", "/readyz", "", &response);
    assert_eq!(response.status, 503);
}

/// [`POLICIES`], with tiers for `bucket` and `slots`.
fn tiered() -> String {
    let bucket = r#"bucket: { limits: ["2/s"], tiers: { pro: ["3/s"] } }"#;
    let slots = r#"["2 concurrent lease 60s"], tiers: { pro: ["3 concurrent lease 60s"] } }"#;
    POLICIES
        .replace(r#"bucket: { limits: ["2/s"] }"#, bucket)
        .replace(r#"["2 concurrent lease 60s"] }"#, slots)
}

/// A valid value for each field.
fn value(field: &str) -> Value {
    match field {
        "policy" => json!("bucket"),
        "tier" => json!("pro"),
        "limit" => json!("2/s"),
        "key" => json!("k"),
        "key_base64" => json!("aw=="),
        "cost" => json!(1),
        "note" => json!("a note"),
        "checks" => {
            json!([{ "policy": "log", "key": "k", "cost": 0, "note": "n" }, { "limit": "1/s", "key_base64": "aw==" }])
        }
        "request_id" => json!("r"),
        "max_wait" => json!("30s"),
        "for" => json!(0.5),
        "lease_id" | "reservation_id" => json!(ID),
        "time" => json!(1_763_650_000),
        "status" => json!("200"),
        other => panic!("no test sends {other}"),
    }
}

/// Fields, and those that they replace.
const REPLACEMENTS: [(&str, &[&str]); 3] = [
    ("limit", &["policy"]),
    ("key_base64", &["key"]),
    ("checks", &["policy", "key", "cost", "note", "lease_id"]),
];

#[tokio::test]
async fn fields_are_accepted_only_where_documented() {
    let posts = || operations().filter(|(_, method, _)| method == "POST");
    let known = |operation: &'static Value| {
        let schema = &operation["requestBody"]["content"]["application/json"]["schema"];
        schema["properties"].as_object().unwrap().keys().map(|key| &**key).collect::<BTreeSet<_>>()
    };
    let every: BTreeSet<_> = posts().flat_map(|(_, _, operation)| known(operation)).collect();
    assert_eq!(every.len(), 14, "{every:?}");
    let (mut accepted, mut rejected) = (0, 0);
    for (path, _, operation) in posts() {
        let known = known(operation);
        for field in &every {
            // A new daemon, so that requests do not affect each other.
            let daemon = Daemon::start_with(&tiered()).await;
            let mut sent = body(path.strip_prefix("/v1/").unwrap(), "k");
            for (instead, others) in REPLACEMENTS.iter().filter(|(name, _)| name == field) {
                sent.retain(|name, _| !others.contains(&&**name) || !known.contains(instead));
            }
            if *field != "policy" {
                sent.insert((*field).to_owned(), value(field));
            }
            if (path, *field) == ("/v1/acquire", "checks") {
                sent["checks"] = json!([{ "policy": "slots", "key": "k" }]);
            }
            if *field == "limit" && sent.contains_key("lease_id") {
                sent["limit"] = json!("2 concurrent lease 60s");
            }
            let body = Value::Object(sent).to_string();
            let response = daemon.post(path, &body).await;
            assert_documented("POST", path, &body, &response);
            if known.contains(field) {
                assert_eq!(response.status, 200, "{path} {body}: {}", response.body);
                accepted += 1;
            } else {
                assert_eq!(response.status, 400, "{path} {body}: {}", response.body);
                let error = format!("unknown field \\\"{field}\\\"");
                assert!(response.body.contains(&error), "{path} {body}: {}", response.body);
                rejected += 1;
            }
        }
    }
    assert_eq!((accepted + rejected, rejected > 50), (14 * 14, true), "{accepted} {rejected}");
}

#[tokio::test]
async fn documented_query_parameters_are_accepted() {
    let daemon = Daemon::start_with(&tiered()).await;
    for (path, method, operation) in operations() {
        for parameter in operation["parameters"].as_array().into_iter().flatten() {
            let name = parameter["name"].as_str().unwrap();
            if !path.starts_with("/v1/") {
                assert_eq!((path, name), ("/readyz", "verbose"));
                continue;
            }
            let body = Value::Object(body(path.strip_prefix("/v1/").unwrap(), name)).to_string();
            let mut sent: Map<_, _> = serde_json::from_str(&body).unwrap();
            for (_, others) in REPLACEMENTS.iter().filter(|(field, _)| *field == name) {
                sent.retain(|sent, _| !others.contains(&&**sent));
            }
            sent.insert(name.to_owned(), value(name));
            let (path, body) = match &*method {
                "POST" => (format!("{path}?{name}=200"), body),
                _ => (format!("{path}?{}", query(&Value::Object(sent).to_string())), String::new()),
            };
            let response = daemon.connect().await.request(&method, &path, &body).await.unwrap();
            assert_eq!(response.status, 200, "{method} {path} {body}: {}", response.body);
            assert_documented(&method, &path, &body, &response);
        }
    }
}

#[tokio::test]
async fn verbose_readiness_lists_every_check() {
    let daemon = Daemon::start().await;
    let lines = "[+] requests ok\n[+] store ok\n[+] configuration ok\nok\n";
    for (path, body) in [
        ("/readyz", "ok\n"),
        ("/readyz?verbos", "ok\n"),
        ("/readyz?verbose", lines),
        ("/readyz?verbose=", lines),
        ("/readyz?a=b&verbose=true", lines),
    ] {
        let response = daemon.connect().await.get(path).await.unwrap();
        assert_eq!((response.status, &*response.body), (200, body), "{path}");
        assert_documented("GET", path, "", &response);
    }
}
