//! Snapshots: a restored store decides like the store that was saved.
#![allow(
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "tests and their helpers"
)]

mod concurrent;
mod contents;
mod damaged;
mod directory;
mod restored;
mod traces;

use tollgate_algorithms::parse_limits;
use tollgate_algorithms::{
    Check, Cost, Decision, Id, Micros, Operation, Policy, Request, Timestamp,
};
use tollgate_state::{Answer, ManualClock, MemoryStore, MemoryStoreBuilder, RestoreReport};

const START: Timestamp = Timestamp::from_micros(1_763_650_000_000_000);
const MAX_KEYS: usize = 4_096;

/// A store with a manual clock.
struct Bench {
    clock: ManualClock,
    store: MemoryStore,
}

impl Bench {
    fn new() -> Self {
        Bench::with(|builder| builder)
    }

    fn with(configure: impl FnOnce(MemoryStoreBuilder) -> MemoryStoreBuilder) -> Self {
        let clock = ManualClock::at(START);
        let store = configure(builder(&clock)).build();
        Bench { clock, store }
    }

    fn saved(&self) -> Vec<u8> {
        let mut snapshot = Vec::new();
        let report = self.store.write_snapshot(&mut snapshot).unwrap();
        assert_eq!(report.bytes, u64::try_from(snapshot.len()).unwrap());
        snapshot
    }

    /// Restores a snapshot of this store into another store, with a clock set to the same time.
    fn restored(&self) -> (Bench, RestoreReport) {
        self.restored_with(MAX_KEYS)
    }

    /// As [`Bench::restored`], with this maximum number of keys.
    fn restored_with(&self, max_keys: usize) -> (Bench, RestoreReport) {
        let clock = ManualClock::at(self.clock.now());
        let restored = builder(&clock).max_keys(max_keys).restore(&self.saved());
        let (store, report) = restored.unwrap();
        (Bench { clock, store }, report)
    }

    fn execute_all(&self, operation: Operation, checks: &[Check<'_>]) -> Answer {
        let request = Request { operation, checks, request_id: None };
        self.store.decide_now(&request).unwrap_or_else(|error| panic!("{operation:?}: {error}"))
    }

    fn execute(&self, operation: Operation, policy: &Policy, key: &[u8], cost: u64) -> Decision {
        let cost = Cost::new(cost).unwrap();
        self.execute_all(operation, &[Check { policy, key, cost }]).decisions.remove(0)
    }

    fn check(&self, policy: &Policy, key: &[u8], cost: u64) -> Decision {
        self.execute(Operation::Check { lease: Some(id(1)) }, policy, key, cost)
    }

    /// Returns what remains of the only limit of a key.
    fn remaining(&self, policy: &Policy, key: &[u8]) -> u64 {
        self.execute(Operation::Peek, policy, key, 0).remaining
    }

    fn advance(&self, seconds: u64) {
        self.clock.advance(Micros::from_secs(seconds));
    }
}

fn builder(clock: &ManualClock) -> MemoryStoreBuilder {
    MemoryStore::builder().clock(clock.clone()).max_keys(MAX_KEYS)
}

fn named(name: &str, limits: &str) -> Policy {
    Policy::new(name, parse_limits(limits).unwrap()).unwrap()
}

fn id(value: u128) -> Id {
    Id::from_u128(value)
}
