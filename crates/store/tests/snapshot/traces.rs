//! Random traces, saved midway: the restored store continues exactly like the saved one.

use fastrand::Rng;
use tollgate_algorithms::{Check, Cost, KeyList, Micros, Operation, Policy, Request, Timestamp};

use crate::{Bench, START, id, named};

/// Limits of one policy, used in turn on the same keys.
const LIMITS: &[&[&str]] = &[
    &["10/s burst 20"],
    &["10/s", "15/s burst 40"],
    &["7/3s queue 5", "9/3s queue 8; 20/min"],
    &["9999991/30d", "1000/366d burst 20"],
    &["10/10s fixed", "12/10s fixed offset 300ms count-denied"],
    &["10/10s fixed from-first count-denied"],
    &["10/10s log count-denied", "8/10s log"],
    &["10/10s sliding count-denied", "14/10s sliding"],
    &["10/10s sliding by 1s strict count-denied", "8/10s sliding by 1s"],
    &["5 concurrent lease 20s", "3 concurrent lease 5s; 10/s"],
    &["10/s; 20/10s fixed count-denied; 30/min log", "20/s; 10/10s log; 5 concurrent lease 9s"],
    &["4/s; 9/s; 30/min queue 4", "9/s"],
];

const KEYS: &[&[u8]] = &[b"a", b"user:42|10.0.0.1", b"\0\xff\n", &[b'x'; 65_536]];

/// Returns policies with these limits: with the shared table, with a table of its own, a shadow,
/// one without a name, and one with a deny list.
fn policies(limits: &[&str]) -> Vec<Policy> {
    let own = |text: &&str| named("own", text).with_max_keys(100).with_log_entries(4);
    let mut policies: Vec<_> = limits.iter().map(|text| named("api", text)).collect();
    policies.extend(limits.iter().map(own));
    policies.push(named("shadow", limits[0]).shadow());
    policies.push(limits[0].parse().unwrap());
    policies
        .push(named("listed", limits[0]).with_deny_list(["a"].into_iter().collect::<KeyList>()));
    policies
}

fn operation(random: &mut Rng, now: Timestamp) -> Operation {
    let value = id(u128::try_from(random.usize(..6)).unwrap());
    match random.usize(..18) {
        0 => Operation::Peek,
        1 => Operation::Take,
        2 | 3 => Operation::Reserve { id: value, max_wait: Micros::from_secs(60) },
        4 => Operation::Cancel { id: value },
        5 => Operation::Refund { time: Some(now).filter(|_| random.usize(..2) == 0) },
        6 => Operation::Penalize,
        7 if random.usize(..4) == 0 => Operation::Reset,
        8 => Operation::Renew { lease: value },
        9 => Operation::Release { lease: value },
        10 if random.usize(..4) == 0 => {
            Operation::Block { span: random.choice([None, Some(Micros::from_secs(3))]).unwrap() }
        }
        11 => Operation::Unblock,
        12 => {
            let ago = Micros::from_millis(random.usize(..3_000).try_into().unwrap());
            let limit = random.usize(..2).try_into().unwrap();
            Operation::Backfill { limit, time: now.saturating_sub(ago) }
        }
        _ => Operation::Check { lease: Some(value) },
    }
}

/// Executes a random request on every store and compares the answers; skips invalid requests.
fn step(random: &mut Rng, policies: &[Policy], stores: &[&Bench]) {
    let operation = operation(random, stores[0].clock.now());
    let takes_several =
        matches!(operation, Operation::Check { .. } | Operation::Peek) && random.usize(..4) == 0;
    let check = |_| Check {
        policy: random.choice(policies).unwrap(),
        key: random.choice(KEYS).unwrap(),
        cost: Cost::from(random.choice([0, 1, 1, 1, 2, 3, 7, 11]).unwrap()),
    };
    let checks: Vec<_> = (0..if takes_several { 3 } else { 1 }).map(check).collect();
    let request = Request { operation, checks: &checks, request_id: None };
    if request.validate_for_store().is_err() {
        return;
    }
    let answers: Vec<_> =
        stores.iter().map(|store| store.execute_all(operation, &checks)).collect();
    assert!(answers.iter().all(|answer| *answer == answers[0]), "{request:?}: {answers:#?}");
}

#[test]
fn a_restored_store_continues_like_the_saved_store() {
    for (row, limits) in LIMITS.iter().enumerate() {
        let policies = policies(limits);
        for seed in 0..24 {
            let random = &mut Rng::with_seed(u64::try_from(row).unwrap() << 32 | seed);
            let saved = Bench::new();
            for _ in 0..80 {
                step(random, &policies, &[&saved]);
                // The clock may step back, after which recovered state counts again. Recovered
                // state is not saved, so after the save the clock only advances.
                let now = saved.clock.now().as_micros();
                let by = random.choice([0, 0, 1, 100_000, 1_500_000, -700_000]).unwrap();
                saved.clock.set(Timestamp::from_micros(now.saturating_add_signed(by)));
            }
            let (restored, report) = saved.restored();
            assert_eq!((report.recovered, report.no_room), (0, 0));
            for _ in 0..80 {
                step(random, &policies, &[&saved, &restored]);
                let by =
                    Micros::new(random.choice([0, 0, 1, 100_000, 1_500_000, 20_000_000]).unwrap());
                saved.clock.advance(by);
                restored.clock.advance(by);
            }
        }
    }
}

#[test]
fn a_snapshot_of_a_restored_store_has_the_same_contents() {
    for (row, limits) in LIMITS.iter().enumerate() {
        let random = &mut Rng::with_seed(u64::try_from(row).unwrap());
        let saved = Bench::new();
        let policies = policies(limits);
        (0..200).for_each(|_| step(random, &policies, &[&saved]));
        let (restored, report) = saved.restored();
        let contents = crate::contents::contents(&saved.saved());
        assert_eq!(crate::contents::contents(&restored.saved()), contents, "{limits:?}");
        let entries = usize::try_from(report.keys + report.blocks).unwrap();
        assert_eq!(contents.len(), entries, "{limits:?}");
        assert_eq!(report.taken, Some(START));
    }
}
