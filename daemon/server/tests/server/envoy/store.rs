//! The service on a real Redis or Valkey, also while the store is unavailable.

use tollgate::{OnStoreError, Policy};
use tollgate_daemon::Config;
use tollgate_testkit::Server;
use tonic::Code;

use super::client::{Client, call, connect, parse_request, send, wait_for};
use super::config;
use crate::support::daemon::Daemon;

const LIMITS: &str = "
domain: domain
descriptors:
  - { key: user, rate_limit: { unit: day, requests_per_unit: 3, name: per-user } }
  - { key: path, rate_limit: { unit: day, requests_per_unit: 100 } }
  - { key: shadow, rate_limit: { unit: day, requests_per_unit: 1 }, shadow_mode: true }
";

/// A configuration on this server.
fn config_on(server: &Server, settings: &str) -> Config {
    let mut config = config(settings, LIMITS);
    let url = server.url();
    // With several connections, a request could run several scripts.
    let store = format!("store: {{ url: \"{url}\", deadline: 5s, connections: 1 }}");
    config.store = Config::from_yaml(&store).unwrap().store;
    config
}

/// Sends a request. Returns the response without the reset times, which depend on the server's
/// clock.
async fn call_without_times(client: &mut Client, request: &str) -> String {
    let mut line = call(client, request).await;
    while let Some(at) = line.find("s | ").or_else(|| line.strip_suffix('s').map(str::len)) {
        let from = line[..at].rfind(' ').unwrap();
        line.replace_range(from..=at, "");
    }
    line
}

#[tokio::test]
async fn daemons_share_the_counts_of_the_server() {
    let server = Server::start();
    for (charging, prefix) in [("charging: atomic", "a"), ("charging: reference", "r")] {
        let daemon = Daemon::start_on_store(config_on(&server, charging)).await;
        let other = Daemon::start_on_store(config_on(&server, charging)).await;
        let mut client = connect(&daemon).await;
        let mut through_other = connect(&other).await;
        let request = format!("domain +2 | user={prefix} | path={prefix} | shadow={prefix}");
        let first = call_without_times(&mut client, &request).await;
        // Reference charging charges what a shadow rule admits.
        let left = u8::from(charging.ends_with("atomic"));
        let expected = format!("OK | OK 3/DAY per-user 1 | OK 100/DAY 98 | OK 1/DAY {left}");
        assert_eq!(first, expected, "{charging}");
        let second = call_without_times(&mut through_other, &request).await;
        let left = if charging.ends_with("atomic") { ("1", "98") } else { ("0", "96") };
        let expected =
            format!("OVER_LIMIT | OVER_LIMIT 3/DAY per-user {} | OK 100/DAY {}", left.0, left.1);
        assert!(second.starts_with(&expected), "{charging}: {second}");
    }
}

/// How many scripts the server has run.
fn scripts_run(server: &Server) -> u64 {
    let stats = server.command(&["INFO", "commandstats"]).text();
    let line = stats.lines().find_map(|line| line.strip_prefix("cmdstat_fcall:calls=")).unwrap();
    line.split(',').next().unwrap().parse().unwrap()
}

#[tokio::test]
async fn one_request_is_one_round_trip() {
    let server = Server::start();
    for charging in ["charging: atomic", "charging: reference"] {
        let daemon = Daemon::start_on_store(config_on(&server, charging)).await;
        let mut client = connect(&daemon).await;
        call(&mut client, "domain | user=warm").await;
        let before = scripts_run(&server);
        let key = if charging.ends_with("atomic") { "a" } else { "r" };
        let request =
            format!("domain +2 | user={key} | user=b{key} | path=c | path=d -1 | shadow=e");
        assert!(call(&mut client, &request).await.starts_with("OK"), "{charging}");
        assert_eq!(scripts_run(&server) - before, 1, "{charging}");
    }
}

fn policy(name: &str, answer: OnStoreError) -> Policy {
    Policy::new(name, ["10/h".parse().unwrap()]).unwrap().with_on_store_error(answer)
}

#[tokio::test]
async fn policies_decide_while_the_store_is_unavailable() {
    let server = Server::start();
    let mut config = config_on(&server, "on_store_error: deny");
    config.policies.add(policy("closed", OnStoreError::Deny)).unwrap();
    config.policies.add(policy("open", OnStoreError::Allow)).unwrap();
    let daemon = Daemon::start_on_store(config).await;
    let mut client = connect(&daemon).await;
    assert!(call(&mut client, "closed | a=b").await.starts_with("OK"));
    server.kill();
    for (request, expected) in [
        ("closed | a=b", "OVER_LIMIT | OVER_LIMIT 10/HOUR closed 0 -"),
        ("open | a=b", "OK | OK - 0 -"),
        ("domain | user=a", "OVER_LIMIT | OVER_LIMIT 3/DAY per-user 0 -"),
        ("domain | shadow=a", "OK | OK - 0 -"),
        ("domain | nothing=a", "OK | OK - 0 -"),
        // A refund is lost, and a check in the same request is decided.
        (
            "closed | a=b | a=c -1",
            "OVER_LIMIT | OVER_LIMIT 10/HOUR closed 0 - | OK 10/HOUR closed 0 -",
        ),
    ] {
        wait_for(&mut client, request, expected).await;
    }
    // It is an error only if nothing was decided.
    let status = send(&mut client, parse_request("closed | a=b -1")).await.unwrap_err();
    assert_eq!(status.code(), Code::Unavailable, "{status}");
    server.restart();
    wait_for(&mut client, "domain | user=a", "OK | OK 3/DAY per-user 2 ").await;
}

/// Rules share one setting; policies have their own.
#[tokio::test]
async fn on_store_error_decides_for_rules() {
    let server = Server::start();
    let error = "Unknown: store unavailable";
    for (setting, user, json) in [
        ("on_store_error: local", "OVER_LIMIT | OVER_LIMIT 3/DAY per-user 0 ", 429),
        ("on_store_error: deny", "OVER_LIMIT | OVER_LIMIT 3/DAY per-user 0 -", 429),
        ("on_store_error: allow", "OK | OK - 0 -", 200),
        ("on_store_error: error", error, 400),
        ("on_store_error: error, charging: reference", error, 400),
    ] {
        let mut config = config_on(&server, setting);
        config.policies.add(policy("closed", OnStoreError::Deny)).unwrap();
        let daemon = Daemon::start_on_store(config).await;
        let mut client = connect(&daemon).await;
        assert!(call(&mut client, "closed | a=b").await.starts_with("OK"), "{setting}");
        assert!(call(&mut client, "domain | user=a").await.starts_with("O"), "{setting}");
        server.kill();
        wait_for(&mut client, "domain | user=a", user).await;
        let is_error = user == error;
        for (request, expected) in [
            ("closed | a=b", "OVER_LIMIT | OVER_LIMIT 10/HOUR closed 0 -"),
            ("domain | nothing=a", "OK | OK"),
            ("domain | shadow=a", if is_error { error } else { "OK | OK" }),
            ("domain | nothing=a | user=a", if is_error { error } else { "O" }),
        ] {
            wait_for(&mut client, request, expected).await;
        }
        let body =
            r#"{"domain":"domain","descriptors":[{"entries":[{"key":"user","value":"a"}]}]}"#;
        assert_eq!(daemon.post("/json", body).await.status, json, "{setting}");
        server.restart();
    }
}
