//! Everything in the document occurs: each status of each operation, and each field. Undocumented
//! fields are rejected.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};
use tollgate_daemon::Config;

use super::{DOCUMENT, assert_documented, gateways, operation};
use crate::http::access::{bearer, token};
use crate::support::client::{Client, Response, encode_request};
use crate::support::daemon::{Daemon, POLICIES};
use crate::support::{ID, unreachable_store};

/// The paths of envoyproxy/ratelimit.
const ENVOY_PATHS: [&str; 2] = ["/healthcheck", "/json"];

/// Daemons that together produce every status.
struct Daemons {
    ordinary: Daemon,
    /// Requires a token.
    guarded: Daemon,
    /// Has a short header timeout.
    impatient: Daemon,
    /// Has an unreachable store.
    without_store: Daemon,
}

impl Daemons {
    async fn start() -> Self {
        let policies = "policies: { bucket: { limits: [2/s] }, log: { limits: [2/min log] }, \
                        tracked: { limits: [2/s], track: { usage: true } }, \
                        slots: { limits: [2 concurrent lease 60s] } }";
        let impatient = format!("limits: {{ header_timeout: 100ms }}\n{policies}");
        let without_store = format!("store: {{ url: '{}' }}\n{policies}", unreachable_store());
        let without_store = Config::from_yaml(&without_store).unwrap();
        Daemons {
            ordinary: Daemon::start().await,
            guarded: Daemon::start_with_options(|config| {
                config.tokens = vec![token("nothing", "admin", "none")];
            })
            .await,
            impatient: Daemon::start_with(&impatient).await,
            without_store: Daemon::start_on_store(without_store).await,
        }
    }

    /// Sends a request that has this status. Returns its body and the response.
    async fn provoke(&self, method: &str, path: &str, status: u16) -> (String, Response) {
        let operation = path.strip_prefix("/v1/").unwrap_or("");
        let mut sent = Value::Object(body(operation, &format!("{method}-{status}")));
        let daemon = match status {
            401 | 403 => &self.guarded,
            408 => &self.impatient,
            503 => &self.without_store,
            _ => &self.ordinary,
        };
        let mut client = daemon.connect().await;
        let mut headers = String::new();
        match status {
            200 if operation == "settle" => charge(&mut client, &sent).await,
            200 | 401 | 408 | 413 | 503 => {}
            400 => sent["cots"] = json!(1),
            403 => headers = bearer("nothing"),
            404 => sent["policy"] = json!("nothing"),
            405 => return (String::new(), client.request("PUT", path, "").await.unwrap()),
            409 => {
                sent["request_id"] = json!(path);
                if operation == "settle" {
                    charge(&mut client, &sent).await;
                }
                let first = client.post(path, &sent.to_string()).await.unwrap();
                assert_eq!(first.status, 200, "{path}");
                let (field, other) = match operation {
                    "settle" => ("cost", json!(0)),
                    _ => ("key", json!("another")),
                };
                sent[field] = other;
            }
            422 => sent["cost"] = json!(3),
            429 => {
                let block = json!({ "policy": sent["policy"], "key": sent["key"] }).to_string();
                assert_eq!(client.post("/v1/block", &block).await.unwrap().status, 200);
            }
            status => panic!("no test has the status {status} at {path}"),
        }
        let sent = sent.to_string();
        match (method, status) {
            (_, 408) => {
                let whole = encode_request("POST", path, "", &sent);
                client.send(whole.strip_suffix('}').unwrap()).await.unwrap();
            }
            (_, 413) => {
                let head = format!(
                    "POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-length: 999999\r\n\r\n"
                );
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

/// Makes the charge that a settlement needs.
async fn charge(client: &mut Client, settlement: &Value) {
    let response = client.post("/v1/check", &settlement.to_string()).await.unwrap();
    response.assert(200, "", settlement);
}

/// A valid body for the operation.
fn body(operation: &str, key: &str) -> Map<String, Value> {
    if operation == "keys" {
        return json!({ "policy": "tracked" }).as_object().unwrap().clone();
    }
    let on_slots = matches!(operation, "acquire" | "renew" | "release");
    let policy = if on_slots { "slots" } else { "bucket" };
    let mut body = json!({ "policy": policy, "key": format!("{operation}-{key}") });
    if on_slots {
        body["lease_id"] = json!(ID);
    }
    if operation == "settle" {
        body["request_id"] = json!(key);
        body["cost"] = json!(1);
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
    let paths = paths.filter(|(path, _)| !ENVOY_PATHS.contains(&&***path));
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
            response.assert(status, "", format_args!("{method} {path} {body}"));
            assert_documented(&method, path, &body, &response);
            occurred += 1;
        }
    }
    assert!(occurred > 150, "only {occurred}");
    let stopping = Daemon::start().await;
    let mut client = stopping.connect().await;
    client.get("/readyz").await.unwrap();
    assert_unready_while_stopping(stopping, client, "/readyz", (503, "draining\n")).await;
}

/// Stops a daemon, and asserts that a probe then has this status and body.
async fn assert_unready_while_stopping(
    mut daemon: Daemon,
    mut client: Client,
    path: &str,
    expected: (u16, &str),
) {
    daemon.stop();
    // The connection was used just now, so the daemon does not close it as idle yet.
    let response = loop {
        let response = client.get(path).await.unwrap();
        if response.status != 200 {
            break response;
        }
    };
    assert_eq!((response.status, &*response.body), expected, "{path}");
    assert_documented("GET", path, "", &response);
    daemon.join().await;
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
        // A domain that no file defines is the name of a policy.
        "domain" => json!("bucket"),
        "descriptor" => json!("k=v"),
        "key" => json!("k"),
        "key_base64" => json!("aw=="),
        "cost" => json!(1),
        "note" => json!("a note"),
        "checks" => {
            json!([{ "policy": "log", "key": "k", "cost": 0, "note": "n" }, { "limit": "1/s", "key_base64": "aw==", "cost": 1 }])
        }
        "request_id" => json!("r"),
        "max_wait" => json!("30s"),
        "for" => json!(0.5),
        "lease_id" | "reservation_id" => json!(ID),
        "time" => json!(1_763_650_000),
        "status" => json!("200"),
        "order" => json!("most-used"),
        "prefix" => json!("k"),
        other => panic!("no test sends {other}"),
    }
}

/// Fields, and those that they replace.
const REPLACEMENTS: [(&str, &[&str]); 5] = [
    ("domain", &["policy", "key"]),
    ("descriptor", &["policy", "key"]),
    ("limit", &["policy"]),
    ("key_base64", &["key"]),
    ("checks", &["policy", "key", "cost", "note", "lease_id"]),
];

/// The cursor of a first page of keys.
async fn cursor(daemon: &Daemon) -> Value {
    for key in ["k1", "k2"] {
        let check = json!({ "policy": "tracked", "key": key, "note": "n" }).to_string();
        daemon.post("/v1/check", &check).await.assert(200, "", key);
    }
    let page = daemon.connect().await.get("/v1/keys?policy=tracked&limit=1").await.unwrap();
    serde_json::from_str::<Value>(&page.body).unwrap()["cursor"].clone()
}

/// Sets a field, and the one that it requires.
fn set(sent: &mut Map<String, Value>, field: &str) {
    let required = match field {
        "domain" => Some("descriptor"),
        "descriptor" => Some("domain"),
        _ => None,
    };
    for field in [field].into_iter().chain(required) {
        sent.insert(field.to_owned(), value(field));
    }
}

#[tokio::test]
async fn fields_are_accepted_only_where_documented() {
    let posts = || operations().filter(|(_, method, _)| method == "POST");
    let known = |operation: &'static Value| {
        let schema = &operation["requestBody"]["content"]["application/json"]["schema"];
        schema["properties"].as_object().unwrap().keys().map(|key| &**key).collect::<BTreeSet<_>>()
    };
    let every: BTreeSet<_> = posts().flat_map(|(_, _, operation)| known(operation)).collect();
    assert_eq!(every.len(), 16, "{every:?}");
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
                set(&mut sent, field);
            }
            if (path, *field) == ("/v1/acquire", "checks") {
                sent["checks"] = json!([{ "policy": "slots", "key": "k" }]);
            }
            if *field == "limit" && sent.contains_key("lease_id") {
                sent["limit"] = json!("2 concurrent lease 60s");
            }
            let body = Value::Object(sent).to_string();
            if path == "/v1/settle" && known.contains(field) {
                daemon.post("/v1/check", &body).await.assert(200, "", &body);
            }
            let response = daemon.post(path, &body).await;
            assert_documented("POST", path, &body, &response);
            let row = format!("{path} {body}");
            if known.contains(field) {
                response.assert(200, "", row);
                accepted += 1;
            } else {
                response.assert(400, r#"unknown field \""#, row);
                rejected += 1;
            }
        }
    }
    assert_eq!((accepted + rejected, rejected > 50), (15 * 16, true), "{accepted} {rejected}");
}

#[tokio::test]
async fn documented_query_parameters_are_accepted() {
    let daemon = Daemon::start_with(&tiered()).await;
    let cursor = cursor(&daemon).await;
    for (path, method, operation) in operations() {
        for parameter in operation["parameters"].as_array().into_iter().flatten() {
            let name = parameter["name"].as_str().unwrap();
            if !path.starts_with("/v1/") {
                assert_eq!((path, name), ("/readyz", "verbose"));
                continue;
            }
            let body = Value::Object(body(path.strip_prefix("/v1/").unwrap(), name)).to_string();
            let mut sent: Map<_, _> = serde_json::from_str(&body).unwrap();
            // The limit of a page replaces no policy.
            let replaces = |field: &str| field == name && path != "/v1/keys";
            for (_, others) in REPLACEMENTS.iter().filter(|(field, _)| replaces(field)) {
                sent.retain(|sent, _| !others.contains(&&**sent));
            }
            match (path, name) {
                ("/v1/keys", "policy") => {}
                ("/v1/keys", "limit") => drop(sent.insert(name.to_owned(), json!(5))),
                ("/v1/keys", "cursor") => drop(sent.insert(name.to_owned(), cursor.clone())),
                _ => set(&mut sent, name),
            }
            let (path, body) = match &*method {
                "POST" => (format!("{path}?{name}=200"), body),
                _ => (format!("{path}?{}", query(&Value::Object(sent).to_string())), String::new()),
            };
            if path.starts_with("/v1/settle") {
                daemon.post("/v1/check", &body).await.assert(200, "", &body);
            }
            let response = daemon.connect().await.request(&method, &path, &body).await.unwrap();
            response.assert(200, "", format_args!("{method} {path} {body}"));
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

const CHECK: &str = r#"{"domain":"log","descriptors":[{"entries":[{"key":"k","value":"v"}]}]}"#;
const REFUND: &str = r#"{"domain":"log","descriptors":[{"entries":[{"key":"k","value":"v"}],"isNegativeHits":true}]}"#;

#[tokio::test]
async fn every_documented_status_of_the_rate_limit_service_occurs() {
    let daemons = Daemons::start().await;
    let post = |body| encode_request("POST", "/json", "", body);
    let whole = post(CHECK);
    let incomplete = whole.strip_suffix('}').unwrap().to_owned();
    let large =
        "POST /json HTTP/1.1\r\nhost: localhost\r\ncontent-length: 999999\r\n\r\n".to_owned();
    let with_token = encode_request("POST", "/json", &bearer("nothing"), CHECK);
    let documented = operation("POST", "/json").unwrap()["responses"].as_object().unwrap();
    let mut missing: BTreeSet<u16> = documented.keys().map(|key| key.parse().unwrap()).collect();
    for (daemon, request, body, status) in [
        (&daemons.ordinary, whole.clone(), CHECK, 200),
        (&daemons.ordinary, whole.clone(), CHECK, 200),
        (&daemons.ordinary, whole.clone(), CHECK, 429),
        (&daemons.ordinary, post("{"), "", 400),
        (&daemons.ordinary, encode_request("GET", "/json", "", ""), "", 405),
        (&daemons.ordinary, large, "", 413),
        (&daemons.guarded, whole.clone(), CHECK, 401),
        (&daemons.guarded, with_token, CHECK, 403),
        (&daemons.impatient, incomplete, "", 408),
        (&daemons.without_store, post(REFUND), REFUND, 503),
    ] {
        let response = daemon.send(&request).await.read_response().await.unwrap();
        response.assert(status, "", &request);
        assert_documented("POST", "/json", body, &response);
        missing.remove(&status);
    }
    assert_eq!(missing, BTreeSet::new());
    assert!(DOCUMENT["paths"].get("/healthcheck").is_some());
}

#[tokio::test]
async fn healthcheck_fails_once_the_daemon_stops() {
    let daemon = Daemon::start().await;
    let mut client = daemon.connect().await;
    let response = client.get("/healthcheck").await.unwrap();
    assert_eq!((response.status, &*response.body), (200, "OK"));
    assert_documented("GET", "/healthcheck", "", &response);
    let response = daemon.post("/healthcheck", "").await;
    assert_eq!(response.status, 405);
    assert_documented("POST", "/healthcheck", "", &response);
    assert_unready_while_stopping(daemon, client, "/healthcheck", (500, "not ready")).await;
}
