//! A cluster: keys of several nodes, slots that move, nodes that fail.

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use support::{CHECK, check, decide, execute, kind, named, open, open_with, policy, remaining};
use tollgate_algorithms::{Check, Cost, Id, Operation, Policy, Request};
use tollgate_redis::{RedisOptions, RedisStore};
use tollgate_state::{FailureKind, Store};
use tollgate_testkit::{Cluster, Proxy, Server, wait_until};

/// Keys with characters that hash tags and cluster slots could misinterpret.
const UNUSUAL_KEYS: [&[u8]; 6] = [b"{x}", b"a{b}c", b"}{", b"{}", b"\0\xff", &[b'k'; 10_240]];

fn keys(count: usize) -> Vec<String> {
    (0..count).map(|n| format!("{n}:key")).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_serves_all_keys() {
    let cluster = Cluster::start(3, 0);
    let store = open(&cluster.url());
    store.ready().await.unwrap();
    let two = policy("2/d fixed");
    let names = keys(200);
    let all_keys = || names.iter().map(|name| name.as_bytes()).chain(UNUSUAL_KEYS);
    for round in 0..3 {
        let checks: Vec<_> =
            all_keys().map(|key| [Check { policy: &two, key, cost: Cost::ONE }]).collect();
        let requests: Vec<_> = checks
            .iter()
            .map(|checks| Request { operation: CHECK, checks, request_id: None })
            .collect();
        for answer in store.decide(&requests).await {
            assert_eq!(answer.unwrap().allowed(), round < 2);
        }
    }
    let used = cluster
        .primaries()
        .iter()
        .filter(|primary| !cluster.nodes()[**primary].keys("tollgate").is_empty())
        .count();
    assert_eq!(used, 3);
    assert_eq!(cluster.keys_without_ttl("tollgate"), Vec::<String>::new());
    assert!(store.stats().calls < 400, "{:?}", store.stats());

    // A store with another number of groups would look for the keys in other slots.
    let other = open_with(&cluster.url(), |options| RedisOptions { groups: Some(32), ..options });
    assert_eq!(kind(other.ready().await), FailureKind::PartitionMismatch);
    assert_eq!(kind(check(&other, &two, b"k").await), FailureKind::PartitionMismatch);
    let error = other.ready().await.unwrap_err().to_string();
    assert!(error.contains("tollgate:{tollgate}:#groups is 64"), "{error}");
    let same = open(&cluster.url().replace("redis+", "valkey+"));
    same.ready().await.unwrap();

    // The URL of a single server does not open a cluster node, and the reverse.
    let node = open(&cluster.nodes()[0].url());
    assert_eq!(kind(node.ready().await), FailureKind::WrongTopology);
    let single = Server::start();
    let wrong = open(&single.url().replace("redis:", "redis+cluster:"));
    assert_eq!(kind(wrong.ready().await), FailureKind::WrongTopology);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn checks_in_several_partitions_are_all_charged_or_none() {
    let cluster = Cluster::start(3, 0);
    let store = open(&cluster.url());
    let many = named("many", "1000/d fixed");
    let few = named("few", "2/d fixed");
    let shadow = named("shadow", "1/d fixed").shadow();
    let checks = [at(&many, b"a"), at(&few, b"b"), at(&many, b"c"), at(&shadow, b"d")];
    for round in 1..=4_u64 {
        let answer = decide(&store, CHECK, &checks, None).await.unwrap();
        let admitted = round <= 2;
        assert_eq!(answer.allowed(), admitted, "{answer:?}");
        let granted: Vec<u64> = answer.decisions.iter().map(|decision| decision.granted).collect();
        assert_eq!(granted[..3], [u64::from(admitted); 3]);
        assert_eq!(remaining(&store, &many, b"a").await, 1_000 - round.min(2));
        assert_eq!(answer.decisions[1].retry_after.is_some(), !admitted);
        assert!(answer.decisions[3].allowed && answer.decisions[3].shadow);
    }
    let peeked = decide(&store, Operation::Peek, &checks, None).await.unwrap();
    assert!(!peeked.allowed() && peeked.decisions[0].allowed);

    // Concurrent requests never exceed the limit that they share, and are charged on both keys.
    let one = named("one", "50/d fixed");
    let mut tasks = tokio::task::JoinSet::new();
    for number in 0..200 {
        let (store, one, many) = (store.clone(), one.clone(), many.clone());
        tasks.spawn(async move {
            let other = if number % 2 == 0 { b"y" } else { b"z" };
            let checks = [at(&one, b"x"), at(&many, other)];
            decide(&store, CHECK, &checks, None).await.unwrap().allowed()
        });
    }
    let admitted = tasks.join_all().await.into_iter().filter(|admitted| *admitted).count();
    let admitted = u64::try_from(admitted).unwrap();
    assert!(admitted <= 50, "{admitted}");
    assert_eq!(remaining(&store, &one, b"x").await, 50 - admitted);
    let (y, z) = (remaining(&store, &many, b"y").await, remaining(&store, &many, b"z").await);
    assert_eq!(2_000 - y - z, admitted);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn request_ids_and_leases_apply_across_partitions() {
    let cluster = Cluster::start(3, 0);
    let store = open(&cluster.url());
    let many = named("many", "1000/d fixed");
    let slots = named("slots", "2 concurrent lease 60s; 1000/d fixed");
    let checks = [at(&many, b"a"), at(&many, b"b"), at(&many, b"c")];
    for round in 0..3 {
        let answer = decide(&store, CHECK, &checks, Some(b"id")).await.unwrap();
        assert!(answer.allowed());
        assert!(
            answer.decisions.iter().all(|decision| decision.replayed == (round > 0)),
            "{answer:?}"
        );
        for key in [b"a", b"b", b"c"] {
            assert_eq!(remaining(&store, &many, key).await, 999);
        }
    }
    let others = [at(&many, b"a"), at(&many, b"b")];
    let reused = decide(&store, CHECK, &others, Some(b"id")).await;
    assert!(matches!(reused, Err(tollgate_state::StoreError::Request(_))), "{reused:?}");
    assert_eq!(remaining(&store, &many, b"b").await, 999);

    let checks = [at(&slots, b"a"), at(&slots, b"b")];
    let acquire = async |id| {
        let operation = Operation::Acquire { lease: Id::from_u128(id) };
        decide(&store, operation, &checks, None).await.unwrap()
    };
    assert!(acquire(1).await.allowed() && acquire(2).await.allowed());
    assert!(!acquire(3).await.allowed());
    let again = acquire(1).await;
    assert!(
        again.allowed() && again.decisions.iter().all(|decision| decision.replayed),
        "{again:?}"
    );
    let release = Operation::Release { lease: Id::from_u128(1) };
    assert_eq!(execute(&store, release, &slots, b"a", 1).await.unwrap().granted, 1);
    // One of the two keys is full: nothing is charged to the other key or to its other limit.
    assert!(!acquire(4).await.allowed());
    let limits = execute(&store, Operation::Peek, &slots, b"a", 1).await.unwrap().limits();
    let mut left: Vec<u64> = limits.iter().map(|limit| limit.remaining).collect();
    left.sort_unstable();
    assert_eq!(left, [1, 998]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_repeat_does_not_charge_shadow_checks_in_other_partitions() {
    let cluster = Cluster::start(3, 0);
    let store = open(&cluster.url());
    let (many, few) = (named("many", "1000/d fixed"), named("few", "1/d fixed"));
    let shadow = named("shadow", "1000/d fixed").shadow();
    let charged = async || 1_000 - remaining(&store, &shadow, b"c").await;
    let decide_all = async |checks: &[Check<'_>], id: &[u8]| {
        decide(&store, CHECK, checks, Some(id)).await.unwrap()
    };

    let checks = [at(&many, b"a"), at(&shadow, b"c"), at(&few, b"b"), at(&shadow, b"b")];
    let first = decide_all(&checks, b"id").await;
    assert!(
        first.allowed() && first.decisions.iter().all(|decision| !decision.replayed),
        "{first:?}"
    );
    assert_eq!(charged().await, 1);
    // Denials are not recorded, so each repeat charges the shadow checks, as in a single call.
    for round in 2..=3 {
        assert!(!decide_all(&checks, b"denied").await.allowed());
        assert_eq!(charged().await, round);
    }
    let _ = execute(&store, Operation::Reset, &few, b"b", 0).await.unwrap();
    for round in 0..3 {
        let again = decide_all(&checks, b"id").await;
        assert!(
            again.decisions.iter().all(|decision| decision.replayed && decision.allowed),
            "{again:?}"
        );
        assert_eq!((again.decisions[1].remaining, charged().await), (999, 3), "{round}");
    }
    assert!(decide_all(&checks, b"denied").await.allowed());
    assert_eq!(charged().await, 4);

    let shadows = [at(&shadow, b"a"), at(&shadow, b"c")];
    for round in 0..3 {
        let answer = decide_all(&shadows, b"shadows").await;
        assert!(
            answer.decisions.iter().all(|decision| decision.replayed == (round > 0)),
            "{answer:?}"
        );
        assert_eq!(charged().await, 5);
    }
    let others = [at(&shadow, b"a"), at(&shadow, b"b")];
    let reused = decide(&store, CHECK, &others, Some(b"shadows")).await;
    assert!(matches!(reused, Err(tollgate_state::StoreError::Request(_))), "{reused:?}");
}

fn at<'a>(policy: &'a Policy, key: &'a [u8]) -> Check<'a> {
    Check { policy, key, cost: Cost::ONE }
}

/// Clients that check while the cluster changes, and count the outcomes.
struct Load {
    stop: Arc<AtomicBool>,
    /// The lost charges, failed requests and unknown outcomes of each client.
    clients: tokio::task::JoinSet<(u64, u64, u64)>,
}

impl Load {
    /// Starts this number of clients, each with its own key.
    fn start(store: &RedisStore, policy: &Policy, name: &'static str, count: usize) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let mut clients = tokio::task::JoinSet::new();
        for client in 0..count {
            let (store, policy, stop) = (store.clone(), policy.clone(), Arc::clone(&stop));
            clients.spawn(async move {
                let (mut admitted, mut unknown, mut failed) = (0, 0, 0);
                let key = format!("{client}:{name}");
                while !stop.load(Ordering::Relaxed) {
                    match check(&store, &policy, key.as_bytes()).await {
                        Ok(decision) => admitted += u64::from(decision.allowed),
                        Err(error) if error.is_outcome_unknown() => unknown += 1,
                        Err(_) => {
                            failed += 1;
                            tokio::time::sleep(Duration::from_millis(5)).await;
                        }
                    }
                }
                let remaining = loop {
                    match execute(&store, Operation::Peek, &policy, key.as_bytes(), 1).await {
                        Ok(decision) => break decision.remaining,
                        Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
                    }
                };
                let charged = policy.limits()[0].capacity() - remaining;
                assert!(charged <= admitted + unknown, "{charged} of {admitted} and {unknown}");
                (admitted.saturating_sub(charged), failed, unknown)
            });
        }
        Load { stop, clients }
    }

    /// Stops the clients. Returns the sums of lost charges, failed requests and unknown outcomes.
    async fn stop(self) -> (u64, u64, u64) {
        self.stop.store(true, Ordering::Relaxed);
        let counts = self.clients.join_all().await;
        counts.into_iter().fold((0, 0, 0), |sum, c| (sum.0 + c.0, sum.1 + c.1, sum.2 + c.2))
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slots_moved_under_load_lose_no_charges() {
    let cluster = Cluster::start(3, 0);
    let store = open_with(&cluster.url(), |options| RedisOptions {
        groups: Some(4),
        call_timeout: Duration::from_secs(5),
        ..options
    });
    store.ready().await.unwrap();
    let policy = policy("1000000/d fixed");
    let load = Load::start(&store, &policy, "moves", 16);
    tokio::time::sleep(Duration::from_millis(100)).await;
    // Derived from the stored keys, so that the test does not depend on their names.
    let mut slots: Vec<u16> =
        cluster.keys("tollgate").iter().map(tollgate_testkit::slot_of).collect();
    slots.sort_unstable();
    slots.dedup();
    for slot in slots {
        let from = cluster.primary_of_slot(slot);
        let to = cluster.primaries().into_iter().find(|primary| *primary != from).unwrap();
        let moving = cluster.begin_move(slot, to);
        // For a while, each of the two nodes has some of the keys.
        let keys = moving.keys_left();
        for key in keys.iter().step_by(2) {
            moving.migrate(&[key]);
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
        moving.migrate_all();
        tokio::time::sleep(Duration::from_millis(30)).await;
        moving.migrate_all();
        moving.finish();
    }
    let (lost, failed, unknown) = load.stop().await;
    assert_eq!((lost, failed, unknown), (0, 0, 0), "{:?}", store.stats());
    assert!(store.stats().redirections > 0);
    assert_eq!(cluster.keys_without_ttl(""), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_continue_after_a_failover_and_a_killed_primary() {
    let cluster = Cluster::start(3, 1);
    let store = open(&cluster.url());
    store.ready().await.unwrap();
    let policy = policy("1000000/d fixed");
    let load = Load::start(&store, &policy, "moves", 16);
    tokio::time::sleep(Duration::from_millis(200)).await;
    let primary = cluster.primaries()[0];
    let replica = cluster.replicas_of(primary)[0];
    cluster.failover(replica);
    tokio::time::sleep(Duration::from_millis(300)).await;
    let (lost, _, _) = load.stop().await;
    assert_eq!(lost, 0, "a handover loses no charge: {:?}", store.stats());

    let load = Load::start(&store, &policy, "fails", 16);
    tokio::time::sleep(Duration::from_millis(200)).await;
    cluster.kill_primary_of(0);
    cluster.settle();
    for name in keys(50) {
        wait_until("all keys", async || check(&store, &policy, name.as_bytes()).await.is_ok())
            .await;
    }
    // Only the charges that the primary had not replicated are lost.
    let (_, failed, _) = load.stop().await;
    assert!(failed > 0, "{:?}", store.stats());
    assert_eq!(cluster.keys_without_ttl(""), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hanging_primary_is_replaced_by_its_replica() {
    let cluster = Cluster::start(3, 1);
    let store = open(&cluster.url());
    let policy = policy("1000000/d fixed");
    let names = keys(50);
    for name in &names {
        let _ = check(&store, &policy, name.as_bytes()).await.unwrap();
    }
    cluster.nodes()[cluster.primaries()[0]].pause();
    // The outcome of calls in flight is unknown; later calls fail at once or succeed.
    for name in &names {
        wait_until("all keys", async || check(&store, &policy, name.as_bytes()).await.is_ok())
            .await;
    }
    let stats = store.stats();
    assert!(stats.unknown_outcomes > 0 && stats.reconnects == 0, "{stats:?}");
    // A new store does not wait for the hanging node.
    open(&cluster.url()).ready().await.unwrap();
}

/// The proxies of a cluster's nodes, which the nodes announce.
fn proxies(cluster: &Cluster) -> Vec<Proxy> {
    let proxies: Vec<Proxy> = cluster.nodes().iter().map(Proxy::before).collect();
    for (node, proxy) in cluster.nodes().iter().zip(&proxies) {
        let port = proxy.port().to_string();
        node.command(&["CONFIG", "SET", "cluster-announce-port", &port]).expect_no_error("port");
    }
    proxies
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_whose_reply_was_lost_is_charged_once_in_every_partition_under_its_id() {
    let cluster = Cluster::start(3, 0);
    let proxies = proxies(&cluster);
    let nodes = || cluster.nodes()[0].command(&["CLUSTER", "SLOTS"]);
    wait_until("the announced ports", async || {
        let slots = format!("{:?}", nodes());
        proxies.iter().all(|proxy| slots.contains(&proxy.port().to_string()))
    })
    .await;
    let store = open(&format!("redis+cluster://{}", proxies[0].address()));
    store.ready().await.unwrap();
    let (ip, user) = (named("ip", "5/d fixed"), named("user", "1000/d fixed"));
    let names = keys(20);
    for name in &names {
        let _ = check(&store, &user, name.as_bytes()).await.unwrap();
    }
    let mut admitted = 0;
    for (number, name) in (0_u64..).zip(&names) {
        let checks = [at(&user, name.as_bytes()), at(&ip, b"1.2.3.4")];
        let checks = if number % 2 == 0 { checks } else { [checks[1], checks[0]] };
        // Each node loses the reply to one of the next calls.
        for proxy in &proxies {
            proxy.only(&["FCALL"]);
            proxy.cut_after_execution(1 + number % 3);
        }
        let id = format!("id:{number}");
        let mut decided = decide(&store, CHECK, &checks, Some(id.as_bytes())).await;
        for proxy in &proxies {
            proxy.clear_faults();
        }
        while decided.is_err() {
            tokio::time::sleep(Duration::from_millis(20)).await;
            decided = decide(&store, CHECK, &checks, Some(id.as_bytes())).await;
        }
        admitted += u64::from(decided.unwrap().allowed());
    }
    assert_eq!(admitted, 5);
    assert_eq!(remaining(&store, &ip, b"1.2.3.4").await, 0);
    let charged = async || {
        let mut charged = 0;
        for name in &names {
            charged += 1_000 - remaining(&store, &user, name.as_bytes()).await - 1;
        }
        charged
    };
    wait_until("the compensations", async || charged().await == 5).await;
    assert!(store.stats().errors.contains_key(&FailureKind::ConnectionLost), "{:?}", store.stats());
    assert_eq!(store.stats().unknown_outcomes, 0, "{:?}", store.stats());
}
