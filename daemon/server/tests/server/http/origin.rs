//! Requests that a web page makes a browser send.

use tollgate_daemon::Config;

use crate::support::client::{Response, encode_request};
use crate::support::daemon::{Daemon, POLICIES};

const CHECK: &str = r#"{"policy":"log","key":"a"}"#;
const JSON: &str = "content-type: application/json";

/// Sends a request to check, on a new connection, for this host.
async fn check(daemon: &Daemon, path: &str, host: &str, headers: &[&str], body: &str) -> Response {
    let request = encode_request("POST", path, &headers.join("\r\n"), body);
    let request = request.replace("host: localhost", &format!("host: {host}"));
    daemon.send(&request).await.read_response().await.unwrap()
}

#[tokio::test]
async fn requests_of_web_pages_of_other_origins_are_refused_and_charge_nothing() {
    let daemon = Daemon::start().await;
    let envoy = r#"{"domain":"log","descriptors":[{"entries":[{"key":"a"}]}]}"#;
    for (headers, rule) in [
        (&["sec-fetch-site: cross-site", JSON][..], "Sec-Fetch-Site"),
        (&["sec-fetch-site: same-site", JSON], "Sec-Fetch-Site"),
        (&["sec-fetch-site: same-origin", "sec-fetch-site: cross-site", JSON], "Sec-Fetch-Site"),
        (&["origin: http://evil.example", JSON], "Origin"),
        (&["origin: null", JSON], "Origin"),
        (&["origin: http://localhost:81", JSON], "Origin"),
        (&["origin: http://localhost.evil.example", JSON], "Origin"),
        (&["origin: http://localhost"], "application/json"),
        (&["origin: http://localhost", "content-type: text/plain"], "application/json"),
        (&["sec-fetch-mode: no-cors", "content-type: text/plain"], "application/json"),
    ] {
        for (path, body) in
            [("/v1/check", CHECK), ("/v1/inspect", CHECK), ("/v1/reset", CHECK), ("/json", envoy)]
        {
            let response = check(&daemon, path, "localhost", headers, body).await;
            response.assert(403, rule, format_args!("{path} {headers:?}"));
            assert!(!response.body.contains("evil"), "{}", response.body);
        }
    }
    let peek = daemon.post("/v1/peek", CHECK).await;
    peek.assert(200, r#""remaining":2"#, "nothing was charged");
    for headers in [
        &[][..],
        &["content-type: application/x-www-form-urlencoded"],
        &["origin: http://LOCALHOST", "content-type: application/json; charset=utf-8"],
        &["sec-fetch-site: same-origin", JSON],
        &["sec-fetch-site: none", JSON],
    ] {
        let response = check(&daemon, "/v1/peek", "localhost", headers, CHECK).await;
        response.assert(200, "", format_args!("{headers:?}"));
    }
}

#[tokio::test]
async fn requests_for_other_hosts_are_refused_on_loopback() {
    let mut config = Config::from_yaml(POLICIES).unwrap();
    let listen = "listen: { hosts: [tollgate.internal, '*.example.com'] }";
    config.listen = Config::from_yaml(listen).unwrap().listen;
    let daemon = Daemon::start_with_config(config).await;
    for (host, is_accepted) in [
        ("localhost:8080", true),
        ("app.localhost", true),
        ("127.0.0.1:8080", true),
        ("[::1]:8080", true),
        ("192.0.2.1", true),
        ("tollgate.internal:8080", true),
        ("TOLLGATE.internal.", true),
        ("a.example.com", true),
        ("example.com", false),
        ("evil.example", false),
        ("localhost.evil.example", false),
        ("127.0.0.1.evil.example", false),
        ("a b", false),
    ] {
        let response = check(&daemon, "/v1/peek", host, &[], CHECK).await;
        let (status, part) = if is_accepted { (200, "") } else { (403, "listen.hosts") };
        response.assert(status, part, host);
        assert!(!response.body.contains("evil"), "{}", response.body);
    }
    // Probes carry no key.
    let probe = encode_request("GET", "/readyz", "", "").replace("localhost", "evil.example");
    assert_eq!(daemon.send(&probe).await.read_response().await.unwrap().status, 200);
}

#[tokio::test]
async fn headers_that_a_gateway_relays_do_not_affect_forward_auth() {
    let rules = "rules: [{ match: { path: '/**' }, policy: log, key: '{header.x-user}' }]";
    let daemon = Daemon::start_with(&format!("{POLICIES}{rules}")).await;
    for status in [200, 200, 429] {
        let headers = [
            "x-forwarded-method: POST",
            "x-forwarded-uri: /",
            "x-forwarded-host: shop.example",
            "x-user: a",
            "origin: https://other.example",
            "referer: https://other.example/",
            "sec-fetch-site: cross-site",
            "content-type: text/plain",
        ];
        let path = "/v1/forward-auth/traefik";
        let response = check(&daemon, path, "shop.example", &headers, "").await;
        response.assert(status, "", "forward auth");
    }
}
