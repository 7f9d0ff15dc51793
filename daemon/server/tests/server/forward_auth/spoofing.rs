//! Headers of clients that imitate those of gateways.

use super::*;

/// Values, and the headers known to carry them: a method, a path, a host, an address or a limit. A
/// client may send all of them.
const SPOOFING: [(&str, &str); 10] = [
    (
        "POST",
        "X-Original-Method X-Forwarded-Method X_Original_Method X_Forwarded_Method \
         X-HTTP-Method-Override",
    ),
    (
        "/login",
        "X-Original-URI X-Original-URL X-Forwarded-Uri X-Forwarded-Url X-Forwarded-Path \
         X-Forwarded-Prefix X_Original_URI X_Forwarded_Uri X-Envoy-Original-Path X-Rewrite-URL",
    ),
    ("evil.com", "X-Original-Host X-Forwarded-Host X-Forwarded-Server X_Forwarded_Host"),
    (
        "6.6.6.6",
        "X-Real-IP X-Forwarded-For Forwarded-For X_Real_IP X_Forwarded_For X-Client-IP \
         X-Cluster-Client-IP True-Client-IP CF-Connecting-IP X-Envoy-External-Address \
         X-Ratelimit-Key",
    ),
    ("for=6.6.6.6", "X-Forwarded"),
    ("for=6.6.6.6;host=evil.com", "Forwarded"),
    ("1.1 evil", "Via"),
    ("login", "X-Ratelimit-Policy"),
    ("0", "X-Ratelimit-Cost"),
    ("close, X-Forwarded-For, X-Real-IP", "Connection"),
];

/// Whether the gateway sets the header of this line itself, and so replaces the client's.
fn is_own(gateway: &str, line: &str) -> bool {
    let name = line.split(": ").next().unwrap();
    let own = ForwardedRequest::to("/ip").lines(gateway);
    own.iter().any(|line| line.split(": ").next().unwrap() == name)
}

#[tokio::test]
async fn other_headers_do_not_affect_the_decision() {
    let lines = SPOOFING
        .iter()
        .flat_map(|(value, names)| names.split(' ').map(move |name| format!("{name}: {value}")));
    let lines: Vec<_> = lines.collect();
    assert_eq!(lines.len(), 36);
    for gateway in GATEWAYS {
        let daemon = Daemon::start_with_config(config()).await;
        let mut sent = 0;
        for line in lines.iter().filter(|line| !is_own(gateway, line)) {
            for (before, after) in [(&[&**line][..], &[][..]), (&[], &[&**line])] {
                for (target, policy, key) in [
                    ("/ip", "per-ip", "203.0.113.7"),
                    ("/host", "api", "example.com"),
                    ("/path/a", "api", "GET:/path/a"),
                ] {
                    // The reset ensures that this request is what charges the key.
                    let reset = format!(r#"{{"policy":"{policy}","key":"{key}"}}"#);
                    daemon.post("/v1/reset", &reset).await;
                    let request = ForwardedRequest { after, ..ForwardedRequest::to(target) };
                    let response = request.before(before).send(&daemon, gateway).await;
                    response.assert(200, "", format_args!("{gateway} {line}"));
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

/// Some server treats each of these paths like `/login`, so the rules do too.
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
            "/login;x=1",
            "/x/..;/login",
            "/x%5C..%5Clogin",
            "/%256cogin",
            "/login%3Fx",
            "/login%00.json",
            "/x/..%C0%AFlogin",
            "/x/%c0%ae%c0%ae/login",
            "//h/login",
            "/login?next=/ip",
            "/login?",
        ] {
            let daemon = Daemon::start_with_config(config()).await;
            let request = ForwardedRequest::to(target);
            assert_eq!(request.send(&daemon, gateway).await.status, 200, "{gateway} {target}");
            assert_eq!(used(&daemon, "login", ADDRESS).await, "1", "{gateway} {target}");
            assert_eq!(request.send(&daemon, gateway).await.status, 429, "{gateway} {target}");
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
            let request = ForwardedRequest { address, ..ForwardedRequest::to("/ip") };
            let response = request.before(before).send(&daemon, gateway).await;
            response.assert(200, "", format_args!("{gateway} {address}"));
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
            let request = ForwardedRequest::to("/key-or-ip").before(line);
            let response = request.send(&daemon, gateway).await;
            response.assert(200, "", format_args!("{gateway} {line:?}"));
            assert_eq!(used(&daemon, "api", key).await, "1", "{gateway} {line:?}");
        }
    }
}

/// Only the query of the gateway's own URL sets the status.
#[tokio::test]
async fn the_query_of_the_client_does_not_set_the_status() {
    for gateway in GATEWAYS {
        let daemon = Daemon::start_with_config(config()).await;
        let request = ForwardedRequest::to("/login?deny=403");
        for status in [200, 429] {
            assert_eq!(request.send(&daemon, gateway).await.status, status, "{gateway}");
        }
    }
}
