//! A password that is replaced while the store is open.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use support::{check, open_with, policy};
use tollgate_redis::{RedisOptions, RedisStore};
use tollgate_state::FailureKind;
use tollgate_testkit::{Reply, Server, wait_until};

/// Starts a server with a user whose password is `old`, and opens a store with a password file.
fn start() -> (Server, RedisStore) {
    let server = Server::with(|server| server.user("app on >old ~* &* +@all"));
    let file = server.folder().join("password");
    std::fs::write(&file, "old\n").unwrap();
    let store = open_with(&format!("redis://app@{}", server.address()), |options| RedisOptions {
        password_file: Some(file),
        ..options
    });
    (server, store)
}

fn write_password(server: &Server, password: &str) {
    // Renamed, so that no reader finds an empty file.
    let path = |name: &str| server.folder().join(name);
    std::fs::write(path("next"), password).unwrap();
    std::fs::rename(path("next"), path("password")).unwrap();
}

/// Returns how often connections logged in.
fn logins(server: &Server) -> u64 {
    let info = server.command(&["INFO", "commandstats"]).text();
    let line = info.lines().find_map(|line| line.strip_prefix("cmdstat_auth:calls="));
    line.map_or(0, |line| line.split(',').next().unwrap().parse().unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_password_is_used_on_open_connections_without_a_failed_request() {
    let (server, store) = start();
    let policy = policy("1000000/d fixed");
    let _ = check(&store, &policy, b"k").await.unwrap();
    wait_until("both connections", async || store.nodes()[0].connections == 2).await;
    let dials = store.stats().dials;

    let stop = Arc::new(AtomicBool::new(false));
    let mut clients = tokio::task::JoinSet::new();
    for client in 0..8 {
        let (store, policy, stop) = (store.clone(), policy.clone(), Arc::clone(&stop));
        clients.spawn(async move {
            let key = format!("{client}:key");
            while !stop.load(Ordering::Relaxed) {
                let _ = check(&store, &policy, key.as_bytes()).await.unwrap();
            }
        });
    }
    server.command(&["ACL", "SETUSER", "app", ">new"]).expect_no_error("new password");
    write_password(&server, "new");
    wait_until("the new password", async || store.stats().replaced_passwords == 1).await;
    server.command(&["ACL", "SETUSER", "app", "<old"]).expect_no_error("old password");
    stop.store(true, Ordering::Relaxed);
    clients.join_all().await;
    let stats = store.stats();
    assert_eq!((stats.dials, stats.reconnects, stats.rejected_passwords), (dials, 0, 0));
    assert!(stats.errors.is_empty(), "{stats:?}");

    // New connections have the new password, too.
    server.command(&["CLIENT", "KILL", "USER", "app"]);
    wait_until("new connections", async || store.stats().reconnects >= 2).await;
    let _ = check(&store, &policy, b"k").await.unwrap();
    assert_eq!(store.password_failure(), None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wrong_password_keeps_the_connections_and_the_previous_password() {
    let (server, store) = start();
    let policy = policy("1000000/d fixed");
    let _ = check(&store, &policy, b"k").await.unwrap();
    wait_until("both connections", async || store.nodes()[0].connections == 2).await;
    let before = logins(&server);
    write_password(&server, "wrong");
    wait_until("the rejection", async || store.stats().rejected_passwords > 0).await;
    // The count itself needs a login.
    assert!(logins(&server) > before + 2, "each connection tries the new password");
    let failure = store.password_failure().unwrap();
    assert_eq!(failure.kind, FailureKind::WrongPassword);
    assert!(!failure.to_string().contains("wrong\""), "{failure}");
    let _ = check(&store, &policy, b"k").await.unwrap();
    assert_eq!((store.stats().reconnects, store.stats().replaced_passwords), (0, 0));

    // A new connection logs in with the previous password.
    server.command(&["CLIENT", "KILL", "USER", "app"]);
    wait_until("new connections", async || store.stats().reconnects >= 2).await;
    let _ = check(&store, &policy, b"k").await.unwrap();

    std::fs::remove_file(server.folder().join("password")).unwrap();
    let is_missing = async || {
        store.password_failure().is_some_and(|failure| failure.message.contains("cannot read"))
    };
    wait_until("the missing file", is_missing).await;
    let _ = check(&store, &policy, b"k").await.unwrap();
    write_password(&server, "old");
    wait_until("the recovery", async || store.password_failure().is_none()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_password_for_sentinels_is_replaced() {
    let primary = Server::start();
    let monitor = format!("sentinel monitor main 127.0.0.1 {} 1", primary.port());
    let sentinel =
        Server::with(|config| config.sentinel().line(&monitor).user("watch on >old ~* &* +@all"));
    let file = sentinel.folder().join("password");
    std::fs::write(&file, "old").unwrap();
    let url = format!("redis+sentinel://{}/main", sentinel.address());
    let store = open_with(&url, |options| RedisOptions {
        sentinel_username: Some("watch".to_owned()),
        sentinel_password_file: Some(file),
        ..options
    });
    let _ = check(&store, &policy("9/d"), b"k").await.unwrap();
    // The open connection logs in again, or else there would be no rejection.
    write_password(&sentinel, "wrong");
    wait_until("the rejection", async || store.stats().rejected_passwords > 0).await;
    let reply = sentinel.command(&["ACL", "SETUSER", "watch", ">new", "<old"]);
    assert_eq!(reply, Reply::ok());
    write_password(&sentinel, "new");
    wait_until("the new password", async || store.stats().replaced_passwords == 1).await;
    assert_eq!(store.password_failure(), None);
}
