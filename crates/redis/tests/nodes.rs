//! The state and the counters of each node.

mod support;

use std::time::Duration;

use support::{CHECK, check, open, open_with, policy};
use tokio::time::Instant;
use tollgate_algorithms::{Check, Cost, Request};
use tollgate_redis::{NodeStats, RedisOptions, RedisStore, Reply, TimedRequest};
use tollgate_testkit::{Cluster, Server, slot_of, wait_until};

/// Returns the state of the only node.
fn node(store: &RedisStore) -> NodeStats {
    let mut nodes = store.nodes();
    assert_eq!(nodes.len(), 1, "{nodes:?}");
    nodes.remove(0)
}

#[tokio::test]
async fn an_outage_is_reported_with_its_cause_and_duration() {
    let server = Server::start();
    let store = open(&server.url());
    let policy = policy("1000/d fixed");
    let _ = check(&store, &policy, b"k").await.unwrap();
    wait_until("both connections", async || node(&store).connections == 2).await;
    let before = node(&store);
    assert_eq!((&*before.address, before.outages), (&*server.address(), 0));
    assert_eq!((before.failure, before.last_outage), (None, None));
    assert_eq!((before.in_flight, before.queued), (0, 0));
    let counters = before.counters;
    assert_eq!((counters.requests, counters.dials), (1, 2));
    assert_eq!(counters.round_trips.iter().map(|(_, count)| count).sum::<u64>(), 1);
    assert!(counters.round_trip_sum_us > 0);

    server.kill();
    wait_until("the loss", async || !node(&store).is_up()).await;
    check(&store, &policy, b"k").await.unwrap_err();
    let down = node(&store);
    assert_eq!((down.connections, down.outages), (0, 1));
    assert!(down.failure.is_some() && down.last_outage.is_some(), "{down:?}");
    assert_eq!(down.counters.errors.values().sum::<u64>(), 1);

    server.restart();
    wait_until("the return", async || node(&store).is_up()).await;
    let last_outage = node(&store).last_outage;
    let _ = check(&store, &policy, b"k").await.unwrap();
    assert_eq!((node(&store).outages, node(&store).last_outage), (1, last_outage));
    assert_eq!(store.warnings().await.len(), 1);
    let scripts = node(&store).script_time;
    assert!(scripts.is_some_and(|scripts| scripts.calls > 0 && scripts.sum_us > 0), "{scripts:?}");
}

#[tokio::test]
async fn requests_that_a_hanging_server_delays_are_in_flight_and_then_late() {
    let server = Server::start();
    let store = open_with(&server.url(), |options| RedisOptions {
        connections: 1,
        call_timeout: Duration::from_secs(60),
        ..options
    });
    let policy = policy("1000/d fixed");
    let _ = check(&store, &policy, b"k").await.unwrap();
    server.pause();
    let checks = [Check { policy: &policy, key: b"k", cost: Cost::ONE }];
    let request = Request { operation: CHECK, checks: &checks, request_id: None };
    let deadline = Instant::now() + Duration::from_millis(20);
    let mut replies = store.decide_by(&[TimedRequest { request, deadline }]).await;
    assert!(matches!(replies.remove(0), Reply::Late(_)));
    assert_eq!((node(&store).in_flight, node(&store).counters.late), (1, 0));
    server.resume();
    wait_until("the late answer", async || node(&store).counters.late == 1).await;
    assert_eq!(store.stats().late, 1);
    wait_until("the refund", async || node(&store).in_flight == 0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_node_of_a_cluster_has_its_own_counters() {
    let cluster = Cluster::start(3, 1);
    let store = open(&cluster.url());
    let policy = policy("1000/d fixed");
    let keys: Vec<String> = (0..50).map(|n| format!("{n}:key")).collect();
    let check_all = async || {
        for key in &keys {
            let _ = check(&store, &policy, key.as_bytes()).await;
        }
    };
    check_all().await;
    let address = |index: usize| cluster.nodes()[index].address();
    let of_node = |index| {
        let address = address(index);
        store.nodes().into_iter().find(|node| *node.address == *address)
    };
    let primaries = cluster.primaries();
    wait_until("the primaries alone", async || store.nodes().len() == primaries.len()).await;
    assert!(primaries.iter().all(|primary| of_node(*primary).unwrap().counters.requests > 0));

    // While a slot is moving, the node that has it redirects requests for keys that have moved.
    let slot = slot_of(cluster.nodes()[primaries[0]].keys("tollgate").remove(0));
    let moving = cluster.begin_move(slot, primaries[1]);
    moving.migrate_all();
    check_all().await;
    moving.finish();
    let redirections = |index| of_node(index).unwrap().counters.redirections;
    assert!(redirections(primaries[0]) > 0);
    assert_eq!((redirections(primaries[1]), redirections(primaries[2])), (0, 0));

    // Only the node that has failed has errors, until a replica replaces it and it leaves.
    cluster.nodes()[primaries[2]].kill();
    wait_until("the loss", async || of_node(primaries[2]).is_some_and(|node| !node.is_up())).await;
    check_all().await;
    for node in store.nodes() {
        let is_killed = *node.address == *address(primaries[2]);
        assert_eq!(node.counters.errors.is_empty(), !is_killed, "{node:?}");
    }
    wait_until("the removal", async || of_node(primaries[2]).is_none()).await;
    let replica = cluster.replicas_of(primaries[0]);
    assert!(store.nodes().len() == 3 && of_node(replica[0]).is_none(), "{:?}", store.nodes());
}
