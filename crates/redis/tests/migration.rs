//! Requests on a slot that is being migrated: its keys are on two nodes.

#![allow(clippy::panic, clippy::unwrap_used, clippy::print_stdout, reason = "a test")]

mod support;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use support::{CHECK, decide, execute, named, open_with, remaining};
use tokio::time::Instant;
use tollgate_algorithms::{Check, Cost, Id, Micros, Operation, Policy, Timestamp};
use tollgate_redis::{RedisOptions, RedisStore};
use tollgate_state::{FailureKind, Key, StoreError};
use tollgate_testkit::{Cluster, SlotMove, slot_of, wait_until};

/// One policy of each kind, none of which recovers during a test.
const EVERY_KIND: [(&str, &str); 8] = [
    ("bucket", "1000/366d burst 1000"),
    ("fixed", "1000/366d fixed"),
    ("first", "1000/366d fixed from-first"),
    ("log", "1000/366d log"),
    ("sliding", "1000/366d sliding"),
    ("by", "1000/366d sliding by 1d"),
    ("queue", "1000/366d queue 999"),
    ("leases", "1000 concurrent lease 1d"),
];
const KEYS: [&str; 4] = ["a", "b", "c", "d"];

fn every_kind() -> Vec<Policy> {
    EVERY_KIND.map(|(name, limits)| named(name, limits)).into()
}

/// A store whose keys are all in one slot, and what it has charged.
struct Fixture {
    store: RedisStore,
    policies: Vec<Policy>,
    charged: HashMap<(String, String), u64>,
    /// The number of requests made so far.
    count: u128,
}

impl Fixture {
    async fn new(cluster: &Cluster, namespace: &str) -> Self {
        let store = open_with(&cluster.url(), |options| RedisOptions {
            namespace: namespace.to_owned(),
            groups: Some(1),
            ..options
        });
        store.ready().await.unwrap();
        let mut fixture =
            Fixture { store, policies: every_kind(), charged: HashMap::new(), count: 0 };
        let leases = fixture.policies[7].clone();
        // More than 64 leases are members of their key.
        for _ in 0..70 {
            for key in KEYS {
                fixture.check(&[(leases.clone(), key)], None).await;
            }
        }
        fixture
    }

    /// Checks keys with policies; returns whether the request was a repeat.
    async fn check(&mut self, checks: &[(Policy, &str)], id: Option<&str>) -> bool {
        self.count += 1;
        let operation = match checks.iter().any(|(policy, _)| policy.has_concurrent()) {
            true => Operation::Acquire { lease: Id::from_u128(self.count) },
            false => CHECK,
        };
        let each: Vec<Check<'_>> = checks
            .iter()
            .map(|(policy, key)| Check { policy, key: key.as_bytes(), cost: Cost::ONE })
            .collect();
        let answer = decide(&self.store, operation, &each, id.map(str::as_bytes)).await.unwrap();
        assert!(answer.allowed(), "{answer:?}");
        let is_repeat = answer.decisions.iter().all(|decision| decision.replayed);
        if !is_repeat {
            for (policy, key) in checks {
                let name = (policy.name().to_owned(), (*key).to_owned());
                *self.charged.entry(name).or_default() += 1;
            }
        }
        is_repeat
    }

    /// Makes requests of every form, and compares the state of each key with what was charged.
    async fn run(&mut self, is_moving: bool) {
        for policy in self.policies.clone() {
            for key in KEYS {
                self.check(&[(policy.clone(), key)], None).await;
                let id = format!("{}:{}", self.count, policy.name());
                assert!(!self.check(&[(policy.clone(), key)], Some(&id)).await);
                let is_repeat = self.check(&[(policy.clone(), key)], Some(&id)).await;
                assert!(is_repeat || is_moving);
            }
            let several: Vec<_> = KEYS.iter().map(|key| (policy.clone(), *key)).collect();
            self.check(&several[..3], None).await;
            let id = format!("{}:{}", self.count, policy.name());
            self.check(&several, Some(&id)).await;
        }
        let others: Vec<_> =
            self.policies[..7].iter().map(|policy| (policy.clone(), "a")).collect();
        self.check(&others, None).await;
        for policy in &self.policies {
            for key in KEYS {
                let charged = self.charged[&(policy.name().to_owned(), key.to_owned())];
                let left = remaining(&self.store, policy, key.as_bytes()).await;
                assert_eq!(left, 1_000 - charged, "{} {key}", policy.name());
            }
            self.execute_operations(policy).await;
        }
    }

    /// Executes every other operation on a key of its own.
    async fn execute_operations(&self, policy: &Policy) {
        for operation in [
            Operation::Penalize,
            Operation::Backfill { limit: 0, time: Timestamp::MAX },
            Operation::Refund { time: None },
            Operation::Block { span: Some(Micros::from_secs(60)) },
            Operation::Unblock,
            Operation::Take,
            Operation::Reset,
        ] {
            let result = execute(&self.store, operation, policy, b"other", 1).await;
            assert!(is_answered(&result), "{operation:?} {}: {result:?}", policy.name());
        }
        let inspected = self.store.inspect(policy, Key::new(b"other").unwrap()).await.unwrap();
        assert!(inspected.limits.iter().all(|limit| limit.used == 0), "{inspected:?}");
        if !policy.limits()[0].can_reserve() {
            return;
        }
        let id = Id::from_u128(1);
        // A queue delays each request but the first, a token bucket those beyond its burst.
        let full = if policy.name() == "queue" { 500 } else { 1_000 };
        let reserve = Operation::Reserve { id, max_wait: Micros::from_secs(366 * 86_400) };
        let now = execute(&self.store, Operation::Check { lease: None }, policy, b"other", full);
        assert!(now.await.unwrap().allowed);
        for is_repeat in [false, true] {
            let reserved = execute(&self.store, reserve, policy, b"other", 2).await.unwrap();
            assert!(reserved.allowed && reserved.delay > Micros::ZERO, "{policy} {reserved:?}");
            assert_eq!(reserved.replayed, is_repeat, "{reserved:?}");
        }
        for granted in [2, 0] {
            let cancel = Operation::Cancel { id };
            let cancelled = execute(&self.store, cancel, policy, b"other", 1).await.unwrap();
            assert_eq!(cancelled.granted, granted);
        }
        let _ = execute(&self.store, Operation::Reset, policy, b"other", 1).await.unwrap();
    }
}

/// Returns whether a request was answered, or is not possible with its policy.
fn is_answered<T>(result: &Result<T, StoreError>) -> bool {
    !matches!(result, Err(StoreError::Unavailable(_)))
}

fn slot_of_namespace(cluster: &Cluster, namespace: &str) -> u16 {
    let keys = cluster.keys(&format!("{namespace}:{{{namespace}."));
    slot_of(keys.first().unwrap())
}

/// Moves some of the keys at the source.
fn migrate_some(moving: &SlotMove<'_>, moves_first: impl Fn(&str) -> bool) {
    let keys: Vec<String> = moving.keys_left().into_iter().filter(|key| moves_first(key)).collect();
    assert!(!keys.is_empty());
    moving.migrate(&keys);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_request_is_answered_and_charged_exactly_while_its_keys_are_on_two_nodes() {
    let mut cluster = Cluster::start(3, 0);
    let empty = cluster.add_primary();
    for namespace in ["records", "states", "halves"] {
        let moves_first = |name: &str| match namespace {
            "records" => name.contains("#i:"),
            "states" => !name.contains("#i:"),
            _ => name.ends_with(":a") || name.ends_with(":c"),
        };
        let mut fixture = Fixture::new(&cluster, namespace).await;
        let log = fixture.policies[3].clone();
        for _ in 0..300 {
            fixture.check(&[(log.clone(), "a")], None).await;
        }
        fixture.run(false).await;
        let recorded = [(log.clone(), "b"), (log.clone(), "c")];
        fixture.check(&recorded, Some("before")).await;
        fixture.check(&recorded[..1], Some("before, one key")).await;
        let moving = cluster.begin_move(slot_of_namespace(&cluster, namespace), empty);
        for stage in 0..3 {
            match stage {
                1 => migrate_some(&moving, moves_first),
                2 => moving.migrate_all(),
                _ => {}
            }
            fixture.run(true).await;
            assert!(fixture.check(&recorded, Some("before")).await, "{namespace} {stage}");
            assert!(fixture.check(&recorded[..1], Some("before, one key")).await);
        }
        moving.migrate_all();
        moving.finish();
        fixture.run(false).await;
        let stats = fixture.store.stats();
        assert_eq!((stats.corrupt, stats.errors.len()), (0, 0), "{stats:?}");
        assert_eq!(cluster.keys_without_ttl(namespace), Vec::<String>::new());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_with_an_id_over_several_partitions_is_charged_exactly_while_one_of_them_moves() {
    let cluster = Cluster::start(3, 0);
    let store = open_with(&cluster.url(), |options| RedisOptions { groups: Some(2), ..options });
    store.ready().await.unwrap();
    let policy = named("api", "1000/366d fixed");
    // The slots of the two partitions, and three keys in each.
    let mut slots: Vec<(u16, Vec<String>)> = Vec::new();
    for key in (0..12).map(|number| format!("k{number}")) {
        let _ = support::check(&store, &policy, key.as_bytes()).await.unwrap();
        let names = cluster.keys("tollgate:{tollgate.");
        let name = names.iter().find(|name| name.ends_with(&format!(":{key}"))).unwrap();
        match slots.iter_mut().find(|(slot, _)| *slot == slot_of(name)) {
            Some((_, keys)) => keys.push(key),
            None => slots.push((slot_of(name), vec![key])),
        }
    }
    let [(moved_slot, moved), (_, others)] = &slots[..] else { panic!("{slots:?}") };
    let to = cluster.primaries().into_iter().find(|to| *to != cluster.primary_of_slot(*moved_slot));
    let mut charged = 1;
    let mut run = async |round: usize, is_known: bool, is_moving: bool| {
        for (number, homes) in [[moved, others], [others, moved]].into_iter().enumerate() {
            let keys = [&homes[0][0], &homes[0][1], &homes[1][0], &homes[1][1]];
            let checks =
                keys.map(|key| Check { policy: &policy, key: key.as_bytes(), cost: Cost::ONE });
            let id = format!("{round}.{number}");
            for is_again in [false, true] {
                let answer = decide(&store, CHECK, &checks, Some(id.as_bytes())).await.unwrap();
                let is_repeat = answer.decisions[0].replayed;
                assert!(answer.allowed());
                assert!(is_moving || is_repeat == (is_known || is_again), "{answer:?}");
                charged += u64::from(!is_repeat);
            }
        }
        for key in moved[..2].iter().chain(&others[..2]) {
            assert_eq!(
                remaining(&store, &policy, key.as_bytes()).await,
                1_000 - charged,
                "{round}"
            );
        }
    };
    run(0, false, false).await;
    let moving = cluster.begin_move(*moved_slot, to.unwrap());
    // A repeat of a request from before is recognised.
    for (stage, part) in [(1, ""), (1, "#"), (2, &moved[0]), (3, ":")] {
        if !part.is_empty() {
            migrate_some(&moving, |name| name.contains(part));
        }
        run(0, true, false).await;
        run(stage, false, true).await;
    }
    moving.migrate_all();
    moving.finish();
    run(0, true, false).await;
    run(4, false, false).await;
    assert_eq!(store.stats().unknown_outcomes, 0);
}

/// Changing the type of a key takes two commands, and the node redirects the second.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_key_is_lost_that_would_change_its_type_while_its_slot_moves() {
    let mut cluster = Cluster::start(3, 0);
    let empty = cluster.add_primary();
    let mut fixture = Fixture::new(&cluster, "types").await;
    let (log, leases) = (fixture.policies[3].clone(), fixture.policies[7].clone());
    for _ in 0..95 {
        fixture.check(&[(log.clone(), "new")], None).await;
    }
    for _ in 0..60 {
        fixture.check(&[(leases.clone(), "new")], None).await;
    }
    let bucket = fixture.policies[0].clone();
    let full = execute(&fixture.store, CHECK, &bucket, b"new", 1_000).await.unwrap();
    assert!(full.allowed);
    // A key with a reservation whose time has come, and a state that has not recovered.
    let queue = named("quick", "100/s queue 5000");
    let max_wait = Micros::from_secs(366 * 86_400);
    let reserve = |id| Operation::Reserve { id: Id::from_u128(id), max_wait };
    for (operation, cost) in [(CHECK, 1), (reserve(1), 1), (CHECK, 4_000)] {
        let _ = execute(&fixture.store, operation, &queue, b"due", cost).await.unwrap();
    }
    let is_due = async || {
        let inspected = fixture.store.inspect(&queue, Key::new("due").unwrap()).await.unwrap();
        inspected.reservations.is_empty()
    };
    wait_until("the time of the reservation", is_due).await;
    let types = |cluster: &Cluster| -> Vec<String> {
        let node = cluster.primary_of_slot(slot_of_namespace(cluster, "types"));
        let keys = cluster.keys("types:{types.").into_iter().filter(|key| key.ends_with(":new"));
        let mut types: Vec<_> =
            keys.map(|key| cluster.nodes()[node].command(&["TYPE", &key]).text()).collect();
        types.sort_unstable();
        types
    };
    let mut moving = Some(cluster.begin_move(slot_of_namespace(&cluster, "types"), empty));
    let mut expected = ["string", "string", "string"];
    for stage in 0..2 {
        for _ in 0..10 {
            fixture.check(&[(log.clone(), "new")], None).await;
            fixture.check(&[(leases.clone(), "new")], None).await;
        }
        let charged = if stage == 0 { [105, 70] } else { [115, 80] };
        for (policy, charged) in [&log, &leases].into_iter().zip(charged) {
            assert_eq!(remaining(&fixture.store, policy, b"new").await, 1_000 - charged);
        }
        let reserved = execute(&fixture.store, reserve(1), &bucket, b"new", 1).await;
        let again = execute(&fixture.store, reserve(2), &queue, b"due", 1).await;
        let inspected = fixture.store.inspect(&queue, Key::new("due").unwrap()).await.unwrap();
        assert!(inspected.limits[0].used > 1_000, "{inspected:?}");
        if stage == 0 {
            assert_eq!(support::kind(reserved), FailureKind::TryAgain);
            assert_eq!(support::kind(again), FailureKind::TryAgain);
            assert_eq!(remaining(&fixture.store, &bucket, b"new").await, 0);
            assert_eq!(types(&cluster), expected);
            let moving = moving.take().unwrap();
            moving.migrate_all();
            moving.finish();
        } else {
            assert!(reserved.unwrap().delay > Micros::ZERO);
            assert!(again.unwrap().delay > Micros::ZERO);
            expected = ["hash", "hash", "zset"];
            assert_eq!(types(&cluster), expected);
        }
    }
    assert_eq!(fixture.store.stats().corrupt, 0);
}

/// The number of keys in the slot that moves.
const FILL: usize = 100_000;

/// Sets keys in the slot of the fixture's keys.
fn fill(cluster: &Cluster, namespace: &str) {
    let keys = cluster.keys(&format!("{namespace}:{{{namespace}."));
    let tag = &keys[0][keys[0].find('{').unwrap()..=keys[0].find('}').unwrap()];
    let owner = cluster.primary_of_slot(slot_of(&keys[0]));
    let mut connection = cluster.nodes()[owner].connect();
    for first in (0..FILL).step_by(1_000) {
        for number in first..first + 1_000 {
            let name = format!("filler:{tag}:{number}");
            connection.send(&["SET", &name, "v", "PX", "600000"]).unwrap();
        }
        for _ in 0..1_000 {
            assert_eq!(connection.receive().unwrap().text(), "OK");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_request_fails_while_a_slot_of_many_keys_moves_to_a_node_without_slots() {
    let mut cluster = Cluster::start(3, 0);
    let empty = cluster.add_primary();
    let namespace = "moves";
    let mut fixture = Fixture::new(&cluster, namespace).await;
    let log = fixture.policies[3].clone();
    for _ in 0..300 {
        fixture.check(&[(log.clone(), "a")], None).await;
    }
    fixture.run(false).await;
    fill(&cluster, namespace);
    let stop = Arc::new(AtomicBool::new(false));
    let mut clients = tokio::task::JoinSet::new();
    for client in 0..8_usize {
        let (store, stop) = (fixture.store.clone(), Arc::clone(&stop));
        clients.spawn(run_client(store, client, stop));
    }
    let moving = cluster.begin_move(slot_of_namespace(&cluster, namespace), empty);
    let start = Instant::now();
    tokio::task::block_in_place(|| moving.migrate_in_batches(10));
    println!("moved in {:?}", start.elapsed());
    tokio::time::sleep(Duration::from_millis(100)).await;
    // Keys that were made meanwhile are at the target.
    assert_eq!(moving.keys_left(), Vec::<String>::new());
    moving.finish();
    stop.store(true, Ordering::Relaxed);
    let mut slow = 0;
    for (client, count, late) in clients.join_all().await {
        slow += late;
        let policy = &every_kind()[client];
        let key = format!("client {client}");
        for key in [key.clone(), format!("{key}, other")] {
            let left = remaining(&fixture.store, policy, key.as_bytes()).await;
            assert_eq!(left, 1_000 - count % 900, "{} {key}", policy.name());
        }
    }
    println!("{slow} requests took longer than 15 ms; {:?}", fixture.store.stats());
    assert_eq!(fixture.store.stats().errors.len(), 0, "{:?}", fixture.store.stats());
    assert_eq!(cluster.keys_without_ttl(namespace), Vec::<String>::new());
}

/// Checks two keys with one policy, together and with ids, until it is stopped; returns the number of the
/// client, how often both were charged, and the number of slow requests.
async fn run_client(store: RedisStore, client: usize, stop: Arc<AtomicBool>) -> (usize, u64, u64) {
    let policy = every_kind().swap_remove(client);
    let key = format!("client {client}");
    let other = format!("{key}, other");
    let (mut count, mut late) = (0, 0);
    while !stop.load(Ordering::Relaxed) {
        for keys in [&[&key][..], &[&other], &[&key, &other]] {
            let checks: Vec<Check<'_>> = keys
                .iter()
                .map(|key| Check { policy: &policy, key: key.as_bytes(), cost: Cost::ONE })
                .collect();
            let id = format!("{client} {count} {}", keys.len());
            let id = (count % 2 == 0 && keys.len() == 2).then_some(id.as_bytes());
            let lease = Id::from_u128(u128::from(count) * 4 + u128::try_from(keys.len()).unwrap());
            let operation = match policy.has_concurrent() {
                true => Operation::Acquire { lease },
                false => CHECK,
            };
            let start = Instant::now();
            let answer = decide(&store, operation, &checks, id).await.unwrap();
            late += u64::from(start.elapsed() > Duration::from_millis(15));
            assert!(answer.allowed(), "{answer:?}");
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
        count += 2;
        if count % 900 == 0 {
            for key in [&key, &other] {
                let reset = execute(&store, Operation::Reset, &policy, key.as_bytes(), 0);
                let _ = reset.await.unwrap();
            }
        }
    }
    (client, count, late)
}
