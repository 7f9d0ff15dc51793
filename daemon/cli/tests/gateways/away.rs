//! Responses to clients while the daemon or its store is unavailable.

use rustix::process::Signal;
use tollgate_testkit::{GatewayKind, Server};

use crate::stage::{Script, Stage};

/// Requests pass while the daemon is away; when it is back the next one is decided.
pub(crate) fn daemon_open(kind: GatewayKind) {
    let mut stage = Stage::of(kind);
    stage.spend(9);
    stage.daemon.kill();
    for body in ["", "a=b"] {
        let answer = stage.client(9).send("POST /login", &[], body);
        assert_eq!(answer.status, 200, "{answer:?}");
        let [reached] = &stage.upstream.take()[..] else { panic!("it did not arrive once") };
        assert_eq!(reached.body, body.as_bytes());
    }
    // Its memory is new.
    stage.daemon.start_again();
    stage.spend(9);
}

/// The other line of the recipe: none passes.
pub(crate) fn daemon_closed(kind: GatewayKind) {
    let mut stage = Stage::with(kind, Script { is_closed: true, ..Script::default() });
    stage.spend(9);
    stage.daemon.kill();
    for body in ["", "a=b"] {
        let answer = stage.client(10).send("POST /login", &[], body);
        assert_eq!(answer.status, 503, "{answer:?}");
    }
    assert_eq!(stage.reached(), 0);
    stage.daemon.start_again();
    stage.spend(9);
}

/// A daemon that does not answer is one that is away, after the moment that the recipe says.
pub(crate) fn daemon_hangs(kind: GatewayKind) {
    for is_closed in [false, true] {
        let stage = Stage::with(kind, Script { is_hasty: true, is_closed, ..Script::default() });
        stage.daemon.signal(Signal::STOP);
        let answer = stage.send(9, "GET /login", &[]);
        let expected = if is_closed { 503 } else { 200 };
        assert_eq!(answer.status, expected, "{answer:?}");
        stage.daemon.signal(Signal::CONT);
        // What it was asked meanwhile counts or not, and a busy machine may still be too slow for
        // some; but it decides again.
        let decided = (0..100).any(|_| stage.send(9, "GET /login", &[]).status == 429);
        assert!(decided, "it does not decide again");
    }
}

/// A gateway that the daemon does not trust gets no decision: as if it were away.
pub(crate) fn daemon_cannot_decide(kind: GatewayKind) {
    let distrust = [("trusted_proxies: [127.0.0.1, \"::1\"]", "trusted_proxies: []")];
    for is_closed in [false, true] {
        let script = Script { is_closed, edits: &distrust, ..Script::default() };
        let stage = Stage::with(kind, script);
        let expected = if is_closed { 503 } else { 200 };
        for _ in 0..6 {
            let answer = stage.send(9, "GET /login", &[]);
            assert_eq!(answer.status, expected, "{answer:?}");
            assert!(!answer.body.contains("trusted_proxies"), "{answer:?}");
        }
        assert_eq!(stage.reached(), if is_closed { 0 } else { 6 });
    }
}

/// `on_store_error: deny` is a decision: 429 at every gateway, even one that fails open.
pub(crate) fn store_denies(kind: GatewayKind) {
    store(kind, "deny", |stage| {
        // A client that has spent nothing.
        let answer = stage.send(10, "GET /login", &[]);
        assert_eq!(answer.status, 429, "{answer:?}");
        assert_eq!(stage.reached(), 0);
    });
}

/// `on_store_error: allow` passes more than the policy has, even where the gateway fails closed.
pub(crate) fn store_allows(kind: GatewayKind) {
    store(kind, "allow", |stage| {
        for _ in 0..7 {
            // Even one that has spent all.
            let answer = stage.send(9, "GET /login", &[]);
            assert_eq!(answer.status, 200, "{answer:?}");
        }
        assert_eq!(stage.reached(), 7);
    });
}

fn store(kind: GatewayKind, on_store_error: &str, check: impl Fn(&Stage)) {
    for is_closed in [false, true] {
        let server = Server::start();
        let line = format!("on_store_error: {on_store_error}");
        // A patient deadline, so that a busy machine is not taken for a store that is away.
        let more = format!("store:\n  url: {}\n  deadline: 2s\n", server.url());
        let edits = [("on_store_error: deny", &*line)];
        let stage = Stage::with(
            kind,
            Script { is_closed, edits: &edits, more: &more, ..Script::default() },
        );
        stage.spend(9);
        server.kill();
        check(&stage);
    }
}
