//! Clusters. Starting one takes seconds, so each test checks several things.

use std::time::{Duration, Instant};

use tollgate_testkit::{Cluster, Connection, Reply, Server, slot_of};

#[test]
fn cluster_serves_every_slot_and_slots_move() {
    let cluster = Cluster::start(3, 1);
    assert_eq!(cluster.nodes().len(), 6);
    assert_eq!(cluster.primaries(), [0, 1, 2]);
    assert_eq!(cluster.replicas_of(1), [4]);
    assert!(cluster.url().starts_with("redis+cluster://127.0.0.1:"));
    assert_eq!(cluster.url().matches(',').count(), 5);

    let slot = slot_of("{a}");
    assert_eq!(
        cluster.nodes()[0].command(&["CLUSTER", "KEYSLOT", "{a}"]).integer(),
        i64::from(slot)
    );
    let from = cluster.primary_of_slot(slot);
    let to = (from + 1) % 3;
    let (source, target) = (&cluster.nodes()[from], &cluster.nodes()[to]);
    for key in ["{a}1", "{a}2", "{a}3"] {
        assert_eq!(source.command(&["SET", key, "v", "PX", "60000"]), Reply::ok());
    }
    assert!(starts_with(target, &["GET", "{a}1"], "MOVED"));

    let moving = cluster.begin_move(slot, to);
    moving.migrate(&["{a}1"]);
    assert_eq!(moving.keys_left().len(), 2);
    assert!(starts_with(source, &["GET", "{a}1"], "ASK "));
    assert!(starts_with(source, &["MGET", "{a}1", "{a}2"], "TRYAGAIN"));
    let mut connection = Connection::to(&target.address()).unwrap();
    assert_eq!(connection.command(&["ASKING"]).unwrap(), Reply::ok());
    assert_eq!(connection.command(&["GET", "{a}1"]).unwrap().text(), "v");
    moving.migrate_all();
    moving.finish();
    assert_eq!(cluster.primary_of_slot(slot), to);
    assert!(starts_with(source, &["GET", "{a}1"], "MOVED"));
    assert_eq!(target.command(&["MGET", "{a}1", "{a}2", "{a}3"]).array().len(), 3);

    cluster.move_slot(slot, from);
    assert_eq!(cluster.primary_of_slot(slot), from);
    assert_eq!(source.command(&["GET", "{a}none"]), Reply::Null);

    let other = &cluster.nodes()[cluster.primary_of_slot(slot_of("{b}"))];
    assert_eq!(other.command(&["SET", "{b}", "v"]), Reply::ok());
    assert_eq!(cluster.keys("{"), ["{a}1", "{a}2", "{a}3", "{b}"]);
    assert_eq!(cluster.keys_without_ttl("{"), ["{b}"]);
}

#[test]
fn replica_is_promoted_by_command_and_after_failure() {
    let cluster = Cluster::start(3, 1);
    let slot = slot_of("k");
    let first = cluster.primary_of_slot(slot);
    assert_eq!(cluster.nodes()[first].command(&["SET", "k", "v"]), Reply::ok());
    let second = cluster.replicas_of(first)[0];
    cluster.failover(second);
    assert_eq!(cluster.primary_of_slot(slot), second);
    assert_eq!(cluster.replicas_of(second), [first]);
    assert_eq!(cluster.nodes()[second].command(&["GET", "k"]).text(), "v");

    let started = Instant::now();
    assert_eq!(cluster.kill_primary_of(slot), second);
    cluster.settle();
    assert_eq!(cluster.primary_of_slot(slot), first);
    assert!(started.elapsed() < Duration::from_secs(10), "{:?}", started.elapsed());
    // A killed node restarts as a replica.
    cluster.nodes()[second].restart();
    cluster.settle();
    assert_eq!(cluster.replicas_of(first), [second]);

    let third = (first + 1) % 3;
    let fourth = cluster.replicas_of(third)[0];
    cluster.failover(fourth);
    assert_eq!(cluster.replicas_of(fourth), [third]);
    // A paused primary counts as failed.
    cluster.nodes()[fourth].pause();
    cluster.settle();
    assert!(cluster.primaries().contains(&third));
}

fn starts_with(server: &Server, words: &[&str], error: &str) -> bool {
    let reply = server.command(words);
    reply.is_error() && reply.text().starts_with(error)
}
