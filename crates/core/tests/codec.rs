//! The codec: decoded state decides as the encoded state does, and everything else is rejected.

#![allow(clippy::panic, clippy::unwrap_used, reason = "tests, and what they share")]

use proptest::prelude::*;
use tollgate_algorithms::codec::{Bytes, Malformed};
use tollgate_algorithms::{
    Anomalies, Ban, Check, CheckContext, Cost, Decision, Id, KeyState, Limit, Micros, Operation,
    Policy, Request, Timestamp, decide, parse_limits,
};

/// Versions of one policy. Those of a row charge one key in turn, which detaches state.
const VERSIONS: &[&[&str]] = &[
    &["10/s burst 20"],
    &["10/s", "15/s burst 40", "7/s"],
    &["7/3s queue 5", "9/3s queue 8; 20/min"],
    &["9999991/30d", "8999999/30d", "1000/366d burst 20"],
    &["10/s fixed", "12/s fixed offset 300ms count-denied"],
    &["10/s fixed from-first count-denied"],
    &["10/10s log count-denied", "8/10s log"],
    &["10/10s sliding count-denied", "14/10s sliding"],
    &["10/10s sliding by 1s strict count-denied", "8/10s sliding by 1s"],
    &["5 concurrent lease 2s", "3 concurrent lease 500ms; 10/s"],
    &["10/s; 20/10s fixed count-denied; 30/min log", "20/s; 10/10s log; 5 concurrent lease 1s"],
    &["4/s; 9/s; 30/min queue 4", "9/s"],
];

/// Spans between two requests, in µs; some clocks step back.
const SPANS: &[i64] = &[0, 0, 1, 999, 100_000, 300_000, 1_000_000, 12_000_000, -1, -2_000_000];

const IMPOSSIBLE: &str = "no charge can produce the state of a limit";

const START: u64 = 1_763_650_000_000_000;

#[derive(Clone, Copy, Debug)]
struct Step {
    version: usize,
    operation: u8,
    cost: u64,
    id: u128,
    span: usize,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let costs = prop_oneof![Just(1), 0..12_u64];
    let step = |(version, operation, cost, id, span)| Step { version, operation, cost, id, span };
    let steps = (0..3_usize, 0..13_u8, costs, 0..6_u128, 0..SPANS.len()).prop_map(step);
    prop::collection::vec(steps, 1..60)
}

fn operation(step: &Step, now: Timestamp) -> Operation {
    let id = Id::from_u128(step.id);
    match step.operation {
        0 => Operation::Peek,
        1 => Operation::Take,
        2 | 3 => Operation::Reserve { id, max_wait: Micros::from_secs(60) },
        4 => Operation::Cancel { id },
        5 => Operation::Refund { time: step.id.is_multiple_of(2).then_some(now) },
        6 => Operation::Penalize,
        7 if step.id == 0 => Operation::Reset,
        8 => Operation::Renew { lease: id },
        9 => Operation::Release { lease: id },
        10 => {
            let ago = Micros::from_millis(u64::try_from(step.id).unwrap() * 700);
            Operation::Backfill { limit: 0, time: now.saturating_sub(ago) }
        }
        _ => Operation::Check { lease: Some(id) },
    }
}

fn encode(state: &KeyState) -> Vec<u8> {
    let mut bytes = Vec::new();
    state.encode(&mut bytes);
    bytes
}

fn decode(policy: &Policy, bytes: &[u8]) -> Result<KeyState, Malformed> {
    let mut from = Bytes::new(bytes);
    let state = KeyState::decode(policy, &mut from)?;
    if from.is_empty() { Ok(state) } else { Err(Malformed("unexpected data after the state")) }
}

/// Encodes and decodes the state. That of an unknown key is not encoded.
fn round_trip(state: &KeyState) -> KeyState {
    let Some(policy) = state.policy() else { return KeyState::default() };
    let bytes = encode(state);
    let copy = decode(policy, &bytes).unwrap_or_else(|error| panic!("{state:?}: {error}"));
    assert_eq!(encode(&copy), bytes, "{state:?}");
    copy
}

fn decide_one(
    operation: &Operation,
    policy: &Policy,
    state: &mut KeyState,
    cost: u64,
    now: Timestamp,
) -> Vec<Decision> {
    let context = CheckContext { policy, state, block: &mut None, cost };
    decide(operation, &mut [context], now, &mut Anomalies::default())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn decoded_state_decides_as_the_encoded_state(row in 0..VERSIONS.len(), steps in steps()) {
        let second = Micros::from_secs(1);
        let policy = |text: &&str| {
            let policy = Policy::new("api", parse_limits(text).unwrap()).unwrap();
            policy.with_log_entries(4).with_ban(Ban::new(2, second, second).unwrap())
        };
        let versions: Vec<_> = VERSIONS[row].iter().map(policy).collect();
        let mut state = KeyState::default();
        let mut now = START;
        for step in steps {
            now = now.saturating_add_signed(SPANS[step.span]);
            let at = Timestamp::from_micros(now);
            let policy = &versions[step.version % versions.len()];
            let operation = operation(&step, at);
            let cost = Cost::new(step.cost).unwrap();
            let checks = [Check { policy, key: b"k", cost }];
            if (Request { operation, checks: &checks, request_id: None }).validate_for_store().is_err() {
                continue;
            }
            let mut copy = round_trip(&state);
            let decided = decide_one(&operation, policy, &mut state, step.cost, at);
            prop_assert_eq!(&decide_one(&operation, policy, &mut copy, step.cost, at), &decided);
            prop_assert_eq!(encode(&copy), encode(&state));
        }
    }

    #[test]
    fn arbitrary_bytes_are_decoded_or_rejected(row in 0..VERSIONS.len(), mut bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let policy: Policy = VERSIONS[row][0].parse().unwrap();
        // Valid flags, so that the decoder gets beyond the first byte.
        for (flag, forms) in bytes.iter_mut().zip([4, 2]) {
            *flag %= forms;
        }
        if let Ok(state) = decode(&policy, &bytes) {
            prop_assert_eq!(encode(&state), bytes);
            prop_assert!(state.recovers_at(Timestamp::from_micros(START)) < u64::MAX);
        }
    }
}

/// The encoding of a state of one limit: flags, then these numbers.
fn state_bytes(numbers: &[u64]) -> Vec<u8> {
    let mut bytes = vec![0, 1];
    numbers.iter().for_each(|number| bytes.extend_from_slice(&number.to_le_bytes()));
    bytes
}

/// As [`state_bytes`], with a count after the first `before` numbers.
fn list_bytes(before: usize, count: u32, numbers: &[u64]) -> Vec<u8> {
    let (head, tail) = numbers.split_at(before);
    let mut bytes = state_bytes(head);
    bytes.extend_from_slice(&count.to_le_bytes());
    tail.iter().for_each(|number| bytes.extend_from_slice(&number.to_le_bytes()));
    bytes
}

#[test]
fn state_that_no_charge_can_produce_is_rejected() {
    const LAST: u64 = Timestamp::MAX.as_micros();
    const SECOND: u64 = 1_000_000;
    // The policy, an extreme valid state, and an invalid one.
    let rows: &[(&str, &[u64], &[u64])] = &[
        // The bucket holds 20 tokens of 100,000 units, and twice as many with debt.
        ("10/s burst 20", &[LAST, 4_000_000], &[LAST, 4_000_001]),
        ("10/s burst 20", &[START, 1], &[LAST + 1, 1]),
        // The tick is 10 ms.
        ("9999991/30d", &[START, 1], &[START + 1, 1]),
        ("10/s fixed", &[LAST + SECOND, 20], &[LAST + SECOND + 1, 20]),
        ("10/s fixed", &[START + 300_000, 20], &[START, 21]),
        ("10/10s sliding", &[START, 20, 20], &[START, 21, 0]),
        ("10/10s sliding", &[START, 0, 20], &[START, 0, 21]),
        ("10/10s sliding", &[START, 1, 1], &[START + SECOND, 1, 1]),
    ];
    for (text, valid, invalid) in rows {
        let policy: Policy = text.parse().unwrap();
        assert!(decode(&policy, &state_bytes(valid)).is_ok(), "{text} {valid:?}");
        assert!(decode(&policy, &state_bytes(invalid)).is_err(), "{text} {invalid:?}");
    }
}

#[test]
fn a_ban_that_no_denial_can_produce_is_rejected() {
    const LAST: u64 = Timestamp::MAX.as_micros();
    let policy: Policy = "10/s".parse().unwrap();
    let ban = |numbers: [u64; 2]| {
        let mut bytes = vec![2, 0];
        numbers.iter().for_each(|number| bytes.extend_from_slice(&number.to_le_bytes()));
        decode(&policy, &bytes)
    };
    for numbers in [[LAST, 0], [START, 1], [START, 1_000_000]] {
        let state = ban(numbers).unwrap();
        assert_eq!(state.ban().end().map(Timestamp::as_micros), Some(numbers[0]));
    }
    for numbers in [[LAST + 1, 0], [START, 1_000_001]] {
        assert!(ban(numbers).is_err(), "{numbers:?}");
    }
}

/// DESIGN.md states these sizes.
#[test]
fn the_size_of_counted_denials_does_not_depend_on_their_number() {
    let second = Micros::from_secs(1);
    let policy: Policy = "1/d".parse().unwrap();
    let policy = policy.with_ban(Ban::new(900, second, second).unwrap());
    let (mut state, now) = (KeyState::default(), Timestamp::from_micros(START));
    decide_one(&Operation::Take, &policy, &mut state, 1, now);
    assert_eq!((state.heap_bytes(), encode(&state).len()), (0, 18));
    for _ in 0..1_000 {
        decide_one(&Operation::Take, &policy, &mut state, 1, now);
        assert_eq!((state.heap_bytes(), encode(&state).len()), (120, 34));
    }
    let later = now.saturating_add(Micros::from_secs(86_400));
    decide_one(&Operation::Take, &policy, &mut state, 1, later);
    assert_eq!(state.heap_bytes(), 0, "the ban has ended");
}

#[test]
fn logs_and_leases_that_no_charge_can_produce_are_rejected() {
    const SECOND: u64 = 1_000_000;
    let check = |text: &str, bytes: &[u8], expected: Result<(), &str>| {
        let policy: Policy = text.parse().unwrap();
        let read = decode(&policy, bytes).map(|_| ()).map_err(|error| error.0);
        assert_eq!(read, expected, "{text} {bytes:?}");
    };
    let log = |count, numbers: &[u64]| list_bytes(0, count, numbers);
    let (two, bad) = ([START, 7, START + 1, 13], Err(IMPOSSIBLE));
    check("10/10s log", &log(2, &two), Ok(()));
    check("10/10s log", &log(2, &[START, 7, START + 1, 14]), bad);
    check("10/10s log", &log(2, &[START, 7, START, 1]), bad);
    check("10/10s log", &log(2, &[START, 7, START + 1, 0]), bad);
    check("10/10s log", &log(1, &[Timestamp::MAX.as_micros() + 1, 1]), bad);
    check("10/10s log", &log(3, &two), Err("unexpected end of data"));
    check("10/10s log", &log(u32::MAX, &two), Err("unexpected end of data"));
    check("10/10s log", &log(1, &two), Err("unexpected data after the state"));
    let sums = [START, u64::MAX, START + 1, 1];
    check("10/10s log", &log(2, &sums), Err("the sum of a log overflows"));

    let buckets: Vec<_> = (0..4).flat_map(|n| [START + n * SECOND, 20]).collect();
    check("10/3s sliding by 1s", &log(4, &buckets), Ok(()));
    check("10/2s sliding by 1s", &log(4, &buckets), bad);
    check("9/3s sliding by 1s", &log(4, &buckets), bad);
    check("10/3s sliding by 1s", &log(1, &[START + 1, 1]), bad);

    // An id is two numbers.
    let leases = |count, numbers: &[u64]| list_bytes(1, count, numbers);
    let (text, bad) = ("5 concurrent lease 2s", Err(IMPOSSIBLE));
    check(text, &leases(2, &[START, 1, 0, 2, START + 1, 2, 0, 1, START + 1]), Ok(()));
    check(text, &leases(2, &[START, 1, 0, 2, START + 1, 2, 0, 1, START]), bad);
    check(text, &leases(1, &[START, 1, 0, 0, START + 1]), bad);
    check(text, &leases(1, &[START, 1, 0, 10_001, START + 1]), bad);
    check(text, &leases(1, &[START, 1, 0, 1, START + 367 * 86_400 * SECOND]), bad);
    let sums = [START, 1, 0, u64::MAX, START, 1, 0, 1, START];
    check(text, &leases(2, &sums), Err("the sum of the leases overflows"));
}

/// A state of `10/s` with detached states of these limits and ranks, each with one used token.
fn with_detached(detached: &[(&str, u8)]) -> Vec<u8> {
    let mut bytes = state_bytes(&[START, 100_000]);
    bytes[0] = 1;
    bytes.extend_from_slice(&u32::try_from(detached.len()).unwrap().to_le_bytes());
    for (limit, rank) in detached {
        bytes.extend_from_slice(&u32::try_from(limit.len()).unwrap().to_le_bytes());
        bytes.extend_from_slice(limit.as_bytes());
        bytes.push(*rank);
        [START, 100_000].iter().for_each(|number| bytes.extend_from_slice(&number.to_le_bytes()));
    }
    bytes.extend_from_slice(&0_u32.to_le_bytes());
    bytes
}

#[test]
fn detached_states_that_no_charge_can_produce_are_rejected() {
    let policy: Policy = "10/s".parse().unwrap();
    let (twice, many) = (Err("a limit has two states"), Err("a key has too many detached states"));
    let check = |detached: &[(&str, u8)], expected: Result<(), &str>| {
        let read = decode(&policy, &with_detached(detached)).map(|_| ()).map_err(|error| error.0);
        assert_eq!(read, expected, "{detached:?}");
    };
    check(&[("10/s burst 20", 0), ("10/s burst 30", 0), ("10/s burst 20", 1)], Ok(()));
    check(&[("10/s", 0)], twice);
    check(&[("10/s", 1)], Ok(()));
    check(&[("10/s burst 20", 0), ("10/s burst 20", 0)], twice);
    let bursts: Vec<_> = (20..29).map(|n| format!("10/s burst {n}")).collect();
    let nine: Vec<_> = bursts.iter().map(|burst| (&**burst, 0)).collect();
    check(&nine[1..], Ok(()));
    check(&nine, many);
}

#[test]
fn reservations_under_two_versions_are_decoded() {
    let versions = ["1/s burst 4", "1/s burst 8"]
        .map(|limits| Policy::new("p", parse_limits(limits).unwrap()).unwrap());
    let mut state = KeyState::default();
    let now = Timestamp::from_micros(START);
    let check = Operation::Check { lease: None };
    decide_one(&check, &versions[0], &mut state, 4, now);
    for (id, policy, cost) in [(0, &versions[0], 2), (1, &versions[1], 6), (2, &versions[1], 2)] {
        let operation =
            Operation::Reserve { id: Id::from_u128(id), max_wait: Micros::from_secs(60) };
        assert!(decide_one(&operation, policy, &mut state, cost, now)[0].allowed);
    }
    let mut copy = round_trip(&state);
    for (id, policy, changed) in [(0, 1, false), (0, 0, true), (1, 0, false), (1, 1, true)] {
        let operation = Operation::Cancel { id: Id::from_u128(id) };
        let decided = decide_one(&operation, &versions[policy], &mut copy, 0, now);
        assert_eq!(decided[0].changed, changed, "{id} under version {policy}");
        assert_eq!(decided, decide_one(&operation, &versions[policy], &mut state, 0, now));
    }
}

#[test]
fn policies_and_flags_in_another_form_are_rejected() {
    let mut bytes = Vec::new();
    let named = Policy::new("api", parse_limits("240/h; 10/s").unwrap()).unwrap();
    let unnamed: Policy = "10/s burst 20".parse().unwrap();
    let reserved = Policy::reserved("@envoy.shop", ["10/s".parse().unwrap()]).unwrap();
    let all = [named, unnamed, reserved];
    all.iter().for_each(|policy| policy.encode(&mut bytes));
    let mut from = Bytes::new(&bytes);
    for policy in all {
        assert_eq!(Policy::decode(&mut from), Ok(policy));
    }
    assert!(from.is_empty());

    let text = |text: &str| {
        let length = u32::try_from(text.len()).unwrap().to_le_bytes();
        [&length[..], text.as_bytes()].concat()
    };
    for (name, limits) in [
        ("", "10 / s"),
        ("", "10/s;240/h"),
        ("", ""),
        ("api", "240/h; 10/s"),
        ("=10/s", "10/s"),
        ("5api", "10/s"),
        ("@", "10/s"),
    ] {
        let bytes = [text(name), text(limits)].concat();
        assert!(Policy::decode(&mut Bytes::new(&bytes)).is_err(), "{name:?} {limits:?}");
    }
    let limit: Limit = "10/s".parse().unwrap();
    let policy: Policy = limit.to_string().parse().unwrap();
    for (bytes, reason) in [
        (&[0, 2][..], "a flag is neither 0 nor 1"),
        (&[4, 0], "the form of a state is unknown"),
        (&[1, 0, 0, 0, 0, 0, 0, 0, 0, 0], "announced states are missing"),
        (&[], "unexpected end of data"),
    ] {
        assert_eq!(decode(&policy, bytes).map(|_| ()), Err(Malformed(reason)), "{bytes:?}");
    }
}

/// Policies are compared by address first. Decoded state has a policy of its own; after a charge it
/// has that of the charge, so that later checks do not compare the limits.
#[test]
fn decoded_state_takes_the_policy_of_its_first_charge() {
    for text in ["10/s", "10/s; 20/min log"] {
        let policy: Policy = text.parse().unwrap();
        let mut state = KeyState::default();
        let now = Timestamp::from_micros(START);
        let operation = Operation::Check { lease: None };
        decide_one(&operation, &policy, &mut state, 1, now);
        let mut read = decode(&text.parse().unwrap(), &encode(&state)).unwrap();
        assert!(!read.policy().unwrap().ptr_eq(&policy));
        decide_one(&operation, &policy, &mut read, 1, now);
        assert!(read.policy().unwrap().ptr_eq(&policy), "{text}");
    }
}
