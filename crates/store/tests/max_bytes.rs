//! The bound in bytes: its accounting compared with the allocator, and what happens when it is used
//! up.
#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "a test")]

use std::alloc::System;
use std::sync::{Mutex, MutexGuard, PoisonError};

use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use tollgate_algorithms::{
    Check, Cost, Decision, Id, Micros, Operation, Policy, Reason, Request, Timestamp, parse_limits,
};
use tollgate_state::{Key, ManualClock, MemoryStore, MemoryStoreBuilder, TableFull};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// The tests count the allocations of the process, so one runs at a time.
static ALONE: Mutex<()> = Mutex::new(());

const MIB: usize = 1024 * 1024;
/// The growth of one key, by which a thread may exceed the bound, and temporary allocations.
const ALLOWANCE: usize = 64 * 1024;

struct Bench {
    clock: ManualClock,
    store: MemoryStore,
    region: Region<'static, System>,
    _alone: MutexGuard<'static, ()>,
}

impl Bench {
    fn new(configure: impl FnOnce(MemoryStoreBuilder) -> MemoryStoreBuilder) -> Self {
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let clock = ManualClock::at(Timestamp::from_micros(1_763_650_000_000_000));
        let region = Region::new(ALLOCATOR);
        let store = configure(MemoryStore::builder().clock(clock.clone())).build();
        Bench { clock, store, region, _alone: alone }
    }

    /// Returns the bytes that were allocated since the store was created, and are not freed.
    fn allocated(&self) -> usize {
        let change = self.region.change();
        change.bytes_allocated - change.bytes_deallocated
    }

    fn execute(
        &self,
        operation: Operation,
        policy: &Policy,
        key: &[u8],
        id: Option<&[u8]>,
    ) -> Decision {
        let checks = [Check { policy, key, cost: Cost::ONE }];
        let request = Request { operation, checks: &checks, request_id: id };
        self.store.decide_now(&request).unwrap().into_decision()
    }

    fn check(&self, policy: &Policy, key: &[u8]) -> Decision {
        let lease = Some(Id::from_u128(1));
        self.execute(Operation::Check { lease }, policy, key, None)
    }

    fn remaining(&self, policy: &Policy, key: &[u8]) -> u64 {
        self.execute(Operation::Peek, policy, key, None).remaining
    }

    /// Asserts that the store and the allocator agree within 2 % and 16 KiB.
    fn assert_accounted(&self, name: &str) {
        let (counted, allocated) = (self.store.bytes(), self.allocated());
        println!("{name}: {counted} bytes counted, {allocated} allocated");
        let tolerance = allocated / 50 + 16 * 1024;
        assert!(counted.abs_diff(allocated) <= tolerance, "{name}: {counted}, not {allocated}");
    }
}

fn named(name: &str, limits: &str) -> Policy {
    Policy::new(name, parse_limits(limits).unwrap()).unwrap()
}

/// A key of this length.
fn key(index: usize, length: usize) -> Vec<u8> {
    let mut key = index.to_le_bytes().to_vec();
    key.resize(length, b'k');
    key
}

#[test]
fn bytes_are_those_of_the_allocator() {
    for limits in [
        "10/d",
        "10/d fixed",
        "10/d log",
        "10/d sliding",
        "10/d sliding by 1h",
        "10 concurrent lease 1d",
        "10/d; 100/7d log; 9/d fixed",
        "10/d queue 10",
    ] {
        let policy = named("api", limits);
        let bench = Bench::new(|builder| builder);
        for index in 0..20_000 {
            for _ in 0..=index % 3 {
                let _ = bench.check(&policy, &key(index, [8, 100, 300][index % 3]));
                bench.clock.advance(Micros::new(1));
            }
        }
        bench.assert_accounted(limits);
        for index in 0..15_000 {
            let key = key(index, [8, 100, 300][index % 3]);
            let _ = bench.execute(Operation::Reset, &policy, &key, None);
        }
        bench.assert_accounted(&format!("{limits}, after resets"));
        bench.clock.advance(Micros::from_secs(30 * 86_400));
        (0..100).for_each(|_| bench.store.sweep(1_000));
        bench.assert_accounted(&format!("{limits}, recovered"));
        assert!(bench.store.bytes() < MIB, "{limits}");
    }
}

#[test]
fn states_that_grow_on_the_fast_path_are_counted_and_bounded() {
    let policy = named("api", "1000000/d log");
    let single = |bench: &Bench, index: usize| {
        let key = key(index % 1_000, 8);
        let key = Key::new(&key).unwrap();
        bench.store.check(&policy, key, Cost::ONE, || Id::from_u128(1)).allowed
    };
    let pair = |bench: &Bench, index: usize| {
        let keys = [0, 1].map(|other| key((index + other) % 1_000, 8));
        let checks = keys.each_ref().map(|key| Check::new(&policy, key));
        let operation = Operation::Check { lease: None };
        let request = Request { operation, checks: &checks, request_id: None };
        bench.store.decide_now(&request).unwrap().allowed()
    };
    assert_growth_is_bounded(single, 1);
    assert_growth_is_bounded(pair, 2);
}

/// A call of `check` adds an entry to the logs of `keys` of a thousand keys.
fn assert_growth_is_bounded(check: impl Fn(&Bench, usize) -> bool, keys: usize) {
    let bench = Bench::new(|builder| builder.max_bytes(3 * MIB));
    for index in 0..100_000 / keys {
        bench.clock.advance(Micros::new(1));
        assert!(check(&bench, index));
    }
    bench.assert_accounted("logs of 100 entries");
    for index in 0..300_000 {
        bench.clock.advance(Micros::new(1));
        check(&bench, index);
    }
    let bytes = bench.store.bytes();
    assert!((2 * MIB..=3 * MIB + ALLOWANCE).contains(&bytes), "{keys}: {bytes}");
    bench.assert_accounted("a full store");
}

#[test]
fn request_ids_and_reservations_are_counted() {
    let policy = named("api", "1000000/d");
    let wide = named("wide", "9/s; 9/2s; 9/3s; 9/4s; 9/5s; 9/6s");
    let bench = Bench::new(|builder| builder);
    for index in 0..20_000 {
        let policy = if index % 2 == 0 { &policy } else { &wide };
        let id = key(index, 200);
        let check = Operation::Check { lease: None };
        assert!(bench.execute(check, policy, &id, Some(&id)).allowed);
    }
    let stats = bench.store.stats();
    assert!(stats.request_id_bytes > 20_000 * 400, "{stats:?}");
    bench.assert_accounted("request ids");
    for index in 0..5_000 {
        let id = Id::from_u128(index);
        let reserve = Operation::Reserve { id, max_wait: Micros::from_secs(86_400) };
        let _ = bench.execute(reserve, &policy, b"reserved", None);
    }
    bench.assert_accounted("reservations");
    bench.clock.advance(Micros::from_secs(60));
    bench.store.sweep(1);
    assert!(bench.store.stats().request_id_bytes < 16 * 1024, "expired ids are freed");
    bench.assert_accounted("expired request ids");
}

/// Blocks are in B-trees, so their bytes are an estimate: at least what is allocated, at most twice
/// as much and a constant.
#[test]
fn bytes_of_blocks_are_estimated() {
    let policy = named("api", "10/d");
    let bench = Bench::new(|builder| builder.max_keys(64));
    let empty = bench.store.bytes();
    for index in 0..10_000 {
        let _ = bench.execute(Operation::Block { span: None }, &policy, &key(index, 20), None);
    }
    let (counted, allocated) = (bench.store.bytes() - empty, bench.allocated() - empty);
    assert!((allocated..2 * allocated).contains(&counted), "{counted}, not {allocated}");
    assert_eq!(bench.store.stats().block_bytes, counted);
    for index in 0..10_000 {
        let _ = bench.execute(Operation::Unblock, &policy, &key(index, 20), None);
    }
    assert_eq!(bench.store.stats().block_bytes, 0);
}

#[test]
fn a_flood_of_new_keys_stays_within_the_bound_and_evicts_itself() {
    for limits in ["10/d", "10/d log", "10/d sliding", "10/d; 100/7d log"] {
        let (policy, other) = (named("api", limits), named("own", limits).with_max_keys(100_000));
        let bench = Bench::new(|builder| builder.max_bytes(3 * MIB).max_keys(100_000));
        for _ in 0..9 {
            assert!(bench.check(&policy, b"victim").allowed);
        }
        for index in 0..60_000 {
            let key = key(index, 200 + index % 100);
            assert!(bench.check(&policy, &key).allowed, "{limits}: {index}");
            assert!(bench.check(&other, &key).allowed, "{limits}: {index}");
            if index % 1_000 == 0 {
                let (counted, allocated) = (bench.store.bytes(), bench.allocated());
                assert!(counted <= 3 * MIB + ALLOWANCE, "{limits}: {counted} bytes");
                assert!(allocated <= 3 * MIB + 2 * ALLOWANCE, "{limits}: {allocated} bytes");
            }
        }
        let stats = bench.store.stats();
        assert!(stats.key_bytes > 2 * MIB && stats.full == 0, "{limits}: {stats:?}");
        assert!(stats.evicted > 50_000, "{limits}: {stats:?}");
        assert_eq!(bench.remaining(&policy, b"victim"), 1, "{limits}");
    }
}

/// The states of new keys are known only after the decision, so that the request that uses the last
/// bytes exceeds the bound by them.
#[test]
fn a_request_with_several_checks_exceeds_the_bound_by_its_states_at_most() {
    let limits: Vec<_> = (1..=16).map(|days| format!("100000/{days}d log")).collect();
    let policy = named("api", &limits.join("; "));
    let request = |bench: &Bench, first: usize| {
        let keys: Vec<_> = (first..first + 32).map(|index| key(index, 200)).collect();
        let new = |key| Check { policy: &policy, key, cost: Cost::ONE };
        let checks: Vec<_> = keys.iter().map(|key| new(&**key)).collect();
        let operation = Operation::Check { lease: None };
        let request = Request { operation, checks: &checks, request_id: None };
        bench.store.decide_now(&request).unwrap().allowed()
    };
    let unbounded = Bench::new(|builder| builder);
    let before = unbounded.store.bytes();
    assert!(request(&unbounded, 0));
    let states = unbounded.store.bytes() - before;
    drop(unbounded);
    let bench = Bench::new(|builder| builder.max_bytes(2 * MIB));
    let mut greatest = 0;
    for index in 0..1_000 {
        request(&bench, 32 * index);
        greatest = greatest.max(bench.store.bytes());
    }
    println!("{states} bytes per request, at most {greatest} bytes, {:?}", bench.store.stats());
    assert!((2 * MIB..=2 * MIB + states).contains(&greatest), "{greatest}, {states}");
    let stats = bench.store.stats();
    // Keys of other requests are evicted, and the requests are admitted.
    assert!(stats.evicted > 20_000 && stats.full < 10_000, "{stats:?}");
}

#[test]
fn checks_that_need_memory_are_refused_if_no_key_can_be_evicted() {
    for (table_full, allowed) in [(TableFull::Deny, false), (TableFull::Allow, true)] {
        let configure = |builder: MemoryStoreBuilder| builder.max_bytes(MIB).table_full(table_full);
        let bench = Bench::new(configure);
        let (login, log) = (named("login", "1/d fixed"), named("log", "1000000/d log"));
        assert!(bench.check(&log, b"a log").allowed);
        for index in 0..20_000 {
            let _ = bench.check(&login, &key(index, 200));
        }
        let stats = bench.store.stats();
        assert!(stats.full > 10_000 && stats.evicted <= 1, "{stats:?}");
        let decision = bench.check(&login, &key(1_000_000, 200));
        assert_eq!((decision.allowed, decision.reason), (allowed, Reason::Store));
        assert_eq!(bench.check(&login, &key(0, 200)).reason, Reason::Limit, "a known key");
        for index in 0..20_000 {
            bench.clock.advance(Micros::new(1));
            let decision = bench.check(&log, b"a log");
            assert!(decision.allowed || decision.reason == Reason::Store, "{index}");
            let _ = bench.execute(Operation::Block { span: None }, &login, &key(index, 100), None);
        }
        let bytes = bench.store.bytes();
        assert!(bytes <= MIB + ALLOWANCE && bench.allocated() <= MIB + 2 * ALLOWANCE, "{bytes}");
        bench.clock.advance(Micros::from_secs(86_400));
        assert!(
            (0..1_000).all(|index| bench.check(&login, &key(index, 30)).reason == Reason::Limit)
        );
    }
}

#[test]
fn request_ids_take_at_most_half_and_the_newest_are_remembered() {
    let policy = named("api", "1000000/d");
    let bench = Bench::new(|builder| builder.max_bytes(2 * MIB));
    let check = Operation::Check { lease: None };
    for index in 0..30_000 {
        assert!(bench.execute(check, &policy, b"key", Some(&key(index, 256))).allowed);
        let again = bench.execute(check, &policy, b"key", Some(&key(index, 256)));
        assert!(again.replayed, "request {index}");
    }
    let stats = bench.store.stats();
    assert!((MIB / 2..=MIB).contains(&stats.request_id_bytes), "{stats:?}");
    assert!(!bench.execute(check, &policy, b"key", Some(&key(0, 256))).replayed, "the oldest");
    bench.assert_accounted("request ids");
}

/// Known keys need no memory, but the request ids of their checks do.
#[test]
fn request_ids_of_known_keys_evict_other_keys() {
    let policy = named("api", "1000000/h");
    let bench = Bench::new(|builder| builder.max_bytes(2 * MIB));
    for index in 0..40_000 {
        let _ = bench.check(&policy, &key(index, 8));
    }
    for index in 0_u64..20_000 {
        let id = index.to_le_bytes();
        let operation = Operation::Check { lease: None };
        let _ = bench.execute(operation, &policy, b"known", Some(&id));
        let bytes = bench.store.bytes();
        assert!(bytes <= 2 * MIB + ALLOWANCE, "{index}: {bytes}");
    }
}

#[test]
fn settlements_are_remembered_while_request_ids_use_up_their_bytes() {
    let bench = Bench::new(|builder| builder.max_bytes(4 * MIB));
    let policy = named("p", "9000000/h fixed");
    let check = Operation::Check { lease: None };
    let settle = |id: &[u8]| {
        let checks = [Check { policy: &policy, key: b"k", cost: Cost::ZERO }];
        let request =
            Request { operation: Operation::Settle, checks: &checks, request_id: Some(id) };
        bench.store.decide_now(&request)
    };
    let before = bench.remaining(&policy, b"k");
    for number in 0..20_000_u32 {
        let id = number.to_le_bytes();
        let _ = bench.execute(check, &policy, b"k", Some(&id));
        let first = settle(&id).unwrap().into_decision();
        assert!(first.changed && !first.replayed);
        assert!(settle(&id).unwrap().into_decision().replayed, "it is settled once");
    }
    assert_eq!(bench.remaining(&policy, b"k"), before);
    assert!(settle(&0_u32.to_le_bytes()).is_err(), "the oldest are forgotten");
    bench.assert_accounted("settlements");
}
