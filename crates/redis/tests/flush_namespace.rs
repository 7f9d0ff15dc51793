//! Flushing a namespace deletes all of its keys on every server, and no others.

#![expect(clippy::panic, clippy::unwrap_used, reason = "helpers of tests")]

mod support;

use std::time::Duration;

use support::{CHECK, check, decide, execute, named, open, open_with, policy};
use tollgate_algorithms::{Check, Cost, Id, Micros, Operation};
use tollgate_redis::{FlushError, RedisOptions, RedisStore};
use tollgate_state::{FailureKind, ManualClock};
use tollgate_testkit::{Cluster, Proxy, Sentinel, Server, slot_of, wait_until};

/// Opens a store with its own clock and this namespace.
fn trial(url: &str, namespace: &str) -> RedisStore {
    open_with(url, |options| RedisOptions {
        namespace: namespace.to_owned(),
        clock: Some(ManualClock::default()),
        call_timeout: Duration::from_secs(5),
        ..options
    })
}

/// Namespaces and foreign keys with names similar to those of the namespace `a`.
const NEIGHBOURS: [&str; 5] = ["ab", "a.b", "a-0", "A", "ba"];
const FOREIGN: [&str; 6] = ["a", "a:", "a:b", "a*:b:c", ":a:b:c", "ab:c"];

/// Writes keys of every kind, and those of a number of users.
async fn write_keys(store: &RedisStore, users: usize) {
    let every = named("every", "1000/h; 1000/d fixed; 500/h log; 300/h sliding");
    for number in 0..users {
        let _ = check(store, &every, format!("{number}:*?[]\\").as_bytes()).await.unwrap();
    }
    let log = policy("1000/h log");
    for _ in 0..300 {
        let _ = check(store, &log, &[b'k'; 10_240]).await.unwrap();
    }
    let lease = Operation::Acquire { lease: Id::from_u128(1) };
    let _ = execute(store, lease, &named("slots", "2 concurrent lease 60s"), b"\0\xff", 1)
        .await
        .unwrap();
    let queue = named("queue", "1/s burst 1");
    for number in 0..3 {
        let operation =
            Operation::Reserve { id: Id::from_u128(number), max_wait: Micros::from_secs(60) };
        let _ = execute(store, operation, &queue, b"k", 1).await.unwrap();
    }
    let _ = execute(store, Operation::Block { span: None }, &every, b"blocked", 0).await.unwrap();
    let checks = [Check { policy: &every, key: b"k", cost: Cost::ONE }];
    let _ = decide(store, CHECK, &checks, Some(b"id")).await.unwrap();
}

#[track_caller]
fn assert_unfinished(error: FlushError, kind: FailureKind, parts: &[&str]) {
    let text = error.to_string();
    assert!(parts.iter().all(|part| text.contains(part)), "{text}");
    let FlushError::Unfinished { failure, .. } = error else { panic!("{error:?}") };
    assert_eq!(failure.kind, kind, "{text}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn flushing_a_namespace_keeps_keys_with_similar_names() {
    let server = Server::start();
    for namespace in NEIGHBOURS {
        write_keys(&trial(&server.url(), namespace), 3).await;
    }
    write_keys(&trial(&format!("{}/1", server.url()), "a"), 3).await;
    for name in FOREIGN {
        server.command(&["SET", name, "theirs"]);
    }
    let before = server.keys("");
    let store = trial(&server.url(), "a");
    assert_eq!(store.flush_namespace().await, Ok(0));
    assert_eq!(server.keys(""), before);
    write_keys(&store, 3_000).await;
    let all = key_count(&server);
    assert_eq!(store.flush_namespace().await, Ok(all - key_count(&server)));
    assert_eq!(server.keys(""), before);
    // The store can be used and flushed again.
    let _ = check(&store, &policy("1/h"), b"k").await.unwrap();
    assert_eq!(store.flush_namespace().await, Ok(1));
    assert_eq!(server.keys(""), before);
}

fn key_count(server: &Server) -> u64 {
    server.command(&["DBSIZE"]).integer().try_into().unwrap()
}

#[tokio::test]
async fn stores_on_the_server_clock_and_the_default_namespace_are_not_flushed() {
    let server = Server::start();
    let store = open_with(&server.url(), |options| RedisOptions {
        namespace: "shop".to_owned(),
        ..options
    });
    let _ = check(&store, &policy("1/h"), b"k").await.unwrap();
    let error = store.flush_namespace().await.unwrap_err();
    assert_eq!(error, FlushError::ServerClock { namespace: "shop".into() });
    assert!(error.to_string().contains("its own clock and namespace"), "{error}");

    let _ = check(&open(&server.url()), &policy("1/h"), b"k").await.unwrap();
    let error = trial(&server.url(), "tollgate").flush_namespace().await.unwrap_err();
    assert_eq!(error, FlushError::DefaultNamespace { namespace: "tollgate".into() });
    assert!(error.to_string().contains("\"tollgate\""), "{error}");
    assert_eq!(server.keys("").len(), 2);
}

#[tokio::test]
async fn a_missing_permission_is_reported_with_the_needed_ones() {
    let acl = support::documented_permissions();
    let rules = acl.strip_prefix("user ").unwrap();
    let rules = rules.replace(">PASSWORD", ">secret").replace("~tollgate:*", "~a:*");
    let server = Server::with(|server| server.user(&format!("{rules} +scan +unlink")));
    let store = trial(&server.url_as("tollgate", "secret"), "a");
    let _ = check(&store, &policy("1/h"), b"k").await.unwrap();
    for (without, with) in [("-scan", "+scan"), ("-unlink", "+unlink"), ("resetkeys", "~a:*")] {
        let set =
            |rule| server.command(&["ACL", "SETUSER", "tollgate", rule]).expect_no_error(rule);
        set(without);
        let error = store.flush_namespace().await.unwrap_err();
        assert_unfinished(
            error,
            FailureKind::NoPermission,
            &["+scan and +unlink", &server.address(), "NOPERM"],
        );
        assert_eq!(server.keys("a:").len(), 1);
        set(with);
    }
    assert_eq!(store.flush_namespace().await, Ok(1));
}

#[tokio::test]
async fn temporary_failures_are_retried_and_others_are_reported() {
    let server = Server::start();
    let proxy = Proxy::before(&server);
    let store = trial(&proxy.url(), "a");
    let fill = async || write_keys(&trial(&server.url(), "a"), 2_000).await;
    fill().await;
    proxy.only(&["SCAN"]);
    proxy.cut_before(2);
    store.flush_namespace().await.unwrap();
    assert_eq!(server.keys(""), Vec::<String>::new());

    fill().await;
    proxy.only(&["UNLINK"]);
    proxy.cut_after_execution(1);
    proxy.replace_reply(2, "-LOADING Redis is loading the dataset in memory", false);
    store.flush_namespace().await.unwrap();
    assert_eq!(server.keys(""), Vec::<String>::new());

    fill().await;
    let all = key_count(&server);
    proxy.only(&["SCAN"]);
    proxy.replace_reply(3, "-ERR no more", false);
    let Err(FlushError::Unfinished { deleted, failure, .. }) = store.flush_namespace().await else {
        panic!("the flush succeeded");
    };
    assert_eq!((failure.kind, deleted), (FailureKind::Rejected, all - key_count(&server)));
    proxy.replace_reply(1, "+OK", false);
    assert_unfinished(
        store.flush_namespace().await.unwrap_err(),
        FailureKind::Protocol,
        &["SCAN", &proxy.address()],
    );
    assert_eq!(store.flush_namespace().await, Ok(all - deleted));

    server.kill();
    let error = store.flush_namespace().await.unwrap_err();
    assert_unfinished(
        error,
        FailureKind::Unreachable,
        &["0 keys", "try again", "let the other keys expire"],
    );
}

/// Returns the keys of the namespace on every node, also those in slots that are being migrated.
fn on_all_nodes(cluster: &Cluster) -> Vec<String> {
    let keys = |node: &Server| node.command(&["KEYS", "a:*"]).array().to_vec();
    cluster.nodes().iter().flat_map(keys).map(|key| key.text()).collect()
}

fn slots_of(names: &[String]) -> Vec<u16> {
    let mut slots: Vec<u16> = names.iter().map(slot_of).collect();
    slots.sort_unstable();
    slots.dedup();
    slots
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_namespace_on_a_cluster_is_flushed_while_a_primary_fails() {
    let cluster = Cluster::start(3, 3);
    for namespace in NEIGHBOURS {
        write_keys(&trial(&cluster.url(), namespace), 3).await;
    }
    let before = cluster.keys("");
    let store = trial(&cluster.url(), "a");
    write_keys(&store, 500).await;
    let groups = "a:{a}:#groups";
    let ttl = cluster.sweep(groups).max_ttl().unwrap();
    assert!(ttl <= Duration::from_secs(3_600), "{ttl:?}");
    let all = cluster.keys("").len() - before.len();
    assert_eq!(store.flush_namespace().await, Ok(all.try_into().unwrap()));
    assert_eq!(cluster.keys(""), before);

    write_keys(&store, 500).await;
    cluster.kill_primary_of(slot_of("{a.0}"));
    store.flush_namespace().await.unwrap();
    cluster.settle();
    assert_eq!(cluster.keys("a:"), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_namespace_on_a_cluster_is_flushed_while_slots_move() {
    let cluster = Cluster::start(3, 0);
    let store = trial(&cluster.url(), "a");
    write_keys(&store, 500).await;
    let other = |from| cluster.primaries().into_iter().find(|primary| *primary != from).unwrap();
    // Half of the slots move, the others stay in migration.
    let names = on_all_nodes(&cluster);
    let mut migrations = Vec::new();
    for (number, slot) in slots_of(&names).into_iter().take(12).enumerate() {
        let to = other(cluster.primary_of_slot(slot));
        if number % 2 == 0 {
            cluster.move_slot(slot, to);
            continue;
        }
        let moving = cluster.begin_move(slot, to);
        for key in moving.keys_left().iter().step_by(2) {
            moving.migrate(&[key]);
        }
        migrations.push(moving);
    }
    let all = u64::try_from(on_all_nodes(&cluster).len()).unwrap();
    assert_eq!(store.flush_namespace().await, Ok(all));
    assert_eq!(on_all_nodes(&cluster), Vec::<String>::new());
    migrations.into_iter().for_each(|migration| migration.finish());

    // Slots move during the flush.
    write_keys(&store, 500).await;
    let slots = slots_of(&on_all_nodes(&cluster));
    std::thread::scope(|scope| {
        let moves = scope.spawn(|| {
            for slot in slots.iter().take(20) {
                cluster.move_slot(*slot, other(cluster.primary_of_slot(*slot)));
            }
        });
        let deleted = tokio::task::block_in_place(|| {
            tokio::runtime::Handle::current().block_on(store.flush_namespace())
        });
        moves.join().unwrap();
        deleted.unwrap();
    });
    assert_eq!(on_all_nodes(&cluster), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pass_during_a_migration_is_repeated() {
    let cluster = Cluster::start(2, 0);
    let store = trial(&cluster.url(), "a");
    write_keys(&store, 100).await;
    let slot = slots_of(&on_all_nodes(&cluster))[0];
    let from = cluster.primary_of_slot(slot);
    let _migration = cluster.begin_move(slot, 1 - from);
    let proxy = Proxy::before(&cluster.nodes()[from]);
    let port = proxy.port().to_string();
    cluster.nodes()[from].command(&["CONFIG", "SET", "cluster-announce-port", &port]);
    let announced = format!(":{port}@");
    wait_until("the announced port", async || {
        let is_known =
            |node: &Server| node.command(&["CLUSTER", "NODES"]).text().contains(&announced);
        cluster.nodes().iter().all(is_known)
    })
    .await;
    proxy.only(&["SCAN"]);
    proxy.replace_reply(1, "*2\r\n$1\r\n0\r\n*0", false);
    store.flush_namespace().await.unwrap();
    assert_eq!(on_all_nodes(&cluster), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_namespace_behind_sentinels_is_flushed_on_the_new_primary() {
    let sentinel = Sentinel::start();
    let store = trial(&sentinel.url(), "a");
    write_keys(&store, 100).await;
    sentinel.kill_primary();
    store.flush_namespace().await.unwrap();
    sentinel.settle();
    assert_eq!(sentinel.primary().keys(""), Vec::<String>::new());
    assert_eq!(store.flush_namespace().await, Ok(0));
}
