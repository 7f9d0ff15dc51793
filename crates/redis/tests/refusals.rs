//! What servers refuse, to whom, and what is refused before it reaches one.

#![expect(clippy::panic, clippy::unwrap_used, reason = "helpers of tests")]

mod support;

use std::time::Duration;

use support::{CHECK, ask, check, decide, kind, named, open, open_with, policy, remaining, until};
use tollgate_core::{Check, Cost, Id, Micros, Operation};
use tollgate_redis::{OpenError, RedisOptions, RedisStore, Warning};
use tollgate_store::{FailureKind, Key};
use tollgate_testkit::{Proxy, Server};

/// What a server answers in place of what was asked, and what it is told to be.
#[tokio::test]
async fn each_refusal_is_told_and_changes_nothing() {
    let server = Server::start();
    let proxy = Proxy::before(&server);
    let store = open_with(&proxy.url(), |x| RedisOptions { connections: 1, ..x });
    let policy = policy("1000/h");
    check(&store, &policy, b"k").await.unwrap();
    proxy.only(&["EVALSHA"]);
    for (line, expected) in [
        ("-LOADING Redis is loading the dataset in memory", FailureKind::Loading),
        ("-READONLY You can't write against a read only replica.", FailureKind::ReadOnly),
        ("-OOM command not allowed when used memory > 'maxmemory'.", FailureKind::OutOfMemory),
        ("-MISCONF Redis is configured to save RDB snapshots", FailureKind::Misconfigured),
        ("-BUSY Redis is busy running a script.", FailureKind::Busy),
        ("-CLUSTERDOWN The cluster is down", FailureKind::ClusterDown),
        ("-MASTERDOWN Link with MASTER is down", FailureKind::MasterDown),
        ("-NOREPLICAS Not enough good replicas to write.", FailureKind::NoReplicas),
        ("-NOPERM this user has no permissions", FailureKind::NoPermission),
        ("-NOAUTH Authentication required.", FailureKind::WrongPassword),
        ("-ERR unknown command 'EVALSHA'", FailureKind::UnknownCommand),
        ("-CROSSSLOT Keys in request don't hash to the same slot", FailureKind::CrossSlot),
        ("-TRYAGAIN Multiple keys request during rehashing of slot", FailureKind::TryAgain),
        ("-MOVED 3999 127.0.0.1:6381", FailureKind::WrongTopology),
    ] {
        proxy.replace_reply(1, line, false);
        let refused = check(&store, &policy, b"k").await;
        assert!(refused.as_ref().unwrap_err().was_not_executed(), "{line}");
        assert_eq!(kind(refused), expected, "{line}");
    }
    assert_eq!(remaining(&store, &policy, b"k").await, 999);
    for line in [":1", "+OK", "$-1", "*0"] {
        proxy.replace_reply(1, line, true);
        assert_eq!(kind(check(&store, &policy, b"k").await), FailureKind::Protocol, "{line}");
    }
    assert_eq!(store.stats().errors.values().sum::<u64>(), 18);
}

#[tokio::test]
async fn real_servers_refuse_so() {
    let server = Server::start();
    let store = open(&server.url());
    let policy = policy("1000/h");
    check(&store, &policy, b"k").await.unwrap();
    let config = |name: &str, value: &str| {
        server.command(&["CONFIG", "SET", name, value]).expect_no_error("CONFIG SET");
    };
    let swept = || assert_eq!(server.keys_without_ttl(""), Vec::<String>::new());
    config("maxmemory", "1");
    assert_eq!(kind(check(&store, &policy, b"k").await), FailureKind::OutOfMemory);
    swept();
    config("maxmemory", "0");
    config("min-replicas-to-write", "1");
    assert_eq!(kind(check(&store, &policy, b"k").await), FailureKind::NoReplicas);
    swept();
    config("min-replicas-to-write", "0");
    server.command(&["REPLICAOF", "127.0.0.1", "1"]);
    assert_eq!(kind(check(&store, &policy, b"k").await), FailureKind::ReadOnly);
    swept();
    config("replica-serve-stale-data", "no");
    // That a script writes is refused before it is looked at whom the server has lost.
    assert_eq!(kind(check(&store, &policy, b"k").await), FailureKind::ReadOnly);
    server.command(&["REPLICAOF", "NO", "ONE"]);
    swept();
    assert_eq!(remaining(&store, &policy, b"k").await, 999);

    config("busy-reply-threshold", "100");
    let mut other = server.connect();
    other.send(&["EVAL", "while true do end", "0"]).unwrap();
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(kind(check(&store, &policy, b"k").await), FailureKind::Busy);
    server.command(&["SCRIPT", "KILL"]);
    until("an answer", async || check(&store, &policy, b"k").await.is_ok()).await;
    swept();
}

#[tokio::test]
async fn there_are_unix_sockets_and_databases() {
    let server = Server::start();
    let policy = policy("1000/h");
    let path = server.unix_path();
    let store = open(&format!("redis+unix://{}?db=3", path.display()));
    check(&store, &policy, b"k").await.unwrap();
    let same = open(&format!("{}/3", server.url()));
    assert_eq!(remaining(&same, &policy, b"k").await, 999);
    assert_eq!(remaining(&open(&server.url()), &policy, b"k").await, 1_000);
    let missing = open("unix:///nowhere/socket");
    assert_eq!(kind(missing.ready().await), FailureKind::Unreachable);
    let beyond = open(&format!("{}/99", server.url()));
    assert_eq!(kind(beyond.ready().await), FailureKind::Rejected);
}

/// Asks every verb.
async fn ask_everything(store: &RedisStore) {
    let meter = named("meter", "1000/h; 1000/d fixed; 500/h log; 300/h sliding count-denied");
    let places = named("places", "5 concurrent lease 60s");
    let lease = Id::from_u128(7);
    let max_wait = Micros::from_secs(3_600);
    for (verb, policy, key) in [
        (CHECK, &meter, b"k"),
        (Operation::Peek, &meter, b"k"),
        (Operation::Take, &meter, b"k"),
        (Operation::Penalize, &meter, b"k"),
        (Operation::Refund { time: None }, &meter, b"k"),
        (Operation::Block { span: Some(Micros::from_secs(5)) }, &meter, b"k"),
        (Operation::Unblock, &meter, b"k"),
        (Operation::Acquire { lease }, &places, b"k"),
        (Operation::Renew { lease }, &places, b"k"),
        (Operation::Release { lease }, &places, b"k"),
        (Operation::Reset, &meter, b"k"),
    ] {
        ask(store, verb, policy, key, 1).await.unwrap_or_else(|error| panic!("{verb:?}: {error}"));
    }
    let queue = named("queue", "1/s burst 3");
    for number in 0..5 {
        let verb = Operation::Reserve { id: Id::from_u128(number), max_wait };
        ask(store, verb, &queue, b"k", 1).await.unwrap_or_else(|error| panic!("{verb:?}: {error}"));
    }
    let looked = store.inspect(&queue, Key::new("k").unwrap()).await.unwrap();
    assert_eq!(looked.reservations.len(), 2, "three acted at once");
    let cancel = Operation::Cancel { id: Id::from_u128(4) };
    assert!(ask(store, cancel, &queue, b"k", 1).await.unwrap().changed);
    ask(store, Operation::Reset, &queue, b"k", 1).await.unwrap();
    // A log that is long has a key of its own, of which no more than is needed is read.
    let log = named("log", "1000/h log");
    for _ in 0..1_000 {
        ask(store, CHECK, &log, b"k", 1).await.unwrap();
    }
    assert!(!ask(store, CHECK, &log, b"k", 300).await.unwrap().allowed);
    ask(store, Operation::Refund { time: None }, &log, b"k", 300).await.unwrap();
    assert!(ask(store, CHECK, &log, b"k", 50).await.unwrap().allowed);
    let checks = [Check { policy: &meter, key: b"k", cost: Cost::ONE }];
    for is_repeat in [false, true] {
        let answer = decide(store, CHECK, &checks, Some(b"id")).await.unwrap();
        assert_eq!(answer.decisions[0].replayed, is_repeat);
    }
}

#[tokio::test]
async fn a_user_needs_the_documented_rights_and_no_others() {
    let rights = support::documented_rights();
    let rules = rights.strip_prefix("user ").unwrap().replace(">PASSWORD", ">secret");
    let server = Server::with(|x| x.user(&rules));
    let store = open(&server.url_as("tollgate", "secret"));
    let first = store.clone();
    let asked = tokio::spawn(async move { ask_everything(&first).await }).await;
    assert!(asked.is_ok(), "{:#?}", server.command(&["ACL", "LOG", "1"]));
    // What is left is what the tool and the warnings ask, and what a cluster and sentinels need.
    let needed_elsewhere = ["+info", "+role", "+cluster|slots", "+select", "+asking"];
    let commands: Vec<&str> = rules.split(' ').filter(|part| part.starts_with('+')).collect();
    for command in commands.iter().filter(|command| !needed_elsewhere.contains(command)) {
        let without = command.replace('+', "-");
        server.command(&["ACL", "SETUSER", "tollgate", &without]).expect_no_error("ACL SETUSER");
        server.command(&["SCRIPT", "FLUSH"]);
        server.command(&["FLUSHALL"]);
        let store = store.clone();
        let asked = tokio::spawn(async move { ask_everything(&store).await }).await;
        assert!(asked.is_err(), "nothing needs {command}");
        server.command(&["ACL", "SETUSER", "tollgate", command]).expect_no_error("ACL SETUSER");
    }
    let denied = open(&server.url_as("tollgate", "wrong"));
    assert_eq!(kind(denied.ready().await), FailureKind::WrongPassword);
    server.command(&["ACL", "SETUSER", "tollgate", "-evalsha"]);
    let refused = check(&store, &policy("1/h"), b"k").await;
    assert_eq!(kind(refused), FailureKind::NoPermission);
    let foreign = open_with(&server.url_as("tollgate", "secret"), |x| RedisOptions {
        namespace: "other".to_owned(),
        ..x
    });
    assert_eq!(kind(check(&foreign, &policy("1/h"), b"k").await), FailureKind::NoPermission);
}

#[tokio::test]
async fn a_missing_password_is_told_at_once() {
    let server = Server::with(|x| x.password("secret"));
    let url = format!("redis://{}", server.address());
    assert_eq!(kind(open(&url).ready().await), FailureKind::WrongPassword);
    let store = open_with(&url, |x| RedisOptions { password: Some("secret".to_owned()), ..x });
    store.ready().await.unwrap();
    assert_eq!(
        kind(open(&server.url().replace("secret", "x")).ready().await),
        FailureKind::WrongPassword
    );
}

#[tokio::test]
async fn a_password_in_a_file_may_be_replaced_while_the_store_is_open() {
    let server = Server::with(|x| x.password("old"));
    let file = server.folder().join("password");
    let url = format!("redis://:ignored@{}", server.address());
    let with_file = |x| RedisOptions { password_file: Some(file.clone()), ..x };
    std::fs::write(&file, "old\n").unwrap();
    let (store, many) = (open_with(&url, with_file), policy("1000/h fixed"));
    store.ready().await.unwrap();
    check(&store, &many, b"k").await.unwrap();

    std::fs::write(&file, "new\r\n").unwrap();
    server.command(&["CONFIG", "SET", "requirepass", "new"]);
    server.command(&["CLIENT", "KILL", "TYPE", "normal"]);
    until("a new connection", async || store.stats().reconnects > 0).await;
    until("the new password", async || check(&store, &many, b"k").await.is_ok()).await;
    let old = open_with(&url, |x| RedisOptions { password: Some("old".to_owned()), ..x });
    assert_eq!(kind(old.ready().await), FailureKind::WrongPassword);

    std::fs::remove_file(&file).unwrap();
    let without = open_with(&url, with_file);
    let error = without.ready().await.unwrap_err();
    assert_eq!(error.failure(), Some(FailureKind::WrongPassword));
    let said = error.to_string();
    assert!(said.contains(&*server.address()) && said.contains("password_file"), "{said}");
    assert!(said.contains(file.to_str().unwrap()) && said.contains("cannot read"), "{said}");
    // It goes on trying.
    std::fs::write(&file, "new").unwrap();
    until("the file", async || check(&without, &many, b"k").await.is_ok()).await;
    let both = |x| RedisOptions { password: Some("new".to_owned()), ..with_file(x) };
    let refused = RedisStore::open(&url, both(RedisOptions::default())).unwrap_err().to_string();
    assert!(refused.starts_with("the option password_file = "), "{refused}");
}

#[tokio::test]
async fn servers_that_drop_counters_are_warned_of() {
    let server = Server::start();
    let store = open(&server.url());
    assert_eq!(store.warnings().await, []);
    server.command(&["CONFIG", "SET", "maxmemory-policy", "allkeys-lru"]);
    let warnings = store.warnings().await;
    assert!(matches!(&warnings[..], [Warning::DropsCounters { .. }]), "{warnings:?}");
}

#[tokio::test]
async fn a_wrong_url_or_option_is_refused_before_anything_is_sent() {
    let refused = |url: &str, options| RedisStore::open(url, options).unwrap_err().to_string();
    assert!(refused("http://h", RedisOptions::default()).contains("scheme"));
    let namespace = "a:b".to_owned();
    assert!(
        refused("redis://h", RedisOptions { namespace, ..RedisOptions::default() }).contains("a:b")
    );
    let without_runtime =
        std::thread::spawn(|| RedisStore::open("redis://h", RedisOptions::default()).unwrap_err());
    assert_eq!(without_runtime.join().unwrap(), OpenError::NoRuntime);
}
