//! The configuration of `tollgate init envoy-ratelimit` with a real Envoy.

use std::fs;

use tollgate_testkit::{Folder, Gateway, GatewayKind, Port, Upstream};

use crate::client::{Answer, Client};
use crate::daemon::Daemon;
use crate::init::init;
use crate::setup::{SECRET, with_token};
use crate::tokens::TOKENS;

/// Envoy with the daemon and an application.
struct Setup {
    _gateway: Gateway,
    _daemon: Daemon,
    upstream: Upstream,
    port: Port,
    _ports: [Port; 2],
    _folder: Folder,
}

impl Setup {
    /// Applies replacements to the daemon's configuration, and sets the token that Envoy sends.
    fn new(edits: &[(&str, &str)], token: Option<&str>) -> Self {
        let (port, upstream, folder) = (Port::reserve(), Upstream::start(), Folder::create());
        let (http, grpc) = (Port::reserve(), Port::reserve());
        let [tollgate, listen] =
            [format!("127.0.0.1:{}", grpc.number()), port.number().to_string()];
        let recipe = |file| {
            let addresses =
                ["--upstream", &upstream.address(), "--tollgate", &tollgate, "--listen", &listen];
            let all = [&["envoy-ratelimit", "--file", file], &addresses[..]].concat();
            let (code, text, error) = init(&all);
            assert_eq!((code, &*error), (0, ""));
            text
        };
        let mut config = recipe("tollgate.yaml");
        // A longer window, so that no limit recovers during the test.
        for (from, to) in [&[("5/min log", "5/h log")], edits].concat() {
            assert!(config.contains(from), "{from} is not in {config}");
            config = config.replace(from, to);
        }
        fs::write(folder.join("gateway.token"), format!("{SECRET}\n")).unwrap();
        let path = folder.join("tollgate.yaml");
        fs::write(&path, config).unwrap();
        let daemon = Daemon::start_for_envoy(&path, http.number(), grpc.number());
        // Long timeouts tolerate a busy machine.
        let text = recipe("envoy.yaml").replace("0.25s", "15s").replace("0.1s", "15s");
        let text = match token {
            Some(token) => with_token(GatewayKind::Envoy, "envoy.yaml", &text, token),
            None => text,
        };
        let gateway = Gateway::start(GatewayKind::Envoy, &[("envoy.yaml", text)], &port);
        Self {
            _gateway: gateway,
            _daemon: daemon,
            upstream,
            port,
            _ports: [http, grpc],
            _folder: folder,
        }
    }

    /// Sends a request from `127.0.0.HOST`.
    fn send(&self, host: u8, line: &str, headers: &[&str]) -> Answer {
        Client::connect(host, self.port.number()).send(line, headers, "")
    }
}

#[test]
fn request_variants_do_not_bypass_the_limit_of_a_client() {
    if !GatewayKind::Envoy.is_installed() {
        return;
    }
    let setup = Setup::new(&[], None);
    for remaining in (0..5).rev() {
        let answer = setup.send(9, "GET /login", &[]);
        assert_eq!((answer.status, answer.remaining()), (200, Some(remaining)), "{answer:?}");
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
        let answer = setup.send(9, line, headers);
        assert_eq!(answer.status, 429, "{line} {headers:?}: {answer:?}");
        assert_eq!(answer.remaining(), Some(0), "{answer:?}");
        let wait: u32 = answer.header("retry-after").unwrap().parse().unwrap();
        assert!((1..=3600).contains(&wait), "{answer:?}");
    }
    assert_eq!(setup.upstream.take().len(), 5);
    // Other clients and routes are not affected.
    assert_eq!(setup.send(10, "GET /login", &[]).remaining(), Some(4));
    assert_eq!(setup.send(9, "GET /other", &[]).status, 200);
}

#[test]
fn envoy_sends_the_token_of_the_page() {
    if !GatewayKind::Envoy.is_installed() {
        return;
    }
    let setup = Setup::new(&[TOKENS], Some(SECRET));
    for status in [200, 200, 200, 200, 200, 429] {
        let answer = setup.send(9, "GET /login", &["Authorization: Bearer of-the-client"]);
        assert_eq!(answer.status, status, "{answer:?}");
    }
    for upstream in setup.upstream.take() {
        assert_eq!(upstream.headers["authorization"], "Bearer of-the-client");
    }
    // Without a token there is no decision, and the configuration fails open.
    let setup = Setup::new(&[TOKENS], None);
    for _ in 0..7 {
        assert_eq!(setup.send(9, "GET /login", &[]).status, 200);
    }
}
