//! Damaged and foreign snapshots are rejected.

use tollgate_algorithms::{Micros, Operation, Policy};
use tollgate_state::{InvalidSnapshot, MemoryStore, MemoryStoreBuilder, RestoreReport};

use crate::contents::{contents, sealed, sections};
use crate::{Bench, builder, id, named};

/// A snapshot with state of every kind.
fn sample() -> (Bench, Vec<u8>) {
    let bench = Bench::with(|builder| builder.max_keys(64));
    for limits in ["10/s burst 20", "10/h fixed", "10/h log", "10/h sliding", "9/h sliding by 1min"]
    {
        let _ = bench.check(&limits.parse().unwrap(), b"k", 3);
    }
    let jobs = named("jobs", "5 concurrent lease 60s; 20/min").with_max_keys(10);
    let _ = bench.check(&jobs, b"job", 1);
    let (old, new) = (named("api", "2/s; 9/h log"), named("api", "2/s"));
    let _ = bench.check(&old, b"stray", 1);
    let _ = bench.check(&new, b"stray", 1);
    let reserve = Operation::Reserve { id: id(5), max_wait: Micros::from_secs(9) };
    assert!(bench.execute(reserve, &new, b"stray", 1).allowed);
    let _ = bench.execute(Operation::Block { span: None }, &new, b"blocked", 0);
    let _ =
        bench.execute(Operation::Block { span: Some(Micros::from_secs(60)) }, &jobs, b"blocked", 0);
    let snapshot = bench.saved();
    (bench, snapshot)
}

fn small(bench: &Bench) -> MemoryStoreBuilder {
    builder(&bench.clock).max_keys(64)
}

fn restore(
    bench: &Bench,
    snapshot: &[u8],
) -> Result<(MemoryStore, RestoreReport), InvalidSnapshot> {
    small(bench).restore(snapshot)
}

#[test]
fn every_flipped_byte_is_detected() {
    let (bench, snapshot) = sample();
    assert!(restore(&bench, &snapshot).is_ok());
    for at in 0..snapshot.len() {
        for flip in [1, 0x80, 0xff] {
            let mut damaged = snapshot.clone();
            damaged[at] ^= flip;
            assert!(restore(&bench, &damaged).is_err(), "byte {at} ^ {flip}");
        }
    }
}

#[test]
fn every_truncation_and_excess_data_are_detected() {
    let (bench, snapshot) = sample();
    for end in 0..snapshot.len() {
        let reason = restore(&bench, &snapshot[..end]).err();
        assert_eq!(reason, Some(InvalidSnapshot::Truncated), "{end} of {}", snapshot.len());
    }
    let more = [&snapshot[..], b"\0"].concat();
    assert_eq!(
        restore(&bench, &more).err(),
        Some(InvalidSnapshot::Malformed("data after the end"))
    );
}

/// With valid checksums, damaged content is either rejected or restored consistently.
#[test]
fn flipped_bytes_with_valid_checksums_are_rejected_or_restored_consistently() {
    let (bench, snapshot) = sample();
    let policies =
        ["10/s burst 20", "10/h fixed", "10/h log", "10/h sliding", "9/h sliding by 1min"];
    let mut policies: Vec<Policy> = policies.iter().map(|policy| policy.parse().unwrap()).collect();
    policies.push(named("jobs", "5 concurrent lease 60s; 20/min").with_max_keys(10));
    policies.extend(["2/s", "3/s; 9/h log"].map(|limits| named("api", limits)));
    let mut accepted = 0;
    for at in 0..snapshot.len() {
        for flip in [1, 0x10, 0x80, 0xff] {
            let mut damaged = snapshot.clone();
            damaged[at] ^= flip;
            let Ok((store, restored)) = restore(&bench, &sealed(&damaged)) else { continue };
            accepted += 1;
            let clock = bench.clock.clone();
            let other = Bench { clock, store };
            let again = other.saved();
            let (third, _) = restore(&bench, &again).unwrap();
            let third = Bench { clock: bench.clock.clone(), store: third };
            assert_eq!(contents(&third.saved()), contents(&again), "byte {at} ^ {flip}");
            assert!(restored.keys <= 7 && restored.blocks <= 2);
            decide_all(&other, &policies);
        }
    }
    println!("{accepted} of {} were accepted", 4 * snapshot.len());
    assert!(accepted > 100, "{accepted}: changed keys, ids and numbers can be valid");
}

/// Executes operations: accepted state never makes the arithmetic overflow.
fn decide_all(bench: &Bench, policies: &[Policy]) {
    for policy in policies {
        for key in [&b"k"[..], b"job", b"stray"] {
            let _ = bench.execute(Operation::Peek, policy, key, 1);
            let _ = bench.execute(Operation::Penalize, policy, key, 9);
            let _ = bench.check(policy, key, 1);
        }
    }
}

/// Each section removed, repeated, and swapped with each other.
#[test]
fn removed_repeated_and_swapped_sections_are_detected() {
    let (bench, snapshot) = sample();
    let header = &snapshot[..24];
    let mut at = 24;
    let all: Vec<_> = sections(&snapshot)
        .map(|(_, body)| {
            let section = &snapshot[at..at + body.len() + 9];
            at += section.len();
            section
        })
        .collect();
    assert_eq!(at, snapshot.len());
    let check = |order: &[usize]| {
        let sections = order.iter().map(|order| all[*order]);
        let other: Vec<_> = [header].into_iter().chain(sections).flatten().copied().collect();
        assert!(restore(&bench, &other).is_err(), "{order:?}");
    };
    for one in 0..all.len() {
        let mut order: Vec<_> = (0..all.len()).collect();
        order.remove(one);
        check(&order);
        order.insert(one, one);
        order.insert(one, one);
        check(&order);
        for other in (one + 1)..all.len() {
            let mut order: Vec<_> = (0..all.len()).collect();
            order.swap(one, other);
            check(&order);
        }
    }
}

#[test]
fn foreign_bytes_and_unknown_versions_are_reported() {
    let bench = Bench::new();
    let mut newer = bench.saved();
    newer[8] = 4;
    let mut foreign = bench.saved();
    foreign[0] = b't';
    for (bytes, reason) in [
        (&b""[..], InvalidSnapshot::Truncated),
        (b"TOLLGATE", InvalidSnapshot::Truncated),
        (b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x03\0>\0", InvalidSnapshot::Foreign),
        (&[0; 4_096], InvalidSnapshot::Foreign),
        (&foreign, InvalidSnapshot::Foreign),
        (&newer, InvalidSnapshot::Version(4)),
        (&sealed(&newer), InvalidSnapshot::Version(4)),
    ] {
        assert_eq!(small(&bench).restore(bytes).err(), Some(reason), "{}", bytes.escape_ascii());
    }
}

#[test]
fn inconsistent_content_is_rejected() {
    let bench = Bench::new();
    let header = bench.saved()[..24].to_vec();
    let section = |kind: u8, body: &[u8]| {
        let length = u32::try_from(body.len()).unwrap().to_le_bytes();
        [&[kind][..], &length, body, &[0; 4]].concat()
    };
    let (main, end) = (section(2, &[0; 12]), section(5, b""));
    let check = |sections: &[&[u8]], reason: &'static str| {
        let file = sealed(&[&header[..], &sections.concat()].concat());
        let expected = Some(InvalidSnapshot::Malformed(reason)).filter(|_| !reason.is_empty());
        assert_eq!(small(&bench).restore(&file).err(), expected, "{}", file.escape_ascii());
    };
    check(&[&main, &end], "");
    check(&[&end], "");
    check(&[&section(0, b""), &end], "unknown kind of section");
    check(&[&section(6, b""), &end], "unknown kind of section");
    check(&[&section(5, b"\0")], "excess data in a section");
    check(&[&section(2, b"\x01\0\0\0\0\0\0\0\0\0\0\0"), &end], "invalid table");
    check(&[&section(2, b"\x01\0\0\0\0\0\0\0\x01\0\0\0="), &end], "invalid table");
    check(&[&section(2, b"\0\0\0\0\0\0\0\0\x01\0\0\0a"), &end], "invalid table");
    check(&[&main, &section(3, b"\x01\0\0\0"), &end], "unexpected end of data");
    let no_policy = section(3, b"\x04\0\0\0\0\0\0\0");
    check(&[&main, &no_policy, &end], "a key refers to an unknown policy");
    let block = section(4, b"\x0f\0\0\0\x01\0\0\0a\xff\xff\xff\xff\xff\xff\xff\xff\0k");
    check(&[&main, &block, &end], "");
    check(&[&block, &end], "a key outside the table of its policy");
    let own = section(2, b"\x01\0\0\0\0\0\0\0\x01\0\0\0b");
    check(&[&own, &block, &end], "a key outside the table of its policy");
    let block = section(4, b"\x0f\0\0\0\x01\0\0\0a\xfe\xff\xff\xff\xff\xff\xff\xff\0k");
    check(&[&main, &block, &end], "invalid timestamp");
    // No key, an empty one, an unknown kind, a hash that is too short, and a text that is too long.
    for key in [&b""[..], b"\0", b"\x02k", &[1; 26], &[&b"\0"[..], &[b'k'; 257]].concat()] {
        let record = [b"\x01\0\0\0a\xff\xff\xff\xff\xff\xff\xff\xff", key].concat();
        let length = u32::try_from(record.len()).unwrap().to_le_bytes();
        let block = section(4, &[&length[..], &record].concat());
        check(&[&main, &block, &end], "invalid key");
    }
    let block = section(4, b"\x0f\0\0\0\x01\0\0\x005\xff\xff\xff\xff\xff\xff\xff\xff\0k");
    check(&[&main, &block, &end], "a block has an invalid policy name");
}
