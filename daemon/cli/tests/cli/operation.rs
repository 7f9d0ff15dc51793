//! Operation of the daemon: health and log.

use std::process::Stdio;

use serde_json::Value;
use tollgate_testkit::Sentinel;

use crate::client::send;
use crate::metrics::page;
use crate::process::{Daemon, run};

#[test]
fn health_is_an_exit_code() {
    let daemon = Daemon::start::<[&str; 0]>([]);
    assert_eq!(run(["health", "--url", &daemon.url]), (0, "ready\n".to_owned(), String::new()));
    let url = daemon.url.clone();
    daemon.stop();
    let (code, output, error) = run(["health", "--url", &url]);
    assert_eq!((code, &*output), (2, ""));
    assert!(error.contains("cannot connect to"), "{error}");
}

#[test]
fn help_of_health_states_exit_codes() {
    let (_, help, _) = run(["health", "--help"]);
    assert!(help.contains("Exits with 0 if it is ready"), "{help}");
}

/// Runs a daemon with these lines of configuration, and returns its log after `requests`.
fn log_of(yaml: &str, requests: impl FnOnce(&Daemon)) -> String {
    let yaml = format!("policies: {{ api: {{ limits: [2/d] }} }}\n{yaml}");
    let daemon = Daemon::with_config(&yaml, |command| command.stderr(Stdio::piped()));
    requests(&daemon);
    daemon.stop_and_read_log()
}

#[test]
fn log_is_text_or_json() {
    let log_of = |yaml| {
        // Probes and scrapes are not logged.
        log_of(yaml, |daemon| assert_eq!(run(["health", "--url", &daemon.url]).0, 0))
    };
    let text = log_of("");
    assert!(text.contains(" INFO stopped\n"), "{text}");
    assert!(!text.contains("DEBUG") && !text.contains("readyz"), "{text}");
    assert_eq!(log_of("log: { level: error }"), "");
    let json = log_of("log: { level: debug, format: json }");
    let lines: Vec<Value> = json.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let line = |message: &str| lines.iter().find(|line| line["message"] == *message).unwrap();
    for field in ["timestamp", "level", "target"] {
        assert!(line("stopped")[field].is_string(), "{json}");
    }
    assert_eq!(line("listening")["level"], "DEBUG");
    assert!(line("listening")["address"].is_string(), "{json}");
    assert!(!json.contains("readyz"), "{json}");
}

/// Polls the metrics until they meet a condition.
#[track_caller]
pub(crate) fn wait_for_page(daemon: &Daemon, effect: &str, condition: impl Fn(&str) -> bool) {
    for _ in 0..6_000 {
        if condition(&page(daemon, "")) {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    panic!("no {effect}: {}", page(daemon, ""));
}

/// Polls the metrics until a metric of a node of the store is above zero.
fn wait_for_node(daemon: &Daemon, metric: &str, address: &str) {
    let series = format!("\n{metric}{{address=\"{address}\"}} ");
    wait_for_page(daemon, &format!("{metric} of {address}"), |page| {
        page.split_once(&series).is_some_and(|(_, rest)| !rest.starts_with("0\n"))
    });
}

#[test]
fn a_failover_is_logged_with_the_warnings_of_the_new_primary() {
    let sentinel = Sentinel::start();
    let [primary, replica] = sentinel.servers() else { panic!("{sentinel:?}") };
    replica.command(&["CONFIG", "SET", "maxmemory-policy", "allkeys-lru"]);
    let log = log_of(&format!("store: {{ url: \"{}\" }}", sentinel.url()), |daemon| {
        // The servers are checked when they are first reached.
        wait_for_node(daemon, "tollgate_store_node_scripts_total", &primary.address());
        sentinel.kill_primary();
        wait_for_node(daemon, "tollgate_store_node_scripts_total", &replica.address());
    });
    let (primary, replica) = (primary.address(), replica.address());
    for (level, line) in [
        ("WARN", format!("store node unavailable: {primary}: the server cannot be reached")),
        ("INFO", format!("store node added: {replica}")),
        ("INFO", format!("store node removed: {primary}")),
        ("WARN", format!("{replica}: maxmemory-policy allkeys-lru evicts counters")),
    ] {
        let count = log.matches(&format!(" {level} {line}")).count();
        assert_eq!(count, 1, "{level} {line}: {log}");
    }
    assert!(!log.contains(&format!("{primary}: maxmemory-policy")), "{log}");
}

#[test]
fn audit_lines_are_logged_at_any_level() {
    for format in ["text", "json"] {
        let yaml = format!("operators: loopback\nlog: {{ level: error, format: {format} }}");
        let log = log_of(&yaml, |daemon| {
            let body = r#"{"policy":"api","key":"user:42"}"#;
            let response = send(daemon.address(), "POST /v1/reset", &[], body);
            assert_eq!(response.status, 200, "{response:?}");
        });
        // At this level, even the end of the daemon is not logged.
        assert_eq!(log.lines().count(), 1, "{log}");
        if format == "json" {
            let line: Value = serde_json::from_str(&log).unwrap();
            assert_eq!((&line["target"], &line["level"]), (&"audit".into(), &"INFO".into()));
            assert_eq!((&line["verb"], &line["key"]), (&"reset".into(), &"user:42".into()));
        } else {
            for part in [" INFO audit ", "who=\"loopback\"", "verb=\"reset\"", "key=\"user:42\""] {
                assert!(log.contains(part), "{log}");
            }
        }
    }
}
