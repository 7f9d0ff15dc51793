//! Keys in the store: their names, their expiry, and the handling of corrupt and foreign data.
#![allow(clippy::panic, clippy::unwrap_used, reason = "a test")]

mod support;

use std::collections::HashSet;
use std::time::Duration;

use support::{CHECK, check, decide, execute, kind, named, open, open_with, policy, start};
use tollgate_algorithms::{Check, Cost, Id, Micros, Operation, Policy, Timestamp};
use tollgate_redis::{RedisOptions, RedisStore};
use tollgate_state::{FailureKind, ManualClock};
use tollgate_testkit::{Cluster, Reply, Server};

const EVERY_KIND: [&str; 9] = [
    "5/s burst 5",
    "5/min fixed",
    "5/min fixed from-first",
    "5/min log",
    "600/min log",
    "5/min sliding",
    "5/min sliding by 1s",
    "5/s queue 5",
    "5 concurrent lease 60s",
];

/// Checks a key, with a lease if the policy needs one.
async fn charge(store: &RedisStore, policy: &Policy, key: &[u8], cost: u32) -> bool {
    let lease = policy.has_concurrent().then(|| Id::from_u128(u128::from(cost)));
    execute(store, Operation::Check { lease }, policy, key, cost).await.unwrap().allowed
}

#[tokio::test]
async fn every_key_expires_after_any_operation() {
    let (server, store) = start();
    for limits in EVERY_KIND {
        let value = policy(limits);
        for cost in [1, 2, 3, 9] {
            charge(&store, &value, b"k", cost).await;
        }
        let backfill = Operation::Backfill { limit: 0, time: Timestamp::MAX };
        for operation in [Operation::Penalize, Operation::Refund { time: None }, backfill] {
            let _ = execute(&store, operation, &value, b"k", 1).await;
        }
        let reserve = Operation::Reserve { id: Id::from_u128(1), max_wait: Micros::from_secs(60) };
        let _ = execute(&store, reserve, &value, b"k", 2).await;
        let _ =
            execute(&store, Operation::Block { span: None }, &value, b"blocked", 0).await.unwrap();
        let span = Some(Micros::from_secs(9));
        let _ = execute(&store, Operation::Block { span }, &value, b"k", 0).await.unwrap();
        let checks = [Check { policy: &value, key: b"other", cost: Cost::ONE }];
        let _ = decide(&store, CHECK, &checks, Some(b"request")).await;
    }
    let found = server.sweep("");
    assert!(found.keys.len() >= 20, "{found:?}");
    // A block for ever lasts ten years.
    found.assert_all_expire_within(Duration::from_secs(10 * 366 * 86_400));
    let states: Vec<_> = found.keys.iter().filter(|(name, _)| !name.contains("blocked")).collect();
    assert!(states.iter().all(|(_, ttl)| ttl.unwrap() < Duration::from_secs(180)), "{states:?}");
}

#[tokio::test]
async fn a_key_lives_until_its_state_recovers() {
    let (server, store) = start();
    let lease = |id| Id::from_u128(id);
    for limits in [
        "1/min burst 600",
        "600/min fixed from-first",
        "600/min sliding",
        "600/min log",
        "600/min sliding by 1s",
        "600 concurrent lease 60s",
    ] {
        let value = policy(limits);
        // Logs and leases are bytes of the key, or fields and members of it.
        for (key, charges) in [(b"few", 3), (b"lot", 200)] {
            for id in 0..charges {
                let check = Operation::Check { lease: value.has_concurrent().then(|| lease(id)) };
                assert!(execute(&store, check, &value, key, 1).await.unwrap().allowed, "{limits}");
            }
            for id in [0, charges - 1].into_iter().filter(|_| value.has_concurrent()) {
                let release = Operation::Release { lease: lease(id) };
                let _ = execute(&store, release, &value, key, 1).await.unwrap();
            }
        }
    }
    let found = server.sweep("");
    assert_eq!(found.keys.len(), 12);
    // At the end of a window of the clock, a sliding window counter of three charges recovers after two thirds of
    // the next one.
    let is_late = |ttl: &Option<Duration>| ttl.unwrap() > Duration::from_secs(35);
    assert!(found.keys.iter().all(|(_, ttl)| is_late(ttl)), "{found:?}");
}

#[tokio::test]
async fn denials_peeks_and_inspections_write_nothing() {
    let (server, store) = start();
    for limits in EVERY_KIND {
        let value = policy(limits);
        let key = limits.as_bytes();
        while charge(&store, &value, key, 1).await {
            if limits.contains("concurrent") {
                break;
            }
        }
        let before = dump(&server);
        assert!(
            !charge(&store, &value, key, value.limits()[0].capacity().try_into().unwrap()).await
        );
        let _ = execute(&store, Operation::Peek, &value, key, 1).await.unwrap();
        let _ = execute(&store, Operation::Peek, &value, b"unknown", 1).await.unwrap();
        store.inspect(&value, tollgate_state::Key::new(key).unwrap()).await.unwrap();
        assert_eq!(dump(&server), before, "{limits}");
    }
}

/// Returns all keys with their bytes and the time at which they expire, and the number of writes, which
/// also counts writes of equal bytes.
fn dump(server: &Server) -> (Vec<(String, Reply, Reply)>, String) {
    let persistence = server.command(&["INFO", "persistence"]).text();
    let writes = persistence.lines().find(|line| line.starts_with("rdb_changes_since_last_save:"));
    let writes = writes.unwrap().to_owned();
    let mut names = server.keys("");
    names.sort();
    let dump_key = |name: String| {
        let bytes = server.command(&["DUMP", &name]);
        let expires = server.command(&["PEXPIRETIME", &name]);
        (name, bytes, expires)
    };
    (names.into_iter().map(dump_key).collect(), writes)
}

#[tokio::test]
async fn corrupt_keys_and_keys_of_other_types_count_as_unknown() {
    let (server, store) = start();
    for limits in EVERY_KIND {
        let value = policy(limits);
        assert!(charge(&store, &value, b"k", 1).await);
        let name = format!("tollgate:={value}:k");
        let whole = match server.command(&["GET", &name]) {
            Reply::Bulk(bytes) => bytes,
            reply => panic!("{reply:?}"),
        };
        let mut corrupt: Vec<Vec<u8>> =
            vec![Vec::new(), b"junk".to_vec(), vec![0; 40], vec![255; 40]];
        corrupt.extend((0..whole.len()).map(|length| whole[..length].to_vec()));
        corrupt.push([&whole[..], b"x"].concat());
        let mut large_numbers = whole.clone();
        large_numbers[whole.len() - 14..].fill(255);
        corrupt.push(large_numbers);
        for bytes in corrupt {
            let words = [b"SET", name.as_bytes(), &bytes];
            server.connect().command(&words).unwrap();
            let before = store.stats().corrupt;
            assert!(charge(&store, &value, b"k", 2).await, "{limits}, {}", bytes.escape_ascii());
            assert_eq!(store.stats().corrupt, before + 1, "{limits}, {}", bytes.escape_ascii());
            let remaining =
                execute(&store, Operation::Peek, &value, b"k", 1).await.unwrap().remaining;
            assert_eq!(
                remaining,
                value.limits()[0].capacity() - 2,
                "{limits}, {}",
                bytes.escape_ascii()
            );
        }
        for foreign in [["RPUSH", &name, "a"], ["SADD", &name, "a"]] {
            server.command(&["DEL", &name]);
            server.command(&foreign);
            let before = store.stats().corrupt;
            assert!(charge(&store, &value, b"k", 1).await, "{limits}");
            assert_eq!(store.stats().corrupt, before + 1);
        }
    }
    assert_eq!(server.keys_without_ttl(""), Vec::<String>::new());
}

#[tokio::test]
async fn a_corrupt_key_that_a_denial_does_not_read_counts_as_unknown() {
    let (server, store) = start();
    let (full, corrupt) = (named("full", "1/h fixed"), named("corrupt", "2/h fixed"));
    assert!(charge(&store, &full, b"k", 1).await);
    for bytes in [&b"junk"[..], b"\xa7\x01\0\0\0junk"] {
        server.connect().command(&[b"SET", &b"tollgate:corrupt:k"[..], bytes]).unwrap();
        let never = execute(&store, CHECK, &corrupt, b"k", 3).await.unwrap();
        assert!(never.never && never.remaining == 2, "{never:?}");
        let checks = [&full, &corrupt].map(|policy| Check { policy, key: b"k", cost: Cost::ONE });
        let answer = decide(&store, CHECK, &checks, None).await.unwrap();
        let allowed: Vec<bool> = answer.decisions.iter().map(|decision| decision.allowed).collect();
        assert_eq!(allowed, [false, true], "{answer:?}");
        assert_eq!(answer.decisions[1].remaining, 2, "{answer:?}");
        assert!(charge(&store, &corrupt, b"k", 2).await, "{}", bytes.escape_ascii());
    }
    assert_eq!(store.stats().corrupt, 2);
}

#[tokio::test]
async fn a_long_log_without_its_last_block_counts_as_unknown() {
    let (server, store) = start();
    let value = policy("900/h log");
    let name = format!("tollgate:={value}:k");
    for damage in ["missing", "short", "other"] {
        for _ in 0..300 {
            assert!(charge(&store, &value, b"k", 1).await);
        }
        // The state, and blocks of 32 entries.
        assert_eq!(server.command(&["HLEN", &name]).integer(), 11);
        let block = "3 3600000 0 0 9";
        match damage {
            "short" => drop(server.command(&["HSET", &name, block, "short"])),
            "other" => drop(server.command(&["HSET", &name, block, &"x".repeat(12 * 14)])),
            _ => assert_eq!(server.command(&["HDEL", &name, block]).integer(), 1),
        }
        let decision = execute(&store, CHECK, &value, b"k", 1).await.unwrap();
        assert_eq!(decision.remaining, 899, "{damage}");
        assert_eq!(server.command(&["TYPE", &name]).text(), "string");
        let _ = execute(&store, Operation::Reset, &value, b"k", 0).await.unwrap();
    }
    assert_eq!(store.stats().corrupt, 3);
}

#[tokio::test]
async fn a_log_that_is_no_longer_long_leaves_no_blocks() {
    let server = Server::start();
    let clock = ManualClock::default();
    let store =
        open_with(&server.url(), |options| RedisOptions { clock: Some(clock.clone()), ..options });
    let value = policy("150/s log; 1000/h log");
    let name = format!("tollgate:={value}:k");
    for us in (0..150).chain([5_000_000]) {
        clock.set(Timestamp::from_micros(1_700_000_000_000_000 + us));
        assert!(charge(&store, &value, b"k", 1).await);
    }
    // The state, and the blocks of 151 entries of the second limit.
    assert_eq!(server.command(&["HLEN", &name]).integer(), 1 + 5);
}

#[tokio::test]
async fn a_long_log_has_no_blocks_of_expired_entries() {
    let server = Server::start();
    let clock = ManualClock::default();
    let options = |options| RedisOptions { clock: Some(clock.clone()), ..options };
    let store = open_with(&server.url(), options);
    let value = policy("500/s log");
    let name = format!("tollgate:={value}:k");
    let charge_at = async |ms: u64| {
        clock.set(Timestamp::from_micros(1_700_000_000_000_000 + ms * 1_000));
        assert!(charge(&store, &value, b"k", 1).await);
        server.command(&["HLEN", &name])
    };
    for ms in 0..300 {
        charge_at(2 * ms).await;
    }
    for ms in 300..2_000 {
        // At most 500 entries, which are in 17 blocks at most.
        assert!(charge_at(2 * ms).await.integer() <= 18, "{ms}");
    }
    charge_at(5_500).await;
    assert_eq!(server.command(&["TYPE", &name]).text(), "string");
    assert_eq!(server.keys_without_ttl(""), Vec::<String>::new());
}

#[tokio::test]
async fn reservations_whose_time_has_come_are_deleted() {
    let server = Server::start();
    let clock = ManualClock::default();
    let options = |options| RedisOptions { clock: Some(clock.clone()), ..options };
    let store = open_with(&server.url(), options);
    let value = policy("10/s queue 200");
    let name = format!("tollgate:={value}:k");
    let reserve_at = async |number: u32, ms: u64| {
        clock.set(Timestamp::from_micros(1_700_000_000_000_000 + ms * 1_000));
        let id = Id::from_u128(number.into());
        let operation = Operation::Reserve { id, max_wait: Micros::from_secs(60) };
        assert!(execute(&store, operation, &value, b"k", 1).await.unwrap().allowed);
    };
    for number in 0..100 {
        reserve_at(number, 0).await;
    }
    assert!(server.command(&["HLEN", &name]).integer() >= 100);
    for number in 100..1_000 {
        reserve_at(number, u64::from(number - 99) * 100).await;
        // A hundred, in an index of at most five blocks, and the state.
        assert!(server.command(&["HLEN", &name]).integer() <= 106, "{number}");
    }
    clock.set(Timestamp::from_micros(1_700_000_000_000_000 + 200_000_000));
    assert!(charge(&store, &value, b"k", 1).await);
    assert_eq!(server.command(&["TYPE", &name]).text(), "string");
    assert_eq!(server.keys_without_ttl(""), Vec::<String>::new());
}

#[tokio::test]
async fn a_charge_restores_a_removed_expiry() {
    let (server, store) = start();
    for limits in EVERY_KIND {
        let value = policy(limits);
        assert!(charge(&store, &value, b"k", 1).await);
        for name in server.keys("") {
            server.command(&["PERSIST", &name]);
        }
        assert!(!server.keys_without_ttl("").is_empty());
        assert!(charge(&store, &value, b"k", 2).await, "{limits}");
        assert_eq!(server.keys_without_ttl(""), Vec::<String>::new(), "{limits}");
        server.command(&["FLUSHALL"]);
    }
}

#[tokio::test]
async fn a_key_of_a_newer_version_is_an_error_and_not_changed() {
    let (server, store) = start();
    let value = named("api", "5/min");
    let newer = b"\xa7\x02 whatever it means";
    server.connect().command(&[b"SET", &b"tollgate:api:k"[..], newer]).unwrap();
    assert_eq!(kind(check(&store, &value, b"k").await), FailureKind::Schema);
    assert_eq!(server.command(&["GET", "tollgate:api:k"]), Reply::Bulk(newer.to_vec()));
    assert!(check(&store, &value, b"other").await.unwrap().allowed);
}

#[tokio::test]
async fn different_keys_have_separate_counts() {
    let server = Server::start();
    let names = names_of_unusual_keys(&server.url(), || server.keys("")).await;
    assert!(names.contains("tollgate:a:{x}") && names.contains("tollgate:a.b:a{b}c"), "{names:?}");
}

#[tokio::test]
async fn different_keys_have_separate_counts_on_a_cluster() {
    let cluster = Cluster::start(3, 0);
    let names = names_of_unusual_keys(&cluster.url(), || cluster.keys("tollgate:{tollgate.")).await;
    let tags: HashSet<&str> = names.iter().filter_map(|name| name.split('}').next()).collect();
    assert!(tags.len() > 5, "few partitions are used: {names:?}");
}

/// Checks keys that could be confused, and that each has its own count. Returns their names.
async fn names_of_unusual_keys(url: &str, names: impl Fn() -> Vec<String>) -> HashSet<String> {
    let store = open(url);
    let (a, b) = (named("a", "1/h"), named("a.b", "1/h"));
    let long = vec![b'k'; 10_240];
    let longer = vec![b'k'; 10_241];
    let keys: [&[u8]; 12] = [
        b"x",
        b"{x}",
        b"a{b}c",
        b"}{",
        b"b:x",
        b":",
        b"#r:x",
        b"\0\x01\xff",
        b" ",
        b"*",
        &long,
        &longer,
    ];
    for value in [&a, &b] {
        for key in keys {
            assert!(check(&store, value, key).await.unwrap().allowed, "{}", key.escape_ascii());
            assert!(!check(&store, value, key).await.unwrap().allowed, "{}", key.escape_ascii());
        }
    }
    let found: HashSet<String> = names().into_iter().collect();
    assert_eq!(found.len(), 2 * keys.len(), "{found:?}");
    found
}

/// Counts the calls of the script with keys while an action runs. A connection that is being made
/// sends one without keys.
async fn calls_during(server: &Server, action: impl Future<Output = ()>) -> usize {
    let mut monitor = server.connect();
    monitor.command(&["MONITOR"]).unwrap();
    action.await;
    server.command(&["ECHO", "end of action"]);
    let mut calls = 0;
    loop {
        let line = monitor.receive().unwrap().text();
        if line.contains("end of action") {
            return calls;
        }
        // The name of the command, the name of the function, and the number of keys.
        let mut words = line.split("] ").nth(1).unwrap_or_default().split(' ');
        let is_call = words.next().is_some_and(|name| name.eq_ignore_ascii_case("\"fcall\""));
        calls += usize::from(is_call && words.nth(1) != Some("\"0\""));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_check_is_one_call_and_concurrent_checks_share_calls() {
    let (server, store) = start();
    let limits = policy("10/s; 1000/h sliding; 5000/d log; 100/min fixed");
    let _ = check(&store, &limits, b"warm").await.unwrap();
    let one = calls_during(&server, async {
        let _ = check(&store, &limits, b"k").await.unwrap();
    });
    assert_eq!(one.await, 1);
    let callers = 64;
    let each = 50;
    let many = calls_during(&server, async {
        let tasks: Vec<_> = (0..callers)
            .map(|caller: u32| {
                let (store, value) = (store.clone(), limits.clone());
                tokio::spawn(async move {
                    for _ in 0..each {
                        let _ =
                            check(&store, &value, format!("k{caller}").as_bytes()).await.unwrap();
                    }
                })
            })
            .collect();
        for task in tasks {
            task.await.unwrap();
        }
    });
    let calls = many.await;
    let decisions: usize = (callers * each).try_into().unwrap();
    assert!(calls * 4 < decisions, "{calls} calls for {decisions} decisions");
}

#[tokio::test]
async fn the_record_of_a_request_id_does_not_grow_with_the_state_of_the_key() {
    let (server, store) = start();
    for limits in ["5000/h log", "5000/h log; 5000 concurrent lease 1h", "5000/h sliding by 1s"] {
        let limits = policy(limits);
        let mut sizes = Vec::new();
        for number in 0..1_000_u32 {
            let lease = Id::from_u128(u128::from(number));
            let operation = Operation::Acquire { lease };
            let operation = if limits.has_concurrent() { operation } else { CHECK };
            let checks = [Check { policy: &limits, key: b"k", cost: Cost::ONE }];
            let id = format!("{limits}:{number}");
            let id = (number % 333 == 100).then_some(id.as_bytes());
            let _ = decide(&store, operation, &checks, id).await.unwrap();
            if let Some(id) = id {
                let name = [b"tollgate:#i:", id].concat();
                let size = server.command(&[b"STRLEN", &name[..]]).integer();
                assert!(size > 0, "{}", name.escape_ascii());
                sizes.push(size);
                let again = decide(&store, operation, &checks, Some(id)).await.unwrap();
                assert!(again.decisions[0].replayed);
            }
        }
        println!("{limits}: {sizes:?}");
        assert!(sizes.iter().all(|size| *size < 400), "{limits}: {sizes:?}");
    }
}
