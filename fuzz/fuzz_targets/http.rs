//! Sends arbitrary requests to the JSON API and to forward auth: the status is one that the OpenAPI
//! document lists, and a refused request changes nothing.
//!
//! The first byte selects the configuration: without or with tokens. The requests follow, separated
//! by NUL.
//!
//! `cargo xtask fuzz http`
#![no_main]

use std::sync::LazyLock;

use hyper::body::Incoming;
use hyper::header::CONTENT_TYPE;
use hyper::{Method, Request, StatusCode};
use libfuzzer_sys::fuzz_target;
use serde_json::Value;
use tollgate::Policy;
use tollgate_config::Config;
use tollgate_fuzz::{Daemon, State, body, request, serve, statuses};
use tollgate_http::{HttpState, Reply};

/// Policies of every kind, and low limits that few requests reach.
const CONFIG: &str = r#"
limits: { body: 512, key_bytes: 64, checks: 4 }
headers: [draft11, draft6, legacy-delta]
trusted_proxies: [127.0.0.1]
jwt: { verify: false }
policies:
  a: { limits: ["2/s"], tiers: { t: ["1/s"], free: unlimited }, overrides: { "k*": ["1/h"] } }
  b: { limits: ["3/h fixed", "2/min log"], allow: [root], deny: [eve] }
  q: { limits: ["1/s queue 2"] }
  s: { limits: ["2 concurrent lease 60s"] }
  w: { limits: ["2/min sliding"], shadow: true }
rules:
  - match: { path: "/a/**", method: [GET, POST] }
    checks:
      - { policy: a, key: "{header.x-api-key|ip}", tier: "{query.tier}" }
      - { policy: b, key: "{jwt.sub|path.1}", on_missing: skip }
  - { match: { host: "*.example.com" }, policy: b, key: "{host}:{cookie.c}" }
  - { match: { headers: { x-plan: "p*" } }, policy: w, key: "{method}:{path}", cost: 2 }
  - { match: { path: /e }, policy: a, key: "{query.k}", on_missing: error }
default: deny
"#;

const TOKENS: &str = r#"
tokens:
  - { name: checker, token: check-0123456789, scopes: [check], policies: [a, "s*"] }
  - { name: operator, token: operate-01234567, scopes: [operate, read] }
  - { name: admin, token: admin-0123456789, scopes: [admin] }
"#;

const KEYS: [&str; 8] = ["k", "u", "eve", "root", "10.0.0.1", "GET:/a/b", "b", "x.example.com:u"];

static WITHOUT_TOKENS: LazyLock<Config> = LazyLock::new(|| parse("operators: loopback"));
static WITH_TOKENS: LazyLock<Config> = LazyLock::new(|| parse(TOKENS));

/// The policies whose state is compared: those of the configuration, and inline limits.
static POLICIES: LazyLock<Vec<Policy>> = LazyLock::new(|| {
    let inline = ["1/min log", "2/s"].map(|limits| limits.parse().expect("it is valid"));
    WITHOUT_TOKENS.policies.iter().cloned().chain(inline).collect()
});

fuzz_target!(|bytes: &[u8]| {
    let Some((selector, requests)) = bytes.split_first() else { return };
    let config = if selector % 2 == 0 { &WITHOUT_TOKENS } else { &WITH_TOKENS };
    let (daemon, http) = (Daemon::new(config), HttpState::default());
    for text in requests.split(|byte| *byte == 0).take(8) {
        serve(&request(text), async |request| answer(&daemon, &http, request).await);
    }
});

async fn answer(daemon: &Daemon, http: &HttpState, request: Request<Incoming>) -> Reply {
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let before = state(daemon);
    let reply = tollgate_http::answer(&daemon.engine, http, &daemon.remote, request).await;
    let status = reply.status();
    assert!(statuses(&method, &path).contains(&status.as_u16()), "{method} {path}: {status}");
    // Forward auth charges for requests of every method.
    let is_read = method == Method::GET && !path.starts_with("/v1/forward-auth/");
    if status != StatusCode::OK || is_read {
        assert_eq!(state(daemon), before, "{method} {path}: {status}");
    }
    check_body(&reply).await;
    reply
}

/// A body is JSON, and a problem has the status of its response.
async fn check_body(reply: &Reply) {
    let kind = reply.headers().get(CONTENT_TYPE).map_or(&b""[..], |kind| kind.as_bytes());
    let is_problem = kind == b"application/problem+json";
    if is_problem || kind == b"application/json" {
        let body: Value = serde_json::from_slice(&body(reply).await).expect("the body is JSON");
        assert!(!is_problem || body["status"] == reply.status().as_u16(), "{body}");
    }
}

fn state(daemon: &Daemon) -> State {
    let keys = |policy| KEYS.iter().map(move |key| (policy, key.as_bytes()));
    daemon.state(POLICIES.iter().flat_map(keys))
}

fn parse(access: &str) -> Config {
    Config::from_yaml(&format!("{CONFIG}{access}")).expect("the configuration is valid")
}
