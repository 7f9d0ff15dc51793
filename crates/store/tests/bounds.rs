//! The bound of the table: evictions, and constant memory.
#![allow(clippy::unwrap_used, reason = "a test")]

use tollgate_algorithms::{
    Check, Cost, Decision, Id, Micros, Operation, Policy, Reason, Request, Timestamp,
};
use tollgate_state::{Key, ManualClock, MemoryStore, TableFull};

const START: Timestamp = Timestamp::from_micros(1_763_650_000_000_000);

struct Bench {
    clock: ManualClock,
    store: MemoryStore,
}

impl Bench {
    fn new(max_keys: usize, table_full: TableFull) -> Self {
        let clock = ManualClock::at(START);
        let builder = MemoryStore::builder().clock(clock.clone());
        let store = builder.max_keys(max_keys).table_full(table_full).build();
        Bench { clock, store }
    }

    fn check(&self, policy: &Policy, key: &str) -> Decision {
        self.execute(Operation::Check { lease: Some(Id::from_u128(1)) }, policy, key, Cost::ONE)
    }

    fn execute(&self, operation: Operation, policy: &Policy, key: &str, cost: Cost) -> Decision {
        let checks = [Check { policy, key: key.as_bytes(), cost }];
        let request = Request { operation, checks: &checks, request_id: None };
        self.store.decide_now(&request).unwrap().decisions.remove(0)
    }
}

fn policy(limits: &str) -> Policy {
    limits.parse().unwrap()
}

#[test]
fn ten_million_keys_need_constant_memory_and_a_denied_key_stays_denied() {
    let bench = Bench::new(1_000_000, TableFull::Deny);
    let limit = policy("5/min log; 10/min");
    for _ in 0..10 {
        let _ = bench.check(&limit, "attacker");
    }
    let simple = policy("10/min");
    let mut peak = 0;
    for index in 0..10_000_000_u32 {
        let key = index.to_be_bytes();
        let key = Key::new(&key).unwrap();
        assert!(bench.store.check(&simple, key, Cost::ONE, || unreachable!()).allowed);
        if index % 1_000_000 == 999_999 {
            let (keys, bytes) = (bench.store.stats().keys, bench.store.bytes());
            assert!(keys <= 1_000_000, "{keys} keys");
            if index < 2_000_000 {
                peak = bytes;
            }
            assert!(bytes <= peak + peak / 10, "{bytes} bytes after {peak}");
        }
    }
    let stats = bench.store.stats();
    assert!(stats.evicted >= 9_000_000 && stats.full == 0, "{stats:?}");
    assert!(!bench.check(&limit, "attacker").allowed, "eviction must not reset a denied key");
}

#[test]
fn recovered_entries_are_evicted_first_then_the_soonest_to_recover() {
    let bench = Bench::new(3, TableFull::Deny);
    let (fast, slow) = (policy("10/s"), policy("10/h"));
    let _ = bench.check(&slow, "slow");
    let _ = bench.check(&fast, "fast");
    let _ = bench.check(&policy("10/min"), "middle");
    bench.clock.advance(Micros::from_millis(200));
    // `fast` has recovered: it is removed without loss.
    let _ = bench.check(&slow, "new 1");
    assert_eq!(bench.store.stats().evicted, 0);
    // Of three live entries, `middle` is now the soonest to recover.
    let _ = bench.check(&slow, "new 2");
    assert_eq!(bench.store.stats().evicted, 1);
    assert_eq!(bench.check(&slow, "slow").remaining, 8, "it was not evicted");
    assert_eq!(
        bench.execute(Operation::Peek, &policy("10/min"), "middle", Cost::ONE).remaining,
        10
    );
}

#[test]
fn a_refund_makes_an_entry_evictable_sooner() {
    let bench = Bench::new(2, TableFull::Deny);
    let limit = policy("10/h");
    let _ = bench.execute(Operation::Check { lease: None }, &limit, "a", Cost::from(2));
    let _ = bench.execute(Operation::Check { lease: None }, &limit, "b", Cost::from(3));
    // This creates the queues: c evicts a, the soonest to recover.
    let _ = bench.execute(Operation::Check { lease: None }, &limit, "c", Cost::from(4));
    let _ = bench.execute(Operation::Refund { time: None }, &limit, "c", Cost::from(3));
    let _ = bench.check(&limit, "d");
    assert_eq!(
        bench.execute(Operation::Peek, &limit, "b", Cost::ONE).remaining,
        7,
        "c was evicted, not b"
    );
}

#[test]
fn denying_blocked_and_leased_keys_are_never_evicted() {
    let bench = Bench::new(3, TableFull::Deny);
    let (log, jobs) = (policy("1/min log"), policy("5 concurrent lease 10min"));
    assert!(bench.check(&log, "denying").allowed);
    assert!(bench.check(&jobs, "leased").allowed);
    let _ = bench.execute(Operation::Block { span: None }, &log, "blocked", Cost::ZERO);
    // The other keys recover later than those that must stay.
    let other = policy("10/d");
    for index in 0..1_000 {
        assert!(bench.check(&other, &format!("flood {index}")).allowed);
    }
    assert!(!bench.check(&log, "denying").allowed);
    assert_eq!(bench.check(&log, "blocked").reason, Reason::Blocked);
    assert_eq!(bench.execute(Operation::Peek, &jobs, "leased", Cost::ONE).remaining, 4);
}

#[test]
fn a_full_table_decides_as_configured() {
    for (decision, allowed) in [(TableFull::Deny, false), (TableFull::Allow, true)] {
        let bench = Bench::new(2, decision);
        let limit = policy("1/min log");
        assert!(bench.check(&limit, "a").allowed && bench.check(&limit, "b").allowed);
        let third = bench.check(&limit, "c");
        assert_eq!((third.allowed, third.reason), (allowed, Reason::Store));
        assert_eq!(third.retry_after, Some(Micros::from_secs(60)).filter(|_| !allowed));
        assert_eq!(bench.store.stats().full, 1);
        assert!(!bench.check(&limit, "a").allowed, "other keys are unaffected");
        bench.clock.advance(Micros::from_secs(60));
        assert_eq!(bench.check(&limit, "c").reason, Reason::Limit, "there is room again");
    }
}

#[test]
fn a_request_is_denied_as_a_whole_if_one_check_has_no_room() {
    let bench = Bench::new(2, TableFull::Deny);
    let (limit, wide) = (policy("1/min log"), policy("10/min"));
    let _ = bench.check(&limit, "a");
    let execute = |operation: Operation| {
        let checks =
            ["b", "c"].map(|key| Check { policy: &wide, key: key.as_bytes(), cost: Cost::ONE });
        let request = Request { operation, checks: &checks, request_id: None };
        bench.store.decide_now(&request).unwrap()
    };
    let denied = execute(Operation::Check { lease: None });
    assert!(!denied.allowed(), "there is room for one of two");
    assert!(denied.decisions.iter().all(|decision| decision.granted == 0));
    assert_eq!(execute(Operation::Peek).decisions[0].remaining, 10, "nothing was charged");
}

/// A key that holds the lease is admitted although its limit is exhausted; the other key needs
/// room.
#[test]
fn a_repeated_lease_does_not_exceed_the_bound() {
    let bench = Bench::new(1, TableFull::Deny);
    let jobs = policy("1 concurrent lease 60s");
    let lease = Id::from_u128(1);
    assert!(bench.execute(Operation::Acquire { lease }, &jobs, "a", Cost::ONE).allowed);
    let checks = [b"a", b"b"].map(|key| Check { policy: &jobs, key, cost: Cost::ONE });
    let request =
        Request { operation: Operation::Acquire { lease }, checks: &checks, request_id: None };
    let answer = bench.store.decide_now(&request).unwrap();
    assert_eq!(answer.decisions[1].reason, Reason::Store);
    assert_eq!(bench.store.stats().keys, 1);
}

#[test]
fn memory_is_freed_as_keys_recover() {
    let bench = Bench::new(1_000_000, TableFull::Deny);
    let limit = policy("10/s");
    let empty = bench.store.bytes();
    for index in 0..200_000 {
        let _ = bench.check(&limit, &format!("key {index}"));
    }
    assert!(bench.store.bytes() > empty + 200_000 * 64);
    bench.clock.advance(Micros::from_secs(10));
    for _ in 0..100 {
        bench.store.sweep(10_000);
    }
    assert_eq!(bench.store.stats().keys, 0);
    let bytes = bench.store.bytes();
    assert!(bytes < empty + 1_000_000, "{bytes} bytes left of {empty}");
}

#[test]
fn a_policy_with_its_own_bound_does_not_evict_other_keys() {
    let bench = Bench::new(2, TableFull::Deny);
    let own = policy("10/min").with_max_keys(3);
    let shared = policy("1/min log");
    let _ = bench.check(&shared, "a");
    let _ = bench.check(&shared, "b");
    for index in 0..100 {
        assert!(bench.check(&own, &format!("flood {index}")).allowed);
    }
    assert!(!bench.check(&shared, "a").allowed && !bench.check(&shared, "b").allowed);
    assert_eq!(bench.store.stats().keys, 5);
}
