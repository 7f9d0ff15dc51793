//! The configuration of `tollgate init envoy-ratelimit` with a real Envoy.

use tollgate_testkit::GatewayKind;

use crate::setup::{Filter, Options, SECRET, Setup};
use crate::tokens::TOKENS;

fn start(options: Options<'_>) -> Setup {
    Setup::with(GatewayKind::Envoy, Options { filter: Filter::RateLimit, ..options })
}

#[test]
fn request_variants_do_not_bypass_the_limit_of_a_client() {
    if !GatewayKind::Envoy.is_installed() {
        return;
    }
    let setup = start(Options::default());
    for remaining in (0..5).rev() {
        let response = setup.send(9, "GET /login", &[]);
        assert_eq!((response.status, response.remaining()), (200, Some(remaining)), "{response:?}");
    }
    for (line, headers) in [
        ("GET /login", &[][..]),
        ("POST /login", &[]),
        ("GET /login?a=b", &[]),
        ("GET //login", &[]),
        ("GET /./login", &[]),
        ("GET /a/../login", &[]),
        ("GET /%6cogin", &[]),
        ("GET /login", &["X-Forwarded-For: 192.0.2.1"]),
        ("GET /login", &["X-Real-IP: 192.0.2.1", "True-Client-IP: 192.0.2.1"]),
        ("GET /login", &["X-Envoy-External-Address: 192.0.2.1"]),
        ("GET /login", &["X-Original-URL: /", "X-Rewrite-URL: /"]),
        ("GET /login", &["X-Envoy-Original-Path: /"]),
    ] {
        let response = setup.send(9, line, headers);
        assert_eq!(response.status, 429, "{line} {headers:?}: {response:?}");
        assert_eq!(response.remaining(), Some(0), "{response:?}");
        let wait: u32 = response.header("retry-after").unwrap().parse().unwrap();
        assert!((1..=3600).contains(&wait), "{response:?}");
    }
    assert_eq!(setup.reached(), 5);
    // Other clients and routes are not affected.
    assert_eq!(setup.send(10, "GET /login", &[]).remaining(), Some(4));
    assert_eq!(setup.send(9, "GET /other", &[]).status, 200);
}

#[test]
fn envoy_sends_the_token_of_the_page() {
    if !GatewayKind::Envoy.is_installed() {
        return;
    }
    let setup = start(Options { edits: &[TOKENS], token: Some(SECRET), ..Options::default() });
    for status in [200, 200, 200, 200, 200, 429] {
        let response = setup.send(9, "GET /login", &["Authorization: Bearer of-the-client"]);
        assert_eq!(response.status, status, "{response:?}");
    }
    for request in setup.upstream.take() {
        assert_eq!(request.headers["authorization"], "Bearer of-the-client");
    }
    // Without a token there is no decision, and the configuration fails open.
    let setup = start(Options { edits: &[TOKENS], ..Options::default() });
    for _ in 0..7 {
        assert_eq!(setup.send(9, "GET /login", &[]).status, 200);
    }
}
