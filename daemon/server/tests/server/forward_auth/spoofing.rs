//! Headers of clients that imitate those of gateways.

use super::*;

/// Every header known to carry a method, a path, a host, an address or a limit. A client may send
/// all of them.
const SPOOFING: [&str; 36] = [
    "X-Original-Method: POST",
    "X-Original-URI: /login",
    "X-Original-URL: /login",
    "X-Original-Host: evil.com",
    "X-Real-IP: 6.6.6.6",
    "X-Forwarded-Method: POST",
    "X-Forwarded-Uri: /login",
    "X-Forwarded-Url: /login",
    "X-Forwarded-Path: /login",
    "X-Forwarded-Prefix: /login",
    "X-Forwarded-Host: evil.com",
    "X-Forwarded-Server: evil.com",
    "X-Forwarded-For: 6.6.6.6",
    "X-Forwarded: for=6.6.6.6",
    "Forwarded-For: 6.6.6.6",
    "Forwarded: for=6.6.6.6;host=evil.com",
    "Via: 1.1 evil",
    "X_Original_Method: POST",
    "X_Original_URI: /login",
    "X_Real_IP: 6.6.6.6",
    "X_Forwarded_Method: POST",
    "X_Forwarded_Uri: /login",
    "X_Forwarded_Host: evil.com",
    "X_Forwarded_For: 6.6.6.6",
    "X-Client-IP: 6.6.6.6",
    "X-Cluster-Client-IP: 6.6.6.6",
    "True-Client-IP: 6.6.6.6",
    "CF-Connecting-IP: 6.6.6.6",
    "X-Envoy-External-Address: 6.6.6.6",
    "X-Envoy-Original-Path: /login",
    "X-Rewrite-URL: /login",
    "X-HTTP-Method-Override: POST",
    "X-Ratelimit-Policy: login",
    "X-Ratelimit-Key: 6.6.6.6",
    "X-Ratelimit-Cost: 0",
    "Connection: close, X-Forwarded-For, X-Real-IP",
];

/// Whether the gateway sets the header of this line itself, and so replaces the client's.
fn is_own(gateway: &str, line: &str) -> bool {
    let name = line.split(": ").next().unwrap();
    DEFAULT_REQUEST.lines(gateway).iter().any(|line| line.split(": ").next().unwrap() == name)
}

#[tokio::test]
async fn other_headers_do_not_affect_the_decision() {
    for gateway in GATEWAYS {
        let daemon = Daemon::start_with_config(config()).await;
        let mut sent = 0;
        for line in SPOOFING.iter().filter(|spoofing| !is_own(gateway, spoofing)) {
            for (before, after) in [(&[*line][..], &[][..]), (&[], &[*line])] {
                for (target, policy, key) in [
                    ("/ip", "per-ip", "203.0.113.7"),
                    ("/host", "api", "example.com"),
                    ("/path/a", "api", "GET:/path/a"),
                ] {
                    // The reset ensures that this request is what charges the key.
                    let reset = format!(r#"{{"policy":"{policy}","key":"{key}"}}"#);
                    daemon.post("/v1/reset", &reset).await;
                    let forwarded = ForwardedRequest::to(target);
                    let response = ForwardedRequest { before, after, ..forwarded }
                        .send(&daemon, gateway)
                        .await;
                    assert_eq!(response.status, 200, "{gateway} {line}: {}", response.body);
                    assert_eq!(used(&daemon, policy, key).await, "1", "{gateway} {line} {target}");
                    sent += 1;
                }
            }
        }
        assert!(sent > 180, "only {sent} were sent");
        assert_eq!(used(&daemon, "login", "203.0.113.7").await, "0", "{gateway}");
        assert_eq!(used(&daemon, "per-ip", "6.6.6.6").await, "0", "{gateway}");
    }
}

/// Servers treat these paths as equal, so the rules do too.
#[tokio::test]
async fn equivalent_paths_match_the_same_rule() {
    for gateway in GATEWAYS {
        for target in [
            "/login",
            "/login/",
            "//login",
            "/./login",
            "/x/../login",
            "/%6cogin",
            "/%6Cogin?a=1",
            "/x/%2e%2e/login",
            "/x%2F..%2Flogin",
            "/login%2F",
            "/login?next=/ip",
            "/login?",
        ] {
            let daemon = Daemon::start_with_config(config()).await;
            let forwarded = ForwardedRequest::to(target);
            let request = forwarded.encode(gateway);
            assert_eq!(send(&daemon, &request).await.status, 200, "{gateway} {target}");
            assert_eq!(used(&daemon, "login", "203.0.113.7").await, "1", "{gateway} {target}");
            assert_eq!(send(&daemon, &request).await.status, 429, "{gateway} {target}");
        }
    }
}

/// Each proxy appends to the right end of the list. A client controls only the left end.
#[tokio::test]
async fn the_rightmost_untrusted_address_is_used() {
    for gateway in ["caddy", "traefik", "haproxy", "envoy"] {
        for (address, before, key) in [
            ("203.0.113.7", &["X-Forwarded-For: 6.6.6.6"][..], "203.0.113.7"),
            ("6.6.6.6, 203.0.113.7", &[], "203.0.113.7"),
            ("junk, 203.0.113.7", &[], "203.0.113.7"),
            ("203.0.113.7, 127.0.0.1", &[], "203.0.113.7"),
            ("203.0.113.7:1234", &[], "203.0.113.7"),
            ("::ffff:203.0.113.7", &[], "203.0.113.7"),
            ("[2001:db8::1]:1234", &[], "2001:db8::/64"),
            ("2001:DB8:0:0:ffff::9", &[], "2001:db8::/64"),
        ] {
            let daemon = Daemon::start_with_config(config()).await;
            let forwarded = ForwardedRequest { address, ..DEFAULT_REQUEST };
            let response = ForwardedRequest { before, ..forwarded }.send(&daemon, gateway).await;
            assert_eq!(response.status, 200, "{gateway} {address}: {}", response.body);
            assert_eq!(used(&daemon, "per-ip", key).await, "1", "{gateway} {address}");
        }
    }
}

#[tokio::test]
async fn header_values_cannot_imitate_addresses() {
    for gateway in GATEWAYS {
        for (line, key) in [
            (&["X-Api-Key: k"][..], "header.x-api-key=k"),
            (&["X-Api-Key: 203.0.113.7"], "header.x-api-key=203.0.113.7"),
            (&["X-Api-Key: ip=203.0.113.7"], "header.x-api-key=ip=203.0.113.7"),
            (&["X_Api_Key: k"], "ip=203.0.113.7"),
            (&[], "ip=203.0.113.7"),
        ] {
            let daemon = Daemon::start_with_config(config()).await;
            let forwarded = ForwardedRequest::to("/key-or-ip");
            let response =
                ForwardedRequest { before: line, ..forwarded }.send(&daemon, gateway).await;
            assert_eq!(response.status, 200, "{gateway} {line:?}: {}", response.body);
            assert_eq!(used(&daemon, "api", key).await, "1", "{gateway} {line:?}");
        }
    }
}

/// Only the query of the gateway's own URL sets the status.
#[tokio::test]
async fn the_query_of_the_client_does_not_set_the_status() {
    for gateway in GATEWAYS {
        let daemon = Daemon::start_with_config(config()).await;
        let forwarded = ForwardedRequest::to("/login?deny=403");
        let request = forwarded.encode(gateway);
        assert_eq!(send(&daemon, &request).await.status, 200, "{gateway}");
        assert_eq!(send(&daemon, &request).await.status, 429, "{gateway}");
    }
}
