//! Nothing stands in the document that does not happen: each status of each operation is provoked,
//! each field is sent, and each field that is not there is refused.

use std::collections::BTreeSet;
use std::net::TcpListener;

use serde_json::{Map, Value, json};

use super::document::{DOCUMENT, hold};
use super::{envoy, gateways};
use crate::access::{bearer, token};
use crate::client::{Answer, Client, request};
use crate::daemon::{Daemon, POLICIES};

const ID: &str = "0000000000000000000000000000000a";

/// The daemons that it takes.
struct Daemons {
    usual: Daemon,
    guarded: Daemon,
    impatient: Daemon,
    without_store: Daemon,
}

impl Daemons {
    async fn start() -> Self {
        let guarded = Daemon::start_changed(|x| {
            x.tokens = vec![token("nothing", "admin", "none")];
        });
        let impatient =
            "limits: { header_timeout: 100ms }\npolicies: { bucket: { limits: [2/s] } }";
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let without_store = format!(
            "store: {{ url: 'redis://127.0.0.1:{port}' }}\n\
             policies: {{ bucket: {{ limits: [2/s] }}, slots: {{ limits: [2 concurrent lease 60s] }} }}"
        );
        Daemons {
            usual: Daemon::start().await,
            guarded: guarded.await,
            impatient: Daemon::start_with(impatient).await,
            without_store: Daemon::start_on_store(&without_store).await,
        }
    }

    /// Asks for an operation in a way that has this status.
    async fn provoke(&self, method: &str, path: &str, status: u16) -> (String, Answer) {
        let verb = path.strip_prefix("/v1/").unwrap_or("");
        let key = format!("{method}-{status}");
        let body = body(verb, &key);
        let mut sent = body.clone();
        let daemon = match status {
            401 | 403 => &self.guarded,
            408 => &self.impatient,
            503 => &self.without_store,
            _ => &self.usual,
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
                return (String::new(), client.ask("PUT", path, "").await.unwrap());
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
                let block =
                    Map::from_iter(["policy", "key"].map(|x| (x.to_owned(), body[x].clone())));
                assert_eq!(post(&mut client, "/v1/block", &block).await.status, 200);
            }
            (status, path) => panic!("no test has the status {status} at {path}"),
        }
        let sent = Value::Object(sent).to_string();
        match (method, status) {
            (_, 408) => {
                let whole = request("POST", path, &sent);
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
                let path = if verb.is_empty() { path.split('?').next().unwrap() } else { &*path };
                let line = if headers.is_empty() { headers } else { format!("{headers}\r\n") };
                let asked = request(method, path, body).replacen("\r\n", &format!("\r\n{line}"), 1);
                client.send(&asked).await.unwrap();
            }
        }
        (sent, client.answer().await.unwrap())
    }
}

async fn post(client: &mut Client, path: &str, body: &Map<String, Value>) -> Answer {
    client.post(path, &Value::Object(body.clone()).to_string()).await.unwrap()
}

/// A body that the verb takes.
fn body(verb: &str, key: &str) -> Map<String, Value> {
    let on_slots = matches!(verb, "acquire" | "renew" | "release");
    let policy = if on_slots { "slots" } else { "bucket" };
    let mut body = json!({ "policy": policy, "key": format!("{verb}-{key}") });
    if on_slots {
        body["lease_id"] = json!(ID);
    }
    if verb == "cancel" {
        body["reservation_id"] = json!(ID);
    }
    body.as_object().unwrap().clone()
}

fn query(body: &str) -> String {
    let body: Map<String, Value> = serde_json::from_str(body).unwrap();
    let pair = |(name, value): (&String, &Value)| match value {
        Value::String(string) => format!("{name}={string}"),
        other => format!("{name}={other}"),
    };
    body.iter().map(pair).collect::<Vec<_>>().join("&")
}

/// All but the gateways' and Envoy's, which have tests of their own.
fn operations() -> impl Iterator<Item = (&'static str, String, &'static Value)> {
    let paths = DOCUMENT["paths"].as_object().unwrap().iter();
    let paths = paths.filter(|(path, _)| !path.starts_with(gateways::PREFIX));
    let paths = paths.filter(|(path, _)| !envoy::PATHS.contains(&&***path));
    paths.flat_map(|(path, operations)| {
        let operations = operations.as_object().unwrap().iter();
        operations.map(|(method, x)| (&**path, method.to_uppercase(), x))
    })
}

#[tokio::test]
async fn each_status_of_each_operation_happens() {
    let daemons = Daemons::start().await;
    let mut happened = 0;
    for (path, method, operation) in operations() {
        for status in operation["responses"].as_object().unwrap().keys() {
            let status = status.parse().unwrap();
            if (path, status) == ("/readyz", 503) {
                // It is met below: the daemon that says so is at its end.
                continue;
            }
            let (body, answer) = daemons.provoke(&method, path, status).await;
            assert_eq!(answer.status, status, "{method} {path} {body}: {}", answer.body);
            hold(&method, path, &body, &answer);
            happened += 1;
        }
    }
    assert!(happened > 150, "only {happened}");
    let mut stopping = Daemon::start().await;
    let mut client = stopping.connect().await;
    client.get("/readyz").await.unwrap();
    stopping.stop();
    let told = loop {
        let told = client.get("/readyz").await.unwrap();
        if told.status != 200 {
            break told;
        }
    };
    hold("GET", "/readyz", "", &told);
    assert_eq!(told.status, 503);
}

/// The policies of most tests, of which those that are asked for have a tier.
fn tiered() -> String {
    let bucket = r#"bucket: { limits: ["2/s"], tiers: { pro: ["3/s"] } }"#;
    let slots = r#"["2 concurrent lease 60s"], tiers: { pro: ["3 concurrent lease 60s"] } }"#;
    POLICIES
        .replace(r#"bucket: { limits: ["2/s"] }"#, bucket)
        .replace(r#"["2 concurrent lease 60s"] }"#, slots)
}

/// The value of each field, where it is sent with others that go with it.
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

/// Fields of which a request has one only.
const INSTEAD: [(&str, &[&str]); 3] = [
    ("limit", &["policy"]),
    ("key_base64", &["key"]),
    ("checks", &["policy", "key", "cost", "note", "lease_id"]),
];

#[tokio::test]
async fn each_field_is_taken_where_it_is_told_and_nowhere_else() {
    let posts = || operations().filter(|(_, method, _)| method == "POST");
    let known = |operation: &'static Value| {
        let schema = &operation["requestBody"]["content"]["application/json"]["schema"];
        schema["properties"].as_object().unwrap().keys().map(|key| &**key).collect::<BTreeSet<_>>()
    };
    let every: BTreeSet<_> = posts().flat_map(|(_, _, x)| known(x)).collect();
    assert_eq!(every.len(), 14, "{every:?}");
    let (mut taken, mut refused) = (0, 0);
    for (path, _, operation) in posts() {
        let known = known(operation);
        for field in &every {
            // A daemon of its own: what one request has done must not meet the next.
            let daemon = Daemon::start_with(&tiered()).await;
            let mut sent = body(path.strip_prefix("/v1/").unwrap(), "k");
            for (instead, others) in INSTEAD.iter().filter(|(x, _)| x == field) {
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
            let answer = daemon.post(path, &body).await;
            hold("POST", path, &body, &answer);
            if known.contains(field) {
                assert_eq!(answer.status, 200, "{path} {body}: {}", answer.body);
                taken += 1;
            } else {
                assert_eq!(answer.status, 400, "{path} {body}: {}", answer.body);
                let refusal = format!("unknown field \\\"{field}\\\"");
                assert!(answer.body.contains(&refusal), "{path} {body}: {}", answer.body);
                refused += 1;
            }
        }
    }
    assert_eq!((taken + refused, refused > 50), (14 * 14, true), "{taken} {refused}");
}

#[tokio::test]
async fn each_parameter_of_a_query_is_taken() {
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
            for (_, others) in INSTEAD.iter().filter(|(x, _)| *x == name) {
                sent.retain(|sent, _| !others.contains(&&**sent));
            }
            sent.insert(name.to_owned(), value(name));
            let (path, body) = match &*method {
                "POST" => (format!("{path}?{name}=200"), body),
                _ => (format!("{path}?{}", query(&Value::Object(sent).to_string())), String::new()),
            };
            let answer = daemon.connect().await.ask(&method, &path, &body).await.unwrap();
            assert_eq!(answer.status, 200, "{method} {path} {body}: {}", answer.body);
            hold(&method, &path, &body, &answer);
        }
    }
}

#[tokio::test]
async fn readiness_tells_all_that_may_be_wrong_if_asked() {
    let daemon = Daemon::start().await;
    let lines = "[+] requests ok\n[+] store ok\n[+] configuration ok\nok\n";
    for (path, body) in [
        ("/readyz", "ok\n"),
        ("/readyz?verbos", "ok\n"),
        ("/readyz?verbose", lines),
        ("/readyz?verbose=", lines),
        ("/readyz?a=b&verbose=true", lines),
    ] {
        let answer = daemon.connect().await.get(path).await.unwrap();
        assert_eq!((answer.status, &*answer.body), (200, body), "{path}");
        hold("GET", path, "", &answer);
    }
}
