//! The admin listener: its API, its rights, and what browsers may send it.

use std::time::Duration;

use serde_json::Value;
use tokio::io::AsyncReadExt;
use tokio::net::TcpListener;
use tokio::time::{sleep, timeout};
use tollgate_daemon::{Config, Listener, Listeners};
use tollgate_testkit::Folder;

use crate::support::client::{Client, Response, encode_request};
use crate::support::daemon::{Daemon, POLICIES};
use crate::support::{TIMEOUT, eventually};

const TOKENS: &str = r#"
tokens:
  - { name: viewer, token: "viewer-0123456789", scopes: [read] }
  - { name: ops, token: "ops-0123456789abc", scopes: [read, operate] }
  - { name: gateway, token: "gateway-0123456789", scopes: [check] }
  - { name: narrow, token: "narrow-0123456789", scopes: [read, operate], policies: [log] }
"#;

/// The headers that a browser adds to a request of the dashboard.
const OWN_PAGE: &str = "sec-fetch-site: same-origin\r\nsec-fetch-mode: cors\r\n\
    origin: http://localhost\r\nreferer: http://localhost/\r\ncontent-type: application/json";

async fn get(daemon: &Daemon, path: &str, headers: &str) -> Response {
    let mut client = Client::connect(daemon.admin).await;
    client.request_with("GET", path, headers, "").await.unwrap()
}

async fn post(daemon: &Daemon, path: &str, headers: &str, body: &str) -> Response {
    let mut client = Client::connect(daemon.admin).await;
    client.request_with("POST", path, headers, body).await.unwrap()
}

async fn json(daemon: &Daemon, path: &str) -> Value {
    let response = get(daemon, path, "").await;
    assert_eq!(response.status, 200, "{path}: {}", response.body);
    serde_json::from_str(&response.body).unwrap()
}

/// The row of a policy in an overview.
fn row<'v>(overview: &'v Value, policy: &str) -> &'v Value {
    let rows = overview["policies"].as_array().unwrap();
    rows.iter().find(|row| row["name"] == policy).unwrap()
}

#[tokio::test]
async fn decisions_appear_in_the_overview_and_on_the_page_of_their_policy() {
    let daemon = Daemon::start().await;
    for _ in 0..5 {
        daemon.post("/v1/check", r#"{"policy":"log","key":"a"}"#).await;
    }
    daemon.post("/v1/check", r#"{"limit":"1/s","key":"a"}"#).await;
    for _ in 0..2 {
        daemon.post("/v1/check", r#"{"policy":"ghost","key":"a"}"#).await;
    }
    let is_counted =
        async || row(&json(&daemon, "/api/overview").await, "log")["totals"]["denied"] == 3;
    eventually("the counts", is_counted).await;
    let overview = json(&daemon, "/api/overview").await;
    let log = row(&overview, "log");
    assert_eq!(log["limits"], serde_json::json!(["2/min log"]));
    assert_eq!(log["totals"]["allowed"], 2);
    assert!(log["rates"]["denied"].as_f64().unwrap() > 0.0, "{log}");
    assert_eq!(row(&overview, "ghost")["shadow"], true);
    assert_eq!(row(&overview, "ghost")["totals"]["shadow_denied"], 1);
    assert_eq!(row(&overview, "_inline")["totals"]["allowed"], 1);
    assert_eq!(row(&overview, "bucket")["totals"]["allowed"], 0);
    assert_eq!(overview["totals"]["allowed"], 4);
    assert_eq!(overview["store"]["kind"], "memory");
    assert_eq!(overview["store"]["keys"], 3);
    assert_eq!(overview["latency"][0]["surface"], "http");
    assert_eq!(overview["latency"][0]["requests"], 8);
    let policy = json(&daemon, "/api/policies/log").await;
    assert_eq!(policy["totals"], log["totals"]);
    assert_eq!(policy["surfaces"][0]["surface"], "http");
    assert_eq!(policy["surfaces"][0]["denied"], 3);
    let series = |name: &str| -> Vec<f64> {
        let series = policy["history"][name].as_array().unwrap();
        series.iter().map(|number| number.as_f64().unwrap()).collect()
    };
    assert_eq!(series("time").len(), series("denied").len());
    assert!(series("denied").iter().sum::<f64>() > 0.0, "{policy}");
    assert_eq!(json(&daemon, "/api/policies/%5Finline").await["configured"], false);
    let unknown = get(&daemon, "/api/policies/lgo", "").await;
    unknown.assert(404, r#"did you mean \"log\"?"#, "unknown policy");
}

#[tokio::test]
async fn events_are_sent_once_a_second_and_end_when_the_daemon_stops() {
    let mut daemon = Daemon::start().await;
    let mut client = Client::connect(daemon.admin).await;
    client.send(&encode_request("GET", "/api/events", "", "")).await.unwrap();
    let mut text = String::new();
    let mut buffer = [0; 16 * 1024];
    let mut read = async |text: &mut String| {
        let count = timeout(TIMEOUT, client.0.read(&mut buffer)).await.unwrap().unwrap();
        text.push_str(std::str::from_utf8(&buffer[..count]).unwrap());
        count
    };
    while text.matches("event: overview").count() < 2 {
        assert_ne!(read(&mut text).await, 0, "{text}");
    }
    assert!(text.contains("content-type: text/event-stream"), "{text}");
    daemon.post("/v1/check", r#"{"policy":"bucket","key":"a"}"#).await;
    while !text.contains(r#""totals":{"allowed":1"#) {
        assert_ne!(read(&mut text).await, 0, "{text}");
    }
    daemon.stop();
    let is_ended = async { while read(&mut text).await > 0 {} };
    timeout(TIMEOUT, is_ended).await.unwrap();
    assert!(text.ends_with("0\r\n\r\n"), "the body ends with its last chunk: {text}");
    daemon.join().await;
}

#[tokio::test]
async fn the_number_of_streams_is_bounded_and_a_closed_one_makes_room() {
    let daemon = Daemon::start().await;
    let open = async || {
        let mut client = Client::connect(daemon.admin).await;
        client.send(&encode_request("GET", "/api/events", "", "")).await.unwrap();
        let mut head = [0; 12];
        client.0.read_exact(&mut head).await.unwrap();
        (client, String::from_utf8(head.to_vec()).unwrap())
    };
    let mut clients = Vec::new();
    for _ in 0..32 {
        let (client, status) = open().await;
        assert_eq!(status, "HTTP/1.1 200");
        clients.push(client);
    }
    assert_eq!(open().await.1, "HTTP/1.1 503");
    clients.pop();
    eventually("a free place", async || open().await.1 == "HTTP/1.1 200").await;
}

/// A client with a receive buffer of the default size that never reads stops reading early.
#[tokio::test]
async fn a_client_that_does_not_read_is_dropped() {
    let daemon = Daemon::start_with(&format!("limits: {{ write_timeout: 1s }}\n{POLICIES}")).await;
    let (mut many, mut names) = (String::from("policies:\n"), 0);
    while many.len() < 64 * 1024 {
        many.push_str(&format!("  policy{names}: {{ limits: [1/s] }}\n"));
        names += 1;
    }
    drop(daemon);
    let config = format!("limits: {{ write_timeout: 1s }}\n{many}");
    let daemon = Daemon::start_with(&config).await;
    let mut client = Client::connect(daemon.admin).await;
    client.send(&encode_request("GET", "/api/events", "", "")).await.unwrap();
    let mut metrics = Client::connect(daemon.metrics).await;
    let cut = "tollgate_connections_cut_total{listener=\"admin\",reason=\"overdue\"} 1";
    eventually("the cut", async || {
        sleep(Duration::from_millis(50)).await;
        metrics.get("/metrics").await.unwrap().body.contains(cut)
    })
    .await;
}

#[tokio::test]
async fn each_path_needs_the_scopes_of_its_data() {
    let daemon = Daemon::start_unchanged(config(TOKENS)).await;
    let body = r#"{"policy":"log","key":"a"}"#;
    for (method, path, permitted) in [
        ("GET", "/api/overview", "viewer ops narrow"),
        ("GET", "/api/session", "viewer ops narrow"),
        ("GET", "/api/policies/log", "viewer ops narrow"),
        ("GET", "/api/policies/pair", "viewer ops"),
        // It names keys of every policy.
        ("GET", "/api/config", "viewer ops"),
        ("GET", "/api/key?policy=log&key=a", "viewer ops narrow"),
        ("GET", "/api/key?policy=pair&key=a", "viewer ops"),
        ("POST", "/api/peek", "viewer ops gateway narrow"),
        ("POST", "/api/reset", "ops narrow"),
        ("POST", "/api/block", "ops narrow"),
        ("POST", "/api/unblock", "ops narrow"),
    ] {
        for name in ["viewer", "ops", "gateway", "narrow"] {
            let secret = format!("{name}-0123456789abcdef");
            let secret = if name == "ops" { &secret[..17] } else { &secret[..name.len() + 11] };
            let header = format!("authorization: Bearer {secret}");
            let mut client = Client::connect(daemon.admin).await;
            let body = if method == "POST" { body } else { "" };
            let response = client.request_with(method, path, &header, body).await.unwrap();
            let expected = if permitted.split(' ').any(|other| other == name) { 200 } else { 403 };
            assert_eq!(response.status, expected, "{name} {path}: {}", response.body);
        }
        let mut client = Client::connect(daemon.admin).await;
        let response = client.request(method, path, if method == "POST" { body } else { "" }).await;
        response.unwrap().assert(401, "a token is required", path);
    }
    // The pages contain no data.
    let page = get(&daemon, "/", "").await;
    page.assert(200, "<!doctype html>", "page");
}

#[tokio::test]
async fn the_session_states_why_the_client_may_not_operate() {
    let daemon = Daemon::start_unchanged(config(TOKENS)).await;
    let session = get(&daemon, "/api/session", "authorization: Bearer viewer-0123456789").await;
    session.assert(200, r#""principal":"viewer","tokens":true,"operate":false"#, "viewer");
    session.assert(200, "needs the scope operate", "viewer");
    let session = get(&daemon, "/api/session", "authorization: Bearer ops-0123456789abc").await;
    session.assert(200, r#""operate":true,"reason":null"#, "ops");
}

#[tokio::test]
async fn only_the_dashboard_itself_operates_without_a_token() {
    let daemon = Daemon::start().await;
    let body = r#"{"policy":"log","key":"a"}"#;
    for (headers, status) in [
        ("", 200),
        (OWN_PAGE, 200),
        ("sec-fetch-site: cross-site\r\ncontent-type: application/json", 403),
        ("sec-fetch-site: same-site\r\ncontent-type: application/json", 403),
        ("origin: http://localhost:8080\r\ncontent-type: application/json", 403),
        ("origin: http://localhost\r\ncontent-type: text/plain", 403),
        ("origin: null\r\ncontent-type: application/json", 403),
        (
            "sec-fetch-site: same-origin\r\nx-forwarded-for: 10.0.0.1\r\ncontent-type: application/json",
            403,
        ),
    ] {
        for path in ["/api/reset", "/api/block", "/api/unblock"] {
            let response = post(&daemon, path, headers, body).await;
            assert_eq!(response.status, status, "{path} {headers}: {}", response.body);
        }
    }
    // The JSON API admits no page at all.
    let other = daemon.post_with("/v1/reset", OWN_PAGE, body).await;
    other.assert(403, "from a web page", "the HTTP listener");
}

#[tokio::test]
async fn a_name_that_points_at_this_machine_reads_nothing() {
    let folder = Folder::create();
    let path = folder.join("admin.sock");
    let unix = Listener::bind_unix(&path).await.unwrap();
    let daemon = Daemon::start_unchanged_with(config(""), |listeners| {
        listeners.admin = Some(unix);
    })
    .await;
    let tcp = Daemon::start().await;
    for path in ["/", "/main.js", "/api/overview", "/api/events", "/api/key?policy=log&key=a"] {
        let request = format!("GET {path} HTTP/1.1\r\nhost: evil.example\r\n\r\n");
        let mut client = Client::connect(tcp.admin).await;
        client.send(&request).await.unwrap();
        client.read_response().await.unwrap().assert(403, "the Host is foreign", path);
        // Over a forwarded socket, too.
        let stream = tokio::net::UnixStream::connect(folder.join("admin.sock")).await.unwrap();
        let mut client = Client(stream);
        client.send(&request).await.unwrap();
        client.read_response().await.unwrap().assert(403, "the Host is foreign", path);
        assert_eq!(client.get(path).await.unwrap().status, 200, "{path}");
    }
    drop(daemon);
}

#[tokio::test]
async fn every_response_forbids_other_origins_and_inline_scripts() {
    let daemon = Daemon::start().await;
    for path in ["/", "/main.js", "/api/overview", "/api/nothing", "/nothing"] {
        let response = get(&daemon, path, "").await;
        let policy = response.header("content-security-policy").unwrap();
        assert!(policy.starts_with("default-src 'none'; script-src 'self'"), "{path}: {policy}");
        assert!(!policy.contains("unsafe"), "{path}: {policy}");
        assert_eq!(response.header("x-frame-options"), Some("DENY"), "{path}");
        assert_eq!(response.header("x-content-type-options"), Some("nosniff"), "{path}");
        assert_eq!(response.header("referrer-policy"), Some("no-referrer"), "{path}");
    }
    let page = get(&daemon, "/", "").await;
    let tag = page.header("etag").unwrap();
    let again = get(&daemon, "/", &format!("if-none-match: {tag}")).await;
    assert_eq!((again.status, &*again.body), (304, ""));
    // Another site may link to the dashboard.
    let link = "sec-fetch-site: cross-site\r\nsec-fetch-mode: navigate\r\nsec-fetch-dest: document";
    assert_eq!(get(&daemon, "/", link).await.status, 200);
    get(&daemon, "/api/overview", link).await.assert(403, "another site", "API");
}

#[tokio::test]
async fn requests_to_wrong_paths_and_methods_name_the_right_ones() {
    let daemon = Daemon::start().await;
    get(&daemon, "/api/overvew", "").await.assert(404, "did you mean", "path");
    let reset = get(&daemon, "/api/reset", "").await;
    reset.assert(405, "does not support GET; use POST", "method");
    assert_eq!(reset.header("allow"), Some("POST"));
    post(&daemon, "/api/overview", "", "").await.assert(405, "use GET", "method");
    post(&daemon, "/", "", "").await.assert(405, "use GET, HEAD", "page");
    // Operations that the dashboard does not have are not there.
    post(&daemon, "/api/check", "", "{}").await.assert(404, "unknown path", "check");
    post(&daemon, "/api/peek", "", r#"{"policy":"log"}"#).await.assert(
        400,
        "key is missing",
        "key",
    );
}

#[tokio::test]
async fn a_listener_that_other_machines_reach_needs_tokens() {
    let listener = TcpListener::bind("0.0.0.0:0").await.unwrap();
    let listeners = Listeners { admin: Some(listener.into()), ..Listeners::default() };
    let limiter = tollgate::MemoryLimiter::new();
    let stop = std::future::pending();
    let error = tollgate_daemon::run(config(""), listeners, limiter, None, stop).await.unwrap_err();
    let error = error.to_string();
    assert!(error.contains("the dashboard requires a token; add one"), "{error}");
}

#[tokio::test]
async fn the_configuration_page_has_the_last_reload_and_no_secret() {
    let folder = Folder::create();
    let yaml = "tokens: [{ name: t, token: \"secret-0123456789\", scopes: [read] }]\n\
        policies: { api: { limits: [5/s] } }\n";
    let file = folder.write("tollgate.yaml", yaml);
    let daemon = Daemon::start_from_file(&file).await;
    let header = "authorization: Bearer secret-0123456789";
    let config = async || -> Value {
        let response = get(&daemon, "/api/config", header).await;
        assert!(!response.body.contains("secret-0123456789"), "{}", response.body);
        serde_json::from_str(&response.body).unwrap()
    };
    let has_limit = async |limit: &str| config().await["yaml"].as_str().unwrap().contains(limit);
    assert!(has_limit("[\"5/s\"]").await, "{}", config().await);
    assert_eq!(config().await["last"], Value::Null);
    folder.write("tollgate.yaml", yaml.replace("5/s", "6/s"));
    eventually("the reload", async || has_limit("[\"6/s\"]").await).await;
    folder.write("tollgate.yaml", yaml.replace("5/s", "six"));
    eventually("the rejection", async || config().await["accepted"] == false).await;
    let rejected = config().await;
    assert!(rejected["error"].as_str().unwrap().contains("six"), "{rejected}");
    assert!(rejected["yaml"].as_str().unwrap().contains("6/s"), "{rejected}");
}

#[tokio::test]
async fn a_token_that_a_reload_removes_ends_its_stream() {
    let folder = Folder::create();
    let yaml = "tokens: [{ name: t, token: \"secret-0123456789\", scopes: [read] }]\n";
    let daemon = Daemon::start_from_file(&folder.write("tollgate.yaml", yaml)).await;
    let header = "authorization: Bearer secret-0123456789";
    let mut client = Client::connect(daemon.admin).await;
    client.send(&encode_request("GET", "/api/events", header, "")).await.unwrap();
    client.read_response().await.unwrap().assert(200, "", "stream");
    folder.write("tollgate.yaml", yaml.replace("secret", "second"));
    let text = timeout(TIMEOUT, client.read_until_chunked_end()).await.unwrap();
    assert!(text.contains("event: overview"), "{text}");
    // The first look at the file may have ended the stream, just before it changed.
    eventually("the reload", async || get(&daemon, "/api/session", header).await.status == 401)
        .await;
}

fn config(more: &str) -> Config {
    Config::from_yaml(&format!("{more}{POLICIES}")).unwrap()
}
