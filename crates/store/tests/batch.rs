//! Checks that are looked up together are decided as single checks are.
#![cfg(not(loom))]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test")]

use std::sync::{Arc, Barrier};
use std::thread;

use fastrand::Rng;
use tollgate_algorithms::{
    Check, Cost, Decision, Id, Micros, Operation, Policy, Request, Timestamp,
};
use tollgate_state::{Key, ManualClock, MemoryStore, TableFull};

fn store(clock: &ManualClock, max_keys: usize) -> MemoryStore {
    let builder = MemoryStore::builder().clock(clock.clone()).max_keys(max_keys);
    builder.table_full(TableFull::Deny).build()
}

/// Makes a store so large that the reads of checks overlap, with keys in a table of their own.
fn fill(store: &MemoryStore) {
    let other = Policy::named("other", "1/d").unwrap().with_max_keys(4_000);
    for index in 0..2_000 {
        let key = format!("{index:256}");
        let _ = single(store, &Check::new(&other, &key));
    }
    assert!(store.stats().key_bytes > 512 * 1024);
}

fn each(store: &MemoryStore, checks: &[Check<'_>]) -> Vec<Decision> {
    let mut decisions = Vec::new();
    store.check_each(checks, || Id::from_u128(7), &mut decisions);
    decisions
}

fn single(store: &MemoryStore, check: &Check<'_>) -> Decision {
    store.check(check.policy, Key::new(check.key).unwrap(), check.cost, || Id::from_u128(7))
}

/// Known and new keys, blocked ones, repeated ones, long ones, all kinds of policies, costs that are
/// never admitted.
#[test]
fn checks_are_decided_as_single_ones() {
    let limits = [
        "3/10s",
        "5/min burst 2",
        "4/10s log",
        "2/min sliding",
        "3/min fixed; 9/h",
        "2 concurrent lease 5s",
        "4/min queue 3",
        "1/s",
    ];
    let policies: Vec<Policy> = limits.iter().map(|limits| limits.parse().unwrap()).collect();
    let shadow = Policy::named("shadow", "1/min").unwrap().shadow();
    let policies: Vec<_> = policies.into_iter().chain([shadow]).collect();
    let mut keys: Vec<String> = (0..60).map(|index| format!("user:{index}")).collect();
    keys.push("k".repeat(300));
    for seed in 0..200 {
        let mut random = Rng::with_seed(seed);
        let clock = ManualClock::at(Timestamp::from_micros(1_763_650_000_000_000));
        // One shard with too little room for all keys, or several with enough.
        let max_keys = [40, 1_000][random.usize(..2)];
        let (together, alone) = (store(&clock, max_keys), store(&clock, max_keys));
        if random.bool() {
            fill(&together);
        }
        let key_count = if max_keys == 1_000 { keys.len() } else { 20 };
        for _ in 0..20 {
            if random.u8(..4) == 0 {
                let (policy, key) =
                    (&policies[random.usize(..8)], &keys[random.usize(..key_count)]);
                let operation = Operation::Block { span: None };
                let checks = [Check::new(policy, key)];
                let request = Request { operation, checks: &checks, request_id: None };
                assert_eq!(together.decide_now(&request), alone.decide_now(&request));
            }
            let count = random.usize(..40);
            let is_mixed = random.bool();
            let checks: Vec<_> = (0..count)
                .map(|_| {
                    let policy = if is_mixed { random.usize(..policies.len()) } else { 0 };
                    let key = &keys[random.usize(..key_count)];
                    let cost = Cost::from([1, 1, 1, 0, 2, 90][random.usize(..6)]);
                    Check::new(&policies[policy], key).with_cost(cost)
                })
                .collect();
            let expected: Vec<_> = checks.iter().map(|check| single(&alone, check)).collect();
            assert_eq!(each(&together, &checks), expected, "seed {seed}");
            clock.advance(Micros::new(random.u64(..3_000_000)));
        }
    }
}

/// Threads with the same keys in opposite orders neither wait for each other forever nor admit too
/// much.
#[test]
fn threads_admit_each_key_exactly_as_often_as_its_limit() {
    const THREADS: usize = 4;
    let clock = ManualClock::at(Timestamp::from_micros(1_763_650_000_000_000));
    let (store, limit) = (Arc::new(store(&clock, 400)), "100/h".parse::<Policy>().unwrap());
    fill(&store);
    let start = Arc::new(Barrier::new(THREADS));
    let work = |thread: usize| {
        let (store, limit, start) = (Arc::clone(&store), limit.clone(), Arc::clone(&start));
        move || {
            let mut keys: Vec<String> = (0..40).map(|index| format!("user:{index}")).collect();
            if thread % 2 == 1 {
                keys.reverse();
            }
            let checks: Vec<_> = keys.iter().map(|key| Check::new(&limit, key)).collect();
            start.wait();
            let mut admitted = 0;
            for _ in 0..60 {
                let decisions = each(&store, &checks);
                admitted += decisions.iter().filter(|decision| decision.allowed).count();
            }
            admitted
        }
    };
    let threads: Vec<_> = (0..THREADS).map(|thread| thread::spawn(work(thread))).collect();
    let admitted: usize = threads.into_iter().map(|thread| thread.join().unwrap()).sum();
    assert_eq!(admitted, 40 * 100);
}
