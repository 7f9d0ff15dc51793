//! Errors instead of decisions, and what they tell the operator of the gateway to do.

use super::*;
use crate::support::parse_rows;

/// Rows for the path `/ip`: `> gateway - omitted header + added header line`, then `< ` and a part
/// of the error, or `ok`.
const HEADERS: &str = r#"
> nginx - X-Original-Method
< X-Original-Method is missing; configure the gateway with proxy_set_header X-Original-Method $request_method;
> nginx - X-Original-URI
< X-Original-URI is missing; configure the gateway with proxy_set_header X-Original-URI $request_uri;
> nginx - X-Original-URI + X-Original-URI:
< X-Original-URI is missing; configure the gateway with
> nginx - X-Original-URI + X-Forwarded-Uri: /ip
< X-Original-URI is missing; configure the gateway with
> nginx - X-Original-URI + X_Original_URI: /ip
< X-Original-URI is missing; configure the gateway with
> nginx + X-Original-Method: GET
< occurs twice, and one may be the client's; configure the gateway with
> nginx + X-Original-URI: /skip
< occurs twice, and one may be the client's; configure the gateway with
> nginx + X-Real-IP: 203.0.113.7
< 127.0.0.1 sent X-Real-IP, which holds the client's address, more than once
> nginx - X-Real-IP
< 127.0.0.1 did not send X-Real-IP, which holds the client's address
> nginx - X-Real-IP + X-Forwarded-For: 6.6.6.6
< proxy_set_header X-Real-IP $remote_addr;
> nginx - X-Real-IP + X-Real-IP: unknown
< X-Real-IP has \"unknown\" where a trusted proxy
# Headers that the rule does not use may be missing.
> nginx - X-Original-Host
< ok
> nginx + X-Original-Host: evil.com
< ok
> caddy - X-Forwarded-Method
< configure the gateway with header_up X-Forwarded-Method {method}
> caddy - X-Forwarded-Uri + X-Original-URI: /ip
< configure the gateway with header_up X-Forwarded-Uri {uri}
> caddy + X-Forwarded-Uri: /skip
< occurs twice, and one may be the client's; configure the gateway with
> caddy - X-Forwarded-For + X-Real-IP: 6.6.6.6
< 127.0.0.1 did not send X-Forwarded-For, which holds the client's address
> traefik - X-Forwarded-Uri
< configure the gateway with trustForwardHeader: false
> traefik + X-Forwarded-Method: GET
< occurs twice, and one may be the client's; configure the gateway with
> traefik - X-Forwarded-For
< trustForwardHeader: false
> haproxy - X-Forwarded-Uri
< txn.f:pathq()
> haproxy + X-Forwarded-Uri: /ip
< occurs twice, and one may be the client's; configure the gateway with
> haproxy - X-Forwarded-For
< txn.f:src()
> envoy - X-Forwarded-For
< use_remote_address: true
> envoy - X-Forwarded-For + X-Envoy-External-Address: 6.6.6.6
< did not send
> envoy - X-Forwarded-For + X-Forwarded-For: 203.0.113.7, _hidden
< has \"_hidden\" where
"#;

/// Rows for the path `/host`, whose rule uses the host.
const HOST_HEADERS: &str = "
> nginx - X-Original-Host
< X-Original-Host is missing; configure the gateway with proxy_set_header
> nginx + X-Original-Host: evil.com
< X-Original-Host occurs twice
> caddy - X-Forwarded-Host + X-Original-Host: a.com
< X-Forwarded-Host is missing
> envoy + Host: evil.com
< Host occurs twice
> envoy + X-Forwarded-Host: evil.com
< ok
";

/// Checks rows; the added line is before or after those of the gateway.
async fn check_all(rows: &[(&str, &str)], target: &str, is_before: bool) {
    for &(row, expected) in rows {
        let (status, part) = if expected == "ok" { (200, "") } else { (500, expected) };
        let (start, added) = row.split_once(" + ").unwrap_or((row, ""));
        let (gateway, omitted) = start.split_once(" - ").unwrap_or((start, ""));
        let added: Vec<_> = Some(added).filter(|line| !line.is_empty()).into_iter().collect();
        let (before, after) = if is_before { (&*added, &[][..]) } else { (&[][..], &*added) };
        let daemon = Daemon::start_with_config(config()).await;
        let request = ForwardedRequest { omitted, before, after, ..ForwardedRequest::to(target) };
        request.send(&daemon, gateway).await.assert(status, part, row);
        if status == 500 {
            for key in [ADDRESS, "127.0.0.1"] {
                assert_eq!(used(&daemon, "per-ip", key).await, "0", "{row}");
            }
        }
    }
}

#[tokio::test]
async fn missing_or_repeated_gateway_headers_are_errors() {
    check_all(&parse_rows(HEADERS, 26), "/ip", true).await;
}

#[tokio::test]
async fn a_missing_host_is_an_error_only_if_a_rule_uses_it() {
    check_all(&parse_rows(HOST_HEADERS, 5), "/host", false).await;
}

/// Only trusted proxies may report an address, and the address of the peer is never used instead.
#[tokio::test]
async fn addresses_from_untrusted_peers_are_rejected() {
    let mut config = config();
    config.trusted_proxies = Networks::parse("10.0.0.0/8, ::1, unix").unwrap();
    let daemon = Daemon::start_with_config(config).await;
    for gateway in GATEWAYS {
        let response = ForwardedRequest::to("/ip").send(&daemon, gateway).await;
        let expected = "127.0.0.1 is not a trusted proxy, so the client address that it sends is \
                    ignored; if it is your gateway, write trusted_proxies: [127.0.0.1]";
        response.assert(500, expected, gateway);
        assert_eq!(response.header("content-type"), Some("application/problem+json"));
        assert_eq!(response.header("cache-control"), Some("no-store"));
        for key in [ADDRESS, "127.0.0.1"] {
            assert_eq!(used(&daemon, "per-ip", key).await, "0", "{gateway}");
        }
        // With another key the address is not needed.
        let request = ForwardedRequest::to("/key-or-ip").before(&["X-Api-Key: k"]);
        assert_eq!(request.send(&daemon, gateway).await.status, 200, "{gateway}");
    }
}

#[tokio::test]
async fn gateway_misconfigurations_are_reported() {
    let daemon = Daemon::start_with_config(config()).await;
    let request = ForwardedRequest::to("/error").encode("nginx");
    for (path, status, expected) in [
        ("nginx?deny=500", 500, "deny must be 401, 403 or 429, or absent"),
        ("nginx?dney=403", 500, "unknown query parameter; expected deny=401 or deny=403"),
        ("nginx", 500, "the request has no header.x-api-key, and on_missing of the rule is error"),
        ("ngnix", 404, r#"unknown gateway \"ngnix\"; expected one of nginx, caddy, traefik"#),
        ("", 404, r#"unknown gateway \"\"; expected one of"#),
    ] {
        let request = request.replace("forward-auth/nginx", &format!("forward-auth/{path}"));
        send(&daemon, &request).await.assert(status, expected, path);
    }
}
