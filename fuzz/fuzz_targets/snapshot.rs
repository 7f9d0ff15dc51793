//! Restores arbitrary bytes as a snapshot. A restored store saves an equivalent snapshot and makes
//! decisions.
//!
//! The checksums are corrected first, because a fuzzer would not find them. The mutator starts with
//! a snapshot of a store with state of every kind.
#![no_main]

#[path = "../../crates/store/tests/snapshot/contents.rs"]
mod contents;

use libfuzzer_sys::{fuzz_mutator, fuzz_target, fuzzer_mutate};
use tollgate_algorithms::codec::Bytes;
use tollgate_algorithms::{Check, Cost, Id, Micros, Operation, Policy, Request, Timestamp};
use tollgate_state::{ManualClock, MemoryStore};

const START: Timestamp = Timestamp::from_micros(1_763_650_000_000_000);

fuzz_target!(|bytes: &[u8]| {
    let _ = builder().restore(bytes);
    let Ok((store, restored)) = builder().restore(&contents::sealed(bytes)) else { return };
    let saved = save(&store);
    let (other, report) = builder().restore(&saved).expect("a saved snapshot restores");
    assert_eq!((report.keys, report.blocks), (restored.keys, restored.blocks));
    // Which keys a full table drops depends on the hash seed of the store.
    if restored.no_room == 0 {
        assert_eq!(contents::contents(&save(&other)), contents::contents(&saved));
    }
    // The policies of the snapshot, too.
    let stored = contents::sections(bytes).filter(|(kind, _)| *kind == 1);
    let stored = stored.filter_map(|(_, body)| Policy::decode(&mut Bytes::new(body)).ok());
    decide(&store, stored.chain(policies()));
});

// Changes bytes of a real snapshot; the fuzzer would not find one from scratch.
fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    if size > 24 {
        return fuzzer_mutate(data, size, max_size);
    }
    let sample = sample();
    let size = sample.len().min(max_size);
    data[..size].copy_from_slice(&sample[..size]);
    if let Some(byte) =
        data[..size].get_mut(usize::try_from(seed).expect("at least 32 bits") % sample.len())
    {
        *byte ^= 1;
    }
    size
});

fn builder() -> tollgate_state::MemoryStoreBuilder {
    MemoryStore::builder().clock(ManualClock::at(START)).max_keys(64)
}

fn save(store: &MemoryStore) -> Vec<u8> {
    let mut snapshot = Vec::new();
    store.write_snapshot(&mut snapshot).expect("writing to a vector succeeds");
    snapshot
}

fn sample() -> Vec<u8> {
    let store = builder().build();
    decide(&store, policies());
    save(&store)
}

/// Operations with large effects, on the key of the sample.
fn decide(store: &MemoryStore, policies: impl Iterator<Item = Policy>) {
    let id = Id::from_u128(7);
    let operations = [
        Operation::Unblock,
        Operation::Check { lease: Some(id) },
        Operation::Reserve { id, max_wait: Micros::from_secs(1_000_000) },
        Operation::Renew { lease: id },
        Operation::Penalize,
        Operation::Backfill { limit: 0, time: Timestamp::EPOCH },
        Operation::Block { span: None },
        Operation::Peek,
    ];
    for policy in policies {
        for operation in operations {
            let checks = [Check { policy: &policy, key: b"k", cost: Cost::ONE }];
            let request = Request { operation, checks: &checks, request_id: None };
            // Operations that a policy does not support are errors.
            let _ = store.decide_now(&request);
        }
    }
}

fn policies() -> impl Iterator<Item = Policy> {
    let named = |limits: &str| {
        let limits = tollgate_algorithms::parse_limits(limits).expect("the limits are valid");
        Policy::new("api", limits).expect("the policy is valid")
    };
    let unnamed = [
        "10/s burst 20",
        "20/s queue 9",
        "10/h fixed",
        "10/h log",
        "10/h sliding",
        "9/h sliding by 1min",
    ];
    let unnamed = unnamed.map(|limits| limits.parse::<Policy>().expect("the limits are valid"));
    // The second policy finds state of a limit that it does not have.
    let named = [named("9/s; 9/h log"), named("9/s"), named("5 concurrent lease 60s; 20/min")];
    let limited = named[2].clone().with_max_keys(9);
    unnamed.into_iter().chain(named).chain([limited])
}
