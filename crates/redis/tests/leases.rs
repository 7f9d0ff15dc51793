//! Concurrency limits with many leases.
#![allow(clippy::panic, clippy::unwrap_used, reason = "a test")]

mod support;

use support::{execute, open_with, policy, remaining, start};
use tollgate_algorithms::{Check, Cost, Id, Operation, Policy, Request, Timestamp};
use tollgate_redis::{RedisOptions, RedisStore};
use tollgate_state::{Key, ManualClock, Store};
use tollgate_testkit::Server;

const KEY: &[u8] = b"k";

/// Executes an operation on each of these leases.
async fn on_each(
    store: &RedisStore,
    policy: &Policy,
    leases: std::ops::Range<u128>,
    operation: fn(Id) -> Operation,
) -> Vec<bool> {
    let checks = [Check { policy, key: KEY, cost: Cost::ONE }];
    let request =
        |id| Request { operation: operation(Id::from_u128(id)), checks: &checks, request_id: None };
    let requests: Vec<_> = leases.map(request).collect();
    let mut admitted = Vec::new();
    for requests in requests.chunks(500) {
        let answers = store.decide(requests).await.into_iter();
        admitted.extend(answers.map(|answer| answer.unwrap().decisions[0].allowed));
    }
    admitted
}

fn acquire(lease: Id) -> Operation {
    Operation::Acquire { lease }
}

/// Returns the number of commands that the server has executed.
fn commands(server: &Server) -> u64 {
    let statistics = server.command(&["INFO", "commandstats"]).text();
    let calls = statistics.lines().filter_map(|line| line.split_once("calls=")?.1.split_once(','));
    calls.map(|(calls, _)| calls.parse::<u64>().unwrap()).sum()
}

#[tokio::test]
async fn ten_thousand_leases_are_exact() {
    let (server, store) = start();
    let policy = policy("10000 concurrent lease 60s");
    for first in (0..11_000).step_by(1_000) {
        let admitted = on_each(&store, &policy, first..first + 1_000, acquire).await;
        assert!(admitted.iter().all(|admitted| *admitted == (first < 10_000)));
    }
    let inspection = store.inspect(&policy, Key::new("k").unwrap()).await.unwrap();
    assert_eq!(inspection.limits[0].used, 10_000);
    assert_eq!(inspection.limits[0].leases.len(), 1_000);
    on_each(&store, &policy, 5_000..6_000, |lease| Operation::Renew { lease }).await;
    on_each(&store, &policy, 0..4_000, |lease| Operation::Release { lease }).await;
    assert_eq!(remaining(&store, &policy, KEY).await, 4_000);
    assert_eq!(server.keys_without_ttl(""), Vec::<String>::new());
    on_each(&store, &policy, 4_000..10_000, |lease| Operation::Release { lease }).await;
    assert_eq!(remaining(&store, &policy, KEY).await, 10_000);
    assert_eq!(server.keys(""), Vec::<String>::new());
}

#[tokio::test]
async fn an_inspection_lists_a_thousand_leases() {
    let server = Server::start();
    let clock = ManualClock::default();
    let store =
        open_with(&server.url(), |options| RedisOptions { clock: Some(clock.clone()), ..options });
    let policy = policy("2000 concurrent lease 60s");
    // All end at the same time.
    on_each(&store, &policy, 1..1_201, acquire).await;
    let inspection = store.inspect(&policy, Key::new("k").unwrap()).await.unwrap();
    let leases = inspection.limits[0].leases.iter();
    let found: Vec<_> = leases.map(|lease| (lease.id.as_u128(), lease.cost)).collect();
    assert_eq!(found, (1..1_001).map(|id| (id, 1)).collect::<Vec<_>>());
    assert_eq!(inspection.limits[0].used, 1_200);
}

#[tokio::test]
async fn an_operation_costs_the_same_with_many_leases() {
    let (server, store) = start();
    let policy = policy("10000 concurrent lease 60s");
    let mut costs = Vec::new();
    for (held, next) in [(0, 100), (100, 9_900)] {
        on_each(&store, &policy, held..next, acquire).await;
        let mut of_operations = Vec::new();
        for operation in [
            acquire(Id::from_u128(20_000)),
            Operation::Renew { lease: Id::from_u128(20_000) },
            Operation::Peek,
            Operation::Release { lease: Id::from_u128(20_000) },
            Operation::Release { lease: Id::from_u128(held + 50) },
        ] {
            let before = commands(&server);
            let _ = execute(&store, operation, &policy, KEY, 1).await.unwrap();
            of_operations.push(commands(&server) - before);
        }
        costs.push(of_operations);
    }
    assert_eq!(costs[0], costs[1]);
}

#[tokio::test]
async fn leases_that_lost_a_member_count_as_unknown() {
    let (server, store) = start();
    let policy = policy("200 concurrent lease 60s");
    on_each(&store, &policy, 0..100, acquire).await;
    let [name] = &server.keys("")[..] else { panic!("one key") };
    assert_eq!(server.command(&["ZCARD", name]).integer(), 101);
    assert_eq!(server.command(&["ZREMRANGEBYRANK", name, "50", "50"]).integer(), 1);
    assert_eq!(remaining(&store, &policy, KEY).await, 200);
    on_each(&store, &policy, 0..1, acquire).await;
    assert_eq!(server.command(&["TYPE", name]).text(), "string");
    assert_eq!(remaining(&store, &policy, KEY).await, 199);
    assert_eq!(store.stats().corrupt, 2);
}

#[tokio::test]
async fn a_long_log_and_many_leases_share_a_key() {
    let server = Server::start();
    let clock = ManualClock::default();
    // Logs of four entries are long, and every lease is one of many.
    let options =
        |options| RedisOptions { clock: Some(clock.clone()), short_log: Some(3), ..options };
    let store = open_with(&server.url(), options);
    let policy = policy("1000/h log; 200 concurrent lease 60s");
    let (mut acquired, mut released, mut used) = (0, 0, Vec::new());
    for (more, fewer, expected) in
        [(2, 0, "zset"), (0, 2, "string"), (2, 1, "zset"), (0, 1, "hash"), (3, 2, "zset")]
    {
        for _ in 0..more {
            clock.set(Timestamp::from_micros(
                1_700_000_000_000_000 + u64::try_from(acquired).unwrap(),
            ));
            on_each(&store, &policy, acquired..acquired + 1, acquire).await;
            acquired += 1;
        }
        on_each(&store, &policy, released..released + fewer, |lease| Operation::Release { lease })
            .await;
        released += fewer;
        let kind = server.command(&["TYPE", &server.keys("")[0]]).text();
        let inspection = store.inspect(&policy, Key::new("k").unwrap()).await.unwrap();
        used.clear();
        used.extend(inspection.limits.iter().map(|limit| u128::from(limit.used)));
        assert_eq!((&used[..], &*kind), (&[acquired, acquired - released][..], expected));
        assert_eq!(server.keys_without_ttl(""), Vec::<String>::new());
    }
}
