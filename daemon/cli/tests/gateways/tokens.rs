//! A daemon that wants a token of the gateway.

use tollgate_testkit::GatewayKind;

use crate::stage::{SECRET, Script, Stage};

/// The daemon has tokens, as its file says how.
pub(crate) const TOKENS: (&str, &str) = ("# tokens:", "tokens:");

/// What a client may send in the place of the gateway's token.
const ROWS: &[&[&str]] = &[
    &[],
    &["Tollgate-Token: of-the-client"],
    &["Tollgate-Token: of-the-client", "tollgate-token: again"],
    &["Tollgate-Token:", "Tollgate_Token: of-the-client"],
    &["Connection: close, Tollgate-Token"],
];

/// With the line of the recipe its requests are decided, whatever token a client sends, and the client's
/// own `Authorization` is left to the application.
pub(crate) fn tokens_are_the_gateways_own(kind: GatewayKind) {
    let script = Script { edits: &[TOKENS], token: Some(SECRET), ..Script::default() };
    let stage = Stage::with(kind, script);
    stage.spend(9);
    for (at, row) in (10..).zip(ROWS) {
        // Envoy does not parse that.
        if kind == GatewayKind::Envoy && row.iter().any(|row| row.starts_with("Connection:")) {
            continue;
        }
        for expected in [200, 200, 200, 200, 200, 429] {
            let headers = [row, &["Authorization: Bearer of-the-client"][..]].concat();
            let answer = stage.send(at, "GET /login", &headers);
            assert_eq!(answer.status, expected, "{row:?}: {answer:?}");
        }
        let reached = stage.upstream.take();
        assert_eq!(reached.len(), 5, "{row:?}");
        for reached in reached {
            assert_eq!(reached.headers["authorization"], "Bearer of-the-client", "{row:?}");
            let is_told = reached.headers.values().any(|value| value == SECRET);
            assert!(!is_told, "the application is told the token: {reached:?}");
        }
    }
}

/// Without the line, or with another token, none passes, although the recipe lets pass what is not
/// decided; not even for a client that has found the token.
pub(crate) fn tokens_are_needed(kind: GatewayKind) {
    for token in [None, Some("unknown")] {
        let stage = Stage::with(kind, Script { edits: &[TOKENS], token, ..Script::default() });
        let stolen = format!("Tollgate-Token: {SECRET}");
        for row in [&[][..], &[&*stolen], &["Authorization: Bearer of-the-client"]] {
            let answer = stage.send(9, "GET /login", row);
            // Who is told 401 may drop a login that is none of the daemon's.
            let expected = if kind == GatewayKind::Envoy { 401 } else { 503 };
            assert_eq!(answer.status, expected, "{token:?} {row:?}: {answer:?}");
        }
        assert_eq!(stage.reached(), 0);
    }
}

/// Nor does one pass with a token that may not ask, or not about this policy.
pub(crate) fn tokens_say_what_a_gateway_may_ask(kind: GatewayKind) {
    let expected = match kind {
        // It is answered 403 for any denial.
        GatewayKind::Nginx => 429,
        GatewayKind::Caddy | GatewayKind::Haproxy => 503,
        // It hands on what the daemon says.
        GatewayKind::Envoy => 403,
    };
    for edit in [
        ("scopes: [check]", "scopes: [read]"),
        ("scopes: [check]", "scopes: [check], policies: [per-ip]"),
    ] {
        let script = Script { edits: &[TOKENS, edit], token: Some(SECRET), ..Script::default() };
        let stage = Stage::with(kind, script);
        let answer = stage.send(9, "GET /login", &[]);
        assert_eq!(answer.status, expected, "{edit:?}: {answer:?}");
        assert_eq!(answer.header("retry-after"), None, "{answer:?}");
        assert_eq!(stage.reached(), 0);
    }
}
