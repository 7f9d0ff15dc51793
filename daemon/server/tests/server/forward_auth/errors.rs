//! Errors instead of decisions, and what they tell the operator of the gateway to do.

use super::*;

const TWICE: &str = "occurs twice, and one may be the client's; configure the gateway with";

/// A gateway, a header that it omits, an additional header, the status, and part of the detail.
const HEADERS: &[(&str, &str, &str, u16, &str)] = &[
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
    // Headers that the rule does not use may be missing.
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
        "127.0.0.1 did not send X-Forwarded-For, which holds the client's address",
    ),
    ("traefik", "X-Forwarded-Uri", "", 500, "configure the gateway with trustForwardHeader: false"),
    ("traefik", "", "X-Forwarded-Method: GET", 500, TWICE),
    ("traefik", "X-Forwarded-For", "", 500, "trustForwardHeader: false"),
    ("haproxy", "X-Forwarded-Uri", "", 500, r#"txn.f:pathq()"#),
    ("haproxy", "", "X-Forwarded-Uri: /ip", 500, TWICE),
    ("haproxy", "X-Forwarded-For", "", 500, "txn.f:src()"),
    ("envoy", "X-Forwarded-For", "", 500, "use_remote_address: true"),
    ("envoy", "X-Forwarded-For", "X-Envoy-External-Address: 6.6.6.6", 500, "did not send"),
    (
        "envoy",
        "X-Forwarded-For",
        "X-Forwarded-For: 203.0.113.7, _hidden",
        500,
        "has \\\"_hidden\\\" where",
    ),
];

#[tokio::test]
async fn missing_or_repeated_gateway_headers_are_errors() {
    for &(gateway, omitted, more, status, expected) in HEADERS {
        let daemon = Daemon::start_with_config(config()).await;
        let lines: Vec<_> = Some(more).filter(|line| !line.is_empty()).into_iter().collect();
        let response = ForwardedRequest { before: &lines, omitted, ..DEFAULT_REQUEST }
            .send(&daemon, gateway)
            .await;
        assert_eq!(response.status, status, "{gateway} {omitted} {more}: {}", response.body);
        assert!(response.body.contains(expected), "{gateway} {omitted} {more}: {}", response.body);
        if status == 500 {
            assert_eq!(
                used(&daemon, "per-ip", "203.0.113.7").await,
                "0",
                "{gateway} {omitted} {more}"
            );
            assert_eq!(
                used(&daemon, "per-ip", "127.0.0.1").await,
                "0",
                "{gateway} {omitted} {more}"
            );
        }
    }
}

#[tokio::test]
async fn a_missing_host_is_an_error_only_if_a_rule_uses_it() {
    for (gateway, omitted, more, status, expected) in [
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
        let daemon = Daemon::start_with_config(config()).await;
        let lines: Vec<_> = Some(more).filter(|line| !line.is_empty()).into_iter().collect();
        let forwarded = ForwardedRequest::to("/host");
        let response =
            ForwardedRequest { after: &lines, omitted, ..forwarded }.send(&daemon, gateway).await;
        assert_eq!(response.status, status, "{gateway} {omitted} {more}: {}", response.body);
        assert!(response.body.contains(expected), "{gateway} {omitted} {more}: {}", response.body);
    }
}

/// Only trusted proxies may report an address, and the address of the peer is never used instead.
#[tokio::test]
async fn addresses_from_untrusted_peers_are_rejected() {
    let mut config = config();
    config.trusted_proxies = Networks::parse("10.0.0.0/8, ::1, unix").unwrap();
    let daemon = Daemon::start_with_config(config).await;
    for gateway in GATEWAYS {
        let response = DEFAULT_REQUEST.send(&daemon, gateway).await;
        assert_eq!(response.status, 500, "{gateway}");
        let expected = "127.0.0.1 is not a trusted proxy, so the client address that it sends is \
                    ignored; if it is your gateway, write trusted_proxies: [127.0.0.1]";
        assert!(response.body.contains(expected), "{gateway}: {}", response.body);
        assert_eq!(response.header("content-type"), Some("application/problem+json"));
        assert_eq!(response.header("cache-control"), Some("no-store"));
        for key in ["203.0.113.7", "127.0.0.1"] {
            assert_eq!(used(&daemon, "per-ip", key).await, "0", "{gateway}");
        }
        // With another key the address is not needed.
        let forwarded = ForwardedRequest::to("/key-or-ip");
        let request = ForwardedRequest { before: &["X-Api-Key: k"], ..forwarded }.encode(gateway);
        assert_eq!(send(&daemon, &request).await.status, 200, "{gateway}");
    }
}

#[tokio::test]
async fn gateway_misconfigurations_are_reported() {
    let daemon = Daemon::start_with_config(config()).await;
    let forwarded = ForwardedRequest::to("/error");
    for (path, status, expected) in [
        ("nginx?deny=500", 500, "deny must be 401, 403 or 429, or absent"),
        ("nginx?dney=403", 500, "unknown query parameter; expected deny=401 or deny=403"),
        ("nginx", 500, "the request has no header.x-api-key, and on_missing of the rule is error"),
        ("ngnix", 404, r#"unknown gateway \"ngnix\"; expected one of nginx, caddy, traefik"#),
        ("", 404, r#"unknown gateway \"\"; expected one of"#),
    ] {
        let request = forwarded.encode("nginx");
        let request = request.replace("forward-auth/nginx", &format!("forward-auth/{path}"));
        let response = send(&daemon, &request).await;
        assert_eq!(response.status, status, "{path}: {}", response.body);
        assert!(response.body.contains(expected), "{path}: {}", response.body);
    }
}
