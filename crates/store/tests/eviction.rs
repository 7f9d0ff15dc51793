//! Eviction: a flood of new keys evicts itself, and no policy takes the whole table.
#![allow(clippy::unwrap_used, reason = "a test")]

use tollgate_algorithms::{
    Ban, Check, Cost, Decision, Id, Micros, Operation, Policy, Reason, Request, Timestamp,
    parse_limits,
};
use tollgate_state::{ManualClock, MemoryStore};

const MAX_KEYS: usize = 256;

struct Bench {
    clock: ManualClock,
    store: MemoryStore,
}

impl Bench {
    fn new() -> Self {
        let clock = ManualClock::at(Timestamp::from_micros(1_763_650_000_000_000));
        let store = MemoryStore::builder().clock(clock.clone()).max_keys(MAX_KEYS).build();
        Bench { clock, store }
    }

    fn execute(&self, operation: Operation, policy: &Policy, key: &str, cost: u32) -> Decision {
        let checks = [Check { policy, key: key.as_bytes(), cost: Cost::from(cost) }];
        let request = Request { operation, checks: &checks, request_id: None };
        self.store.decide_now(&request).unwrap().into_decision()
    }

    fn check(&self, policy: &Policy, key: &str, cost: u32) -> Decision {
        let lease = Some(Id::from_u128(1));
        self.execute(Operation::Check { lease }, policy, key, cost)
    }

    fn remaining(&self, policy: &Policy, key: &str) -> u64 {
        self.execute(Operation::Peek, policy, key, 1).remaining
    }
}

fn named(name: &str, limits: &str) -> Policy {
    Policy::new(name, parse_limits(limits).unwrap()).unwrap()
}

/// A window that is longer than the test, so that nothing recovers.
const LIMITS: [&str; 8] = [
    "10/d",
    "10/d queue 10",
    "10/d fixed",
    "10/d fixed from-first",
    "10/d log",
    "10/d sliding",
    "10/d sliding by 1h",
    "100/d; 10/d log",
];

#[test]
fn a_key_that_has_used_most_of_its_limit_stays_known_during_a_flood_of_new_keys() {
    for limits in LIMITS {
        let (bench, calm, policy) = (Bench::new(), Bench::new(), named("api", limits));
        for bench in [&bench, &calm] {
            (0..9).for_each(|_| assert!(bench.check(&policy, "victim", 1).allowed, "{limits}"));
        }
        for index in 0..100_000 {
            assert!(bench.check(&policy, &format!("invented {index}"), 1).allowed, "{limits}");
            bench.clock.advance(Micros::new(1_000));
        }
        calm.clock.set(bench.clock.now());
        let remaining = bench.remaining(&policy, "victim");
        assert_eq!(remaining, calm.remaining(&policy, "victim"), "{limits}");
        assert!(remaining < 3, "{limits}");
        let stats = bench.store.stats();
        assert!(stats.keys <= MAX_KEYS && stats.full == 0, "{limits}: {stats:?}");
    }
}

/// The flood is of another policy, with a limit of which a single request uses more.
#[test]
fn a_flood_of_one_policy_leaves_the_share_of_another() {
    let bench = Bench::new();
    let (api, flooded) = (named("api", "1000/d"), named("search", "2/d"));
    let keys: Vec<_> = (0..MAX_KEYS / 4).map(|index| format!("user {index}")).collect();
    for key in &keys {
        assert!(bench.check(&api, key, 1).allowed);
    }
    for index in 0..100_000 {
        let _ = bench.check(&flooded, &format!("invented {index}"), 1);
    }
    let known = keys.iter().filter(|key| bench.remaining(&api, key) == 999).count();
    assert_eq!(known, keys.len());
}

/// The limit recovers while the ban lasts, so the key would be the first candidate without it.
#[test]
fn a_flood_of_new_keys_evicts_no_ban_and_counted_denials_last() {
    let (hour, day) = (Micros::from_secs(3_600), Micros::from_secs(86_400));
    let login = named("login", "1/s fixed").with_ban(Ban::new(4, hour, day).unwrap());
    let bench = Bench::new();
    for (key, denials) in [("banned", 4), ("counted", 3)] {
        assert!(bench.check(&login, key, 1).allowed);
        (0..denials).for_each(|_| assert_eq!(bench.check(&login, key, 1).reason, Reason::Limit));
    }
    bench.clock.advance(Micros::from_secs(60));
    for index in 0..20_000 {
        // New keys with one denial each.
        let key = format!("invented {index}");
        (0..2).for_each(|_| drop(bench.check(&login, &key, 1)));
        bench.clock.advance(Micros::new(10_000));
    }
    assert!(bench.store.stats().evicted > 19_000);
    assert_eq!(bench.check(&login, "banned", 1).reason, Reason::Banned);
    assert!(bench.check(&login, "counted", 1).allowed);
    let denied = bench.check(&login, "counted", 1);
    assert_eq!((denied.reason, denied.retry_after), (Reason::Limit, Some(day)), "the fourth");
}

#[test]
fn a_table_full_of_denying_keys_of_one_policy_admits_new_keys_of_another() {
    let bench = Bench::new();
    let (login, api) = (named("login", "1/d fixed"), named("api", "10/d fixed"));
    for index in 0..4 * MAX_KEYS {
        let _ = bench.check(&login, &format!("invented {index}"), 1);
    }
    let stats = bench.store.stats();
    assert_eq!((stats.keys, stats.evicted), (MAX_KEYS, 0), "denying keys are not evicted");
    assert_eq!(bench.check(&login, "another", 1).reason, Reason::Store, "the policy is refused");
    // All keys of the other policy are admitted and counted, up to its share of a shard.
    let keys: Vec<_> = (0..MAX_KEYS / 4).map(|index| format!("user {index}")).collect();
    for key in &keys {
        let decision = bench.check(&api, key, 9);
        assert!(decision.allowed && decision.reason == Reason::Limit, "{key}: {decision:?}");
    }
    for key in &keys {
        assert_eq!(bench.remaining(&api, key), 1, "{key}");
    }
    // A policy with its share displaces no denying key.
    for index in 0..4 * MAX_KEYS {
        let _ = bench.check(&api, &format!("invented {index}"), 10);
    }
    let denying = (0..4 * MAX_KEYS)
        .filter(|index| bench.remaining(&login, &format!("invented {index}")) == 0)
        .count();
    assert!((MAX_KEYS / 2 - 8..=MAX_KEYS / 2 + 8).contains(&denying), "{denying} denying keys");
}

#[test]
fn leases_are_not_displaced() {
    let bench = Bench::new();
    let (jobs, api) = (named("jobs", "5 concurrent lease 1d"), named("api", "10/d"));
    for index in 0..2 * MAX_KEYS {
        let _ = bench.check(&jobs, &format!("job {index}"), 1);
    }
    for index in 0..2 * MAX_KEYS {
        let _ = bench.check(&api, &format!("user {index}"), 1);
    }
    let held = (0..2 * MAX_KEYS)
        .filter(|index| bench.remaining(&jobs, &format!("job {index}")) == 4)
        .count();
    assert_eq!(held, MAX_KEYS);
}

/// Inline limits are all of one group: a client that invents limits does not reduce the share of a
/// policy.
#[test]
fn inline_limits_share_the_part_of_one_policy() {
    let bench = Bench::new();
    let api = named("api", "10/d");
    let keys: Vec<_> = (0..MAX_KEYS / 4).map(|index| format!("user {index}")).collect();
    for key in &keys {
        let _ = bench.check(&api, key, 1);
    }
    for index in 0..20_000 {
        let inline: Policy = format!("{}/d", 2 + index % 500).parse().unwrap();
        let _ = bench.check(&inline, &format!("invented {index}"), 2);
    }
    let known = keys.iter().filter(|key| bench.remaining(&api, key) == 9).count();
    assert_eq!(known, keys.len());
}

/// A search that found nothing to evict is repeated only when its result can differ.
#[test]
fn a_refund_or_a_reset_makes_room_in_a_full_table() {
    let bench = Bench::new();
    let limit = named("login", "1/d fixed");
    let admitted: Vec<_> = (0..4 * MAX_KEYS)
        .map(|index| format!("user {index}"))
        .filter(|key| bench.check(&limit, key, 1).allowed)
        .collect();
    assert_eq!(admitted.len(), MAX_KEYS);
    let new = |prefix: &str| {
        let admits = |index: &usize| bench.check(&limit, &format!("{prefix} {index}"), 1).allowed;
        (0..1_000).filter(admits).count()
    };
    assert_eq!(new("refused"), 0);
    for key in &admitted[..10] {
        let _ = bench.execute(Operation::Reset, &limit, key, 0);
    }
    assert_eq!(new("after resets"), 10);
    for key in &admitted[10..20] {
        let _ = bench.execute(Operation::Refund { time: None }, &limit, key, 1);
    }
    assert_eq!(new("after refunds"), 10);
    bench.clock.advance(Micros::from_secs(86_400));
    assert_eq!(new("after the window"), 1_000.min(MAX_KEYS));
}
