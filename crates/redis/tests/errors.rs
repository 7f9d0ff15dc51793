//! Errors of servers, permissions, passwords and invalid options.

#![expect(clippy::panic, clippy::unwrap_used, reason = "helpers of tests")]

mod support;

use std::time::Duration;

use support::{
    CHECK, check, decide, execute, kind, named, open, open_with, policy, remaining, start,
};
use tollgate_algorithms::{Check, Cost, Id, Micros, Operation, Policy, Timestamp};
use tollgate_redis::{RedisOptions, RedisStore, Warning};
use tollgate_state::{FailureKind, Key, OpenError};
use tollgate_testkit::{Proxy, Server, wait_until};

#[tokio::test]
async fn each_server_error_is_classified_and_charges_nothing() {
    let server = Server::start();
    let proxy = Proxy::before(&server);
    let store = open_with(&proxy.url(), |options| RedisOptions { connections: 1, ..options });
    let policy = policy("1000/h");
    let _ = check(&store, &policy, b"k").await.unwrap();
    proxy.only(&["FCALL"]);
    for (line, expected) in [
        ("-OOM command not allowed when used memory > 'maxmemory'.", FailureKind::OutOfMemory),
        ("-MISCONF Redis is configured to save RDB snapshots", FailureKind::Misconfigured),
        ("-BUSY Redis is busy running a script.", FailureKind::Busy),
        ("-CLUSTERDOWN The cluster is down", FailureKind::ClusterDown),
        ("-NOREPLICAS Not enough good replicas to write.", FailureKind::NoReplicas),
        ("-NOPERM this user has no permissions", FailureKind::NoPermission),
        ("-ERR unknown command 'FCALL'", FailureKind::UnknownCommand),
        ("-CROSSSLOT Keys in request don't hash to the same slot", FailureKind::CrossSlot),
        ("-TRYAGAIN Multiple keys request during rehashing of slot", FailureKind::TryAgain),
        ("-MOVED 3999 127.0.0.1:6381", FailureKind::WrongTopology),
    ] {
        proxy.replace_reply(1, line, false);
        let rejected = check(&store, &policy, b"k").await;
        assert!(rejected.as_ref().unwrap_err().was_not_executed(), "{line}");
        assert_eq!(kind(rejected), expected, "{line}");
    }
    assert_eq!(remaining(&store, &policy, b"k").await, 999);
    for line in [":1", "+OK", "$-1", "*0"] {
        proxy.replace_reply(1, line, true);
        assert_eq!(kind(check(&store, &policy, b"k").await), FailureKind::Protocol, "{line}");
    }
    assert_eq!(store.stats().errors.values().sum::<u64>(), 14);
}

/// Another server may answer under the same name by now.
#[tokio::test]
async fn requests_are_sent_again_on_a_new_connection_if_the_server_cannot_decide() {
    for line in [
        "-LOADING Redis is loading the dataset in memory",
        "-READONLY You can't write against a read only replica.",
        "-MASTERDOWN Link with MASTER is down",
        "-NOAUTH Authentication required.",
    ] {
        let server = Server::start();
        let proxy = Proxy::before(&server);
        let store = open_with(&proxy.url(), |options| RedisOptions { connections: 1, ..options });
        let policy = policy("1000/h");
        let _ = check(&store, &policy, b"k").await.unwrap();
        proxy.only(&["FCALL"]);
        proxy.replace_reply(1, line, false);
        let _ = check(&store, &policy, b"k").await.unwrap();
        assert_eq!(remaining(&store, &policy, b"k").await, 998, "{line}");
        assert_eq!((proxy.connections(), store.stats().errors.len()), (2, 0), "{line}");
    }
}

#[tokio::test]
async fn errors_of_a_real_server_are_classified() {
    let (server, store) = start();
    let policy = policy("1000/h");
    let _ = check(&store, &policy, b"k").await.unwrap();
    let config = |name: &str, value: &str| {
        server.command(&["CONFIG", "SET", name, value]).expect_no_error("CONFIG SET");
    };
    let assert_all_expire = || assert_eq!(server.keys_without_ttl(""), Vec::<String>::new());
    config("maxmemory", "1");
    assert_eq!(kind(check(&store, &policy, b"k").await), FailureKind::OutOfMemory);
    assert_all_expire();
    config("maxmemory", "0");
    config("min-replicas-to-write", "1");
    assert_eq!(kind(check(&store, &policy, b"k").await), FailureKind::NoReplicas);
    assert_all_expire();
    config("min-replicas-to-write", "0");
    server.command(&["REPLICAOF", "127.0.0.1", "1"]);
    assert_eq!(kind(check(&store, &policy, b"k").await), FailureKind::ReadOnly);
    assert_all_expire();
    config("replica-serve-stale-data", "no");
    // The server rejects a script that writes before it checks the link to its primary.
    assert_eq!(kind(check(&store, &policy, b"k").await), FailureKind::ReadOnly);
    server.command(&["REPLICAOF", "NO", "ONE"]);
    assert_all_expire();
    wait_until("an answer", async || {
        execute(&store, Operation::Peek, &policy, b"k", 1).await.is_ok()
    })
    .await;
    assert_eq!(remaining(&store, &policy, b"k").await, 999);

    config("busy-reply-threshold", "100");
    let mut other = server.connect();
    other.send(&["EVAL", "while true do end", "0"]).unwrap();
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(kind(check(&store, &policy, b"k").await), FailureKind::Busy);
    server.command(&["SCRIPT", "KILL"]);
    wait_until("an answer", async || check(&store, &policy, b"k").await.is_ok()).await;
    assert_all_expire();
}

#[tokio::test]
async fn a_key_that_cannot_be_read_is_not_reset() {
    let server = Server::with(|server| server.user("reader on >secret ~* +@all"));
    let store = open(&server.url_as("reader", "secret"));
    let log = named("log", "1000/h log");
    // A long log is read with HGET.
    for _ in 0..300 {
        let _ = check(&store, &log, b"k").await.unwrap();
    }
    server.command(&["ACL", "SETUSER", "reader", "-hget"]).expect_no_error("ACL SETUSER");
    assert_eq!(kind(check(&store, &log, b"k").await), FailureKind::NoPermission);
    server.command(&["ACL", "SETUSER", "reader", "+hget"]).expect_no_error("ACL SETUSER");
    assert_eq!(remaining(&store, &log, b"k").await, 700);
    assert_eq!(store.stats().corrupt, 0);
}

#[tokio::test]
async fn a_call_that_cannot_write_does_not_change_the_keys_of_the_next_one() {
    let server = Server::with(|server| server.user("writer on >secret ~* +@all"));
    let store = open(&server.url_as("writer", "secret"));
    let (day, second) = (named("day", "1/d fixed"), named("second", "1/s"));
    let _ = check(&store, &day, b"k").await.unwrap();
    let key = server.command(&["KEYS", "*day*"]).array()[0].text();
    let expiry = || server.command(&["PEXPIRETIME", &key]).integer();
    let expires_at = expiry();

    let decide_both = async |first, second: (&Policy, &[u8])| {
        let check = |(policy, key)| Check { policy, key, cost: Cost::ONE };
        decide(&store, CHECK, &[check(first), check(second)], None).await
    };
    server.command(&["ACL", "SETUSER", "writer", "-set"]).expect_no_error("ACL SETUSER");
    let failed = decide_both((&second, b"a"), (&second, b"b")).await;
    assert_eq!(kind(failed), FailureKind::NoPermission);
    server.command(&["ACL", "SETUSER", "writer", "+set"]).expect_no_error("ACL SETUSER");
    assert!(!decide_both((&second, b"a"), (&day, b"k")).await.unwrap().allowed());
    assert_eq!(expiry(), expires_at);
    assert_eq!(remaining(&store, &second, b"a").await, 1);
}

#[tokio::test]
async fn urls_select_unix_sockets_and_databases() {
    let server = Server::start();
    let policy = policy("1000/h");
    let path = server.unix_path();
    let store = open(&format!("redis+unix://{}?db=3", path.display()));
    let _ = check(&store, &policy, b"k").await.unwrap();
    let same = open(&format!("{}/3", server.url()));
    assert_eq!(remaining(&same, &policy, b"k").await, 999);
    assert_eq!(remaining(&open(&server.url()), &policy, b"k").await, 1_000);
    let missing = open("unix:///nowhere/socket");
    assert_eq!(kind(missing.ready().await), FailureKind::Unreachable);
    let beyond = open(&format!("{}/99", server.url()));
    assert_eq!(kind(beyond.ready().await), FailureKind::Rejected);
}

/// Executes every operation.
async fn execute_everything(store: &RedisStore) {
    let several = named("several", "1000/h; 1000/d fixed; 500/h log; 300/h sliding count-denied");
    let slots = named("slots", "5 concurrent lease 60s");
    let lease = Id::from_u128(7);
    let max_wait = Micros::from_secs(3_600);
    for (operation, policy, key) in [
        (CHECK, &several, b"k"),
        (Operation::Peek, &several, b"k"),
        (Operation::Take, &several, b"k"),
        (Operation::Penalize, &several, b"k"),
        (Operation::Backfill { limit: 2, time: Timestamp::MAX }, &several, b"k"),
        (Operation::Refund { time: None }, &several, b"k"),
        (Operation::Block { span: Some(Micros::from_secs(5)) }, &several, b"k"),
        (Operation::Unblock, &several, b"k"),
        (Operation::Acquire { lease }, &slots, b"k"),
        (Operation::Renew { lease }, &slots, b"k"),
        (Operation::Release { lease }, &slots, b"k"),
        (Operation::Reset, &several, b"k"),
    ] {
        let _ = execute(store, operation, policy, key, 1)
            .await
            .unwrap_or_else(|error| panic!("{operation:?}: {error}"));
    }
    let queue = named("queue", "1/s burst 3");
    for number in 0..5 {
        let operation = Operation::Reserve { id: Id::from_u128(number), max_wait };
        let _ = execute(store, operation, &queue, b"k", 1)
            .await
            .unwrap_or_else(|error| panic!("{operation:?}: {error}"));
    }
    let inspection = store.inspect(&queue, Key::new("k").unwrap()).await.unwrap();
    assert_eq!(inspection.reservations.len(), 2, "three acted at once");
    let cancel = Operation::Cancel { id: Id::from_u128(4) };
    assert!(execute(store, cancel, &queue, b"k", 1).await.unwrap().changed);
    let _ = execute(store, Operation::Reset, &queue, b"k", 1).await.unwrap();
    // Many leases are members of a sorted set.
    let many = named("many", "100 concurrent lease 60s");
    for number in 0..101 {
        let acquire = Operation::Acquire { lease: Id::from_u128(number) };
        let admitted = execute(store, acquire, &many, b"k", 1).await.unwrap().allowed;
        assert_eq!(admitted, number < 100);
    }
    let newest = Operation::Release { lease: Id::from_u128(99) };
    assert!(execute(store, newest, &many, b"k", 1).await.unwrap().changed);
    // The entries of a long log are in fields of the key.
    let log = named("log", "1000/h log");
    for _ in 0..1_000 {
        let _ = execute(store, CHECK, &log, b"k", 1).await.unwrap();
    }
    assert!(!execute(store, CHECK, &log, b"k", 300).await.unwrap().allowed);
    let _ = execute(store, Operation::Refund { time: None }, &log, b"k", 300).await.unwrap();
    assert!(execute(store, CHECK, &log, b"k", 50).await.unwrap().allowed);
    let checks = [Check { policy: &several, key: b"k", cost: Cost::ONE }];
    for is_repeat in [false, true] {
        let answer = decide(store, CHECK, &checks, Some(b"id")).await.unwrap();
        assert_eq!(answer.decisions[0].replayed, is_repeat);
    }
}

#[tokio::test]
async fn a_user_needs_the_documented_permissions_and_no_others() {
    let acl = support::documented_permissions();
    let rules = acl.strip_prefix("user ").unwrap().replace(">PASSWORD", ">secret");
    let server = Server::with(|server| server.user(&rules));
    let store = open(&server.url_as("tollgate", "secret"));
    let first = store.clone();
    let executed = tokio::spawn(async move { execute_everything(&first).await }).await;
    assert!(executed.is_ok(), "{:#?}", server.command(&["ACL", "LOG", "1"]));
    // Warnings, probes, databases, clusters and sentinels need these.
    let needed_elsewhere = ["+info", "+ping", "+cluster|slots", "+select", "+asking"];
    let commands: Vec<&str> = rules.split(' ').filter(|part| part.starts_with('+')).collect();
    for command in commands.iter().filter(|command| !needed_elsewhere.contains(command)) {
        let without = command.replace('+', "-");
        server.command(&["ACL", "SETUSER", "tollgate", &without]).expect_no_error("ACL SETUSER");
        server.command(&["FUNCTION", "FLUSH"]);
        server.command(&["FLUSHALL"]);
        let store = store.clone();
        let executed = tokio::spawn(async move { execute_everything(&store).await }).await;
        assert!(executed.is_err(), "{command} is not needed");
        server.command(&["ACL", "SETUSER", "tollgate", command]).expect_no_error("ACL SETUSER");
    }
    let denied = open(&server.url_as("tollgate", "wrong"));
    assert_eq!(kind(denied.ready().await), FailureKind::WrongPassword);
    server.command(&["ACL", "SETUSER", "tollgate", "-fcall"]);
    let rejected = check(&store, &policy("1/h"), b"k").await;
    assert_eq!(kind(rejected), FailureKind::NoPermission);
    let foreign = open_with(&server.url_as("tollgate", "secret"), |options| RedisOptions {
        namespace: "other".to_owned(),
        ..options
    });
    assert_eq!(kind(check(&foreign, &policy("1/h"), b"k").await), FailureKind::NoPermission);
}

#[tokio::test]
async fn a_missing_or_wrong_password_is_reported_at_once() {
    let server = Server::with(|server| server.password("secret"));
    let url = format!("redis://{}", server.address());
    assert_eq!(kind(open(&url).ready().await), FailureKind::WrongPassword);
    let store =
        open_with(&url, |options| RedisOptions { password: Some("secret".to_owned()), ..options });
    store.ready().await.unwrap();
    assert_eq!(
        kind(open(&server.url().replace("secret", "x")).ready().await),
        FailureKind::WrongPassword
    );
}

#[tokio::test]
async fn a_replaced_password_file_is_read_for_the_next_connection() {
    let server = Server::with(|server| server.password("old"));
    let file = server.folder().join("password");
    let url = format!("redis://:ignored@{}", server.address());
    let with_file = |options| RedisOptions { password_file: Some(file.clone()), ..options };
    std::fs::write(&file, "old\n").unwrap();
    let (store, many) = (open_with(&url, with_file), policy("1000/h fixed"));
    store.ready().await.unwrap();
    let _ = check(&store, &many, b"k").await.unwrap();

    std::fs::write(&file, "new\r\n").unwrap();
    server.command(&["CONFIG", "SET", "requirepass", "new"]);
    server.command(&["CLIENT", "KILL", "TYPE", "normal"]);
    wait_until("a new connection", async || store.stats().reconnects > 0).await;
    wait_until("the new password", async || check(&store, &many, b"k").await.is_ok()).await;
    let old =
        open_with(&url, |options| RedisOptions { password: Some("old".to_owned()), ..options });
    assert_eq!(kind(old.ready().await), FailureKind::WrongPassword);

    std::fs::remove_file(&file).unwrap();
    let without = open_with(&url, with_file);
    let error = without.ready().await.unwrap_err();
    assert_eq!(error.failure(), Some(FailureKind::WrongPassword));
    let message = error.to_string();
    assert!(message.contains(&*server.address()) && message.contains("password_file"), "{message}");
    assert!(
        message.contains(file.to_str().unwrap()) && message.contains("cannot read"),
        "{message}"
    );
    // The store keeps trying.
    std::fs::write(&file, "new").unwrap();
    wait_until("the file", async || check(&without, &many, b"k").await.is_ok()).await;
    let password = Some("new".to_owned());
    let both = RedisOptions { password, ..with_file(RedisOptions::default()) };
    let message = RedisStore::open(&url, both).unwrap_err().to_string();
    assert!(message.starts_with("the option password_file = "), "{message}");
}

#[tokio::test]
async fn unsuitable_settings_of_servers_are_reported_as_warnings() {
    let server = Server::with(|server| server.line("appendonly yes"));
    let store = open(&server.url());
    store.ready().await.unwrap();
    assert_eq!(store.warnings().await, []);
    server.command(&["ACL", "SETUSER", "limited", "on", ">x", "~*", "+@all", "-function"]);
    let limited = open(&server.url_as("limited", "x"));
    limited.ready().await.unwrap();
    assert_eq!(limited.warnings().await, []);
    server.command(&["FUNCTION", "FLUSH"]);
    let limited = open(&server.url_as("limited", "x"));
    limited.ready().await.unwrap();
    let warnings = limited.warnings().await;
    assert!(matches!(&warnings[..], [Warning::NoFunctions { .. }]), "{warnings:?}");
    server.command(&["CONFIG", "SET", "maxmemory-policy", "allkeys-lru"]);
    let warnings = store.warnings().await;
    assert!(matches!(&warnings[..], [Warning::DropsCounters { .. }]), "{warnings:?}");
    server.command(&["CONFIG", "SET", "maxmemory-policy", "noeviction"]);
    server.command(&["CONFIG", "SET", "appendonly", "no"]);
    let warnings = store.warnings().await;
    assert!(matches!(&warnings[..], [Warning::NotDurable { .. }]), "{warnings:?}");
    let replicaof = format!("replicaof 127.0.0.1 {}", server.port());
    let _replica = Server::with(|server| server.line(&replicaof));
    let without_replicas =
        |warnings: &[Warning]| matches!(warnings, [Warning::WritesWithoutReplicas { .. }]);
    wait_until("the replica", async || without_replicas(&store.warnings().await)).await;
    server.command(&["CONFIG", "SET", "min-replicas-to-write", "1"]);
    assert_eq!(store.warnings().await, []);
}

#[tokio::test]
async fn invalid_urls_and_options_are_rejected_without_a_server() {
    let error = |url: &str, options| RedisStore::open(url, options).unwrap_err().to_string();
    assert!(error("http://h", RedisOptions::default()).contains("scheme"));
    let namespace = "a:b".to_owned();
    assert!(
        error("redis://h", RedisOptions { namespace, ..RedisOptions::default() }).contains("a:b")
    );
    let without_runtime =
        std::thread::spawn(|| RedisStore::open("redis://h", RedisOptions::default()).unwrap_err());
    assert_eq!(without_runtime.join().unwrap(), OpenError::NoRuntime);
}
