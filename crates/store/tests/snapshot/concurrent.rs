//! Saving while other threads charge.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use fastrand::Rng;
use tollgate_algorithms::Operation;

use crate::{Bench, named};

const KEYS: usize = 4_000;
const MAX_CHECKS: u64 = 1_000_000;

/// Counts the charges of each key, before and after each.
struct Tally {
    started: Vec<AtomicU64>,
    done: Vec<AtomicU64>,
}

impl Tally {
    fn new() -> Self {
        let zeros = || (0..KEYS).map(|_| AtomicU64::new(0)).collect();
        Tally { started: zeros(), done: zeros() }
    }

    fn read(all: &[AtomicU64]) -> Vec<u64> {
        all.iter().map(|count| count.load(Ordering::SeqCst)).collect()
    }
}

/// Stops the other threads when it is dropped, even if the test fails.
struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

fn key(index: usize) -> [u8; 8] {
    u64::try_from(index).unwrap().to_be_bytes()
}

#[test]
fn a_snapshot_contains_all_charges_made_before_the_save_started() {
    let policies =
        ["1000000/d", "1000000/d fixed; 1000000/d sliding"].map(|limits| named("api", limits));
    let flood = named("flood", "5/d log");
    let bench = Bench::with(|builder| builder.max_keys(200_000));
    let (tally, stop) = (Tally::new(), AtomicBool::new(false));
    let charge = |index: usize| {
        let policy = &policies[index % 2];
        tally.started[index].fetch_add(1, Ordering::SeqCst);
        assert!(bench.check(policy, &key(index), 1).allowed);
        tally.done[index].fetch_add(1, Ordering::SeqCst);
    };
    (0..KEYS).for_each(charge);
    thread::scope(|scope| {
        let _stop = Stop(&stop);
        for seed in 0..2 {
            let (charge, stop) = (&charge, &stop);
            let mut random = Rng::with_seed(seed);
            scope.spawn(move || {
                while !stop.load(Ordering::SeqCst) {
                    charge(random.usize(..KEYS));
                }
            });
        }
        // Insert and remove keys, so that shards grow and are compacted, which moves slots.
        scope.spawn(|| {
            while !stop.load(Ordering::SeqCst) {
                let keys = || (KEYS..KEYS + 30_000).map(key);
                keys().for_each(|key| assert!(bench.check(&flood, &key, 1).allowed));
                keys().for_each(|key| {
                    assert!(bench.execute(Operation::Reset, &flood, &key, 0).changed)
                });
                bench.store.sweep(1);
            }
        });
        for _ in 0..12 {
            let before = Tally::read(&tally.done);
            let mut snapshot = Vec::new();
            let report = bench.store.write_snapshot(&mut snapshot).unwrap();
            let after = Tally::read(&tally.started);
            assert!(report.most_per_lock <= 256, "{report:?}");
            let (store, _) =
                crate::builder(&bench.clock).max_keys(200_000).restore(&snapshot).unwrap();
            let restored = Bench { clock: bench.clock.clone(), store };
            for (index, (before, after)) in before.into_iter().zip(after).enumerate() {
                let used = MAX_CHECKS - restored.remaining(&policies[index % 2], &key(index));
                assert!((before..=after).contains(&used), "{index}: {before} {used} {after}");
            }
        }
    });
}

/// Asserts how much is done under one lock; prints how long that takes.
#[test]
fn a_lock_is_held_for_a_bounded_step() {
    let bench = Bench::with(|builder| builder.max_keys(200_000));
    let api = named("api", "10/h");
    for index in 0..100_000 {
        assert!(bench.check(&api, &key(index), 1).allowed);
    }
    let report = bench.store.write_snapshot(std::io::sink()).unwrap();
    println!(
        "100,000 keys: {} for {} locks, the longest {} s",
        report.took, report.locks, report.longest_lock
    );
    assert_eq!((report.keys, report.most_per_lock), (100_000, 256));

    let bench = Bench::with(|builder| builder.max_keys(100));
    let log = named("log", "20000/h log");
    for index in 0..10 {
        for _ in 0..4_200 {
            let _ = bench.check(&log, &key(index), 1);
            bench.clock.advance(tollgate_algorithms::Micros::new(1));
        }
    }
    let report = bench.store.write_snapshot(std::io::sink()).unwrap();
    println!("logs of 4,200 entries: the longest {} s", report.longest_lock);
    assert_eq!(report.most_per_lock, 1, "a state of 64 KiB fills a step");
    assert!(report.most_bytes_per_lock < 70_000, "{report:?}");

    for _ in 0..10_000 {
        let _ = bench.check(&log, b"long", 1);
        bench.clock.advance(tollgate_algorithms::Micros::new(1));
    }
    let report = bench.store.write_snapshot(std::io::sink()).unwrap();
    println!("a log of 10,000 entries: the longest {} s", report.longest_lock);
    assert!(report.most_bytes_per_lock < 160_000 + 66_000, "{report:?}");
}

/// Concurrent saves of one store wait for each other. Each shard takes several steps, so without a
/// lock they would interleave.
#[test]
fn two_concurrent_saves_are_both_complete() {
    let bench = Bench::with(|builder| builder.max_keys(1_000_000));
    let api = named("api", "10/h");
    (0..150_000).for_each(|index| _ = bench.check(&api, &key(index), 1));
    let barrier = Barrier::new(2);
    let save = || {
        let saves = (0..5).map(|_| {
            barrier.wait();
            bench.store.write_snapshot(std::io::sink()).unwrap().keys
        });
        assert_eq!(saves.collect::<Vec<_>>(), [150_000; 5]);
    };
    thread::scope(|scope| {
        scope.spawn(save);
        save();
    });
}
