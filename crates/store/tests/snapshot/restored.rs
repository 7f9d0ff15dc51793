//! What a snapshot contains.

use tollgate_algorithms::{Ban, Check, Cost, Micros, Operation, Policy, Reason, Request};

use crate::contents::{HEADER, contents, records, sealed, sections};
use crate::{Bench, builder, id, named};

#[test]
fn leases_are_renewed_and_released_after_a_restore() {
    let policy = named("jobs", "2 concurrent lease 60s");
    let saved = Bench::new();
    for lease in [id(1), id(2)] {
        assert!(saved.execute(Operation::Acquire { lease }, &policy, b"k", 1).allowed);
    }
    saved.advance(40);
    let (restored, _) = saved.restored();
    let execute = |operation| restored.execute(operation, &policy, b"k", 1);
    assert!(!execute(Operation::Acquire { lease: id(3) }).allowed);
    assert!(execute(Operation::Acquire { lease: id(1) }).replayed, "the lease is held already");
    assert!(execute(Operation::Renew { lease: id(1) }).changed);
    restored.advance(30);
    assert_eq!(
        restored.remaining(&policy, b"k"),
        1,
        "the second lease has expired, the first has not"
    );
    assert!(execute(Operation::Release { lease: id(1) }).changed);
    assert!(!execute(Operation::Release { lease: id(1) }).changed);
    assert_eq!(restored.remaining(&policy, b"k"), 2);
}

/// Regression test: a snapshot with such a key was rejected, because the policy name is reserved.
#[test]
fn keys_of_reserved_policies_are_restored() {
    let limits = || ["3/30w burst 2".parse().unwrap()];
    let throttle = Policy::reserved("@throttle", limits()).unwrap();
    let (rule, api) = (Policy::reserved("@envoy.shop", limits()).unwrap(), named("api", "2/h"));
    let saved = Bench::new();
    let policies = [&throttle, &rule, &api];
    policies.iter().for_each(|policy| assert!(saved.check(policy, b"k", 1).allowed));
    let (restored, report) = saved.restored();
    assert_eq!(report.keys, 3);
    for policy in policies {
        assert_eq!(restored.remaining(policy, b"k"), 1, "{}", policy.name());
    }
}

#[test]
fn reservations_are_cancelled_after_a_restore() {
    let policy = named("api", "1/s");
    let saved = Bench::new();
    let _ = saved.check(&policy, b"k", 1);
    let reserve = Operation::Reserve { id: id(7), max_wait: Micros::from_secs(9) };
    assert_eq!(saved.execute(reserve, &policy, b"k", 1).delay, Micros::from_secs(1));
    let (restored, _) = saved.restored();
    assert!(restored.execute(reserve, &policy, b"k", 1).replayed);
    let cancelled = restored.execute(Operation::Cancel { id: id(7) }, &policy, b"k", 0);
    assert_eq!((cancelled.changed, cancelled.granted), (true, 1));
    restored.advance(1);
    assert!(restored.check(&policy, b"k", 1).allowed);
}

#[test]
fn blocks_are_restored_with_their_end() {
    let (api, own) = (named("api", "5/s"), named("own", "5/s").with_max_keys(10));
    let unnamed = "5/s".parse().unwrap();
    let saved = Bench::new();
    for policy in [&api, &own, &unnamed] {
        let block = |key: &[u8], span| saved.execute(Operation::Block { span }, policy, key, 0);
        let _ = block(b"for ever", None);
        let _ = block(b"a minute", Some(Micros::from_secs(60)));
        let _ = block(b"over", Some(Micros::from_secs(1)));
    }
    saved.advance(1);
    let (restored, report) = saved.restored();
    assert_eq!((report.keys, report.blocks), (0, 6));
    for policy in [&api, &own, &unnamed] {
        assert!(restored.check(policy, b"over", 1).allowed);
        let denied = restored.check(policy, b"a minute", 1);
        assert_eq!(denied.reason, Reason::Blocked);
        assert_eq!(denied.retry_after, Some(Micros::from_secs(59)));
        let denied = restored.check(policy, b"for ever", 1);
        assert_eq!((denied.reason, denied.retry_after), (Reason::Blocked, None));
        assert!(restored.execute(Operation::Unblock, policy, b"for ever", 0).changed);
    }
    let (_, report) = restored.restored();
    assert_eq!(report.blocks, 3);
}

#[test]
fn bans_and_counted_denials_are_restored() {
    let minute = Micros::from_secs(60);
    let login = named("login", "1/s").with_ban(Ban::new(2, minute, minute).unwrap());
    let saved = Bench::new();
    for (key, denials) in [(&b"banned"[..], 2), (b"counted", 1)] {
        assert!(saved.check(&login, key, 1).allowed);
        (0..denials).for_each(|_| assert!(!saved.check(&login, key, 1).allowed));
    }
    saved.advance(10);
    let (restored, report) = saved.restored();
    assert_eq!(report.keys, 2);
    let denied = restored.check(&login, b"banned", 1);
    let rest = Some(Micros::from_secs(50));
    assert_eq!((denied.reason, denied.retry_after), (Reason::Banned, rest));
    assert!(restored.check(&login, b"counted", 1).allowed);
    let denied = restored.check(&login, b"counted", 1);
    assert_eq!((denied.reason, denied.retry_after), (Reason::Limit, Some(minute)));
}

/// A thousand blocks of one shard are copied in several steps.
#[test]
fn all_of_many_blocks_are_restored() {
    let saved = Bench::with(|builder| builder.max_keys(1));
    let policies = ["a", "b", "c"].map(|name| named(name, "5/s"));
    for index in 0..1_000_u32 {
        let policy = &policies[usize::try_from(index % 3).unwrap()];
        let _ = saved.execute(Operation::Block { span: None }, policy, &index.to_be_bytes(), 0);
    }
    let mut out = Vec::new();
    let report = saved.store.write_snapshot(&mut out).unwrap();
    assert_eq!((report.blocks, report.most_per_lock), (1_000, 256));
    assert_eq!(saved.restored().1.blocks, 1_000);
}

#[test]
fn state_of_a_removed_limit_is_restored_until_it_recovers() {
    let (old, new) = (named("api", "5/h log; 50/s"), named("api", "50/s"));
    let saved = Bench::new();
    (0..5).for_each(|_| assert!(saved.check(&old, b"k", 1).allowed));
    assert!(saved.check(&new, b"k", 1).allowed);
    saved.advance(2);
    let (restored, _) = saved.restored();
    assert!(restored.check(&new, b"k", 1).allowed);
    let denied = restored.check(&old, b"k", 1);
    assert_eq!(denied.retry_after, Some(Micros::from_secs(3_598)));
}

#[test]
fn recovered_keys_are_neither_saved_nor_restored() {
    let (short, long) = (named("short", "5/min"), named("long", "5/h log"));
    let saved = Bench::new();
    let _ = saved.check(&short, b"k", 1);
    let _ = saved.check(&long, b"k", 1);
    let _ = saved.execute(Operation::Block { span: Some(Micros::from_secs(50)) }, &short, b"k", 0);
    let snapshot = saved.saved();
    saved.advance(60);
    let (_, restored) = builder(&saved.clock).restore(&snapshot).unwrap();
    assert_eq!((restored.keys, restored.blocks, restored.recovered), (1, 0, 2));
    assert_eq!(contents(&saved.saved()).len(), 1, "recovered keys are not saved");
}

/// A restored table takes on the bound of its policy after the restart.
#[test]
fn a_restored_table_has_the_bound_of_its_policy() {
    let policy = |max| named("own", "2/h log").with_max_keys(max);
    let saved = Bench::new();
    for key in 0..10_u8 {
        (0..2).for_each(|_| assert!(saved.check(&policy(10), &[key], 1).allowed));
    }
    assert_eq!(saved.check(&policy(10), b"k", 1).reason, Reason::Store, "the table is full");
    let (restored, report) = saved.restored();
    assert_eq!((report.keys, report.no_room), (10, 0));
    assert_eq!(restored.check(&policy(10), b"k", 1).reason, Reason::Store);
    assert!(restored.check(&policy(11), b"k", 1).allowed, "there is room for one more");
    assert!(!restored.check(&policy(11), &[3], 1).allowed);
}

/// Hashing differs between processes, so a shard may have to hold more keys than its bound.
#[test]
fn a_full_table_is_restored_completely() {
    let idle = named("idle", "9/h log");
    let saved = Bench::with(|builder| builder.max_keys(1_024));
    (0..9_000_u32).for_each(|key| _ = saved.check(&idle, &key.to_be_bytes(), 1));
    assert_eq!(saved.store.stats().keys, 1_024);
    let (restored, report) = saved.restored_with(1_024);
    assert_eq!((report.keys, report.no_room), (1_024, 0));
    (9_000..19_000_u32).for_each(|key| _ = restored.check(&idle, &key.to_be_bytes(), 1));
    assert_eq!(restored.store.stats().keys, 1_024, "insertions shrink each shard to its share");
}

#[test]
fn a_smaller_table_keeps_the_keys_that_deny() {
    let (denying, idle) = (named("denying", "1/h log"), named("idle", "9/h log"));
    let saved = Bench::new();
    for key in 0..40_u8 {
        let _ = saved.check(if key < 4 { &denying } else { &idle }, &[key], 1);
    }
    let (small, report) = saved.restored_with(8);
    assert_eq!((report.keys, report.no_room), (8, 32));
    (0..4).for_each(|key| assert!(!small.check(&denying, &[key], 1).allowed, "{key} is denied"));
}

/// A repeat after a restart is charged again.
#[test]
fn request_ids_are_not_saved() {
    let policy = named("api", "5/h");
    let saved = Bench::new();
    let checks = [Check { policy: &policy, key: b"k", cost: Cost::ONE }];
    let operation = Operation::Check { lease: None };
    let request = Request { operation, checks: &checks, request_id: Some(b"id") };
    let _ = saved.store.decide_now(&request).unwrap();
    assert!(saved.store.decide_now(&request).unwrap().decisions[0].replayed);
    let (restored, _) = saved.restored();
    assert!(!restored.store.decide_now(&request).unwrap().decisions[0].replayed);
    assert_eq!(restored.remaining(&policy, b"k"), 3);
}

#[test]
fn an_empty_store_is_saved_and_restored() {
    let (restored, report) = Bench::new().restored();
    assert_eq!((report.keys, report.blocks), (0, 0));
    assert_eq!(restored.store.stats().keys, 0);
}

/// Returns a snapshot as version 2 of the format has it: each key as it is, where version 3 has its
/// kind before it, or its hash.
fn as_version_2(snapshot: &[u8], keys: &[&[u8]]) -> Vec<u8> {
    let mut old = snapshot[..HEADER].to_vec();
    old[8..12].copy_from_slice(&2_u32.to_le_bytes());
    for (kind, body) in sections(snapshot) {
        let mut records_of_body = Vec::new();
        let is_of_records = matches!(kind, 3 | 4);
        for record in records(body).filter(|_| is_of_records) {
            let text = keys.iter().find(|key| record.ends_with(&[b"\0", **key].concat()));
            let (end, key) = match text {
                Some(key) => (record.len() - 1 - key.len(), key),
                // The kind and the hash.
                None => (record.len() - 27, keys.iter().find(|key| key.len() > 256).unwrap()),
            };
            let record = [&record[..end], key].concat();
            records_of_body.extend(u32::try_from(record.len()).unwrap().to_le_bytes());
            records_of_body.extend(record);
        }
        let body = if is_of_records { &records_of_body } else { body };
        old.push(kind);
        old.extend(u32::try_from(body.len()).unwrap().to_le_bytes());
        old.extend(body);
        old.extend([0; 4]);
    }
    sealed(&old)
}

#[test]
fn a_snapshot_of_version_2_is_restored_with_long_keys() {
    let bench = Bench::new();
    let (limit, long) = (named("api", "9/h"), [b'k'; 1_000]);
    let keys: [&[u8]; 2] = [b"short", &long];
    for key in keys {
        let _ = bench.check(&limit, key, 4);
        let _ = bench.execute(Operation::Block { span: None }, &named("login", "2/h"), key, 0);
    }
    let old = as_version_2(&bench.saved(), &keys);
    let (store, report) = builder(&bench.clock).restore(&old).unwrap();
    assert_eq!((report.keys, report.blocks), (2, 2));
    let restored = Bench { clock: bench.clock.clone(), store };
    for key in keys {
        assert_eq!(restored.remaining(&limit, key), 5);
        assert_eq!(restored.check(&named("login", "2/h"), key, 1).reason, Reason::Blocked);
    }
    assert_eq!(contents(&restored.saved()), contents(&bench.saved()));
}
