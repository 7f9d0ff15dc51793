//! The recipe of `tollgate init envoy-ratelimit`, run.

use std::fs;
use std::path::PathBuf;

use tollgate_testkit::{Gateway, GatewayKind, Port, Upstream};

use crate::client::{Answer, Client};
use crate::daemon::Daemon;
use crate::init::init;
use crate::stage::{SECRET, folder, with_token};
use crate::tokens::TOKENS;

/// A client's view of the recipe.
struct Stage {
    _gateway: Gateway,
    _daemon: Daemon,
    upstream: Upstream,
    port: Port,
    _ports: [Port; 2],
    folder: PathBuf,
}

impl Stage {
    /// With what stands in place of parts of the daemon's file, and the token that Envoy sends.
    fn new(edits: &[(&str, &str)], token: Option<&str>) -> Self {
        let (port, upstream, folder) = (Port::reserve(), Upstream::start(), folder());
        let (http, grpc) = (Port::reserve(), Port::reserve());
        let [asked, listen] = [format!("127.0.0.1:{}", grpc.number()), port.number().to_string()];
        let recipe = |file| {
            let addresses =
                ["--upstream", &upstream.address(), "--tollgate", &asked, "--listen", &listen];
            let all = [&["envoy-ratelimit", "--file", file], &addresses[..]].concat();
            let (code, text, said) = init(&all);
            assert_eq!((code, &*said), (0, ""));
            text
        };
        let mut config = recipe("tollgate.yaml");
        // For an hour, so that no test is long enough to see it recover.
        for (from, to) in [&[("5/min log", "5/h log")], edits].concat() {
            assert!(config.contains(from), "{from} is not in {config}");
            config = config.replace(from, to);
        }
        fs::write(folder.join("gateway.token"), format!("{SECRET}\n")).unwrap();
        let path = folder.join("tollgate.yaml");
        fs::write(&path, config).unwrap();
        let daemon = Daemon::start_for_envoy(&path, http.number(), grpc.number());
        // A busy machine is not to be taken for a daemon that is away.
        let text = recipe("envoy.yaml").replace("0.25s", "15s").replace("0.1s", "15s");
        let text = match token {
            Some(token) => with_token(GatewayKind::Envoy, "envoy.yaml", &text, token),
            None => text,
        };
        let gateway = Gateway::start(GatewayKind::Envoy, &[("envoy.yaml", text)], &port);
        Self { _gateway: gateway, _daemon: daemon, upstream, port, _ports: [http, grpc], folder }
    }

    /// One request from `127.0.0.HOST`.
    fn send(&self, host: u8, line: &str, headers: &[&str]) -> Answer {
        Client::connect(host, self.port.number()).send(line, headers, "")
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        // A folder that stays is a nuisance, but no reason to fail a test.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

#[test]
fn each_client_has_its_limit_however_it_asks() {
    if !GatewayKind::Envoy.is_installed() {
        return;
    }
    let stage = Stage::new(&[], None);
    for left in (0..5).rev() {
        let answer = stage.send(9, "GET /login", &[]);
        assert_eq!((answer.status, answer.left()), (200, Some(left)), "{answer:?}");
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
        let answer = stage.send(9, line, headers);
        assert_eq!(answer.status, 429, "{line} {headers:?}: {answer:?}");
        assert_eq!(answer.left(), Some(0), "{answer:?}");
        let wait: u32 = answer.header("retry-after").unwrap().parse().unwrap();
        assert!((1..=3600).contains(&wait), "{answer:?}");
    }
    assert_eq!(stage.upstream.take().len(), 5);
    // Neither another client nor another route is touched.
    assert_eq!(stage.send(10, "GET /login", &[]).left(), Some(4));
    assert_eq!(stage.send(9, "GET /other", &[]).status, 200);
}

#[test]
fn a_token_is_sent_as_the_page_says() {
    if !GatewayKind::Envoy.is_installed() {
        return;
    }
    let stage = Stage::new(&[TOKENS], Some(SECRET));
    for status in [200, 200, 200, 200, 200, 429] {
        let answer = stage.send(9, "GET /login", &["Authorization: Bearer of-the-client"]);
        assert_eq!(answer.status, status, "{answer:?}");
    }
    for upstream in stage.upstream.take() {
        assert_eq!(upstream.headers["authorization"], "Bearer of-the-client");
    }
    // Without it nothing is decided, and the recipe lets that pass.
    let stage = Stage::new(&[TOKENS], None);
    for _ in 0..7 {
        assert_eq!(stage.send(9, "GET /login", &[]).status, 200);
    }
}
