//! When there is no decision, and what the gateway is told to do about it.

use super::*;

const TWICE: &str = "occurs twice, and one may be the client's; configure the gateway with";

/// A dialect, the header that its gateway left out, one that came beside the others, the status, and
/// what is said.
const FORGOTTEN: &[(&str, &str, &str, u16, &str)] = &[
    (
        "nginx",
        "X-Original-Method",
        "",
        500,
        "X-Original-Method is missing; configure the gateway with proxy_set_header X-Original-Method $request_method;",
    ),
    (
        "nginx",
        "X-Original-URI",
        "",
        500,
        "X-Original-URI is missing; configure the gateway with proxy_set_header X-Original-URI $request_uri;",
    ),
    (
        "nginx",
        "X-Original-URI",
        "X-Original-URI: ",
        500,
        "X-Original-URI is missing; configure the gateway with",
    ),
    (
        "nginx",
        "X-Original-URI",
        "X-Forwarded-Uri: /ip",
        500,
        "X-Original-URI is missing; configure the gateway with",
    ),
    (
        "nginx",
        "X-Original-URI",
        "X_Original_URI: /ip",
        500,
        "X-Original-URI is missing; configure the gateway with",
    ),
    ("nginx", "", "X-Original-Method: GET", 500, TWICE),
    ("nginx", "", "X-Original-URI: /skip", 500, TWICE),
    (
        "nginx",
        "",
        "X-Real-IP: 203.0.113.7",
        500,
        "127.0.0.1 sent X-Real-IP, which holds the client's address, more than once",
    ),
    (
        "nginx",
        "X-Real-IP",
        "",
        500,
        "127.0.0.1 did not send X-Real-IP, which holds the client's address",
    ),
    (
        "nginx",
        "X-Real-IP",
        "X-Forwarded-For: 6.6.6.6",
        500,
        "proxy_set_header X-Real-IP $remote_addr;",
    ),
    (
        "nginx",
        "X-Real-IP",
        "X-Real-IP: unknown",
        500,
        "X-Real-IP has \\\"unknown\\\" where a trusted proxy",
    ),
    // What the rule does not ask for need not be told.
    ("nginx", "X-Original-Host", "", 200, ""),
    ("nginx", "", "X-Original-Host: evil.com", 200, ""),
    (
        "caddy",
        "X-Forwarded-Method",
        "",
        500,
        "configure the gateway with header_up X-Forwarded-Method {method}",
    ),
    (
        "caddy",
        "X-Forwarded-Uri",
        "X-Original-URI: /ip",
        500,
        "configure the gateway with header_up X-Forwarded-Uri {uri}",
    ),
    ("caddy", "", "X-Forwarded-Uri: /skip", 500, TWICE),
    (
        "caddy",
        "X-Forwarded-For",
        "X-Real-IP: 6.6.6.6",
        500,
        "X-Forwarded-For, which has the client's address, did not come",
    ),
    ("traefik", "X-Forwarded-Uri", "", 500, "configure the gateway with trustForwardHeader: false"),
    ("traefik", "", "X-Forwarded-Method: GET", 500, TWICE),
    ("traefik", "X-Forwarded-For", "", 500, "trustForwardHeader: false"),
    ("haproxy", "X-Forwarded-Uri", "", 500, r#"txn.f:pathq()"#),
    ("haproxy", "", "X-Forwarded-Uri: /ip", 500, TWICE),
    ("haproxy", "X-Forwarded-For", "", 500, "txn.f:src()"),
    ("envoy", "X-Forwarded-For", "", 500, "use_remote_address: true"),
    ("envoy", "X-Forwarded-For", "X-Envoy-External-Address: 6.6.6.6", 500, "did not come"),
    (
        "envoy",
        "X-Forwarded-For",
        "X-Forwarded-For: 203.0.113.7, _hidden",
        500,
        "has \\\"_hidden\\\" where",
    ),
];

/// What a gateway forgot to tell, or let its client tell.
#[tokio::test]
async fn what_a_gateway_must_tell_is_told_once() {
    for &(dialect, but, more, status, said) in FORGOTTEN {
        let daemon = Daemon::start_of(config()).await;
        let lines: Vec<_> = Some(more).filter(|x| !x.is_empty()).into_iter().collect();
        let answer = send(&daemon, &USUAL.request(dialect, "", &[but], [&lines, &[]])).await;
        assert_eq!(answer.status, status, "{dialect} {but} {more}: {}", answer.body);
        assert!(answer.body.contains(said), "{dialect} {but} {more}: {}", answer.body);
        if status == 500 {
            assert_eq!(used(&daemon, "per-ip", "203.0.113.7").await, "0", "{dialect} {but} {more}");
            assert_eq!(used(&daemon, "per-ip", "127.0.0.1").await, "0", "{dialect} {but} {more}");
        }
    }
}

#[tokio::test]
async fn the_host_is_an_error_only_where_it_is_asked_for() {
    for (dialect, but, more, status, said) in [
        (
            "nginx",
            "X-Original-Host",
            "",
            500,
            "X-Original-Host is missing; configure the gateway with proxy_set_header",
        ),
        ("nginx", "", "X-Original-Host: evil.com", 500, "X-Original-Host occurs twice"),
        ("caddy", "X-Forwarded-Host", "X-Original-Host: a.com", 500, "X-Forwarded-Host is missing"),
        ("envoy", "", "Host: evil.com", 500, "Host occurs twice"),
        ("envoy", "", "X-Forwarded-Host: evil.com", 200, ""),
    ] {
        let daemon = Daemon::start_of(config()).await;
        let lines: Vec<_> = Some(more).filter(|x| !x.is_empty()).into_iter().collect();
        let told = Told { target: "/host", ..USUAL };
        let answer = send(&daemon, &told.request(dialect, "", &[but], [&[], &lines])).await;
        assert_eq!(answer.status, status, "{dialect} {but} {more}: {}", answer.body);
        assert!(answer.body.contains(said), "{dialect} {but} {more}: {}", answer.body);
    }
}

/// Nobody's word is taken on an address unless the file says so, and the peer's is never it.
#[tokio::test]
async fn a_peer_that_is_not_trusted_tells_no_address() {
    let mut config = config();
    config.trusted_proxies = Networks::parse("10.0.0.0/8, ::1, unix").unwrap();
    let daemon = Daemon::start_of(config).await;
    for dialect in DIALECTS {
        let answer = send(&daemon, &USUAL.request(dialect, "", &[], [&[], &[]])).await;
        assert_eq!(answer.status, 500, "{dialect}");
        let said = "127.0.0.1 is not a trusted proxy, so the client address that it sends is \
                    ignored; if it is your gateway, write trusted_proxies: [127.0.0.1]";
        assert!(answer.body.contains(said), "{dialect}: {}", answer.body);
        assert_eq!(answer.header("content-type"), Some("application/problem+json"));
        assert_eq!(answer.header("cache-control"), Some("no-store"));
        for key in ["203.0.113.7", "127.0.0.1"] {
            assert_eq!(used(&daemon, "per-ip", key).await, "0", "{dialect}");
        }
        // A key that is there needs no address.
        let told = Told { target: "/key-or-ip", ..USUAL };
        let request = told.request(dialect, "", &[], [&["X-Api-Key: k"], &[]]);
        assert_eq!(send(&daemon, &request).await.status, 200, "{dialect}");
    }
}

#[tokio::test]
async fn what_the_recipe_got_wrong_is_named() {
    let daemon = Daemon::start_of(config()).await;
    let told = Told { target: "/error", ..USUAL };
    for (path, status, said) in [
        ("nginx?deny=500", 500, "deny must be 401, 403 or 429, or absent"),
        ("nginx?dney=403", 500, "unknown query parameter; expected deny=401 or deny=403"),
        ("nginx", 500, "the request has no header.x-api-key, and on_missing of the rule is error"),
        ("ngnix", 404, r#"unknown gateway \"ngnix\"; expected one of nginx, caddy, traefik"#),
        ("", 404, r#"unknown gateway \"\"; expected one of"#),
    ] {
        let request = told.request("nginx", "", &[], [&[], &[]]);
        let request = request.replace("forward-auth/nginx", &format!("forward-auth/{path}"));
        let answer = send(&daemon, &request).await;
        assert_eq!(answer.status, status, "{path}: {}", answer.body);
        assert!(answer.body.contains(said), "{path}: {}", answer.body);
    }
}
