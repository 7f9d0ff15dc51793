//! The table under every interleaving of its locks:
//! `RUSTFLAGS="--cfg loom" cargo test -p tollgate-state --profile dev --test loom`.
#![cfg(loom)]
#![allow(clippy::unwrap_used, reason = "a test")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use loom::thread;
use tollgate_algorithms::{Check, Cost, Id, Operation, Policy, Request, Timestamp};
use tollgate_state::{Answer, Key, ManualClock, MemoryStore};

const CHECK: Operation = Operation::Check { lease: None };

/// A store of two shards with a manual clock.
fn store(max_keys: usize) -> Arc<MemoryStore> {
    let clock = ManualClock::at(Timestamp::from_micros(1_763_650_000_000_000));
    Arc::new(MemoryStore::builder().clock(clock).max_keys(max_keys).build())
}

/// Runs a model, and asserts that several interleavings were run.
fn model(body: impl Fn() + Send + Sync + 'static) {
    static RUNS: AtomicUsize = AtomicUsize::new(0);
    let before = RUNS.load(Ordering::SeqCst);
    loom::model(move || {
        RUNS.fetch_add(1, Ordering::SeqCst);
        body();
    });
    assert!(RUNS.load(Ordering::SeqCst) > before + 1, "only one interleaving was run");
}

fn policy(limits: &str) -> Policy {
    limits.parse().unwrap()
}

fn check(store: &MemoryStore, policy: &Policy, key: &str) -> bool {
    store.check(policy, Key::new(key).unwrap(), Cost::ONE, || Id::from_u128(1)).allowed
}

fn together(store: &MemoryStore, policy: &Policy, keys: &[&str], id: Option<&[u8]>) -> Answer {
    let mut checks = Vec::new();
    for key in keys {
        checks.push(Check { policy, key: key.as_bytes(), cost: Cost::ONE });
    }
    store.decide_now(&Request { operation: CHECK, checks: &checks, request_id: id }).unwrap()
}

#[test]
fn three_threads_share_two_tokens_exactly() {
    model(|| {
        let (store, limit) = (store(128), policy("2/h"));
        let spawn_check = || {
            let (store, limit) = (Arc::clone(&store), limit.clone());
            thread::spawn(move || usize::from(check(&store, &limit, "a")))
        };
        let others = [spawn_check(), spawn_check()];
        let mine = usize::from(check(&store, &limit, "a"));
        let admitted: usize = others.into_iter().map(|other| other.join().unwrap()).sum();
        assert_eq!(admitted + mine, 2);
    });
}

#[test]
fn two_requests_of_the_same_two_keys_neither_deadlock_nor_share_one_token() {
    model(|| {
        let (store, limit) = (store(128), policy("1/h"));
        let other = {
            let (store, limit) = (Arc::clone(&store), limit.clone());
            thread::spawn(move || together(&store, &limit, &["b", "a"], None).allowed())
        };
        let mine = together(&store, &limit, &["a", "b"], None).allowed();
        assert!(mine != other.join().unwrap(), "exactly one of two is admitted");
        assert!(!check(&store, &limit, "a") && !check(&store, &limit, "b"));
    });
}

#[test]
fn two_requests_of_known_keys_neither_deadlock_nor_share_one_token() {
    model(|| {
        // Of these keys under this policy, one is in each shard.
        let (store, limit) = (store(128), policy("2/h"));
        assert!(together(&store, &limit, &["a", "c"], None).allowed());
        let other = {
            let (store, limit) = (Arc::clone(&store), limit.clone());
            thread::spawn(move || together(&store, &limit, &["c", "a"], None).allowed())
        };
        let mine = together(&store, &limit, &["a", "c"], None).allowed();
        assert!(mine != other.join().unwrap(), "exactly one of two is admitted");
    });
}

#[test]
fn two_requests_of_one_id_are_charged_once() {
    model(|| {
        let (store, limit) = (store(128), policy("5/h"));
        let other = {
            let (store, limit) = (Arc::clone(&store), limit.clone());
            thread::spawn(move || together(&store, &limit, &["a"], Some(b"id")))
        };
        let mine = together(&store, &limit, &["a"], Some(b"id"));
        let other = other.join().unwrap();
        assert!(mine.allowed() && other.allowed());
        assert!(mine.decisions[0].replayed != other.decisions[0].replayed);
        assert_eq!(mine.decisions[0].remaining, 4);
        assert_eq!(other.decisions[0].remaining, 4);
    });
}

#[test]
fn eviction_does_not_reset_a_denied_key() {
    model(|| {
        // One shard, of two keys.
        let (store, limit, wide) = (store(2), policy("1/h log"), policy("9/h"));
        assert!(check(&store, &limit, "a"));
        assert!(check(&store, &wide, "b"));
        let other = {
            let (store, wide) = (Arc::clone(&store), wide.clone());
            thread::spawn(move || check(&store, &wide, "c"))
        };
        assert!(!check(&store, &limit, "a"));
        assert!(other.join().unwrap(), "b is evicted, because it would be admitted");
        assert!(!check(&store, &limit, "a"));
    });
}

/// Each thread holds the lock of one shard while it tries to lock the other: of these keys under this policy,
/// one is in each.
#[test]
fn checks_that_are_looked_up_together_are_exact_and_end() {
    model(|| {
        let (store, limit) = (store(128), policy("3/h"));
        assert!(check(&store, &limit, "a") && check(&store, &limit, "d"));
        let spawn_each = |keys: [&'static str; 2]| {
            let (store, limit) = (Arc::clone(&store), limit.clone());
            let each = move || {
                let checks = keys.map(|key| Check::new(&limit, key));
                let mut decisions = Vec::new();
                store.check_each(&checks, || Id::from_u128(1), &mut decisions);
                decisions.iter().filter(|decision| decision.allowed).count()
            };
            thread::spawn(each)
        };
        let threads = [spawn_each(["a", "d"]), spawn_each(["d", "a"])];
        let admitted: usize = threads.into_iter().map(|thread| thread.join().unwrap()).sum();
        assert_eq!(admitted, 4);
        assert!(!check(&store, &limit, "a") && !check(&store, &limit, "d"));
    });
}
