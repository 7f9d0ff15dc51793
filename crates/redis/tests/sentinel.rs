//! Sentinels: a primary that is replaced is found again.

#![expect(clippy::disallowed_methods, reason = "how long a test has waited")]

mod support;

use std::time::{Duration, Instant};

use support::{check, kind, open, policy, remaining, until};
use tollgate_store::FailureKind;
use tollgate_testkit::{Sentinel, Server};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_primary_that_is_replaced_is_found() {
    let sentinel = Sentinel::start();
    let store = open(&sentinel.url());
    store.ready().await.unwrap();
    let policy = policy("1000000/d fixed");
    for _ in 0..10 {
        check(&store, &policy, b"k").await.unwrap();
    }
    let killed = sentinel.kill_primary();
    until("the loss", async || check(&store, &policy, b"k").await.is_err()).await;
    let before = Instant::now();
    let mut refused = 0;
    while check(&store, &policy, b"k").await.is_err() {
        refused += 1;
        assert!(before.elapsed() < Duration::from_secs(30), "stuck: {:?}", store.stats());
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert!(refused > 0);
    sentinel.settle();
    assert_ne!(sentinel.primary_port(), killed.port());
    // The old primary comes back as a replica, and no client asks it.
    killed.restart();
    sentinel.settle();
    let left = remaining(&store, &policy, b"k").await;
    for number in 1..=20 {
        check(&store, &policy, b"k").await.unwrap();
        assert_eq!(remaining(&store, &policy, b"k").await, left - number);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_primary_that_hangs_or_is_demoted_is_left() {
    let sentinel = Sentinel::start();
    let store = open(&sentinel.url());
    let policy = policy("1000000/d fixed");
    check(&store, &policy, b"k").await.unwrap();
    let hangs = sentinel.primary();
    hangs.pause();
    until("another primary", async || check(&store, &policy, b"k").await.is_ok()).await;
    hangs.resume();
    sentinel.settle();
    assert_ne!(sentinel.primary_port(), hangs.port());

    // Demoted behind the sentinels' back: what a replica refuses waits for who is the primary then.
    let demoted = sentinel.primary();
    demoted.command(&["REPLICAOF", "127.0.0.1", &hangs.port().to_string()]);
    until("a primary", async || check(&store, &policy, b"k").await.is_ok()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sentinels_may_fail_and_their_word_is_not_enough() {
    let sentinel = Sentinel::start();
    let store = open(&sentinel.url());
    let policy = policy("1000000/d fixed");
    check(&store, &policy, b"k").await.unwrap();
    // Two of three are away, one of them silent.
    sentinel.sentinels()[0].kill();
    sentinel.sentinels()[1].pause();
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    check(&store, &policy, b"k").await.unwrap();
    let late = open(&sentinel.url());
    late.ready().await.unwrap();
    assert_eq!(remaining(&late, &policy, b"k").await, 999_998);
    // All sentinels are unavailable: existing connections continue.
    sentinel.sentinels()[2].kill();
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    check(&store, &policy, b"k").await.unwrap();

    let unknown = open(&sentinel.url().replace("mymaster", "other"));
    unknown.ready().await.unwrap_err();
    let no_sentinel = Server::start();
    let url = format!("redis+sentinel://{}/mymaster", no_sentinel.address());
    assert_eq!(kind(open(&url).ready().await), FailureKind::UnknownCommand);
}
