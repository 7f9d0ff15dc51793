//! What a client can write is no word of its gateway.

use super::*;

/// Every header in which somebody has once told a method, a path, a host, an address or a limit; a
/// client may send them all.
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

/// Whether a dialect tells something in the header of a line, so that a gateway replaces it.
fn is_own(dialect: &str, line: &str) -> bool {
    let name = line.split(": ").next().unwrap();
    USUAL.lines(dialect, &[]).iter().any(|line| line.split(": ").next().unwrap() == name)
}

#[tokio::test]
async fn no_other_header_changes_what_a_dialect_tells() {
    for dialect in DIALECTS {
        let daemon = Daemon::start_of(config()).await;
        let mut sent = 0;
        for line in SPOOFING.iter().filter(|spoofing| !is_own(dialect, spoofing)) {
            for more in [[&[*line][..], &[]], [&[], &[*line]]] {
                for (target, policy, key) in [
                    ("/ip", "per-ip", "203.0.113.7"),
                    ("/host", "api", "example.com"),
                    ("/path/a", "api", "GET:/path/a"),
                ] {
                    // Each a client of its own would do; to be sure that it is this key that was
                    // charged, its state goes first.
                    let reset = format!(r#"{{"policy":"{policy}","key":"{key}"}}"#);
                    daemon.post("/v1/reset", &reset).await;
                    let told = Told { target, ..USUAL };
                    let answer = send(&daemon, &told.request(dialect, "", &[], more)).await;
                    assert_eq!(answer.status, 200, "{dialect} {line}: {}", answer.body);
                    assert_eq!(used(&daemon, policy, key).await, "1", "{dialect} {line} {target}");
                    sent += 1;
                }
            }
        }
        assert!(sent > 180, "only {sent} were sent");
        assert_eq!(used(&daemon, "login", "203.0.113.7").await, "0", "{dialect}");
        assert_eq!(used(&daemon, "per-ip", "6.6.6.6").await, "0", "{dialect}");
    }
}

/// Requests that are one and the same to a server, and so to the rules.
#[tokio::test]
async fn no_spelling_of_a_path_evades_its_rule() {
    for dialect in DIALECTS {
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
            let daemon = Daemon::start_of(config()).await;
            let told = Told { target, ..USUAL };
            let request = told.request(dialect, "", &[], [&[], &[]]);
            assert_eq!(send(&daemon, &request).await.status, 200, "{dialect} {target}");
            assert_eq!(used(&daemon, "login", "203.0.113.7").await, "1", "{dialect} {target}");
            assert_eq!(send(&daemon, &request).await.status, 429, "{dialect} {target}");
        }
    }
}

/// A list grows at its right end, by who is nearer. A client may only write the left.
#[tokio::test]
async fn an_address_is_taken_from_the_right() {
    for dialect in ["caddy", "traefik", "haproxy", "envoy"] {
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
            let daemon = Daemon::start_of(config()).await;
            let told = Told { address, ..USUAL };
            let answer = send(&daemon, &told.request(dialect, "", &[], [before, &[]])).await;
            assert_eq!(answer.status, 200, "{dialect} {address}: {}", answer.body);
            assert_eq!(used(&daemon, "per-ip", key).await, "1", "{dialect} {address}");
        }
    }
}

#[tokio::test]
async fn a_key_cannot_pose_as_an_address() {
    for dialect in DIALECTS {
        for (line, key) in [
            (&["X-Api-Key: k"][..], "header.x-api-key=k"),
            (&["X-Api-Key: 203.0.113.7"], "header.x-api-key=203.0.113.7"),
            (&["X-Api-Key: ip=203.0.113.7"], "header.x-api-key=ip=203.0.113.7"),
            (&["X_Api_Key: k"], "ip=203.0.113.7"),
            (&[], "ip=203.0.113.7"),
        ] {
            let daemon = Daemon::start_of(config()).await;
            let told = Told { target: "/key-or-ip", ..USUAL };
            let answer = send(&daemon, &told.request(dialect, "", &[], [line, &[]])).await;
            assert_eq!(answer.status, 200, "{dialect} {line:?}: {}", answer.body);
            assert_eq!(used(&daemon, "api", key).await, "1", "{dialect} {line:?}");
        }
    }
}

/// The query of a gateway's own address is the recipe's; that of the client is not.
#[tokio::test]
async fn a_clients_query_does_not_choose_the_status() {
    for dialect in DIALECTS {
        let daemon = Daemon::start_of(config()).await;
        let told = Told { target: "/login?deny=403", ..USUAL };
        let request = told.request(dialect, "", &[], [&[], &[]]);
        assert_eq!(send(&daemon, &request).await.status, 200, "{dialect}");
        assert_eq!(send(&daemon, &request).await.status, 429, "{dialect}");
    }
}
