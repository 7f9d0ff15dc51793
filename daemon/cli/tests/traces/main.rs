//! Export of decisions as spans to a collector.
#![allow(clippy::panic, clippy::unwrap_used, reason = "a test")]

#[path = "../common/client.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod client;
#[path = "../common/process.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod process;
mod protobuf;

use std::collections::BTreeMap;
use std::net::TcpListener;
use std::process::{Command, Stdio};

use tollgate_testkit::Upstream;

use process::{Daemon, HTTP_ONLY, output, tollgate};
use protobuf::{all, nested, number};

const PARENT: &str = "b7ad6b7169203331";
const SECRET: &str = "a-secret-key";
const CONFIG: &str = r#"
operators: loopback
policies: { traced: { limits: [1/d log] }, other: { limits: [9/d log] } }
rules: [{ policy: traced, key: "gate-{header.x-api-key}" }]
"#;

/// Sends a request with a trace id and returns the status.
fn send(daemon: &Daemon, trace: u8, line: &str, headers: &[&str], body: &str) -> u16 {
    let trace = format!("traceparent: 00-{}-{PARENT}-01", hexadecimal(&[trace; 16]));
    client::send(daemon.address(), line, &[headers, &[&*trace]].concat(), body).status
}

fn start(configure: impl FnOnce(&mut Command) -> &mut Command) -> Daemon {
    Daemon::with_config(CONFIG, configure)
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn attributes(messages: &[&[u8]]) -> BTreeMap<String, String> {
    let pair = |message: &&[u8]| (text(all(message, 1)[0]), text(nested(message, &[2, 1])[0]));
    messages.iter().map(pair).collect()
}

#[test]
fn each_decision_is_a_span_in_the_trace_of_its_caller() {
    let collector = Upstream::start();
    let daemon = start(|command| {
        command.env("OTEL_EXPORTER_OTLP_ENDPOINT", format!("http://{}", collector.address()));
        command.env("OTEL_EXPORTER_OTLP_HEADERS", "x-tenant=shop")
    });
    let (key, path) = (format!("x-api-key: {SECRET}"), format!("x-forwarded-uri: /a?{SECRET}"));
    let forwarded: &[&str] = &[
        "x-forwarded-method: GET",
        "x-forwarded-host: a.example",
        "x-forwarded-for: 192.0.2.1",
        &key,
        &path,
    ];
    let (check, gate) = ("POST /v1/check", "GET /v1/forward-auth/traefik");
    let one = format!(r#"{{"policy":"traced","key":"{SECRET}"}}"#);
    let two = format!(
        r#"{{"checks":[{{"policy":"other","key":"{SECRET}"}},{{"policy":"other","key":"{SECRET}2"}}]}}"#
    );
    let inline = format!(r#"{{"limit":"1/d log","cost":2,"key":"{SECRET}"}}"#);
    let rows = [
        (check, &[][..], &*one, 200, ("http", "traced", "allowed")),
        (check, &[][..], &*one, 429, ("http", "traced", "denied")),
        (check, &[][..], &*two, 200, ("http", "other,other", "allowed,allowed")),
        (check, &[][..], &*inline, 422, ("http", "_inline", "never")),
        (gate, forwarded, "", 200, ("forward_auth", "traced", "allowed")),
        (gate, forwarded, "", 429, ("forward_auth", "traced", "denied")),
    ];
    for (trace, (line, headers, body, status, _)) in (1..).zip(&rows) {
        assert_eq!(send(&daemon, trace, line, headers, body), *status, "{line} {body}");
    }
    // Other requests have no span.
    send(&daemon, 99, "GET /livez", &[], "");
    daemon.stop();

    let batches = collector.take();
    let mut spans = BTreeMap::new();
    for batch in &batches {
        assert_eq!((&*batch.method, &*batch.uri), ("POST", "/v1/traces"));
        assert_eq!(batch.headers["x-tenant"], "shop");
        assert_eq!(batch.headers["content-type"], "application/x-protobuf");
        let secret = SECRET.as_bytes();
        assert!(
            !batch.body.windows(secret.len()).any(|window| window == secret),
            "a key is exported"
        );
        let service = attributes(&nested(&batch.body, &[1, 1, 1]));
        assert_eq!(service["service.name"], "tollgate");
        for span in nested(&batch.body, &[1, 2, 2]) {
            assert!(spans.insert(hexadecimal(all(span, 1)[0]), span).is_none());
        }
    }
    assert_eq!(spans.len(), rows.len(), "{:?}", spans.keys());
    for (trace, (line, .., (surface, policy, answer))) in (1_u8..).zip(&rows) {
        let span = spans[&hexadecimal(&[trace; 16])];
        assert_eq!(hexadecimal(all(span, 4)[0]), PARENT);
        assert_eq!(text(all(span, 5)[0]), "decide");
        assert!(number(span, 7) <= number(span, 8) && number(span, 7) > 0);
        let attributes = attributes(&all(span, 9));
        let expected = [
            ("tollgate.answer", *answer),
            ("tollgate.policy", *policy),
            ("tollgate.surface", *surface),
        ];
        let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(attributes, BTreeMap::from(expected), "{line}");
    }
}

#[test]
fn unreachable_collector_is_logged_once() {
    // The port of a listener that was just closed.
    let unreachable = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let daemon = start(|command| {
        command.env("OTEL_EXPORTER_OTLP_ENDPOINT", format!("http://{unreachable}"));
        command.env("OTEL_BSP_SCHEDULE_DELAY", "1").stderr(Stdio::piped())
    });
    let body = format!(r#"{{"policy":"other","key":"{SECRET}"}}"#);
    for _ in 0..9 {
        assert_eq!(send(&daemon, 1, "POST /v1/check", &[], &body), 200);
    }
    let lines = daemon.stop_and_read_log();
    assert_eq!(lines.matches("accepts no traces, which are lost").count(), 1, "{lines}");
}

#[test]
fn invalid_environment_is_an_error_at_start() {
    let mut command = tollgate();
    command.arg("serve").args(HTTP_ONLY);
    command.env("OTEL_EXPORTER_OTLP_ENDPOINT", "localhost:4318");
    let (code, _, error) = output(&mut command, b"");
    assert_eq!(code, 2);
    let expected = "error: OTEL_EXPORTER_OTLP_ENDPOINT is \"localhost:4318\"";
    assert!(error.starts_with(expected), "{error}");
}
