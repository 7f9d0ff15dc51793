//! Many threads are together admitted exactly what the limits allow.
//!
//! The loads are those of the tests of other libraries: limits (100 threads, 5/min), throttled-py
//! (N workers), ulule/limiter (500 × 500), Upstash (80 % and 160 % of the load, costs 1 and 3).
#![allow(clippy::unwrap_used, reason = "a test")]

use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use tollgate_algorithms::{
    Check, Cost, Decision, Id, Micros, Operation, Policy, Request, Timestamp,
};
use tollgate_state::{Answer, ManualClock, MemoryStore};

/// 2026-11-20T00:00:00Z: the start of a day, an hour, a minute.
const START: Timestamp = Timestamp::from_micros(1_795_132_800_000_000);

fn store() -> (MemoryStore, ManualClock) {
    let clock = ManualClock::at(START);
    (MemoryStore::builder().clock(clock.clone()).build(), clock)
}

fn policy(limits: &str) -> Policy {
    limits.parse().unwrap()
}

fn decide(store: &MemoryStore, operation: Operation, checks: &[Check<'_>]) -> Answer {
    store.decide_now(&Request { operation, checks, request_id: None }).unwrap()
}

/// Checks one key. With a concurrent limit, each call acquires its own lease.
fn check_one(store: &MemoryStore, policy: &Policy, call: u64, cost: u32) -> Decision {
    let lease = policy.has_concurrent().then(|| Id::from_u128(u128::from(call)));
    let check = Check { policy, key: b"k", cost: Cost::from(cost) };
    decide(store, Operation::Check { lease }, &[check]).decisions.remove(0)
}

/// Runs `work` in this many concurrent threads, each with its number, and returns the sum of the
/// results.
fn sum_of_threads(threads: u64, work: impl Fn(u64) -> u64 + Sync) -> u64 {
    let (start, total) = (Barrier::new(usize::try_from(threads).unwrap()), AtomicU64::new(0));
    thread::scope(|scope| {
        for number in 0..threads {
            let (work, start, total) = (&work, &start, &total);
            scope.spawn(move || {
                start.wait();
                total.fetch_add(work(number), Ordering::Relaxed);
            });
        }
    });
    total.into_inner()
}

const EVERY_KIND: [&str; 10] = [
    "5/min",
    "5/min fixed",
    "5/min fixed count-denied",
    "5/min fixed from-first",
    "5/min log",
    "5/min sliding",
    "5/min sliding by 10s",
    "5/min sliding by 10s strict",
    "5/min queue 4",
    "5 concurrent lease 60s",
];

#[test]
fn a_hundred_threads_are_admitted_five_requests() {
    for limits in EVERY_KIND {
        let ((store, _clock), policy) = (store(), policy(limits));
        let admitted =
            sum_of_threads(100, |number| u64::from(check_one(&store, &policy, number, 1).allowed));
        assert_eq!(admitted, 5, "{limits}");
    }
}

#[test]
fn any_number_of_workers_is_admitted_at_most_fifty_requests() {
    for workers in [10, 100, 1_000, 10_000] {
        let ((store, _clock), policy) = (store(), policy("50/min; 60/min fixed"));
        let calls = AtomicU64::new(0);
        let admitted = sum_of_threads(16, |_| {
            let mut admitted = 0;
            loop {
                let call = calls.fetch_add(1, Ordering::Relaxed);
                if call >= workers {
                    return admitted;
                }
                admitted += u64::from(check_one(&store, &policy, call, 1).allowed);
            }
        });
        assert_eq!(admitted, workers.min(50), "{workers} workers");
    }
}

/// As throttled-py asserts: at least the capacity, and at most what was refilled in addition.
#[test]
fn workers_are_admitted_what_is_refilled_while_the_clock_runs() {
    let ((store, clock), policy) = (store(), policy("1000/s burst 50"));
    let admitted = sum_of_threads(8, |number| {
        let mut admitted = 0;
        for call in 0..2_000 {
            if number == 0 && call % 10 == 0 {
                clock.advance(Micros::from_millis(1));
            }
            admitted += u64::from(check_one(&store, &policy, call, 1).allowed);
        }
        admitted
    });
    let refilled = clock.now().duration_since(START).get() / 1_000;
    assert_eq!(refilled, 200);
    assert!((50..=50 + refilled).contains(&admitted), "{admitted} with {refilled} refilled");
    clock.advance(Micros::from_secs(1));
    let full = sum_of_threads(8, |_| u64::from(check_one(&store, &policy, 0, 7).allowed));
    assert_eq!(full, 7, "of 50, each 7");
}

#[test]
fn five_hundred_threads_share_a_hundred_thousand_requests() {
    let ((store, _clock), policy) = (store(), policy("100000/h log; 200000/d fixed"));
    let admitted = sum_of_threads(500, |_| {
        (0..500).map(|call| u64::from(check_one(&store, &policy, call, 1).allowed)).sum()
    });
    assert_eq!(admitted, 100_000);
}

/// Eight seconds at a percentage of the limit. Upstash's test tolerates ± 50 %.
#[test]
fn each_second_of_load_is_admitted_up_to_the_limit() {
    for (load, cost) in [(80, 1), (160, 1), (80, 3), (160, 3)] {
        let ((store, clock), policy) = (store(), policy("96/s fixed"));
        let each = 96 * load / 100 / cost / 4;
        for second in 0..8 {
            clock.set(START.saturating_add(Micros::from_secs(second)));
            let admitted = sum_of_threads(4, |_| {
                let cost = u32::try_from(cost).unwrap();
                (0..each)
                    .map(|call| u64::from(check_one(&store, &policy, call, cost).allowed))
                    .sum()
            });
            assert_eq!(admitted, (each * 4).min(96 / cost), "{load} % of cost {cost}");
        }
    }
}

/// Two keys in one request, in both orders: no deadlock, and both are charged or none.
#[test]
fn checks_in_opposite_orders_do_not_deadlock() {
    let ((store, _clock), user, ip) = (store(), policy("400/min"), policy("300/min fixed"));
    let one = |policy| Check { policy, key: b"k", cost: Cost::ONE };
    let admitted = sum_of_threads(64, |number| {
        let mut checks = [one(&user), one(&ip)];
        if number % 2 == 0 {
            checks.reverse();
        }
        let operation = Operation::Check { lease: None };
        (0..50).map(|_| u64::from(decide(&store, operation, &checks).allowed())).sum()
    });
    assert_eq!(admitted, 300);
    assert_eq!(decide(&store, Operation::Peek, &[one(&user)]).decisions[0].remaining, 100);
}

#[test]
fn takes_sum_to_the_capacity() {
    let ((store, _clock), policy) = (store(), policy("1000/h"));
    let granted = sum_of_threads(64, |number| {
        let cost = Cost::from(u32::try_from(number).unwrap() % 7 + 1);
        let check = Check { policy: &policy, key: b"k", cost };
        (0..100).map(|_| decide(&store, Operation::Take, &[check]).decisions[0].granted).sum()
    });
    assert_eq!(granted, 1_000);
}

#[test]
fn one_request_id_is_charged_once() {
    let ((store, _clock), policy) = (store(), policy("50/h"));
    let check = Check { policy: &policy, key: b"k", cost: Cost::ONE };
    let request = Request {
        operation: Operation::Check { lease: None },
        checks: &[check],
        request_id: Some(b"id".as_slice()),
    };
    let first = sum_of_threads(100, |_| {
        let answer = store.decide_now(&request).unwrap();
        assert!(answer.allowed() && answer.decisions[0].remaining == 49);
        u64::from(!answer.decisions[0].replayed)
    });
    assert_eq!(first, 1);
    assert_eq!(decide(&store, Operation::Peek, &[check]).decisions[0].remaining, 49);
}
