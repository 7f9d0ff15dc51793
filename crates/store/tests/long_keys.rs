//! Keys of more than 256 bytes are stored as their hash, and decide like any other key.
#![allow(clippy::unwrap_used, reason = "a test")]

use std::collections::HashSet;

use sha2::{Digest as _, Sha256};
use tollgate_algorithms::{
    Block, Check, Cost, Decision, Operation, Policy, Reason, Request, RequestError, Timestamp,
};
use tollgate_state::{Key, ManualClock, MemoryStore};

const LONG: usize = 60_000;

fn store() -> MemoryStore {
    let clock = ManualClock::at(Timestamp::from_micros(1_763_650_000_000_000));
    MemoryStore::builder().clock(clock).max_keys(10_000).build()
}

fn execute(
    store: &MemoryStore,
    operation: Operation,
    key: &[u8],
    id: Option<&[u8]>,
) -> Result<Decision, RequestError> {
    let policy: Policy = "3/h".parse().unwrap();
    let checks = [Check { policy: &policy, key, cost: Cost::ONE }];
    let answer = store.decide_now(&Request { operation, checks: &checks, request_id: id })?;
    Ok(answer.into_decision())
}

/// Keys that differ in their last bytes only.
fn long_key(number: usize) -> Vec<u8> {
    let mut key = vec![b'k'; LONG];
    key.extend(number.to_le_bytes());
    key
}

#[test]
fn long_keys_need_no_more_memory_than_short_keys() {
    let policy: Policy = "3/h".parse().unwrap();
    let bytes_of = |key: &dyn Fn(usize) -> Vec<u8>| {
        let store = store();
        for number in 0..2_000 {
            let key = key(number);
            for remaining in [2, 1] {
                let decision =
                    store.check(&policy, Key::new(&key).unwrap(), Cost::ONE, || unreachable!());
                assert_eq!(decision.remaining, remaining, "key {number}");
            }
        }
        assert_eq!(store.stats().keys, 2_000);
        store.bytes()
    };
    // Hashing differs between stores, and with it the sizes of their tables.
    let (long, short) = (bytes_of(&long_key), bytes_of(&|number| number.to_le_bytes().to_vec()));
    assert!(long < short + short / 5, "{long} bytes instead of {short}");
    // A key of 256 bytes is stored as it is.
    let longest_text = |number: usize| [&[b'k'; 248][..], &number.to_le_bytes()].concat();
    let longest = bytes_of(&longest_text);
    assert!(longest > short + 2_000 * 200, "{longest} bytes");
}

#[test]
fn a_long_key_and_its_hash_are_different_keys() {
    let store = store();
    let check = Operation::Check { lease: None };
    let long = long_key(1);
    let hash = Sha256::digest(&long);
    let keys: HashSet<&[u8]> =
        [&long[..], &long[1..], &hash, &hash[..26], &[b'k'; 256], &[b'k'; 257]].into();
    for remaining in [2, 1, 0] {
        for key in &keys {
            assert_eq!(execute(&store, check, key, None).unwrap().remaining, remaining);
        }
    }
    assert_eq!(store.stats().keys, keys.len());
}

#[test]
fn long_keys_can_be_blocked_inspected_and_reset() {
    let store = store();
    let policy: Policy = "3/h".parse().unwrap();
    let (key, other) = (long_key(1), long_key(2));
    let check = Operation::Check { lease: None };
    let _ = execute(&store, check, &key, None).unwrap();
    let _ = execute(&store, Operation::Block { span: None }, &key, None).unwrap();
    assert_eq!(execute(&store, check, &key, None).unwrap().reason, Reason::Blocked);
    assert!(execute(&store, check, &other, None).unwrap().allowed);
    let inspection = store.inspect(&policy, Key::new(&key).unwrap());
    assert_eq!((inspection.block, inspection.limits[0].used), (Some(Block::Forever), 1));
    let _ = execute(&store, Operation::Unblock, &key, None).unwrap();
    let _ = execute(&store, Operation::Reset, &key, None).unwrap();
    assert_eq!(execute(&store, check, &key, None).unwrap().remaining, 2);
}

#[test]
fn several_checks_of_one_long_key_are_charged_together() {
    let (store, policy) = (store(), "3/h".parse::<Policy>().unwrap());
    let (key, other) = (long_key(1), long_key(2));
    let check = |key| Check { policy: &policy, key, cost: Cost::ONE };
    let checks = [check(&key[..]), check(&other), check(&key)];
    let operation = Operation::Check { lease: None };
    let request = Request { operation, checks: &checks, request_id: None };
    let answer = store.decide_now(&request).unwrap();
    let remaining: Vec<_> = answer.decisions.iter().map(|decision| decision.remaining).collect();
    assert_eq!(remaining, [1, 2, 1]);
}

#[test]
fn a_request_id_is_compared_with_the_whole_of_a_long_key() {
    let store = store();
    let check = Operation::Check { lease: None };
    let id = &[b'i'; 256][..];
    let first = execute(&store, check, &long_key(1), Some(id)).unwrap();
    let repeated = execute(&store, check, &long_key(1), Some(id)).unwrap();
    assert!(!first.replayed && repeated.replayed);
    assert_eq!(repeated.remaining, first.remaining);
    let reused = execute(&store, check, &long_key(2), Some(id)).err();
    assert_eq!(reused, Some(RequestError::RequestIdReused));
    let other = execute(&store, Operation::Take, &long_key(1), Some(id)).err();
    assert_eq!(other, Some(RequestError::RequestIdReused));
}
