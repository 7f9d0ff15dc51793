//! Any bytes are a snapshot or are refused. What is taken is saved as a snapshot that says the same,
//! and is decided about like any other state.
//!
//! The checksums are made to hold first: no fuzzer gets past them. A snapshot of a store that holds
//! something of each kind is there to begin with.
#![no_main]

#[path = "../../crates/store/tests/snapshot/contents.rs"]
mod contents;

use libfuzzer_sys::{fuzz_mutator, fuzz_target, fuzzer_mutate};
use tollgate_core::codec::Bytes;
use tollgate_core::{Check, Cost, Id, Micros, Policy, Request, Timestamp, Operation};
use tollgate_store::{ManualClock, MemoryStore};

const START: Timestamp = Timestamp::from_micros(1_763_650_000_000_000);

fuzz_target!(|bytes: &[u8]| {
    let _ = builder().restore(bytes);
    let Ok((store, restored)) = builder().restore(&contents::sealed(bytes)) else { return };
    let saved = save(&store);
    let (other, again) = builder().restore(&saved).expect("it was saved just now");
    assert_eq!((again.keys, again.blocks), (restored.keys, restored.blocks));
    // Keys that find no room in a table go by where they fall, which differs from store to store.
    if restored.no_room == 0 {
        assert_eq!(contents::contents(&save(&other)), contents::contents(&saved));
    }
    // By the policies of the file, too.
    let of_file = contents::sections(bytes).filter(|(kind, _)| *kind == 1);
    let of_file = of_file.filter_map(|(_, body)| Policy::decode(&mut Bytes::new(body)).ok());
    decide(&store, of_file.chain(policies()));
});

// Mostly bytes of a real snapshot are changed; from nothing, none is ever found.
fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    if size > 24 {
        return fuzzer_mutate(data, size, max_size);
    }
    let sample = sample();
    let size = sample.len().min(max_size);
    data[..size].copy_from_slice(&sample[..size]);
    if let Some(byte) = data[..size].get_mut(usize::try_from(seed).unwrap_or(0) % sample.len()) {
        *byte ^= 1;
    }
    size
});

fn builder() -> tollgate_store::MemoryStoreBuilder {
    MemoryStore::builder().clock(ManualClock::at(START)).max_keys(64)
}

fn save(store: &MemoryStore) -> Vec<u8> {
    let mut snapshot = Vec::new();
    store.write_snapshot(&mut snapshot).expect("a vector takes all");
    snapshot
}

fn sample() -> Vec<u8> {
    let store = builder().build();
    decide(&store, policies());
    save(&store)
}

/// Verbs that change much, on the key that a changed sample mostly has.
fn decide(store: &MemoryStore, policies: impl Iterator<Item = Policy>) {
    let id = Id::from_u128(7);
    let verbs = [
        Operation::Unblock,
        Operation::Check { lease: Some(id) },
        Operation::Reserve { id, max_wait: Micros::from_secs(1_000_000) },
        Operation::Renew { lease: id },
        Operation::Penalize,
        Operation::Block { span: None },
        Operation::Peek,
    ];
    for policy in policies {
        for verb in verbs {
            let checks = [Check { policy: &policy, key: b"k", cost: Cost::ONE }];
            let request = Request { operation: verb, checks: &checks, request_id: None };
            // What the policy has no such verb for is refused.
            let _ = store.decide_now(&request);
        }
    }
}

fn policies() -> impl Iterator<Item = Policy> {
    let named = |limits: &str| {
        let limits = tollgate_core::parse_limits(limits).expect("they are written well");
        Policy::new("api", limits).expect("a name and limits")
    };
    let unnamed = [
        "10/s burst 20",
        "20/s queue 9",
        "10/h fixed",
        "10/h log",
        "10/h sliding",
        "9/h sliding by 1min",
    ];
    let unnamed = unnamed.map(|unnamed| unnamed.parse::<Policy>().expect("it is written well"));
    // The second leaves state of limits that it lacks.
    let named = [named("9/s; 9/h log"), named("9/s"), named("5 concurrent lease 60s; 20/min")];
    let own = named[2].clone().with_max_keys(9);
    unnamed.into_iter().chain(named).chain([own])
}
