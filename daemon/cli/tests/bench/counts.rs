//! Over each protocol, exactly the limit is allowed.

use std::time::{SystemTime, UNIX_EPOCH};

use tollgate_testkit::Server;

use crate::process::Daemon;
use crate::tool::{bench, json};

/// A limit that refills nothing during a test.
const POLICIES: &str = r#"{ operators: loopback, policies: { api: { limits: ["100/d log"] } } }"#;

fn check(words: &str, allowed: u64) {
    let (code, value) = json(&format!("{words} --keys 1 -n 150 -c 3"));
    assert_eq!(code, 0, "{words}: {value}");
    assert_eq!((&value["sent"], &value["answers"]), (&150.into(), &150.into()), "{words}: {value}");
    let counts = (&value["allowed"], &value["denied"]);
    assert_eq!(counts, (&allowed.into(), &(150 - allowed).into()), "{words}: {value}");
    assert_eq!((&value["errors"], &value["ended"]), (&serde_json::json!({}), &"finished".into()));
    assert!(value["latency_ns"]["max"].as_u64() >= value["latency_ns"]["p50"].as_u64());
    assert!(value["latency_ns"]["p50"].as_u64() > Some(0), "{value}");
}

fn daemon(flag: &str) -> Daemon {
    Daemon::with_listener(flag, &[("tollgate.yaml", POLICIES)])
}

#[test]
fn http_allows_exactly_the_limit() {
    let daemon = daemon("--http");
    let url = &daemon.url;
    check(&format!("{url} --policy api --verify"), 100);
    check(&format!("{url} --limit 70/d --verify"), 70);
    check(&format!("{url} --limit 70/d --cost 7"), 10);
    check(&format!("http --host 127.0.0.1 --port {} --limit 70/d", daemon.port()), 70);
}

#[test]
fn grpc_allows_exactly_the_limit() {
    let daemon = daemon("--grpc");
    let url = format!("grpc://{}", daemon.address());
    check(&format!("{url} --policy api --verify --against \"100/d log\""), 100);
    check(&format!("{url} --policy api --cost 5 --pipeline 4"), 20);
}

#[test]
fn resp_allows_exactly_the_limit() {
    let daemon = daemon("--resp");
    let url = &daemon.url;
    check(&format!("{url} --policy api --verify"), 100);
    check(&format!("{url} --policy api --pipeline 16 --cost 3"), 33);
    check(&format!("{url} --limit \"70/d log\""), 70);
    check(&format!("{url} --limit 70/d --command throttle --verify"), 70);
    check(&format!("{url} --limit 70/d --command throttle --pipeline 16 --cost 2"), 35);
}

#[test]
fn a_limiter_in_process_allows_exactly_the_limit() {
    check("memory --limit \"100/d log\" --verify", 100);
    check("memory --limit 100/d --cost 2 --rate 100000 --zipf 1.1", 50);
}

/// The usual counter: one key per minute, incremented up to a threshold.
#[test]
fn a_plain_redis_counts_per_minute() {
    let server = Server::start();
    let minute = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() / 60;
    // A run across the end of a minute gets twice the limit and is repeated.
    let report = (0..5).find_map(|_| {
        let (before, port) = (minute(), server.port());
        let words = format!("redis://127.0.0.1:{port} --threshold 100 --keys 1 -n 150 --verify");
        let (code, value) = json(&words);
        assert_eq!((code, &value["verify"]["violations"]), (0, &0.into()), "{value}");
        (before == minute()).then_some(value)
    });
    let report = report.unwrap();
    assert_eq!((&report["allowed"], &report["denied"]), (&100.into(), &50.into()), "{report}");
    assert_eq!(server.keys_without_ttl("bench-"), Vec::<String>::new());
}

#[test]
fn the_text_report_contains_every_figure() {
    let (code, table, error) = bench("memory --limit 3/d --keys 1 -n 10 -c 1 --verify --rate 1000");
    assert_eq!((code, &*error), (0, ""));
    for part in [
        "memory, 3/d, 1 key, 1 thread, ",
        "responses  10, ",
        "allowed    3, 30.0 %",
        "denied     7, 70.0 %",
        "rate       1,000/s reached: all 10 requests were sent",
        "latency    p50 ",
        "verify     3 admissions within 3/d",
    ] {
        assert!(table.contains(part), "no {part:?} in\n{table}");
    }
}

#[test]
fn equal_seeds_choose_the_same_keys() {
    let allowed = |seed: u32| {
        let words = "memory -c 1 --limit 1/d --keys 1000 -n 1000 --zipf 1.2 --key-prefix k";
        json(&format!("{words} --seed {seed}")).1["allowed"].as_u64().unwrap()
    };
    let seeds: Vec<u64> = (0..4).map(allowed).collect();
    assert_eq!(seeds, (0..4).map(allowed).collect::<Vec<_>>());
    assert!(seeds.iter().any(|allowed| *allowed != seeds[0]), "{seeds:?}");
}
