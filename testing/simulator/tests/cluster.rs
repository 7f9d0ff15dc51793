//! Clusters: migration of slots, promotion, and nodes with outdated knowledge.

#![allow(clippy::unwrap_used, reason = "a test")]

mod support;

use std::time::Duration;

use support::{ms, send, send_to};
use tollgate_algorithms::{Check, Cost, Operation, Policy, Request};
use tollgate_redis::{RedisOptions, RedisStore};
use tollgate_simulator::{Client, Cluster, Data, Server, Simulation, World};
use tollgate_state::Store;
use tollgate_testkit::slot_of;

fn run(replicas: usize, test: impl AsyncFnOnce(World, Cluster, Client)) {
    Simulation::new(1).run(async |world| {
        let cluster = world.start_cluster(3, replicas);
        test(world.clone(), cluster, world.start_client()).await;
    });
}

fn moved(slot: u16, to: &Server) -> String {
    format!("MOVED {slot} {}:6379", to.host())
}

/// Sets `count` keys in the slot of `{t}` at its owner.
async fn fill(client: &Client, owner: &Server, count: usize) {
    let mut connection = client.connect(owner).await.unwrap();
    for number in 0..count {
        connection.send(&["SET", &format!("{{t}}{number}"), "v", "PX", "1000000"]).await.unwrap();
    }
    for _ in 0..count {
        assert_eq!(connection.receive().await.unwrap().text(), "OK");
    }
}

#[test]
fn every_slot_has_an_owner_and_replicas_redirect() {
    run(1, async |world, cluster, client| {
        assert_eq!(cluster.nodes().len(), 6);
        let slots = [0, 5461, 16_383];
        let owners: Vec<usize> = slots.iter().map(|slot| cluster.owner(*slot).index()).collect();
        assert_eq!(owners, [0, 1, 2]);
        let mut connection = client.connect(&world.server(4)).await.unwrap();
        let reply = connection.command(&["CLUSTER", "SLOTS"]).await.unwrap();
        let ranges: Vec<Vec<i64>> = reply
            .array()
            .iter()
            .map(|range| range.array()[..2].iter().map(|bound| bound.integer()).collect())
            .collect();
        assert_eq!(ranges, [[0, 5460], [5461, 10_921], [10_922, 16_383]]);
        let hosts = reply.array()[0].array()[2..].iter().map(|node| node.array()[0].text());
        assert_eq!(hosts.collect::<Vec<_>>(), [world.server(0).host(), world.server(3).host()]);
        let slot = slot_of("k");
        let owner = cluster.owner(slot);
        let replica = world.server(owner.index() + 3);
        assert_eq!(send(&mut connection, "GET k").await, moved(slot, &owner));
        assert_eq!(send_to(&client, &replica, "GET k").await, moved(slot, &owner));
        assert_eq!(send_to(&client, &owner, "SET k v").await, "OK");
        assert_eq!(replica.keys().len(), 1);
    });
}

#[test]
fn a_slot_of_many_keys_moves_to_a_node_without_slots() {
    run(1, async |world, cluster, client| {
        let slot = slot_of("t");
        let (source, target) = (cluster.owner(slot), cluster.start_primary());
        let replica = world.start_replica(&target);
        fill(&client, &source, 100_000).await;
        assert_eq!(send_to(&client, &target, "GET {t}5").await, moved(slot, &source));
        let start = world.elapsed();
        cluster.move_slot(slot, &target, Duration::from_micros(50)).await;
        assert_eq!(world.elapsed() - start, ms(5_000));
        assert_eq!(source.keys().len(), 0);
        assert_eq!(target.keys().len(), 100_000);
        assert_eq!(replica.keys().len(), 100_000);
        assert_eq!(cluster.owner(slot).index(), target.index());
        assert_eq!(send_to(&client, &source, "GET {t}5").await, moved(slot, &target));
        assert_eq!(send_to(&client, &target, "PTTL {t}5").await, "995000");
    });
}

#[test]
fn keys_in_migration_keep_their_time_to_live() {
    run(0, async |_, cluster, client| {
        let slot = slot_of("t");
        let (source, target) = (cluster.owner(slot), cluster.start_primary());
        target.set_clock_offset(3_600_000_000);
        fill(&client, &source, 2).await;
        let migration = cluster.begin_move(slot, &target);
        tokio::time::sleep(ms(400_000)).await;
        assert_eq!((migration.move_keys(1), migration.keys_left()), (1, 1));
        assert_eq!(target.keys(), [(b"{t}0".to_vec(), Some(600_000))]);
        tokio::time::sleep(ms(600_000)).await;
        assert_eq!((migration.move_keys(5), migration.keys_left()), (1, 0));
        assert!(target.keys().is_empty(), "an expired key does not arrive");
    });
}

#[test]
fn an_outdated_node_redirects_to_the_old_owner() {
    run(0, async |_, cluster, client| {
        let slot = slot_of("t");
        let source = cluster.owner(slot);
        let others: Vec<Server> =
            cluster.nodes().into_iter().filter(|node| node.index() != source.index()).collect();
        others[1].set_gossip_delay(ms(500));
        cluster.move_slot(slot, &others[0], ms(0)).await;
        assert_eq!(send_to(&client, &source, "GET {t}").await, moved(slot, &others[0]));
        assert_eq!(send_to(&client, &others[1], "GET {t}").await, moved(slot, &source));
        tokio::time::sleep(ms(500)).await;
        assert_eq!(send_to(&client, &others[1], "GET {t}").await, moved(slot, &others[0]));
    });
}

#[test]
fn a_promoted_replica_takes_over_the_slots() {
    run(2, async |world, cluster, client| {
        let slot = slot_of("t");
        let primary = cluster.owner(slot);
        let replicas: Vec<Server> =
            [0, 1].map(|number| world.server(3 + primary.index() * 2 + number)).into();
        replicas[0].set_replication_lag(ms(100));
        fill(&client, &primary, 10).await;
        primary.set_gossip_delay(ms(1_000));
        replicas[0].promote();
        assert_eq!((replicas[0].keys().len(), replicas[1].keys().len()), (0, 0));
        assert_eq!(send_to(&client, &replicas[0], "SET {t} v").await, "OK");
        assert_eq!(send_to(&client, &replicas[1], "GET {t}").await, moved(slot, &replicas[0]));
        assert_eq!(replicas[1].keys().len(), 1);
        // The old primary does not know yet.
        assert_eq!(send_to(&client, &primary, "SET {t} lost").await, "OK");
        tokio::time::sleep(ms(1_000)).await;
        assert_eq!(send_to(&client, &primary, "GET {t}").await, moved(slot, &replicas[0]));
        assert!(!primary.is_primary());
        assert_eq!(primary.keys().len(), 1);
    });
}

#[test]
fn a_crashed_primary_returns_as_a_replica() {
    run(1, async |world, cluster, client| {
        let slot = slot_of("t");
        let primary = cluster.owner(slot);
        let replica = world.server(3 + primary.index());
        fill(&client, &primary, 10).await;
        primary.crash(Data::Kept);
        replica.promote();
        assert_eq!(send_to(&client, &replica, "SET {t} v").await, "OK");
        assert!(primary.is_primary(), "it does not know yet");
        primary.restart(ms(0));
        assert_eq!(send_to(&client, &primary, "GET {t}").await, moved(slot, &replica));
        assert_eq!((primary.is_primary(), primary.keys().len()), (false, 11));
    });
}

#[test]
fn a_cluster_is_down_without_an_owner_of_each_slot() {
    run(0, async |_, cluster, client| {
        let slot = slot_of("t");
        let owner = cluster.owner(slot);
        owner.set_cluster_down(true);
        let down = "CLUSTERDOWN The cluster is down";
        assert_eq!(send_to(&client, &owner, "GET {t}").await, down);
        owner.set_cluster_down(false);
        assert_eq!(send_to(&client, &owner, "GET {t}").await, "");
        cluster.unassign(slot);
        let unassigned = "CLUSTERDOWN Hash slot not served";
        assert_eq!(send_to(&client, &owner, "GET {t}").await, unassigned);
        assert_eq!(send_to(&client, &owner, "GET other").await, down);
    });
}

#[test]
fn the_store_is_correct_while_slots_move() {
    run(0, async |world, cluster, _| {
        world.links().set_latency(ms(1), ms(1));
        let options = RedisOptions { groups: Some(1), ..world.options() };
        let store = RedisStore::open(&cluster.url(), options).unwrap();
        store.ready().await.unwrap();
        let policy: Policy = "20/h".parse().unwrap();
        let target = cluster.start_primary();
        let (mut migration, mut admitted) = (None, 0);
        for number in 0..30 {
            let checks = [Check { policy: &policy, key: b"k", cost: Cost::ONE }];
            let operation = Operation::Check { lease: None };
            let request = Request { operation, checks: &checks, request_id: None };
            let answer = store.decide(&[request]).await.pop().unwrap().unwrap();
            admitted += u32::from(answer.allowed());
            match number {
                // All keys of the store are in one slot.
                0 => {
                    let calls = cluster.nodes().into_iter().flat_map(|node| node.calls());
                    let key = calls.filter_map(|call| call.keys.into_iter().next()).last().unwrap();
                    migration = Some(cluster.begin_move(slot_of(key), &target));
                }
                10 => assert_eq!(migration.as_ref().unwrap().move_keys(9), 1),
                20 => migration.take().unwrap().finish(),
                _ => {}
            }
        }
        assert_eq!(admitted, 20);
        assert!(target.stats().scripts > 10);
    });
}
