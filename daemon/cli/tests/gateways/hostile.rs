//! Requests that try to bypass the limit.

use tollgate_testkit::GatewayKind;

use crate::setup::{Options, Setup};

/// Headers with another address, `127.0.0.10`, with a path, method or host of another policy, or
/// with a policy and a key.
const ROWS: &[&[&str]] = &[
    &["X-Forwarded-For: 127.0.0.10"],
    &["X-Forwarded-For: 127.0.0.10, 127.0.0.1"],
    &["X-Forwarded-For: 127.0.0.10", "X-Forwarded-For: 127.0.0.1"],
    &["X-Forwarded-For: 127.0.0.1"],
    &["X-Forwarded-For: [::ffff:127.0.0.10]:80"],
    &["X-Forwarded-For:"],
    &["X-Forwarded-For: ,,,"],
    &["X-Real-IP: 127.0.0.10"],
    &["X-Real-IP: 127.0.0.10", "X-Real-IP: 127.0.0.1"],
    &["Forwarded: for=127.0.0.10;host=free.test;proto=https"],
    &["True-Client-IP: 127.0.0.10", "CF-Connecting-IP: 127.0.0.10"],
    &["X-Client-IP: 127.0.0.10", "X-Cluster-Client-IP: 127.0.0.10"],
    &["X-Envoy-External-Address: 127.0.0.10"],
    &["X-Envoy-Original-Path: /free", "X-Envoy-Original-Method: OPTIONS"],
    &["X-Envoy-Internal: true", "X-Forwarded-For: 127.0.0.10"],
    &["X_Forwarded_For: 127.0.0.10", "X_Real_IP: 127.0.0.10"],
    &["X_Original_URI: /free", "X_Forwarded_Uri: /free", "X_Forwarded_Host: free.test"],
    &["X-Forwarded_For: 127.0.0.10", "X-Forwarded_Method: OPTIONS"],
    &["X-Original-URI: /free", "X-Original-URL: /free", "X-Rewrite-URL: /free"],
    &["X-Original-URI: /free", "X-Original-URI: /free"],
    &["X-Original-Method: OPTIONS", "X-Original-Host: free.test"],
    &["X-Forwarded-Uri: /free"],
    &["X-Forwarded-Uri: /free", "X-Forwarded-Uri: /free"],
    &["X-Forwarded-Prefix: /free", "X-Forwarded-Path: /free"],
    &["X-Forwarded-Method: OPTIONS"],
    &["X-Forwarded-Host: free.test"],
    &["X-Forwarded-Host: free.test", "X-Forwarded-Host: free.test"],
    &["X-HTTP-Method-Override: OPTIONS", "X-HTTP-Method: OPTIONS", "X-Method-Override: OPTIONS"],
    &["X-Ratelimit-Policy: per-ip", "X-Ratelimit-Key: other", "X-Ratelimit-Cost: 0"],
    &["RateLimit: \"login\";r=5", "RateLimit-Policy: \"per-ip\";q=100;w=5"],
    &["Connection: X-Real-IP, X-Original-URI, X-Original-Method, X-Original-Host"],
    &["Connection: close, X-Forwarded-For, X-Forwarded-Uri, X-Forwarded-Method, X-Forwarded-Host"],
    &["Connection: X-Forwarded-For", "X-Forwarded-For: 127.0.0.10"],
    &["Keep-Alive: X-Real-IP", "Connection: Keep-Alive, X-Real-IP", "X-Real-IP: 127.0.0.10"],
    &["Content-Type: application/json", "Expect: 100-continue"],
];

/// Rules with a higher limit, which match if the daemon believes such a header.
const HIGH_LIMITS: (&str, &str) = (
    "  - match: { path: \"/login\" }",
    "  - match: { host: \"free.test\" }\n    policy: per-ip\n    key: \"{ip}\"\n  \
       - match: { path: \"/free\" }\n    policy: per-ip\n    key: \"{ip}\"\n  \
       - match: { method: [OPTIONS] }\n    policy: per-ip\n    key: \"{ip}\"\n  \
       - match: { path: \"/login\" }",
);

fn setup(kind: GatewayKind) -> Setup {
    let setup = Setup::with(kind, Options { edits: &[HIGH_LIMITS], ..Options::default() });
    // The rules apply to requests that really match them: more pass than `login` allows.
    for (line, headers) in
        [("GET /free", &[][..]), ("OPTIONS /login", &[]), ("GET /login", &["Host: free.test"])]
    {
        for _ in 0..6 {
            assert_eq!(setup.send(10, line, headers).status, 200, "{line}");
        }
    }
    setup.reached();
    setup
}

/// A client above its limit gets 429, or the gateway rejects the request with 400.
pub(crate) fn forged_headers_do_not_bypass_the_limit(kind: GatewayKind) {
    let setup = setup(kind);
    setup.spend(9);
    for row in ROWS {
        let response = setup.send(9, "GET /login", row);
        assert!([400, 429].contains(&response.status), "{row:?}: {response:?}");
        assert!(
            response.status == 429 || is_rejected_by_gateway(kind, row),
            "{row:?}: {response:?}"
        );
    }
    assert_eq!(setup.reached(), 0);
}

/// Whether the gateway rejects these headers itself.
fn is_rejected_by_gateway(kind: GatewayKind, row: &[&str]) -> bool {
    kind == GatewayKind::Envoy && row.iter().any(|row| row.starts_with("Connection:"))
}

/// The client with the forged address is charged nothing.
pub(crate) fn forged_headers_charge_the_sender(kind: GatewayKind) {
    let setup = setup(kind);
    let rows = [0, 2, 7, 18, 24].map(|at| ROWS[at]);
    for row in rows {
        let response = setup.send(9, "GET /login", row);
        assert_eq!(response.status, 200, "{row:?}: {response:?}");
    }
    assert_eq!(setup.send(9, "GET /login", &[]).status, 429);
    setup.reached();
    setup.spend(10);
}

/// Variants of the same path, and queries with parameters of the daemon.
const PATHS: &[&str] = &[
    "//login",
    "///login",
    "/./login",
    "/.//login",
    "/api/../login",
    "/free/../login",
    "/free/..//login",
    "/%6cogin",
    "/%6Cogi%6e",
    "/%2e/login",
    "/free/%2e%2e/login",
    "/free/.%2E/login",
    "/login?path=/free",
    "/login?deny=403",
    "/login?deny=200&status=200",
    "/login?/../free",
    "/login?#/free",
    "http://app.test/login",
    "http://app.test//login?x=/free",
];

/// Each variant gets 429, or the gateway rejects it with 400.
pub(crate) fn path_variants_do_not_bypass_the_limit(kind: GatewayKind) {
    let setup = setup(kind);
    setup.spend(9);
    for path in PATHS {
        let response = setup.send(9, &format!("GET {path}"), &[]);
        let is_bad = response.status == 400;
        assert!(response.status == 429 || is_bad, "{path}: {response:?}");
        // The gateway must not reject all of them.
        assert!(!is_bad || path.contains('#') || path.contains("%2"), "{path}: {response:?}");
    }
    assert_eq!(setup.reached(), 0);
}

pub(crate) fn requests_without_path_or_host_do_not_bypass_the_limit(kind: GatewayKind) {
    let all = ("path: \"/login\" }", "path: \"/**\" }");
    let setup = Setup::with(kind, Options { edits: &[HIGH_LIMITS, all], ..Options::default() });
    setup.spend(9);
    for (line, headers) in [
        ("GET /login", &["Host:"][..]),
        ("GET /login HTTP/1.0", &[]),
        ("GET /login HTTP/1.0", &["Host:"]),
        ("GET http://app.test", &[]),
        ("GET http://app.test?x=/free", &[]),
        ("GET http:///login", &[]),
        ("GET ?x", &[]),
        ("GET *", &[]),
        ("GET app.test", &[]),
        ("TRACE *", &[]),
        ("CONNECT app.test:80", &[]),
        ("g /login", &[]),
    ] {
        if let Some(response) = setup.client(9).try_send(line, headers, "") {
            assert!(response.status >= 400, "{line} {headers:?}: {response:?}");
        }
        assert_eq!(setup.reached(), 0, "{line} {headers:?}");
    }
}

/// A request that is too large for the daemon must not pass without a decision.
pub(crate) fn oversized_requests_do_not_bypass_the_limit(kind: GatewayKind) {
    let setup = setup(kind);
    setup.spend(9);
    let many: Vec<String> = (0..150).map(|at| format!("X-Flood-{at}: x")).collect();
    let large = [format!("X-Flood: {}", "x".repeat(7_000))];
    let huge = [format!("X-Flood: {}", "x".repeat(900_000))];
    let long = format!("GET /login?{}", "x".repeat(7_000));
    let check = |what: &str, line: &str, headers: &[String]| {
        let headers: Vec<&str> = headers.iter().map(String::as_str).collect();
        // A gateway may close the connection before it has read the request.
        if let Some(response) = setup.client(9).try_send(line, &headers, "") {
            let refusals = [400, 414, 429, 431, 494, 502];
            assert!(refusals.contains(&response.status), "{what}: {response:?}");
        }
    };
    check("many", "GET /login", &many);
    check("large", "GET /login", &large);
    check("huge", "GET /login", &huge);
    check("long", &long, &[]);
    check("all", &long, &many);
    assert_eq!(setup.reached(), 0);
}
