//! A daemon that requires a token of the gateway.

use tollgate_testkit::GatewayKind;

use crate::setup::{Options, SECRET, Setup};

/// The replacement in the daemon's configuration that enables tokens.
pub(crate) const TOKENS: (&str, &str) = ("# tokens:", "tokens:");

/// Headers with which a client may try to replace the gateway's token.
const ROWS: &[&[&str]] = &[
    &[],
    &["Tollgate-Token: of-the-client"],
    &["Tollgate-Token: of-the-client", "tollgate-token: again"],
    &["Tollgate-Token:", "Tollgate_Token: of-the-client"],
    &["Connection: close, Tollgate-Token"],
];

/// Requests are decided whatever token the client sends, and the application gets the client's
/// `Authorization`.
pub(crate) fn gateway_sends_its_own_token(kind: GatewayKind) {
    let options = Options { edits: &[TOKENS], token: Some(SECRET), ..Options::default() };
    let setup = Setup::with(kind, options);
    setup.spend(9);
    for (at, row) in (10..).zip(ROWS) {
        // Envoy rejects this header.
        if kind == GatewayKind::Envoy && row.iter().any(|row| row.starts_with("Connection:")) {
            continue;
        }
        for expected in [200, 200, 200, 200, 200, 429] {
            let headers = [row, &["Authorization: Bearer of-the-client"][..]].concat();
            let response = setup.send(at, "GET /login", &headers);
            assert_eq!(response.status, expected, "{row:?}: {response:?}");
        }
        let reached = setup.upstream.take();
        assert_eq!(reached.len(), 5, "{row:?}");
        for reached in reached {
            assert_eq!(reached.headers["authorization"], "Bearer of-the-client", "{row:?}");
            let has_token = reached.headers.values().any(|value| value == SECRET);
            assert!(!has_token, "the application gets the token: {reached:?}");
        }
    }
}

/// No request passes, although the configuration fails open, and even if the client sends a valid
/// token.
pub(crate) fn missing_or_unknown_token_rejects_every_request(kind: GatewayKind) {
    for token in [None, Some("unknown")] {
        let setup = Setup::with(kind, Options { edits: &[TOKENS], token, ..Options::default() });
        let stolen = format!("Tollgate-Token: {SECRET}");
        for row in [&[][..], &[&*stolen], &["Authorization: Bearer of-the-client"]] {
            let response = setup.send(9, "GET /login", row);
            // A client that gets 401 may discard its login to the application.
            let forwards = matches!(kind, GatewayKind::Envoy | GatewayKind::Traefik);
            let expected = if forwards { 401 } else { 503 };
            assert_eq!(response.status, expected, "{token:?} {row:?}: {response:?}");
        }
        assert_eq!(setup.reached(), 0);
    }
}

pub(crate) fn token_without_scope_or_policy_rejects_every_request(kind: GatewayKind) {
    let expected = match kind {
        // nginx gets 403 for every denial.
        GatewayKind::Nginx => 429,
        GatewayKind::Caddy | GatewayKind::Haproxy => 503,
        // They forward the status of the daemon.
        GatewayKind::Envoy | GatewayKind::Traefik => 403,
    };
    for edit in [
        ("scopes: [check]", "scopes: [read]"),
        ("scopes: [check]", "scopes: [check], policies: [per-ip]"),
    ] {
        let options = Options { edits: &[TOKENS, edit], token: Some(SECRET), ..Options::default() };
        let setup = Setup::with(kind, options);
        let response = setup.send(9, "GET /login", &[]);
        assert_eq!(response.status, expected, "{edit:?}: {response:?}");
        assert_eq!(response.header("retry-after"), None, "{response:?}");
        assert_eq!(setup.reached(), 0);
    }
}
