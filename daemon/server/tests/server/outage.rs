//! An outage of the store, as clients, metrics and the readiness page report it.

use tollgate_daemon::Config;
use tollgate_testkit::{Folder, Server};

use crate::envoy::client::{call, connect, wait_for};
use crate::metrics::{assert_lines, page};
use crate::resp::RespClient;
use crate::support::daemon::Daemon;
use crate::support::{eventually, wait_until_ready};

const LIMITS: &str = "
domain: domain
descriptors:
  - { key: user, rate_limit: { unit: day, requests_per_unit: 3 } }
  - { key: path, rate_limit: { unit: day, requests_per_unit: 100 } }
";
/// The name that the counters have for the rules of the domain.
const RULES: &str = "@envoy.domain";

/// Starts on a server, with these settings of `envoy` and other fields.
async fn start(server: &Server, envoy: &str, fields: &str) -> Daemon {
    let folder = Folder::create();
    let limits = folder.write("limits.yaml", LIMITS);
    let yaml = format!(
        "envoy: {{ config: [\"{}\"], {envoy} }}
policies: {{ closed: {{ limits: [10/h] }}, open: {{ limits: [10/h], on_store_error: allow }} }}
{fields}",
        limits.display()
    );
    let store = format!("store: {{ url: \"{}\", deadline: 5s }}", server.url());
    Daemon::start_on_store(Config::from_yaml(&format!("{store}\n{yaml}")).unwrap()).await
}

/// The value of a series; 0 if it is absent.
fn value(page: &str, series: &str) -> u64 {
    let line = page.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
    line.map_or(0, |value| value.parse().unwrap())
}

fn decisions(page: &str, policy: &str, answer: &str, surface: &str) -> u64 {
    let labels = format!("policy=\"{policy}\",answer=\"{answer}\",surface=\"{surface}\"");
    value(page, &format!("tollgate_decisions_total{{{labels}}}"))
}

fn degraded(page: &str, policy: &str, answer: &str) -> u64 {
    let labels = format!("policy=\"{policy}\",answer=\"{answer}\"");
    value(page, &format!("tollgate_degraded_decisions_total{{{labels}}}"))
}

/// Waits until the store is known to be unavailable, and returns the metrics then.
async fn stop_store(daemon: &Daemon, server: &Server) -> String {
    server.kill();
    let is_down = async || value(&page(daemon).await, "tollgate_store_up") == 0;
    eventually("the outage", is_down).await;
    page(daemon).await
}

const ERROR: &str = "Unknown: store unavailable";

#[tokio::test]
async fn an_error_of_the_rate_limit_service_is_counted_as_an_error() {
    let server = Server::start();
    // An error is the default.
    for settings in ["", "charging: reference"] {
        let daemon = start(&server, settings, "").await;
        let mut client = connect(&daemon).await;
        assert!(call(&mut client, "domain | user=a").await.starts_with("O"), "{settings}");
        let before = stop_store(&daemon, &server).await;
        for _ in 0..3 {
            assert_eq!(call(&mut client, "domain +2 | user=a | path=b").await, ERROR, "{settings}");
        }
        let body =
            r#"{"domain":"domain","descriptors":[{"entries":[{"key":"user","value":"a"}]}]}"#;
        assert_eq!(daemon.post("/json", body).await.status, 400, "{settings}");
        let after = page(&daemon).await;
        for (answer, expected) in [("error", 3 * 2 + 1), ("denied", 0), ("allowed", 0)] {
            let count = |page| decisions(page, RULES, answer, "envoy");
            assert_eq!(count(&after) - count(&before), expected, "{settings} {answer}");
        }
        for answer in ["allowed", "denied"] {
            assert_eq!(degraded(&after, RULES, answer), 0, "{settings} {answer}");
        }
        server.restart();
        wait_for(&mut client, "domain | path=c", "OK").await;
    }
}

#[tokio::test]
async fn policies_answer_the_rate_limit_service_as_their_on_store_error() {
    let server = Server::start();
    for settings in ["charging: atomic", "charging: reference"] {
        let daemon = start(&server, settings, "").await;
        let mut client = connect(&daemon).await;
        let before = stop_store(&daemon, &server).await;
        assert_eq!(
            call(&mut client, "closed | a=b").await,
            "OVER_LIMIT | OVER_LIMIT 10/HOUR closed 0 -"
        );
        assert!(call(&mut client, "open | a=b").await.starts_with("OK"));
        let after = page(&daemon).await;
        for (policy, answer) in [("closed", "denied"), ("open", "allowed")] {
            let count = |page| decisions(page, policy, answer, "envoy");
            assert_eq!(count(&after) - count(&before), 1, "{settings} {policy}");
            assert_eq!(degraded(&after, policy, answer), 1, "{settings} {policy}");
        }
        server.restart();
    }
}

#[tokio::test]
async fn a_decision_of_on_store_error_is_counted_as_what_the_client_got() {
    let server = Server::start();
    for (settings, overall, answer) in [
        ("on_store_error: deny", "OVER_LIMIT", "denied"),
        ("on_store_error: allow", "OK", "allowed"),
    ] {
        let daemon = start(&server, settings, "").await;
        let mut client = connect(&daemon).await;
        let before = stop_store(&daemon, &server).await;
        assert!(call(&mut client, "domain | user=a").await.starts_with(overall), "{settings}");
        for (policy, status) in [("closed", 503), ("open", 200)] {
            let body = format!(r#"{{"policy":"{policy}","key":"k"}}"#);
            assert_eq!(daemon.post("/v1/check", &body).await.status, status);
        }
        let after = page(&daemon).await;
        for (policy, answer, surface) in
            [(RULES, answer, "envoy"), ("closed", "denied", "http"), ("open", "allowed", "http")]
        {
            let count = |page| decisions(page, policy, answer, surface);
            assert_eq!(count(&after) - count(&before), 1, "{settings} {policy}");
            assert_eq!(degraded(&after, policy, answer), 1, "{settings} {policy}");
        }
        server.restart();
    }
}

#[tokio::test]
async fn cl_throttle_answers_an_outage_as_configured() {
    let server = Server::start();
    for (fields, reply, answer) in [
        ("", "-TRYAGAIN ", "error"),
        ("resp: { throttle_on_store_error: error }", "-TRYAGAIN ", "error"),
        ("resp: { throttle_on_store_error: allow }", "*5 :0 :10 :0 :-1 :0", "allowed"),
        ("resp: { throttle_on_store_error: deny }", "*5 :1 :10 :0 :-1 :0", "denied"),
    ] {
        let daemon = start(&server, "", fields).await;
        let mut client = RespClient::connect(&daemon).await;
        let command = "CL.THROTTLE k 9 1 60";
        assert!(client.call(command).await.starts_with("*5 :0 :10 :"), "{fields}");
        let before = stop_store(&daemon, &server).await;
        let replies = client.call_all(&[command, "PING", command]).await;
        assert!(replies[0].starts_with(reply), "{fields}: {replies:?}");
        assert!(replies[2].starts_with(reply), "{fields}: {replies:?}");
        let after = page(&daemon).await;
        let count = |page| decisions(page, "@throttle", answer, "resp");
        assert_eq!(count(&after) - count(&before), 2, "{fields}");
        let of_outage = if answer == "error" { 0 } else { 2 };
        assert_eq!(
            degraded(&after, "@throttle", "allowed") + degraded(&after, "@throttle", "denied"),
            of_outage,
            "{fields}"
        );
        server.restart();
    }
}

/// Reads the readiness page and the metrics until both report the same state of the store.
async fn wait_for_state(daemon: &Daemon, is_up: bool) {
    let mut client = daemon.connect().await;
    let line = if is_up { "[+] store ok" } else { "[-] store: " };
    wait_until_ready(&mut client, 200, line).await;
    let metric = format!("tollgate_store_up {}", u8::from(is_up));
    assert_lines(&page(daemon).await, &metric);
}

#[tokio::test]
async fn the_readiness_page_and_the_metrics_report_the_same_state_of_the_store() {
    let server = Server::start();
    let daemon = start(&server, "", "").await;
    wait_for_state(&daemon, true).await;
    // No client sends a request: only the probe notices.
    server.pause();
    wait_for_state(&daemon, false).await;
    server.resume();
    wait_for_state(&daemon, true).await;
    server.kill();
    wait_for_state(&daemon, false).await;
    server.restart();
    wait_for_state(&daemon, true).await;
}
