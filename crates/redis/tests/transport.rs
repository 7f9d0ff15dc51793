//! Connections to a single server: batching, order, faults and timeouts.

#![expect(clippy::disallowed_methods, reason = "the tests measure durations")]
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

mod support;

use std::time::{Duration, Instant};

use support::{CHECK, check, execute, kind, open, open_with, policy, remaining, start};
use tollgate_algorithms::{Check, Cost, Id, Micros, Operation, Request};
use tollgate_redis::{RedisOptions, RedisStore};
use tollgate_state::{FailureKind, Key, Store};
use tollgate_testkit::{Proxy, Server, wait_until};

/// The longest time in which a call fails at once on a busy machine.
const SOON: Duration = Duration::from_secs(1);

#[tokio::test]
async fn a_check_is_decided_in_one_call() {
    let (server, store) = start();
    store.ready().await.unwrap();
    let two = policy("2/h");
    assert!(check(&store, &two, b"k").await.unwrap().allowed);
    assert!(check(&store, &two, b"k").await.unwrap().allowed);
    assert!(!check(&store, &two, b"k").await.unwrap().allowed);
    let stats = store.stats();
    assert_eq!((stats.calls, stats.requests, stats.batches[0]), (3, 3, (1, 3)));
    assert_eq!(store.inspect(&two, Key::new("k").unwrap()).await.unwrap().limits[0].used, 2);
    assert!(server.keys_without_ttl("tollgate").is_empty());
}

/// Only token buckets and queues have reservations, which an inspection reads from keys of their own.
#[tokio::test]
async fn inspection_reads_every_kind_of_limit() {
    let (_server, store) = start();
    for limits in ["9/h", "9/h queue 3", "9/h fixed", "9/h log", "9/h sliding", "9/h sliding by 1m"]
    {
        let policy = policy(limits);
        assert!(check(&store, &policy, limits.as_bytes()).await.unwrap().allowed, "{limits}");
        let key = Key::new(limits.as_bytes()).unwrap();
        let inspection = store.inspect(&policy, key).await.unwrap();
        assert_eq!(inspection.limits[0].used, 1, "{limits}");
    }
}

#[tokio::test]
async fn concurrent_requests_share_calls_in_order() {
    let (_server, store) = start();
    store.ready().await.unwrap();
    let many = policy("1000/h");
    let keys: Vec<String> = (0..64).map(|n| format!("k{n}")).collect();
    let checks: Vec<_> = keys
        .iter()
        .map(|key| [Check { policy: &many, key: key.as_bytes(), cost: Cost::ONE }])
        .collect();
    let requests: Vec<_> = checks
        .iter()
        .cycle()
        .take(640)
        .map(|check| Request { operation: CHECK, checks: check, request_id: None })
        .collect();
    let answers = store.decide(&requests).await;
    for (number, answer) in answers.into_iter().enumerate() {
        let remaining = 999 - u64::try_from(number / 64).unwrap();
        assert_eq!(answer.unwrap().decisions[0].remaining, remaining, "request {number}");
    }
    let stats = store.stats();
    assert_eq!(stats.requests, 640);
    assert!(stats.calls <= 30, "{stats:?}");
}

#[tokio::test]
async fn an_inspection_shares_a_call_with_changes_of_reservations() {
    let server = Server::start();
    let store = open_with(&server.url(), |options| RedisOptions { connections: 1, ..options });
    let policy = policy("1/h queue 100");
    let _ = check(&store, &policy, b"k").await.unwrap();
    let max_wait = Micros::from_secs(366 * 86_400);
    let reserve = |id| Operation::Reserve { id: Id::from_u128(id), max_wait };
    let cancel = Operation::Cancel { id: Id::from_u128(1) };
    for (operation, expected) in [(reserve(1), 1), (reserve(2), 2), (cancel, 1)] {
        let before = store.stats().calls;
        server.pause();
        // Two packets are in flight, so that the others wait for one call.
        let mut fillers = Vec::new();
        for sent in 1..=2 {
            let (filled, policy) = (store.clone(), policy.clone());
            let filler = async move { check(&filled, &policy, b"other").await.unwrap() };
            fillers.push(tokio::spawn(filler));
            wait_until("the filler", async || store.stats().calls == before + sent).await;
        }
        let change = execute(&store, operation, &policy, b"k", 1);
        let inspection = store.inspect(&policy, Key::new("k").unwrap());
        let resumed = async {
            tokio::task::yield_now().await;
            server.resume();
        };
        let (change, inspection, ()) = tokio::join!(change, inspection, resumed);
        assert!(change.unwrap().changed);
        assert_eq!(inspection.unwrap().reservations.len(), expected, "{operation:?}");
        for filler in fillers {
            let _ = filler.await.unwrap();
        }
        assert_eq!(store.stats().calls, before + 3);
    }
}

#[tokio::test]
async fn requests_to_a_killed_server_fail_at_once_until_it_restarts() {
    let (server, store) = start();
    let policy = policy("1000/h");
    let _ = check(&store, &policy, b"k").await.unwrap();
    server.kill();
    wait_until("the loss", async || check(&store, &policy, b"k").await.is_err()).await;
    let before = Instant::now();
    for _ in 0..100 {
        assert_eq!(kind(check(&store, &policy, b"k").await), FailureKind::Unreachable);
    }
    assert!(before.elapsed() < SOON);
    // The status follows the failed requests with a short delay.
    wait_until("the status", async || store.ready().await.is_err()).await;
    assert_eq!(kind(store.ready().await), FailureKind::Unreachable);
    server.restart();
    wait_until("the connection", async || check(&store, &policy, b"k").await.is_ok()).await;
    store.ready().await.unwrap();
    assert!(store.stats().reconnects > 0);
}

#[tokio::test]
async fn a_server_that_starts_after_the_store_is_connected() {
    let server = Server::start();
    server.kill();
    let store = open(&server.url());
    assert_eq!(kind(store.ready().await), FailureKind::Unreachable);
    let policy = policy("1/h");
    assert_eq!(kind(check(&store, &policy, b"k").await), FailureKind::Unreachable);
    server.restart();
    wait_until("the connection", async || check(&store, &policy, b"k").await.is_ok()).await;
}

#[tokio::test]
async fn a_closed_connection_is_replaced_before_the_next_request() {
    let (server, store) = start();
    let policy = policy("1000/h");
    for round in 1..=3 {
        let _ = check(&store, &policy, b"k").await.unwrap();
        server.command(&["CLIENT", "KILL", "TYPE", "normal"]);
        // Both connections.
        wait_until("a reconnection", async || store.stats().reconnects >= 2 * round).await;
    }
    assert!(store.stats().errors.is_empty(), "{:?}", store.stats());
}

#[tokio::test]
async fn calls_to_a_hanging_server_end_at_the_call_timeout() {
    let server = Server::start();
    let call_timeout = Duration::from_millis(200);
    let store = open_with(&server.url(), |options| RedisOptions { call_timeout, ..options });
    let policy = policy("1000/h");
    let _ = check(&store, &policy, b"k").await.unwrap();
    server.pause();
    let before = Instant::now();
    assert_eq!(kind(check(&store, &policy, b"k").await), FailureKind::ConnectionLost);
    assert!(before.elapsed() >= call_timeout && before.elapsed() < call_timeout + SOON);
    for _ in 0..10 {
        let before = Instant::now();
        check(&store, &policy, b"k").await.unwrap_err();
        assert!(before.elapsed() < call_timeout * 3 / 2 + SOON, "{:?}", before.elapsed());
    }
    server.resume();
    wait_until("an answer", async || check(&store, &policy, b"k").await.is_ok()).await;
}

#[tokio::test]
async fn a_request_whose_reply_was_lost_is_not_sent_again() {
    let server = Server::start();
    let proxy = Proxy::before(&server);
    proxy.only(&["FCALL"]);
    let store = open(&proxy.url());
    let policy = policy("1000/h");
    let _ = check(&store, &policy, b"k").await.unwrap();
    proxy.cut_after_execution(1);
    let lost = check(&store, &policy, b"k").await;
    assert!(lost.as_ref().unwrap_err().is_outcome_unknown());
    assert_eq!(kind(lost), FailureKind::ConnectionLost);
    proxy.clear_faults();
    wait_until("an answer", async || check(&store, &policy, b"k").await.is_ok()).await;
    assert_eq!(remaining(&store, &policy, b"k").await, 997);
    assert_eq!(store.stats().unknown_outcomes, 1);
}

#[tokio::test]
async fn replies_split_into_single_bytes_are_read() {
    let server = Server::start();
    let proxy = Proxy::before(&server);
    proxy.split_bytes(true);
    let store = open(&proxy.url());
    let policy = policy("1000/h; 10/s");
    for _ in 0..5 {
        let _ = check(&store, &policy, b"k").await.unwrap();
    }
}

#[tokio::test]
async fn flushed_functions_and_scripts_are_loaded_again_under_load() {
    for without_functions in [false, true] {
        flush_under_load(without_functions).await;
    }
}

async fn flush_under_load(without_functions: bool) {
    let (server, store) = start();
    if without_functions {
        server.command(&["ACL", "SETUSER", "default", "-fcall"]).expect_no_error("ACL SETUSER");
    }
    let policy = policy("1000000/d fixed");
    store.ready().await.unwrap();
    let mut tasks = tokio::task::JoinSet::new();
    for caller in 0..16 {
        let (store, policy) = (store.clone(), policy.clone());
        tasks.spawn(async move {
            for _ in 0..200 {
                let _ = check(&store, &policy, format!("k{caller}").as_bytes()).await.unwrap();
            }
        });
    }
    while !tasks.is_empty() {
        server.command(&["SCRIPT", "FLUSH"]);
        server.command(&["FUNCTION", "FLUSH"]);
        let _ = tokio::time::timeout(Duration::from_millis(2), tasks.join_next()).await;
    }
    for caller in 0..16 {
        let key = format!("k{caller}");
        assert_eq!(remaining(&store, &policy, key.as_bytes()).await, 1_000_000 - 200);
    }
    assert!(store.stats().noscripts > 0);
}

/// Opens a store with one connection, on which the maximum number of calls is in flight.
async fn saturated(
    server: &Server,
    queue: usize,
) -> (RedisStore, Vec<tokio::task::JoinHandle<bool>>) {
    let call_timeout = Duration::from_secs(20);
    let store = open_with(&server.url(), |options| RedisOptions {
        connections: 1,
        queue,
        batch: 1,
        call_timeout,
        ..options
    });
    store.ready().await.unwrap();
    server.pause();
    let mut tasks = Vec::new();
    while store.stats().calls < 2 {
        tasks.push(spawn_check(&store, "sent"));
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    (store, tasks)
}

fn spawn_check(store: &RedisStore, key: &'static str) -> tokio::task::JoinHandle<bool> {
    let store = store.clone();
    tokio::spawn(async move { check(&store, &policy("1000/h"), key.as_bytes()).await.is_ok() })
}

#[tokio::test]
async fn requests_beyond_the_queue_length_fail_at_once() {
    let server = Server::start();
    let (store, sent) = saturated(&server, 2).await;
    let waiting = [spawn_check(&store, "waits"), spawn_check(&store, "waits")];
    tokio::time::sleep(Duration::from_millis(20)).await;
    let before = Instant::now();
    assert_eq!(kind(check(&store, &policy("1000/h"), b"k").await), FailureKind::Overloaded);
    assert!(before.elapsed() < SOON);
    server.resume();
    for task in sent.into_iter().chain(waiting) {
        assert!(task.await.unwrap());
    }
    assert_eq!(remaining(&store, &policy("1000/h"), b"k").await, 1_000);
    assert_eq!(remaining(&store, &policy("1000/h"), b"waits").await, 998);
}

#[tokio::test]
async fn a_request_dropped_before_it_was_sent_is_not_charged() {
    let server = Server::start();
    let (store, sent) = saturated(&server, 100).await;
    let left = spawn_check(&store, "left");
    tokio::time::sleep(Duration::from_millis(20)).await;
    left.abort();
    // The charge of a request that was sent is taken back.
    sent.iter().for_each(tokio::task::JoinHandle::abort);
    tokio::time::sleep(Duration::from_millis(20)).await;
    server.resume();
    let policy = policy("1000/h");
    assert_eq!(remaining(&store, &policy, b"left").await, 1_000);
    wait_until("the compensation", async || {
        remaining(&store, &policy, b"sent").await == 1_000 && store.stats().reconciled == 2
    })
    .await;
    assert_eq!(store.stats().abandoned, 1);
}

#[tokio::test]
async fn a_dropped_store_closes_its_connections() {
    let server = Server::start();
    let clients = || server.command(&["CLIENT", "LIST", "TYPE", "normal"]).text().lines().count();
    let store = open(&server.url());
    let _ = check(&store, &policy("1/h"), b"k").await.unwrap();
    wait_until("connections", async || clients() == 3).await;
    drop(store);
    wait_until("closed connections", async || clients() == 1).await;
}
