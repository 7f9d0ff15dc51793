//! A cluster: keys of several nodes, slots that move, nodes that fail.

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use support::{CHECK, ask, check, decide, kind, named, open, open_with, policy, remaining, until};
use tollgate_core::{Check, Cost, Id, Operation, Policy, Request};
use tollgate_redis::{RedisOptions, RedisStore};
use tollgate_store::{FailureKind, Store};
use tollgate_testkit::{Cluster, Failover, Server};

/// Keys that users may have, and that have nothing to do with slots.
const ODD: [&[u8]; 6] = [b"{x}", b"a{b}c", b"}{", b"{}", b"\0\xff", &[b'k'; 10_240]];

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
    let all = || names.iter().map(|name| name.as_bytes()).chain(ODD);
    for round in 0..3 {
        let checks: Vec<_> =
            all().map(|key| [Check { policy: &two, key, cost: Cost::ONE }]).collect();
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

    // A process with another number of groups would look for keys elsewhere.
    let other = open_with(&cluster.url(), |x| RedisOptions { groups: 32, ..x });
    assert_eq!(kind(other.ready().await), FailureKind::PartitionMismatch);
    assert_eq!(kind(check(&other, &two, b"k").await), FailureKind::PartitionMismatch);
    let error = other.ready().await.unwrap_err().to_string();
    assert!(error.contains("tollgate:{tollgate}:#groups is 64"), "{error}");
    let same = open(&cluster.url().replace("redis+", "valkey+"));
    same.ready().await.unwrap();

    // A cluster node behind a URL of a single server, or the reverse, is an error.
    let node = open(&cluster.nodes()[0].url());
    let mut kinds = Vec::new();
    for key in ["a", "b", "c", "d", "e", "f"] {
        kinds.extend(
            check(&node, &two, key.as_bytes()).await.err().and_then(|error| error.failure()),
        );
    }
    assert!(kinds.contains(&FailureKind::WrongTopology), "{kinds:?}");
    let single = Server::start();
    let wrong = open(&single.url().replace("redis:", "redis+cluster:"));
    assert_eq!(kind(wrong.ready().await), FailureKind::WrongTopology);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn checks_of_several_groups_are_charged_together_or_not_at_all() {
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

    // Together they admit what each of them has.
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
    let admitted = tasks.join_all().await.into_iter().filter(|join_all| *join_all).count();
    let admitted = u64::try_from(admitted).unwrap();
    assert!(admitted <= 50, "{admitted}");
    assert_eq!(remaining(&store, &one, b"x").await, 50 - admitted);
    let (y, z) = (remaining(&store, &many, b"y").await, remaining(&store, &many, b"z").await);
    assert_eq!(2_000 - y - z, admitted);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ids_and_leases_hold_over_several_groups() {
    let cluster = Cluster::start(3, 0);
    let store = open(&cluster.url());
    let many = named("many", "1000/d fixed");
    let places = named("places", "2 concurrent lease 60s; 1000/d fixed");
    let checks = [at(&many, b"a"), at(&many, b"b"), at(&many, b"c")];
    for round in 0..3 {
        let answer = decide(&store, CHECK, &checks, Some(b"id")).await.unwrap();
        assert!(answer.allowed());
        assert!(answer.decisions.iter().all(|it| it.replayed == (round > 0)), "{answer:?}");
        for key in [b"a", b"b", b"c"] {
            assert_eq!(remaining(&store, &many, key).await, 999);
        }
    }
    let others = [at(&many, b"a"), at(&many, b"b")];
    let reused = decide(&store, CHECK, &others, Some(b"id")).await;
    assert!(matches!(reused, Err(tollgate_store::StoreError::Request(_))), "{reused:?}");
    assert_eq!(remaining(&store, &many, b"b").await, 999);

    let checks = [at(&places, b"a"), at(&places, b"b")];
    let acquire = async |id| {
        let verb = Operation::Acquire { lease: Id::from_u128(id) };
        decide(&store, verb, &checks, None).await.unwrap()
    };
    assert!(acquire(1).await.allowed() && acquire(2).await.allowed());
    assert!(!acquire(3).await.allowed());
    let again = acquire(1).await;
    assert!(again.allowed() && again.decisions.iter().all(|it| it.replayed), "{again:?}");
    let release = Operation::Release { lease: Id::from_u128(1) };
    assert_eq!(ask(&store, release, &places, b"a", 1).await.unwrap().granted, 1);
    // One of the two is full: nothing is taken of the other, and none of its other limit.
    assert!(!acquire(4).await.allowed());
    let limits = ask(&store, Operation::Peek, &places, b"a", 1).await.unwrap().limits();
    let mut left: Vec<u64> = limits.iter().map(|limit| limit.remaining).collect();
    left.sort_unstable();
    assert_eq!(left, [1, 998]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_repeat_charges_no_shadow_of_another_group() {
    let cluster = Cluster::start(3, 0);
    let store = open(&cluster.url());
    let (many, few) = (named("many", "1000/d fixed"), named("few", "1/d fixed"));
    let shadow = named("shadow", "1000/d fixed").shadow();
    let charged = async || 1_000 - remaining(&store, &shadow, b"c").await;
    let ask_all = async |checks: &[Check<'_>], id: &[u8]| {
        decide(&store, CHECK, checks, Some(id)).await.unwrap()
    };

    let checks = [at(&many, b"a"), at(&shadow, b"c"), at(&few, b"b"), at(&shadow, b"b")];
    let first = ask_all(&checks, b"id").await;
    assert!(first.allowed() && first.decisions.iter().all(|it| !it.replayed), "{first:?}");
    assert_eq!(charged().await, 1);
    // A denial is not remembered, so it charges shadows each time, as in one call.
    for round in 2..=3 {
        assert!(!ask_all(&checks, b"denied").await.allowed());
        assert_eq!(charged().await, round);
    }
    ask(&store, Operation::Reset, &few, b"b", 0).await.unwrap();
    for round in 0..3 {
        let again = ask_all(&checks, b"id").await;
        assert!(again.decisions.iter().all(|it| it.replayed && it.allowed), "{again:?}");
        assert_eq!((again.decisions[1].remaining, charged().await), (999, 3), "{round}");
    }
    assert!(ask_all(&checks, b"denied").await.allowed());
    assert_eq!(charged().await, 4);

    let shadows = [at(&shadow, b"a"), at(&shadow, b"c")];
    for round in 0..3 {
        let answer = ask_all(&shadows, b"shadows").await;
        assert!(answer.decisions.iter().all(|it| it.replayed == (round > 0)), "{answer:?}");
        assert_eq!(charged().await, 5);
    }
    let others = [at(&shadow, b"a"), at(&shadow, b"b")];
    let reused = decide(&store, CHECK, &others, Some(b"shadows")).await;
    assert!(matches!(reused, Err(tollgate_store::StoreError::Request(_))), "{reused:?}");
}

fn at<'a>(policy: &'a Policy, key: &'a [u8]) -> Check<'a> {
    Check { policy, key, cost: Cost::ONE }
}

/// What asks while the cluster changes, and counts what was admitted for certain and what perhaps.
struct Load {
    is_over: Arc<AtomicBool>,
    tasks: tokio::task::JoinSet<(u64, u64, u64)>,
}

impl Load {
    /// Asks for as many keys at once as there are callers, each its own.
    fn start(store: &RedisStore, policy: &Policy, name: &'static str, callers: usize) -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let mut tasks = tokio::task::JoinSet::new();
        for caller in 0..callers {
            let (store, policy, is_over) = (store.clone(), policy.clone(), Arc::clone(&is_over));
            tasks.spawn(async move {
                let (mut definite, mut unknown, mut refused) = (0, 0, 0);
                let key = format!("{caller}:{name}");
                while !is_over.load(Ordering::Relaxed) {
                    match check(&store, &policy, key.as_bytes()).await {
                        Ok(value) => definite += u64::from(value.allowed),
                        Err(error) if error.is_outcome_unknown() => unknown += 1,
                        Err(_) => {
                            refused += 1;
                            tokio::time::sleep(Duration::from_millis(5)).await;
                        }
                    }
                }
                let left = loop {
                    match ask(&store, Operation::Peek, &policy, key.as_bytes(), 1).await {
                        Ok(value) => break value.remaining,
                        Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
                    }
                };
                let charged = policy.limits()[0].capacity() - left;
                assert!(charged <= definite + unknown, "{charged} of {definite} and {unknown}");
                (definite.saturating_sub(charged), refused, unknown)
            });
        }
        Load { is_over, tasks }
    }

    /// How many charges were lost, requests refused, and outcomes unknown.
    async fn end(self) -> (u64, u64, u64) {
        self.is_over.store(true, Ordering::Relaxed);
        let all = self.tasks.join_all().await;
        all.into_iter().fold((0, 0, 0), |sum, x| (sum.0 + x.0, sum.1 + x.1, sum.2 + x.2))
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slots_may_move_under_load() {
    let cluster = Cluster::start(3, 0);
    let store = open_with(&cluster.url(), |x| RedisOptions {
        groups: 4,
        call_timeout: Duration::from_secs(5),
        ..x
    });
    store.ready().await.unwrap();
    let policy = policy("1000000/d fixed");
    let load = Load::start(&store, &policy, "moves", 16);
    tokio::time::sleep(Duration::from_millis(100)).await;
    // Found out by what is there, so that the test knows nothing of names.
    let mut slots: Vec<u16> =
        cluster.keys("tollgate").iter().map(tollgate_testkit::slot_of).collect();
    slots.sort_unstable();
    slots.dedup();
    for slot in slots {
        let from = cluster.primary_of_slot(slot);
        let to = cluster.primaries().into_iter().find(|primary| *primary != from).unwrap();
        let moving = cluster.begin_move(slot, to);
        // For a while some keys are here, and some there.
        let left = moving.keys_left();
        for key in left.iter().step_by(2) {
            moving.migrate(&[key]);
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
        moving.migrate_all();
        tokio::time::sleep(Duration::from_millis(30)).await;
        moving.migrate_all();
        moving.finish();
    }
    let (lost, refused, unknown) = load.end().await;
    assert_eq!((lost, refused, unknown), (0, 0, 0), "{:?}", store.stats());
    assert!(store.stats().redirections > 0);
    assert_eq!(cluster.keys_without_ttl(""), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_may_change_places_and_fail_under_load() {
    let cluster = Cluster::start(3, 1);
    let store = open(&cluster.url());
    store.ready().await.unwrap();
    let policy = policy("1000000/d fixed");
    let load = Load::start(&store, &policy, "moves", 16);
    tokio::time::sleep(Duration::from_millis(200)).await;
    let primary = cluster.primaries()[0];
    let replica = cluster.replicas_of(primary)[0];
    cluster.failover(replica, Failover::HandOver);
    tokio::time::sleep(Duration::from_millis(300)).await;
    let (lost, _, _) = load.end().await;
    assert_eq!(lost, 0, "a handover loses nothing: {:?}", store.stats());

    let load = Load::start(&store, &policy, "fails", 16);
    tokio::time::sleep(Duration::from_millis(200)).await;
    cluster.kill_primary_of(0);
    cluster.settle();
    for name in keys(50) {
        until("all keys", async || check(&store, &policy, name.as_bytes()).await.is_ok()).await;
    }
    // What a primary had not passed on is lost with it, and no more.
    let (_, refused, _) = load.end().await;
    assert!(refused > 0, "{:?}", store.stats());
    assert_eq!(cluster.keys_without_ttl(""), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_hangs_is_left_for_its_replica() {
    let cluster = Cluster::start(3, 1);
    let store = open(&cluster.url());
    let policy = policy("1000000/d fixed");
    let names = keys(50);
    for name in &names {
        check(&store, &policy, name.as_bytes()).await.unwrap();
    }
    cluster.nodes()[cluster.primaries()[0]].pause();
    // Calls that were under way are lost; later calls fail at once or succeed.
    for name in &names {
        until("all keys", async || check(&store, &policy, name.as_bytes()).await.is_ok()).await;
    }
    let stats = store.stats();
    assert!(stats.unknown_outcomes > 0 && stats.reconnects == 0, "{stats:?}");
    // A store that is opened now is not kept waiting by the silent one.
    open(&cluster.url()).ready().await.unwrap();
}
