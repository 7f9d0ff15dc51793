//! What is left in the store: names, times to live, and what is done about bytes that are not ours.
#![allow(clippy::panic, clippy::unwrap_used, reason = "a test")]

mod support;

use std::collections::HashSet;
use std::time::Duration;

use support::{CHECK, ask, check, decide, kind, named, open, policy};
use tollgate_core::{Check, Cost, Id, Micros, Operation, Policy};
use tollgate_redis::RedisStore;
use tollgate_store::FailureKind;
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

/// One check, with a lease where it must have one.
async fn charge(store: &RedisStore, policy: &Policy, key: &[u8], cost: u32) -> bool {
    let lease = policy.has_concurrent().then(|| Id::from_u128(u128::from(cost)));
    ask(store, Operation::Check { lease }, policy, key, cost).await.unwrap().allowed()
}

#[tokio::test]
async fn whatever_is_done_every_key_expires() {
    let server = Server::start();
    let store = open(&server.url());
    for limits in EVERY_KIND {
        let value = policy(limits);
        for cost in [1, 2, 3, 9] {
            charge(&store, &value, b"k", cost).await;
        }
        for verb in [Operation::Penalize, Operation::Refund { time: None }] {
            let _ = ask(&store, verb, &value, b"k", 1).await;
        }
        let reserve = Operation::Reserve { id: Id::from_u128(1), max_wait: Micros::from_secs(60) };
        let _ = ask(&store, reserve, &value, b"k", 2).await;
        ask(&store, Operation::Block { span: None }, &value, b"blocked", 0).await.unwrap();
        let span = Some(Micros::from_secs(9));
        ask(&store, Operation::Block { span }, &value, b"k", 0).await.unwrap();
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
async fn a_denial_and_a_look_write_nothing() {
    let server = Server::start();
    let store = open(&server.url());
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
        ask(&store, Operation::Peek, &value, key, 1).await.unwrap();
        ask(&store, Operation::Peek, &value, b"unknown", 1).await.unwrap();
        store.inspect(&value, tollgate_store::Key::new(key).unwrap()).await.unwrap();
        assert_eq!(dump(&server), before, "{limits}");
    }
}

/// All keys with their bytes and the moment at which they expire, and how often anything was written,
/// though it were the same.
fn dump(server: &Server) -> (Vec<(String, Reply, Reply)>, String) {
    let persistence = server.command(&["INFO", "persistence"]).text();
    let writes = persistence.lines().find(|line| line.starts_with("rdb_changes_since_last_save:"));
    let writes = writes.unwrap().to_owned();
    let mut names = server.keys("");
    names.sort();
    let one = |name: String| {
        let bytes = server.command(&["DUMP", &name]);
        let expires = server.command(&["PEXPIRETIME", &name]);
        (name, bytes, expires)
    };
    (names.into_iter().map(one).collect(), writes)
}

#[tokio::test]
async fn junk_and_foreign_types_under_our_names_are_none_and_counted() {
    let server = Server::start();
    let store = open(&server.url());
    for limits in EVERY_KIND {
        let value = policy(limits);
        assert!(charge(&store, &value, b"k", 1).await);
        let name = format!("tollgate:={value}:k");
        let whole = match server.command(&["GET", &name]) {
            Reply::Bulk(bytes) => bytes,
            command => panic!("{command:?}"),
        };
        let mut spoilt: Vec<Vec<u8>> =
            vec![Vec::new(), b"junk".to_vec(), vec![0; 40], vec![255; 40]];
        spoilt.extend((0..whole.len()).map(|length| whole[..length].to_vec()));
        spoilt.push([&whole[..], b"x"].concat());
        let mut of_numbers = whole.clone();
        of_numbers[whole.len() - 14..].fill(255);
        spoilt.push(of_numbers);
        for bytes in spoilt {
            let words = [b"SET", name.as_bytes(), &bytes];
            server.connect().command(&words).unwrap();
            let before = store.stats().corrupt;
            assert!(charge(&store, &value, b"k", 2).await, "{limits}, {}", bytes.escape_ascii());
            assert_eq!(store.stats().corrupt, before + 1, "{limits}, {}", bytes.escape_ascii());
            let left = ask(&store, Operation::Peek, &value, b"k", 1).await.unwrap().remaining;
            assert_eq!(
                left,
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
async fn junk_that_a_denial_need_not_look_at_is_none() {
    let server = Server::start();
    let store = open(&server.url());
    let (full, spoilt) = (named("full", "1/h fixed"), named("spoilt", "2/h fixed"));
    assert!(charge(&store, &full, b"k", 1).await);
    for junk in [&b"junk"[..], b"\xa7\x01\0\0\0junk"] {
        server.connect().command(&[b"SET", &b"tollgate:spoilt:k"[..], junk]).unwrap();
        let never = ask(&store, CHECK, &spoilt, b"k", 3).await.unwrap();
        assert!(never.never && never.remaining == 2, "{never:?}");
        let checks = [&full, &spoilt].map(|policy| Check { policy, key: b"k", cost: Cost::ONE });
        let answer = decide(&store, CHECK, &checks, None).await.unwrap();
        let allowed: Vec<bool> = answer.decisions.iter().map(|decision| decision.allowed).collect();
        assert_eq!(allowed, [false, true], "{answer:?}");
        assert_eq!(answer.decisions[1].remaining, 2, "{answer:?}");
        assert!(charge(&store, &spoilt, b"k", 2).await, "{}", junk.escape_ascii());
    }
    assert_eq!(store.stats().corrupt, 2);
}

#[tokio::test]
async fn a_long_log_whose_row_is_gone_or_foreign_is_none() {
    let server = Server::start();
    let store = open(&server.url());
    let value = policy("900/h log");
    let row = format!("tollgate:={value}#l3600000.0.0.:k");
    for spoil in [["DEL", &row, ""], ["SETRANGE", &row, ""], ["RPUSH", &row, "a"]] {
        for _ in 0..300 {
            assert!(charge(&store, &value, b"k", 1).await);
        }
        assert_eq!(server.command(&["STRLEN", &row]).integer(), 300 * 14);
        match spoil[0] {
            "SETRANGE" => drop(server.command(&["SET", &row, "short"])),
            "RPUSH" => {
                server.command(&["DEL", &row]);
                server.command(&["RPUSH", &row, "a"]);
            }
            _ => drop(server.command(&["DEL", &row])),
        }
        let decision = ask(&store, CHECK, &value, b"k", 1).await.unwrap();
        assert_eq!(decision.remaining, 899, "{spoil:?}");
        ask(&store, Operation::Reset, &value, b"k", 0).await.unwrap();
    }
    assert_eq!(store.stats().corrupt, 3);
}

#[tokio::test]
async fn a_key_that_has_lost_its_time_to_live_gets_one_with_the_next_charge() {
    let server = Server::start();
    let store = open(&server.url());
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
async fn what_a_newer_version_wrote_is_left_alone() {
    let server = Server::start();
    let store = open(&server.url());
    let value = named("api", "5/min");
    let newer = b"\xa7\x02 whatever it means";
    server.connect().command(&[b"SET", &b"tollgate:api:k"[..], newer]).unwrap();
    assert_eq!(kind(check(&store, &value, b"k").await), FailureKind::Schema);
    assert_eq!(server.command(&["GET", "tollgate:api:k"]), Reply::Bulk(newer.to_vec()));
    assert!(check(&store, &value, b"other").await.unwrap().allowed());
}

#[tokio::test]
async fn no_key_is_taken_for_another() {
    let server = Server::start();
    let names = names_of_odd_keys(&server.url(), || server.keys("")).await;
    assert!(names.contains("tollgate:a:{x}") && names.contains("tollgate:a.b:a{b}c"), "{names:?}");
}

#[tokio::test]
async fn no_key_is_taken_for_another_on_a_cluster() {
    let cluster = Cluster::start(3, 0);
    let names = names_of_odd_keys(&cluster.url(), || cluster.keys("tollgate:{tollgate.")).await;
    let tags: HashSet<&str> = names.iter().filter_map(|name| name.split('}').next()).collect();
    assert!(tags.len() > 5, "all in few groups: {names:?}");
}

/// Checks keys that might be mixed up, each of which has its own count; what they are called.
async fn names_of_odd_keys(url: &str, names: impl Fn() -> Vec<String>) -> HashSet<String> {
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
            assert!(check(&store, value, key).await.unwrap().allowed(), "{}", key.escape_ascii());
            assert!(!check(&store, value, key).await.unwrap().allowed(), "{}", key.escape_ascii());
        }
    }
    let found: HashSet<String> = names().into_iter().collect();
    assert_eq!(found.len(), 2 * keys.len(), "{found:?}");
    found
}

/// What `MONITOR` shows of calls by clients while something is done.
async fn calls_during(server: &Server, something: impl Future<Output = ()>) -> usize {
    let mut monitor = server.connect();
    monitor.command(&["MONITOR"]).unwrap();
    something.await;
    server.command(&["ECHO", "that is all"]);
    let mut calls = 0;
    loop {
        let line = monitor.receive().unwrap().text();
        if line.contains("that is all") {
            return calls;
        }
        calls += usize::from(line.to_lowercase().contains("] \"evalsha\""));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_decision_is_one_call_and_those_at_once_share_few() {
    let server = Server::start();
    let store = open(&server.url());
    let inner = policy("10/s; 1000/h sliding; 5000/d log; 100/min fixed");
    check(&store, &inner, b"warm").await.unwrap();
    let one = calls_during(&server, async {
        check(&store, &inner, b"k").await.unwrap();
    });
    assert_eq!(one.await, 1);
    let callers = 64;
    let each = 50;
    let many = calls_during(&server, async {
        let tasks: Vec<_> = (0..callers)
            .map(|caller: u32| {
                let (store, value) = (store.clone(), inner.clone());
                tokio::spawn(async move {
                    for _ in 0..each {
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
