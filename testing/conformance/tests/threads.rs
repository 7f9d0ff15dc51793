//! Many threads, one clock that stands still: exactly what is left is admitted. What rows cannot say.
//!
//! Sources, by `research/libraries.md` W22: limits (100 threads, 5/min), throttled-py (N workers),
//! ulule/limiter (500 × 500), Upstash (80 % and 160 % of the load, costs 1 and 3).
#![allow(clippy::unwrap_used, reason = "a test")]

use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use tollgate_core::{Check, Cost, Decision, Id, Micros, Operation, Policy, Request, Timestamp};
use tollgate_store::{Answer, ManualClock, MemoryStore};

/// 2026-11-20T00:00:00Z: the start of a day, an hour, a minute.
const START: Timestamp = Timestamp::from_micros(1_795_132_800_000_000);

fn store() -> (MemoryStore, ManualClock) {
    let clock = ManualClock::at(START);
    (MemoryStore::builder().clock(clock.clone()).build(), clock)
}

fn policy(limits: &str) -> Policy {
    limits.parse().unwrap()
}

fn ask(store: &MemoryStore, operation: Operation, checks: &[Check<'_>]) -> Answer {
    store.decide_now(&Request { operation, checks, request_id: None }).unwrap()
}

/// Asks of one key; acquires with an id of the call's own where there are requests in flight.
fn ask_one(store: &MemoryStore, policy: &Policy, call: u64, cost: u32) -> Decision {
    let lease = policy.has_concurrent().then(|| Id::from_u128(u128::from(call)));
    let check = Check { policy, key: b"k", cost: Cost::from(cost) };
    ask(store, Operation::Check { lease }, &[check]).decisions.remove(0)
}

/// Runs `work` in so many threads at once, each with its number, and adds up what they say.
fn at_once(threads: u64, work: impl Fn(u64) -> u64 + Sync) -> u64 {
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
fn a_hundred_threads_against_five_a_minute() {
    for limits in EVERY_KIND {
        let ((store, _clock), policy) = (store(), policy(limits));
        let admitted =
            at_once(100, |number| u64::from(ask_one(&store, &policy, number, 1).allowed));
        assert_eq!(admitted, 5, "{limits}");
    }
}

#[test]
fn any_number_of_workers_against_fifty() {
    for workers in [10, 100, 1_000, 10_000] {
        let ((store, _clock), policy) = (store(), policy("50/min; 60/min fixed"));
        let calls = AtomicU64::new(0);
        let admitted = at_once(16, |_| {
            let mut admitted = 0;
            loop {
                let call = calls.fetch_add(1, Ordering::Relaxed);
                if call >= workers {
                    return admitted;
                }
                admitted += u64::from(ask_one(&store, &policy, call, 1).allowed);
            }
        });
        assert_eq!(admitted, workers.min(50), "{workers} workers");
    }
}

/// What throttled-py asserts: within the capacity and what has been refilled meanwhile.
#[test]
fn workers_while_the_clock_runs() {
    let ((store, clock), policy) = (store(), policy("1000/s burst 50"));
    let admitted = at_once(8, |number| {
        let mut admitted = 0;
        for call in 0..2_000 {
            if number == 0 && call % 10 == 0 {
                clock.advance(Micros::from_millis(1));
            }
            admitted += u64::from(ask_one(&store, &policy, call, 1).allowed);
        }
        admitted
    });
    let refilled = clock.now().duration_since(START).get() / 1_000;
    assert_eq!(refilled, 200);
    assert!((50..=50 + refilled).contains(&admitted), "{admitted} with {refilled} refilled");
    clock.advance(Micros::from_secs(1));
    let full = at_once(8, |_| u64::from(ask_one(&store, &policy, 0, 7).allowed));
    assert_eq!(full, 7, "of 50, each 7");
}

#[test]
fn five_hundred_threads_five_hundred_times_each() {
    let ((store, _clock), policy) = (store(), policy("100000/h log; 200000/d fixed"));
    let admitted = at_once(500, |_| {
        (0..500).map(|call| u64::from(ask_one(&store, &policy, call, 1).allowed)).sum()
    });
    assert_eq!(admitted, 100_000);
}

/// Eight seconds at a part of the limit's load: Upstash's test is content with ± 50 %.
#[test]
fn eight_seconds_of_load() {
    for (load, cost) in [(80, 1), (160, 1), (80, 3), (160, 3)] {
        let ((store, clock), policy) = (store(), policy("96/s fixed"));
        let each = 96 * load / 100 / cost / 4;
        for second in 0..8 {
            clock.set(START.saturating_add(Micros::from_secs(second)));
            let admitted = at_once(4, |_| {
                let cost = u32::try_from(cost).unwrap();
                (0..each).map(|call| u64::from(ask_one(&store, &policy, call, cost).allowed)).sum()
            });
            assert_eq!(admitted, (each * 4).min(96 / cost), "{load} % of cost {cost}");
        }
    }
}

/// Two keys in one request, named in either order: no deadlock, and all or none are charged.
#[test]
fn several_checks_in_either_order() {
    let ((store, _clock), user, ip) = (store(), policy("400/min"), policy("300/min fixed"));
    let one = |policy| Check { policy, key: b"k", cost: Cost::ONE };
    let admitted = at_once(64, |number| {
        let mut checks = [one(&user), one(&ip)];
        if number % 2 == 0 {
            checks.reverse();
        }
        let operation = Operation::Check { lease: None };
        (0..50).map(|_| u64::from(ask(&store, operation, &checks).allowed())).sum()
    });
    assert_eq!(admitted, 300);
    assert_eq!(ask(&store, Operation::Peek, &[one(&user)]).decisions[0].remaining, 100);
}

#[test]
fn takes_sum_to_what_there_was() {
    let ((store, _clock), policy) = (store(), policy("1000/h"));
    let granted = at_once(64, |number| {
        let cost = Cost::from(u32::try_from(number).unwrap() % 7 + 1);
        let check = Check { policy: &policy, key: b"k", cost };
        (0..100).map(|_| ask(&store, Operation::Take, &[check]).decisions[0].granted).sum()
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
        request_id: Some(b"the same".as_slice()),
    };
    let first = at_once(100, |_| {
        let answer = store.decide_now(&request).unwrap();
        assert!(answer.allowed() && answer.decisions[0].remaining == 49);
        u64::from(!answer.decisions[0].replayed)
    });
    assert_eq!(first, 1);
    assert_eq!(ask(&store, Operation::Peek, &[check]).decisions[0].remaining, 49);
}
