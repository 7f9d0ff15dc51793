//! The addresses that servers announce: unreachable ones, and host names.

mod support;

use std::collections::BTreeMap;

use support::{check, open_with, policy};
use tollgate_redis::{Pem, RedisOptions};
use tollgate_testkit::{Cluster, Server, slot_of, wait_until};

/// Makes each node of a cluster announce a host name, by its port.
async fn announce(cluster: &Cluster, name: impl Fn(u16) -> String) {
    for node in cluster.nodes() {
        for (setting, value) in [
            ("cluster-announce-hostname", &*name(node.port())),
            ("cluster-preferred-endpoint-type", "hostname"),
        ] {
            node.command(&["CONFIG", "SET", setting, value]).expect_no_error(setting);
        }
    }
    let is_announced = async || {
        cluster.nodes().iter().all(|node| {
            let nodes = node.command(&["CLUSTER", "NODES"]).text();
            cluster.nodes().iter().all(|other| {
                let (port, name) = (other.port(), name(other.port()));
                nodes.lines().any(|node| {
                    node.contains(&format!(":{port}@")) && node.contains(&format!(",{name} "))
                })
            })
        })
    };
    wait_until("the announced names", is_announced).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_that_announces_unreachable_addresses_is_reached_through_the_address_map() {
    let cluster = Cluster::start(3, 0);
    announce(&cluster, |port| format!("node-{port}.invalid")).await;
    let pair = |port| (format!("node-{port}.invalid:{port}"), format!("127.0.0.1:{port}"));
    let address_map: BTreeMap<_, _> =
        cluster.nodes().iter().map(|node| pair(node.port())).collect();
    let seed = format!("redis+cluster://{}", cluster.nodes()[0].address());
    let store = open_with(&seed, |options| RedisOptions { address_map, ..options });
    let policy = policy("1000/d fixed");
    let keys: Vec<String> = (0..50).map(|n| format!("{n}:key")).collect();
    let check_all = async || {
        for key in &keys {
            let _ = check(&store, &policy, key.as_bytes()).await.unwrap();
        }
    };
    check_all().await;
    let nodes = store.nodes();
    assert!(nodes.len() == 3 && nodes.iter().all(|node| node.counters.requests > 0), "{nodes:?}");

    // Redirections name the announced addresses, too: first ASK, then MOVED, unless the store has
    // queried the slots meanwhile.
    let [first, second, _] = cluster.primaries()[..] else { panic!("three primaries") };
    let mut slots: Vec<u16> = cluster.nodes()[first].keys("tollgate").iter().map(slot_of).collect();
    slots.dedup();
    let (mut asked, mut moved) = (0, 0);
    while moved == 0 {
        let moving = cluster.begin_move(slots.pop().unwrap(), second);
        moving.migrate_all();
        let before = store.stats().redirections;
        check_all().await;
        asked += store.stats().redirections - before;
        moving.finish();
        let before = store.stats().redirections;
        check_all().await;
        moved += store.stats().redirections - before;
    }
    assert!(asked > 0);
    assert_eq!(store.nodes().len(), 3, "{:?}", store.nodes());
}

#[tokio::test]
async fn a_sentinel_that_announces_another_address_is_translated() {
    let [announced, actual] = [Server::start(), Server::start()];
    let monitor = format!("sentinel monitor main 127.0.0.1 {} 1", announced.port());
    let sentinel = Server::with(|config| config.sentinel().line(&monitor));
    let url = format!("redis+sentinel://{}/main", sentinel.address());
    let address_map = BTreeMap::from([(announced.address(), actual.address())]);
    let store = open_with(&url, |options| RedisOptions { address_map, ..options });
    let _ = check(&store, &policy("9/d"), b"k").await.unwrap();
    assert_eq!((announced.keys("").len(), actual.keys("").len()), (0, 1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_with_tls_are_reached_by_the_names_that_they_announce() {
    let cluster = Cluster::with(1, 0, |config| config.tls().line("tls-cluster yes"));
    let node = &cluster.nodes()[0];
    let url = format!("rediss+cluster://127.0.0.1:{}", node.port());
    let ca = Some(Pem::Path(node.ca_path()));
    announce(&cluster, |_| "localhost".to_owned()).await;
    let store = open_with(&url, |options| RedisOptions { ca, ..options });
    let _ = check(&store, &policy("9/d"), b"k").await.unwrap();
    // The certificate is verified for the name, which is the host of the address.
    let announced = format!("localhost:{}", node.port());
    wait_until("the announced name", async || {
        matches!(&store.nodes()[..], [node] if *node.address == *announced && node.is_up())
    })
    .await;
}
