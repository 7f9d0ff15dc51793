//! A primary behind sentinels: failover, demotion, and unavailable sentinels.

#![expect(clippy::disallowed_methods, reason = "the test measures how long it waits")]

mod support;

use std::time::{Duration, Instant};

use support::{check, kind, open, policy, remaining};
use tollgate_state::FailureKind;
use tollgate_testkit::{Sentinel, Server, wait_until};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_primary_is_found_after_a_failover() {
    let sentinel = Sentinel::start();
    let store = open(&sentinel.url());
    store.ready().await.unwrap();
    let policy = policy("1000000/d fixed");
    for _ in 0..10 {
        let _ = check(&store, &policy, b"k").await.unwrap();
    }
    let killed = sentinel.kill_primary();
    wait_until("the loss", async || check(&store, &policy, b"k").await.is_err()).await;
    let before = Instant::now();
    let mut failed = 0;
    while check(&store, &policy, b"k").await.is_err() {
        failed += 1;
        assert!(before.elapsed() < Duration::from_secs(30), "stuck: {:?}", store.stats());
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert!(failed > 0);
    sentinel.settle();
    assert_ne!(sentinel.primary_port(), killed.port());
    // The old primary returns as a replica, and receives no requests.
    killed.restart();
    sentinel.settle();
    let left = remaining(&store, &policy, b"k").await;
    for number in 1..=20 {
        let _ = check(&store, &policy, b"k").await.unwrap();
        assert_eq!(remaining(&store, &policy, b"k").await, left - number);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hanging_or_demoted_primary_is_replaced() {
    let sentinel = Sentinel::start();
    let store = open(&sentinel.url());
    let policy = policy("1000000/d fixed");
    let _ = check(&store, &policy, b"k").await.unwrap();
    let hanging = sentinel.primary();
    hanging.pause();
    wait_until("another primary", async || check(&store, &policy, b"k").await.is_ok()).await;
    hanging.resume();
    sentinel.settle();
    assert_ne!(sentinel.primary_port(), hanging.port());

    // Demoted without the sentinels: requests that the replica rejects wait for the next discovery.
    let demoted = sentinel.primary();
    demoted.command(&["REPLICAOF", "127.0.0.1", &hanging.port().to_string()]);
    wait_until("a primary", async || check(&store, &policy, b"k").await.is_ok()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_continue_while_sentinels_are_unavailable() {
    let sentinel = Sentinel::start();
    let store = open(&sentinel.url());
    let policy = policy("1000000/d fixed");
    let _ = check(&store, &policy, b"k").await.unwrap();
    // Two of three sentinels are unavailable: one is killed, the other hangs.
    sentinel.sentinels()[0].kill();
    sentinel.sentinels()[1].pause();
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    let _ = check(&store, &policy, b"k").await.unwrap();
    let late = open(&sentinel.url());
    late.ready().await.unwrap();
    assert_eq!(remaining(&late, &policy, b"k").await, 999_998);
    // All sentinels are unavailable: existing connections continue.
    sentinel.sentinels()[2].kill();
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    let _ = check(&store, &policy, b"k").await.unwrap();

    let unknown = open(&sentinel.url().replace("mymaster", "other"));
    unknown.ready().await.unwrap_err();
    let no_sentinel = Server::start();
    let url = format!("redis+sentinel://{}/mymaster", no_sentinel.address());
    assert_eq!(kind(open(&url).ready().await), FailureKind::UnknownCommand);
}
