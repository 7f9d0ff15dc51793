//! What the tests of this crate share.

#![allow(
    dead_code,
    unreachable_pub,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests, each of which uses some of it"
)]

use std::path::Path;
use std::time::Duration;

use tollgate_core::{Check, Cost, Decision, Operation, Policy, Request};
use tollgate_redis::{RedisOptions, RedisStore};
use tollgate_store::{Answer, FailureKind, Store, StoreError};

pub const CHECK: Operation = Operation::Check { lease: None };

pub fn policy(limits: &str) -> Policy {
    limits.parse().unwrap()
}

/// A named policy of these limits.
pub fn named(name: &str, limits: &str) -> Policy {
    Policy::new(name, tollgate_core::parse_limits(limits).unwrap()).unwrap()
}

pub fn open(url: &str) -> RedisStore {
    open_with(url, |x| x)
}

pub fn open_with(url: &str, change: impl FnOnce(RedisOptions) -> RedisOptions) -> RedisStore {
    RedisStore::open(url, change(RedisOptions::default())).unwrap()
}

/// Asks a verb of one key.
pub async fn ask(
    store: &RedisStore,
    verb: Operation,
    policy: &Policy,
    key: &[u8],
    cost: u32,
) -> Result<Decision, StoreError> {
    let checks = [Check { policy, key, cost: Cost::from(cost) }];
    decide(store, verb, &checks, None).await.map(|mut x| x.decisions.remove(0))
}

pub async fn check(
    store: &RedisStore,
    policy: &Policy,
    key: &[u8],
) -> Result<Decision, StoreError> {
    ask(store, CHECK, policy, key, 1).await
}

pub async fn decide(
    store: &RedisStore,
    verb: Operation,
    checks: &[Check<'_>],
    request_id: Option<&[u8]>,
) -> Result<Answer, StoreError> {
    store.decide(&[Request { operation: verb, checks, request_id }]).await.remove(0)
}

/// What is left of a key.
pub async fn remaining(store: &RedisStore, policy: &Policy, key: &[u8]) -> u64 {
    ask(store, Operation::Peek, policy, key, 1).await.unwrap().remaining
}

#[track_caller]
pub fn kind<T: std::fmt::Debug>(result: Result<T, StoreError>) -> FailureKind {
    match result {
        Err(StoreError::Unavailable(unavailable)) => unavailable.kind,
        result => panic!("no failure of the store: {result:?}"),
    }
}

/// Tries until it is so; some things come about in the background.
pub async fn until(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    for _ in 0..2_000 {
        if is_so().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("{what} does not come about");
}

/// The rights of the crate's documentation, as they stand there.
pub fn documented_rights() -> String {
    let source = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("src/lib.rs"));
    let source = source.unwrap();
    let from = source.find("//! user tollgate on").unwrap();
    let line = source[from..].lines().take_while(|line| *line != "//! ```");
    line.map(|line| line.trim_start_matches("//! ").trim_end_matches('\\')).collect::<String>()
}
