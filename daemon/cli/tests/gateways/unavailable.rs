//! Responses to clients while the daemon or its store is unavailable.

use rustix::process::Signal;
use tollgate_testkit::{GatewayKind, Server, until};

use crate::setup::{Options, Setup};

/// The status of a request without a decision. Traefik always fails closed.
fn status_without_decision(kind: GatewayKind, fails_closed: bool) -> u16 {
    match (kind, fails_closed) {
        (GatewayKind::Traefik, _) => 500,
        (_, true) => 503,
        (_, false) => 200,
    }
}

/// After a restart of the daemon, requests are limited again.
pub(crate) fn requests_pass_or_fail_as_documented_while_the_daemon_is_down(kind: GatewayKind) {
    let mut setup = Setup::new(kind);
    setup.spend(9);
    setup.daemon.kill();
    for body in ["", "a=b"] {
        let response = setup.client(9).send("POST /login", &[], body);
        let expected = status_without_decision(kind, false);
        assert_eq!(response.status, expected, "{response:?}");
        let reached: Vec<_> =
            setup.upstream.take().into_iter().map(|reached| reached.body).collect();
        let passed = (expected == 200).then(|| body.as_bytes().to_vec());
        assert_eq!(reached, Vec::from_iter(passed));
    }
    // The state in memory is lost.
    setup.daemon.restart();
    setup.spend(9);
}

/// With the fail-closed line of the configuration, the gateway rejects requests.
pub(crate) fn fail_closed_rejects_requests_while_the_daemon_is_down(kind: GatewayKind) {
    let mut setup = Setup::with(kind, Options { fails_closed: true, ..Options::default() });
    setup.spend(9);
    setup.daemon.kill();
    for body in ["", "a=b"] {
        let response = setup.client(10).send("POST /login", &[], body);
        assert_eq!(response.status, status_without_decision(kind, true), "{response:?}");
    }
    assert_eq!(setup.reached(), 0);
    setup.daemon.restart();
    setup.spend(9);
}

/// A daemon that does not respond is unavailable after the timeout of the configuration.
pub(crate) fn hanging_daemon_is_unavailable(kind: GatewayKind) {
    for fails_closed in [false, true] {
        let setup = Setup::with(
            kind,
            Options { has_recipe_timeouts: true, fails_closed, ..Options::default() },
        );
        setup.daemon.signal(Signal::STOP);
        let response = setup.send(9, "GET /login", &[]);
        let expected = status_without_decision(kind, fails_closed);
        assert_eq!(response.status, expected, "{response:?}");
        setup.daemon.signal(Signal::CONT);
        // Earlier requests may be charged or not, and on a busy machine some may still time out.
        let is_limited = (0..100).any(|_| setup.send(9, "GET /login", &[]).status == 429);
        assert!(is_limited, "the daemon does not decide again");
    }
}

/// The gateway handles the error of the daemon as if the daemon were unavailable.
pub(crate) fn untrusted_gateway_gets_no_decision(kind: GatewayKind) {
    let distrust = [("trusted_proxies: [127.0.0.1, \"::1\"]", "trusted_proxies: []")];
    for fails_closed in [false, true] {
        let options = Options { fails_closed, edits: &distrust, ..Options::default() };
        let setup = Setup::with(kind, options);
        let expected = status_without_decision(kind, fails_closed);
        for _ in 0..6 {
            let response = setup.send(9, "GET /login", &[]);
            assert_eq!(response.status, expected, "{response:?}");
            // Traefik passes the daemon's response on.
            let has_reason = response.body.contains("trusted_proxies");
            assert_eq!(has_reason, kind == GatewayKind::Traefik, "{response:?}");
        }
        assert_eq!(setup.reached(), if expected == 200 { 6 } else { 0 });
    }
}

/// A degraded denial is a decision: every gateway returns 429, even one that fails open.
pub(crate) fn on_store_error_deny_denies_every_request(kind: GatewayKind) {
    with_store_down(kind, "deny", |setup| {
        // A client within its limit.
        let response = setup.send(10, "GET /login", &[]);
        assert_eq!(response.status, 429, "{response:?}");
        assert_eq!(setup.reached(), 0);
    });
}

/// A degraded admission is a decision, even if the gateway fails closed.
pub(crate) fn on_store_error_allow_admits_every_request(kind: GatewayKind) {
    with_store_down(kind, "allow", |setup| {
        // A client above its limit, once the daemon has forgotten that the store has denied it.
        let admitted = || (setup.send(9, "GET /login", &[]).status == 200).then_some(());
        assert!(until(admitted).is_some());
        for _ in 0..6 {
            let response = setup.send(9, "GET /login", &[]);
            assert_eq!(response.status, 200, "{response:?}");
        }
        assert_eq!(setup.reached(), 7);
    });
}

fn with_store_down(kind: GatewayKind, on_store_error: &str, check: impl Fn(&Setup)) {
    for fails_closed in [false, true] {
        let server = Server::start();
        let line = format!("on_store_error: {on_store_error}");
        // A long deadline, so that a slow store on a busy machine is not unavailable.
        let more = format!("store:\n  url: {}\n  deadline: 2s\n", server.url());
        let edits = [("on_store_error: deny", &*line)];
        let setup = Setup::with(
            kind,
            Options { fails_closed, edits: &edits, more: &more, ..Options::default() },
        );
        setup.spend(9);
        server.kill();
        check(&setup);
    }
}
