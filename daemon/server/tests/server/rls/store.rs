//! The service on a real Redis or Valkey, and what it says while the store is away.

use std::time::Duration;

use tollgate_server::Config;
use tollgate_testkit::Server;
use tonic::Code;

use super::client::{Client, ask, call, connect};
use super::config;
use super::lines::request_of;
use crate::daemon::Daemon;

const LIMITS: &str = "
domain: domain
descriptors:
  - { key: user, rate_limit: { unit: day, requests_per_unit: 3, name: per-user } }
  - { key: path, rate_limit: { unit: day, requests_per_unit: 100 } }
  - { key: shadow, rate_limit: { unit: day, requests_per_unit: 1 }, shadow_mode: true }
";

fn on(server: &Server, settings: &str) -> Config {
    let mut config = config(settings, LIMITS);
    let url = server.url();
    // Over several connections there would be a script for each.
    let store = format!("store: {{ url: \"{url}\", deadline: 5s, connections: 1 }}");
    config.store = Config::from_yaml(&store).unwrap().store;
    config
}

/// What is said but for the time, which is the server's.
async fn said(client: &mut Client, request: &str) -> String {
    let mut line = ask(client, request).await;
    while let Some(at) = line.find("s | ").or_else(|| line.strip_suffix('s').map(str::len)) {
        let from = line[..at].rfind(' ').unwrap();
        line.replace_range(from..=at, "");
    }
    line
}

#[tokio::test]
async fn decisions_are_the_server_s() {
    let server = Server::start();
    for (charging, prefix) in [("charging: atomic", "a"), ("charging: reference", "r")] {
        let daemon = Daemon::start_of_store(on(&server, charging)).await;
        let other = Daemon::start_of_store(on(&server, charging)).await;
        let mut client = connect(&daemon).await;
        let mut through_other = connect(&other).await;
        let request = format!("domain +2 | user={prefix} | path={prefix} | shadow={prefix}");
        let first = said(&mut client, &request).await;
        // What a shadow lets pass is charged by the reference.
        let left = u8::from(charging.ends_with("atomic"));
        let expected = format!("OK | OK 3/DAY per-user 1 | OK 100/DAY 98 | OK 1/DAY {left}");
        assert_eq!(first, expected, "{charging}");
        let second = said(&mut through_other, &request).await;
        let left = if charging.ends_with("atomic") { ("1", "98") } else { ("0", "96") };
        let expected =
            format!("OVER_LIMIT | OVER_LIMIT 3/DAY per-user {} | OK 100/DAY {}", left.0, left.1);
        assert!(second.starts_with(&expected), "{charging}: {second}");
    }
}

/// How many scripts the server has run.
fn scripts_run(server: &Server) -> u64 {
    let told = server.command(&["INFO", "commandstats"]).text();
    let line = told.lines().find_map(|line| line.strip_prefix("cmdstat_evalsha:calls=")).unwrap();
    line.split(',').next().unwrap().parse().unwrap()
}

#[tokio::test]
async fn one_request_is_one_round_trip() {
    let server = Server::start();
    for charging in ["charging: atomic", "charging: reference"] {
        let daemon = Daemon::start_of_store(on(&server, charging)).await;
        let mut client = connect(&daemon).await;
        ask(&mut client, "domain | user=warm").await;
        let before = scripts_run(&server);
        let us = if charging.ends_with("atomic") { "a" } else { "r" };
        let request = format!("domain +2 | user={us} | user=b{us} | path=c | path=d -1 | shadow=e");
        assert!(ask(&mut client, &request).await.starts_with("OK"), "{charging}");
        assert_eq!(scripts_run(&server) - before, 1, "{charging}");
    }
}

#[tokio::test]
async fn while_the_store_is_away_a_decision_is_spoken_all_the_same() {
    let server = Server::start();
    let mut config = on(&server, "");
    config.policies.define("closed", "10/h").unwrap();
    let open: tollgate::Policy = tollgate::Policy::new("open", ["10/h".parse().unwrap()]).unwrap();
    config.policies.add(open.with_on_store_error(tollgate::OnStoreError::Allow)).unwrap();
    let daemon = Daemon::start_of_store(config).await;
    let mut client = connect(&daemon).await;
    assert!(ask(&mut client, "closed | a=b").await.starts_with("OK"));
    server.kill();
    for (request, expected) in [
        ("closed | a=b", "OVER_LIMIT | OVER_LIMIT 10/HOUR closed 0 -"),
        ("open | a=b", "OK | OK - 0 -"),
        ("domain | user=a", "OVER_LIMIT | OVER_LIMIT 3/DAY per-user 0 -"),
        ("domain | shadow=a", "OK | OK - 0 -"),
        ("domain | nothing=a", "OK | OK - 0 -"),
        // What is given back is lost, and what is spent beside it is decided.
        (
            "closed | a=b | a=c -1",
            "OVER_LIMIT | OVER_LIMIT 10/HOUR closed 0 - | OK 10/HOUR closed 0 -",
        ),
    ] {
        until(&mut client, request, expected).await;
    }
    // Only where nothing was decided is there an error.
    let status = call(&mut client, request_of("closed | a=b -1")).await.unwrap_err();
    assert_eq!(status.code(), Code::Unavailable, "{status}");
    server.restart();
    until(&mut client, "domain | user=a", "OK | OK 3/DAY per-user 2 ").await;
}

/// What holds for rules is said apart from what holds for policies, which have their own.
#[tokio::test]
async fn while_the_store_is_away_rules_are_over_or_pass_or_are_an_error() {
    let server = Server::start();
    let error = "Unknown: store unavailable";
    for (setting, user, json) in [
        ("on_store_error: deny", "OVER_LIMIT | OVER_LIMIT 3/DAY per-user 0 -", 429),
        ("on_store_error: allow", "OK | OK - 0 -", 200),
        ("on_store_error: error", error, 400),
        ("on_store_error: error, charging: reference", error, 400),
    ] {
        let mut config = on(&server, setting);
        config.policies.define("closed", "10/h").unwrap();
        let daemon = Daemon::start_of_store(config).await;
        let mut client = connect(&daemon).await;
        assert!(ask(&mut client, "closed | a=b").await.starts_with("OK"), "{setting}");
        assert!(ask(&mut client, "domain | user=a").await.starts_with("O"), "{setting}");
        server.kill();
        until(&mut client, "domain | user=a", user).await;
        let is_error = user == error;
        for (request, expected) in [
            ("closed | a=b", "OVER_LIMIT | OVER_LIMIT 10/HOUR closed 0 -"),
            ("domain | nothing=a", "OK | OK"),
            ("domain | shadow=a", if is_error { error } else { "OK | OK" }),
            ("domain | nothing=a | user=a", if is_error { error } else { "O" }),
        ] {
            until(&mut client, request, expected).await;
        }
        let asked =
            r#"{"domain":"domain","descriptors":[{"entries":[{"key":"user","value":"a"}]}]}"#;
        assert_eq!(daemon.post("/json", asked).await.status, json, "{setting}");
        server.restart();
    }
}

/// Asks until the answer begins so: that the store is gone, or back, is known a little later.
async fn until(client: &mut Client, request: &str, expected: &str) {
    let mut last = String::new();
    for _ in 0..4_000 {
        last = ask(client, request).await;
        if last.starts_with(expected) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    panic!("{request}: {last}");
}
