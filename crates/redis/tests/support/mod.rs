//! Helpers of this crate's tests.

#![allow(
    dead_code,
    unreachable_pub,
    clippy::panic,
    clippy::unwrap_used,
    reason = "helpers, of which each test uses some"
)]

use std::path::Path;

use tollgate_algorithms::{Check, Cost, Decision, Operation, Policy, Request};
use tollgate_redis::{RedisOptions, RedisStore};
use tollgate_state::{Answer, FailureKind, Store, StoreError};
use tollgate_testkit::Server;

pub const CHECK: Operation = Operation::Check { lease: None };

pub fn policy(limits: &str) -> Policy {
    limits.parse().unwrap()
}

/// Creates a named policy of these limits.
pub fn named(name: &str, limits: &str) -> Policy {
    Policy::new(name, tollgate_algorithms::parse_limits(limits).unwrap()).unwrap()
}

/// Starts a server, and opens a store on it.
pub fn start() -> (Server, RedisStore) {
    let server = Server::start();
    let store = open(&server.url());
    (server, store)
}

pub fn open(url: &str) -> RedisStore {
    open_with(url, |options| options)
}

pub fn open_with(url: &str, change: impl FnOnce(RedisOptions) -> RedisOptions) -> RedisStore {
    RedisStore::open(url, change(RedisOptions::default())).unwrap()
}

/// Executes an operation on one key.
pub async fn execute(
    store: &RedisStore,
    operation: Operation,
    policy: &Policy,
    key: &[u8],
    cost: u32,
) -> Result<Decision, StoreError> {
    let checks = [Check { policy, key, cost: Cost::from(cost) }];
    decide(store, operation, &checks, None).await.map(|mut answer| answer.decisions.remove(0))
}

pub async fn check(
    store: &RedisStore,
    policy: &Policy,
    key: &[u8],
) -> Result<Decision, StoreError> {
    execute(store, CHECK, policy, key, 1).await
}

pub async fn decide(
    store: &RedisStore,
    operation: Operation,
    checks: &[Check<'_>],
    request_id: Option<&[u8]>,
) -> Result<Answer, StoreError> {
    store.decide(&[Request { operation, checks, request_id }]).await.remove(0)
}

/// Returns what remains of a key.
pub async fn remaining(store: &RedisStore, policy: &Policy, key: &[u8]) -> u64 {
    execute(store, Operation::Peek, policy, key, 1).await.unwrap().remaining
}

#[track_caller]
pub fn kind<T: std::fmt::Debug>(result: Result<T, StoreError>) -> FailureKind {
    match result {
        Err(StoreError::Unavailable(unavailable)) => unavailable.kind,
        result => panic!("no failure of the store: {result:?}"),
    }
}

/// Returns the ACL rule in the crate's documentation.
pub fn documented_permissions() -> String {
    let source = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("src/lib.rs"));
    let source = source.unwrap();
    let from = source.find("//! user tollgate on").unwrap();
    let line = source[from..].lines().take_while(|line| *line != "//! ```");
    line.map(|line| line.trim_start_matches("//! ").trim_end_matches('\\')).collect::<String>()
}
