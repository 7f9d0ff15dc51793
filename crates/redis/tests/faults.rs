//! Faults of servers: slow, stopped, moved and full ones. Late answers are reconciled, other servers
//! are not affected, and few connections are made.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

mod support;

use std::time::Duration;

use support::{CHECK, check, kind, open, open_with, policy, remaining, start};
use tokio::time::Instant;
use tollgate_algorithms::{Check, Cost, Id, Operation, Policy, Request};
use tollgate_redis::{RedisOptions, RedisStore, Reply, TimedRequest};
use tollgate_state::{FailureKind, Key};
use tollgate_testkit::{Cluster, Proxy, Server, slot_of, wait_until};

/// Checks of these keys, in one batch with a deadline.
async fn check_all(
    store: &RedisStore,
    policy: &Policy,
    keys: &[String],
    operation: Operation,
    deadline: Duration,
) -> Vec<Reply> {
    let checks: Vec<_> =
        keys.iter().map(|key| [Check { policy, key: key.as_bytes(), cost: Cost::ONE }]).collect();
    let deadline = Instant::now() + deadline;
    let timed: Vec<_> = checks
        .iter()
        .map(|checks| TimedRequest {
            request: Request { operation, checks, request_id: None },
            deadline,
        })
        .collect();
    store.decide_by(&timed).await
}

/// The connections that a server has accepted so far.
fn accepted(server: &Server) -> u64 {
    let stats = server.command(&["INFO", "stats"]).text();
    let line = stats.lines().find_map(|line| line.strip_prefix("total_connections_received:"));
    line.unwrap().trim().parse().unwrap()
}

#[tokio::test]
async fn charges_whose_answer_comes_late_are_taken_back() {
    let server = Server::start();
    let store = open_with(&server.url(), |options| RedisOptions { breaker: false, ..options });
    store.ready().await.unwrap();
    let limits = policy("1000000/d fixed; 5000 concurrent lease 1h");
    let keys: Vec<String> = (0..4).map(|number| format!("k{number}")).collect();
    let (mut admitted, mut late) = (0, 0);
    for round in 0..50 {
        if round % 2 == 0 {
            server.pause();
        }
        let lease = Id::from_u128(round);
        let operation = Operation::Acquire { lease };
        let replies = check_all(&store, &limits, &keys, operation, Duration::from_millis(15)).await;
        for reply in replies {
            match reply {
                Reply::Answer(answer) => {
                    admitted += u64::from(answer.is_ok_and(|answer| answer.allowed()))
                }
                Reply::Late(_) => late += 1,
            }
        }
        if round % 2 == 0 {
            tokio::time::sleep(Duration::from_millis(85)).await;
            server.resume();
        }
    }
    let used = async || {
        let mut used = (0, 0);
        for key in &keys {
            let key = Key::new(key.as_bytes()).unwrap();
            let inspection = store.inspect(&limits, key).await.unwrap();
            for limit in &inspection.limits {
                match limit.leases.is_empty() {
                    true => used.0 += limit.used,
                    false => used.1 += limit.used,
                }
            }
        }
        used
    };
    wait_until("the compensations", async || used().await == (admitted, admitted)).await;
    let stats = store.stats();
    assert!(late > 0 && admitted > 0, "{admitted} {late}");
    assert!(stats.reconciled > 0 && stats.unknown_outcomes == 0, "{stats:?}");
}

#[tokio::test]
async fn a_late_denial_of_an_admitted_request_is_counted() {
    let (server, store) = start();
    let one = policy("1/d fixed");
    let _ = check(&store, &one, b"k").await.unwrap();
    server.pause();
    let replies =
        check_all(&store, &one, &["k".to_owned()], CHECK, Duration::from_millis(15)).await;
    let [Reply::Late(late)] = <[Reply; 1]>::try_from(replies).unwrap() else {
        panic!("the server is stopped")
    };
    late.admit();
    server.resume();
    wait_until("the reply", async || store.stats().overshoot == 1).await;
    assert_eq!(store.stats().reconciled, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stopped_node_delays_only_its_own_keys() {
    let cluster = Cluster::start(3, 0);
    let store = open(&cluster.url());
    let many = policy("1000000/d fixed");
    let keys: Vec<String> = (0..96).map(|number| format!("key:{number}")).collect();
    for key in &keys {
        let _ = check(&store, &many, key.as_bytes()).await.unwrap();
    }
    let stopped = cluster.primaries()[1];
    let own: Vec<String> = cluster.nodes()[stopped].keys("tollgate");
    cluster.nodes()[stopped].pause();
    for _ in 0..3 {
        let replies = check_all(&store, &many, &keys, CHECK, Duration::from_millis(500)).await;
        for (key, reply) in keys.iter().zip(replies) {
            let is_own = own.iter().any(|name| name.ends_with(&format!(":{key}")));
            let is_answered = matches!(&reply, Reply::Answer(Ok(answer)) if answer.allowed());
            assert_eq!(is_answered, !is_own, "{key}: {reply:?}");
        }
    }
    cluster.nodes()[stopped].resume();
}

#[tokio::test]
async fn a_name_that_moves_to_another_server_is_followed() {
    let (old, new) = (Server::start(), Server::start());
    let proxy = Proxy::before(&old);
    let store = open(&proxy.url());
    let limits = policy("1000/d fixed");
    let _ = check(&store, &limits, b"k").await.unwrap();
    // A planned failover: the old server becomes a replica and keeps its connections. It never
    // synchronises, because a server that loads a snapshot would reply with another error.
    proxy.move_to(&new);
    old.command(&["REPLICAOF", "127.0.0.1", "1"]);
    wait_until("the new server", async || check(&store, &limits, b"k").await.is_ok()).await;
    assert!(remaining(&store, &limits, b"k").await < 1_000);
    assert!(!new.keys("tollgate").is_empty());
}

#[tokio::test]
async fn a_server_that_cannot_decide_gets_few_connections() {
    let server = Server::start();
    let store = open(&server.url());
    let limits = policy("1000/d fixed");
    let _ = check(&store, &limits, b"k").await.unwrap();
    for (name, fault) in [
        ("a replica", &["REPLICAOF", "127.0.0.1", "1"][..]),
        ("full memory", &["CONFIG", "SET", "maxmemory", "1"]),
        ("no permission", &["ACL", "SETUSER", "default", "-fcall", "-evalsha"]),
    ] {
        server.command(fault).expect_no_error(name);
        wait_until(name, async || check(&store, &limits, b"k").await.is_err()).await;
        // The first attempts follow each other quickly.
        tokio::time::sleep(Duration::from_secs(2)).await;
        let before = accepted(&server);
        let until = Instant::now() + Duration::from_secs(4);
        while Instant::now() < until {
            check(&store, &limits, b"k").await.unwrap_err();
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let made = accepted(&server) - before;
        // This test makes one connection itself.
        assert!(made <= 5, "{name}: {made}");
        server.command(&["REPLICAOF", "NO", "ONE"]);
        server.command(&["CONFIG", "SET", "maxmemory", "0"]);
        server.command(&["ACL", "SETUSER", "default", "+@all"]);
        wait_until(name, async || check(&store, &limits, b"k").await.is_ok()).await;
    }
}

#[tokio::test]
async fn a_server_without_free_connections_gets_few_attempts() {
    let server = Server::start();
    // One for this store's first connection, one for the test.
    let mut held = server.connect();
    held.command(&["CONFIG", "SET", "maxclients", "1"]).unwrap();
    let store = open(&server.url());
    store.ready().await.unwrap_err();
    tokio::time::sleep(Duration::from_secs(2)).await;
    let mut rejected = || {
        let stats = held.command(&["INFO", "stats"]).unwrap().text();
        let line = stats.lines().find_map(|line| line.strip_prefix("rejected_connections:"));
        line.unwrap().trim().parse::<u64>().unwrap()
    };
    let before = rejected();
    tokio::time::sleep(Duration::from_secs(4)).await;
    let attempts = rejected() - before;
    assert!(attempts <= 4, "{attempts}");
    held.command(&["CONFIG", "SET", "maxclients", "100"]).unwrap();
    let limits = policy("1000/d fixed");
    wait_until("an answer", async || check(&store, &limits, b"k").await.is_ok()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_with_an_unavailable_node_gets_few_connections() {
    let cluster = Cluster::start(3, 0);
    for node in cluster.nodes() {
        node.command(&["CONFIG", "SET", "cluster-require-full-coverage", "no"]);
    }
    let store = open(&cluster.url());
    let many = policy("1000000/d fixed");
    let keys: Vec<String> = (0..48).map(|number| format!("key:{number}")).collect();
    check_all(&store, &many, &keys, CHECK, Duration::from_secs(1)).await;
    let (killed, others) = (&cluster.nodes()[0], &cluster.nodes()[1..]);
    killed.kill();
    tokio::time::sleep(Duration::from_secs(2)).await;
    let before: Vec<u64> = others.iter().map(accepted).collect();
    let dials = store.stats().dials;
    let until = Instant::now() + Duration::from_secs(4);
    while Instant::now() < until {
        check_all(&store, &many, &keys, CHECK, Duration::from_millis(15)).await;
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    for (node, before) in others.iter().zip(before) {
        // This test makes one itself.
        assert!(accepted(node) - before <= 1, "{} {before}", accepted(node));
    }
    assert!(store.stats().dials - dials <= 5, "{:?}", store.stats());
}

/// The number of groups is stored on one of the nodes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_opens_while_any_one_node_is_unavailable() {
    let cluster = Cluster::start(3, 0);
    for node in cluster.nodes() {
        node.command(&["CONFIG", "SET", "cluster-require-full-coverage", "no"]);
    }
    let many = policy("1000000/d fixed");
    let first = open(&cluster.url());
    let keys: Vec<String> = (0..48).map(|number| format!("key:{number}")).collect();
    for key in &keys {
        let _ = check(&first, &many, key.as_bytes()).await.unwrap();
    }
    let owner_of = |key: &String| {
        let name =
            cluster.keys("tollgate").into_iter().find(|name| name.ends_with(&format!(":{key}")));
        cluster.primary_of_slot(slot_of(name.unwrap()))
    };
    let owners: Vec<usize> = keys.iter().map(owner_of).collect();
    for index in cluster.primaries() {
        let node = &cluster.nodes()[index];
        for fault in ["full", "stopped"] {
            match fault {
                "full" => drop(node.command(&["CONFIG", "SET", "maxmemory", "1"])),
                _ => node.pause(),
            }
            let store = open(&cluster.url());
            store.ready().await.unwrap_or_else(|error| panic!("{index} {fault}: {error}"));
            for (key, owner) in keys.iter().zip(&owners).filter(|(_, owner)| **owner != index) {
                let decided = check(&store, &many, key.as_bytes()).await;
                assert!(decided.is_ok(), "{index} {fault} {key} {owner}: {decided:?}");
            }
            node.resume();
            node.command(&["CONFIG", "SET", "maxmemory", "0"]);
        }
    }
}

#[tokio::test]
async fn requests_use_the_other_connection_of_a_node_if_one_is_lost() {
    for index in 0..2 {
        let (server, store) = start();
        let limits = policy("1000/d fixed");
        let _ = check(&store, &limits, b"k").await.unwrap();
        let mut held = server.connect();
        let mut own_ids = Vec::new();
        wait_until("both connections", async || {
            let list = held.command(&["CLIENT", "LIST"]).unwrap().text();
            let own = list.lines().filter(|line| line.contains("name=tollgate"));
            let ids = own.filter_map(|line| line.strip_prefix("id=")?.split(' ').next());
            own_ids = ids.map(str::to_owned).collect();
            own_ids.len() == 2
        })
        .await;
        // No new connection replaces the lost one.
        held.command(&["CONFIG", "SET", "maxclients", "2"]).unwrap();
        let dials = store.stats().dials;
        held.command(&["CLIENT", "KILL", "ID", &own_ids[index]]).unwrap();
        wait_until("an attempt", async || store.stats().dials > dials).await;
        for number in 0..100 {
            let _ = check(&store, &limits, format!("k{number}").as_bytes()).await.unwrap();
        }
        assert_eq!(store.stats().reconnects, 0);
    }
}

#[tokio::test]
async fn a_request_that_cannot_be_sent_in_time_is_not_charged() {
    let server = Server::start();
    // The breaker would open. A call that times out is no longer in flight.
    let store = open_with(&server.url(), |options| RedisOptions {
        connections: 1,
        breaker: false,
        call_timeout: Duration::from_secs(60),
        ..options
    });
    let limits = policy("1000000/d fixed");
    let _ = check(&store, &limits, b"k").await.unwrap();
    server.pause();
    let keys = vec!["k".to_owned(); 2];
    wait_until("an error before the deadline", async || {
        let calls = store.stats().calls;
        let replies = check_all(&store, &limits, &keys, CHECK, Duration::from_millis(50)).await;
        let is_overloaded = |reply| match reply {
            Reply::Answer(answer) => kind(answer) == FailureKind::Overloaded,
            // It was sent, or on a busy machine the deadline passed before the queue was searched.
            Reply::Late(_) => false,
        };
        replies.into_iter().all(is_overloaded) && store.stats().calls == calls
    })
    .await;
    server.resume();
    wait_until("the compensations", async || {
        remaining(&store, &limits, b"k").await == 1_000_000 - 1
    })
    .await;
}
