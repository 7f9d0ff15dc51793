//! Requests that the daemon's HTTP parser rejects, or whose headers have more than one reading.

use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, TcpListener};
use std::thread;

use tollgate_testkit::GatewayKind;

use crate::setup::{Options, Setup};

/// One limit per address for every path.
const EVERY_PATH: (&str, &str) = ("path: \"/login\" }", "path: \"/**\" }");
/// One limit per API key.
const BY_API_KEY: (&str, &str) =
    ("policy: login\n    key: \"{ip}\"", "policy: login\n    key: \"{header.x-api-key}\"");

/// The edits of a page with which the gateway relays `X-Api-Key`.
fn relay_api_key(kind: GatewayKind) -> &'static [(&'static str, &'static str)] {
    match kind {
        GatewayKind::Nginx => &[("# proxy_set_header X-Api-Key", "proxy_set_header X-Api-Key")],
        GatewayKind::Caddy | GatewayKind::Traefik => &[],
        GatewayKind::Haproxy => &[("local READ = {}", "local READ = { \"x-api-key\" }")],
        GatewayKind::Envoy => &[("# - exact: x-api-key", "- exact: x-api-key")],
    }
}

/// Edits with which the gateway accepts heads that are larger than those of the daemon.
fn large_buffers(kind: GatewayKind) -> &'static [(&'static str, &'static str)] {
    match kind {
        GatewayKind::Nginx => {
            &[("    server_name _;", "    large_client_header_buffers 16 64k;\n    server_name _;")]
        }
        GatewayKind::Haproxy => &[(
            "    # One Lua state per thread",
            "    tune.bufsize 131072\n    # One Lua state per thread",
        )],
        GatewayKind::Caddy | GatewayKind::Envoy | GatewayKind::Traefik => &[],
    }
}

/// The daemon and a gateway that relays `X-Api-Key`, with a client above its limit.
fn setup(kind: GatewayKind, fails_closed: bool, more: &[(&str, &str)]) -> Setup {
    let gateway_edits = [relay_api_key(kind), more].concat();
    let options = Options {
        fails_closed,
        edits: &[EVERY_PATH],
        gateway_edits: &gateway_edits,
        ..Options::default()
    };
    let setup = Setup::with(kind, options);
    setup.spend(9);
    setup
}

/// Sends a request of the client above its limit, which must not reach the application.
#[track_caller]
fn assert_refused(setup: &Setup, line: &str, headers: &[&str]) -> Option<u16> {
    let response = setup.client(9).try_send(line, headers, "");
    let status = response.map(|response| response.status);
    let shown = |text: &str| text.chars().take(60).collect::<String>();
    let headers: Vec<_> = headers.iter().map(|header| shown(header)).collect();
    let (line, length) = (shown(line), line.len());
    assert_eq!(setup.reached(), 0, "{line:?} {length} {headers:?}: {status:?}");
    // A gateway may close the connection instead of answering.
    let refusals = [None, Some(400), Some(414), Some(429), Some(431), Some(494)];
    assert!(refusals.contains(&status), "{line:?} {length} {headers:?}: {status:?}");
    status
}

/// The bytes that no header and no path may contain, and the other control bytes.
fn control_bytes() -> impl Iterator<Item = char> {
    (0..=127).map(char::from).filter(|byte| byte.is_ascii_control())
}

/// nginx and HAProxy relay bytes that the daemon rejects. That is a refusal and no failure.
pub(crate) fn control_bytes_do_not_bypass_the_limit(kind: GatewayKind) {
    for fails_closed in [false, true] {
        let setup = setup(kind, fails_closed, &[]);
        for byte in control_bytes() {
            for name in ["X-Api-Key", "X-Forwarded-For", "Host", "Cookie", "Authorization", "X-Any"]
            {
                assert_refused(&setup, "GET /login", &[&*format!("{name}: a{byte}b")]);
                assert_refused(&setup, "GET /login", &[&*format!("{name}: {byte}")]);
            }
            let escaped = u32::from(byte);
            assert_refused(&setup, &format!("GET /a%{escaped:02x}b"), &[]);
            // These end the request line.
            if !"\r\n".contains(byte) {
                assert_refused(&setup, &format!("GET /a{byte}b"), &[]);
                assert_refused(&setup, &format!("GET /a?b={byte}"), &[]);
            }
        }
    }
}

/// The sizes are below, near and above the bounds of each gateway and of the daemon.
pub(crate) fn oversized_heads_do_not_bypass_the_limit(kind: GatewayKind) {
    let near = |length: usize| (length - 400..length + 400).step_by(50);
    let sizes = [4_000, 32_768].into_iter().chain(near(8_192)).chain(near(16_384));
    let sizes: Vec<usize> =
        sizes.chain(near(15_360)).chain(near(130_048)).chain([40_000, 60_000, 900_000]).collect();
    for (fails_closed, buffers) in [(false, false), (false, true), (true, true)] {
        let edits = if buffers { large_buffers(kind) } else { &[] };
        let setup = setup(kind, fails_closed, edits);
        for size in &sizes {
            let (long, half) = ("x".repeat(*size), "x".repeat(size / 2));
            assert_refused(&setup, "GET /login", &[&*format!("X-Api-Key: {long}")]);
            assert_refused(&setup, &format!("GET /{long}"), &[]);
            assert_refused(
                &setup,
                &format!("GET /login?{half}"),
                &[&*format!("X-Api-Key: {half}")],
            );
        }
        let many: Vec<String> = (0..150).map(|at| format!("X-Api-Key: {at}")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        assert_refused(&setup, "GET /login", &many);
    }
}

/// Each row has the spent key in its place `*` and another key in its place `+`.
const DUPLICATES: &[&[&str]] = &[
    &["*"],
    &["*", "*"],
    &["*", "+"],
    &["+", "*"],
    &["+", "*", "+"],
    &["*", ""],
    &["", "*"],
    &["+", ""],
    &["", "+"],
    &["", ""],
    &[""],
    &["*,+"],
    &["+,*"],
    &["*, +"],
    &["*,"],
    &[",*"],
    &["*", ",+"],
    &["*,+", "+"],
];

/// If a request passes, the application gets the one value that the rule has read.
pub(crate) fn duplicate_headers_have_one_value_or_are_refused(kind: GatewayKind) {
    let edits = relay_api_key(kind);
    let options = Options { edits: &[BY_API_KEY], gateway_edits: edits, ..Options::default() };
    let setup = Setup::with(kind, options);
    for _ in 0..5 {
        assert_eq!(setup.send(9, "GET /login", &["X-Api-Key: spent"]).status, 200);
    }
    assert_eq!(setup.send(9, "GET /login", &["X-Api-Key: spent"]).status, 429);
    assert_eq!(setup.reached(), 5);
    for (at, row) in DUPLICATES.iter().enumerate() {
        let value = |text: &&str| text.replace('*', "spent").replace('+', &format!("key-{at}"));
        let lines: Vec<_> = row.iter().map(|x| format!("X-Api-Key: {}", value(x))).collect();
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        let mut passed = 0;
        for _ in 0..6 {
            let response = setup.send(9, "GET /login", &lines);
            assert!([200, 400, 429].contains(&response.status), "{row:?}: {response:?}");
            passed += usize::from(response.status == 200);
        }
        let reached = setup.upstream.take();
        assert_eq!(reached.len(), passed, "{row:?}");
        assert!(passed <= 5, "{row:?} is not limited");
        for request in reached {
            let values: Vec<_> = request.headers.get_all("x-api-key").iter().collect();
            let is_known = matches!(&values[..], [value] if *value != "spent" && !value.is_empty());
            assert!(is_known, "{row:?}: the application gets {values:?}");
        }
    }
}

/// Envoy treats every failure alike. The others let no request pass whose decision was interrupted,
/// because a client that could interrupt it would lift its limit.
pub(crate) fn broken_connections_are_no_reason_to_pass(kind: GatewayKind) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let relay = Some(listener.local_addr().unwrap().port());
    // It reads each request and closes the connection. The thread runs until the process ends.
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let lines = BufReader::new(&stream).lines();
            lines.map_while(Result::ok).take_while(|line| !line.is_empty()).for_each(drop);
        }
    });
    let setup = Setup::with(kind, Options { relay, ..Options::default() });
    let (status, reached) = match kind {
        GatewayKind::Nginx | GatewayKind::Haproxy => (503, 0),
        GatewayKind::Caddy => (502, 0),
        GatewayKind::Envoy => (200, 1),
        GatewayKind::Traefik => (500, 0),
    };
    let response = setup.send(9, "GET /login", &[]);
    assert_eq!((response.status, setup.reached()), (status, reached), "{response:?}");
}
