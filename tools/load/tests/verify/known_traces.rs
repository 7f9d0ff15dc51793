//! Known traces: a limit, its admissions, and the worst violation.

use tollgate::Policy;
use tollgate_load::verify::{Admission, TimeSource, Verifier};

/// Times are µs after the midnight (UTC) of a Monday.
const MONDAY: u64 = 1_763_337_600_000_000;

/// The earliest and the latest time, and the number of admissions.
type Row = (u64, u64, usize);

fn at(time: u64, count: usize) -> Row {
    (time, time, count)
}

fn admission(from: u64, to: u64) -> Admission {
    Admission::between(7, MONDAY + from, MONDAY + to)
}

fn check_admissions(
    limits: &str,
    cost: u64,
    source: TimeSource,
    mut admissions: Vec<Admission>,
    expected: Option<(u128, u128)>,
) {
    let policy: Policy = limits.parse().unwrap();
    let traced = format!("{limits} {admissions:?}");
    let verdict = Verifier::new(policy.limits(), cost, source).verify(&mut admissions);
    let worst = verdict.worst.first().map(|worst| (worst.admitted, worst.bound));
    assert_eq!(worst, expected, "{traced}");
}

fn check_by(
    source: TimeSource,
    limits: &str,
    cost: u64,
    rows: &[Row],
    expected: Option<(u128, u128)>,
) {
    let admissions = rows
        .iter()
        .flat_map(|&(from, to, count)| std::iter::repeat_n(admission(from, to), count))
        .collect();
    check_admissions(limits, cost, source, admissions, expected);
}

/// Checks admissions of cost 1 by the store's clock.
fn check(limits: &str, rows: &[Row], expected: Option<(u128, u128)>) {
    check_by(TimeSource::Store, limits, 1, rows, expected);
}

#[test]
fn token_buckets_admit_burst_and_rate() {
    let check = |rows: &[Row], expected| check("10/s burst 3", rows, expected);
    check(&[at(0, 3), at(100_000, 1), at(200_000, 1)], None);
    check(&[at(0, 4)], Some((4, 3)));
    check(&[at(0, 3), at(99_999, 1)], Some((4, 3)));
    // An admission with an earlier start may have happened earlier.
    check(&[at(0, 3), (99_999, 100_000, 1)], None);
    check(&[at(0, 3), at(100_000, 1), at(150_000, 1)], Some((5, 4)));
}

#[test]
fn fixed_windows_admit_their_count_by_the_stores_clock() {
    let fixed = |rows: &[Row], expected| check("3/s fixed", rows, expected);
    fixed(&[at(999_999, 3), at(1_000_000, 3)], None);
    fixed(&[at(0, 2), at(999_999, 2)], Some((4, 3)));
    // An admission that may lie in either window counts for both together.
    fixed(&[at(999_998, 3), (999_999, 1_000_000, 1), at(1_000_001, 2)], None);
    fixed(&[at(999_998, 3), (999_999, 1_000_000, 1), at(1_000_001, 3)], Some((7, 6)));
    let offset = |rows: &[Row], expected| check("3/s fixed offset 300ms", rows, expected);
    offset(&[at(299_999, 3), at(300_000, 3)], None);
    offset(&[at(300_000, 2), at(1_299_999, 2)], Some((4, 3)));
    let day = 86_400_000_000;
    check("3/w fixed", &[at(0, 2), at(7 * day - 1, 2)], Some((4, 3)));
    check("3/w fixed", &[at(0, 3), at(7 * day, 3)], None);
}

#[test]
fn windows_from_the_first_charge_may_start_at_any_time() {
    let first = "3/s fixed from-first";
    check(first, &[at(5, 3), at(1_000_004, 3)], None);
    check(first, &[at(5, 4)], Some((4, 3)));
    check(first, &[at(5, 3), at(1_000_005, 4)], Some((7, 6)));
    check(first, &[at(5, 3), at(1_000_005, 3), at(2_000_006, 3)], None);
    check(first, &[at(5, 3), at(700_000, 3), at(1_000_005, 1)], Some((7, 6)));
}

#[test]
fn logs_and_bucketed_windows_bound_every_window() {
    check("3/s log", &[at(5, 3), at(1_000_005, 3)], None);
    check("3/s log", &[at(5, 3), at(1_000_004, 1)], Some((4, 3)));
    check("3/s sliding by 100ms", &[at(99_999, 3), at(1_000_000, 3)], None);
    check("3/s sliding by 100ms", &[at(0, 3), at(999_999, 1)], Some((4, 3)));
    check("3/s sliding by 100ms strict", &[at(99_999, 3), at(1_000_000, 1)], Some((4, 3)));
    check("3/s sliding by 100ms strict", &[at(99_999, 3), at(1_100_000, 3)], None);
}

#[test]
fn sliding_window_counters_weight_the_previous_window() {
    let check = |rows: &[Row], expected| check("10/s sliding", rows, expected);
    check(&[at(900_000, 10), at(1_500_000, 5)], None);
    check(&[at(900_000, 10), at(1_500_000, 6)], Some((11, 10)));
    check(&[at(900_000, 10), at(1_999_999, 10)], None);
    check(&[at(0, 11)], Some((11, 10)));
}

#[test]
fn queues_space_departures_and_limit_waiting_requests() {
    let check = |delays: &[u64], expected| {
        let admit = |delay: &u64| Admission { delay: *delay, ..admission(5_000, 5_000) };
        let admissions = delays.iter().map(admit).collect();
        check_admissions("10/s queue 4", 1, TimeSource::Store, admissions, expected);
    };
    check(&[0, 100_000, 200_000, 300_000, 400_000], None);
    check(&[0, 100_000, 200_000, 300_000, 399_999], Some((4, 3)));
    check(&[0, 0], Some((1, 0)));
    check(&[0, 100_000, 200_000, 300_000, 400_000, 500_000], Some((6, 5)));
}

#[test]
fn slots_are_held_until_release_or_expiry() {
    let check = |leases: &[(u64, u64, u64)], expected| {
        let admit = |&(from, to, released): &(u64, u64, u64)| Admission {
            released: MONDAY + released,
            ..admission(from, to)
        };
        let admissions = leases.iter().map(admit).collect();
        check_admissions("2 concurrent lease 1s", 1, TimeSource::Store, admissions, expected);
    };
    check(&[(0, 5, 100), (0, 5, 100), (0, 5, 100)], Some((3, 2)));
    check(&[(0, 5, 100), (0, 5, 100), (95, 100, 200)], None);
    check(&[(0, 5, 100), (0, 5, 100), (95, 99, 200)], Some((3, 2)));
    // Two leases have expired by then without a release.
    check(&[(0, 5, 9_000_000), (0, 5, 9_000_000), (999_990, 1_000_000, 1_100_000)], None);
    check(&[(0, 5, 9_000_000), (0, 5, 9_000_000), (999_990, 999_999, 1_100_000)], Some((3, 2)));
}

#[test]
fn a_request_counts_with_its_cost() {
    let check = |limits, cost, rows: &[Row], expected| {
        check_by(TimeSource::Store, limits, cost, rows, expected);
    };
    check("10/s log", 4, &[at(0, 2)], None);
    check("10/s log", 4, &[at(0, 3)], Some((12, 10)));
    check("10/s log; 7/min log", 4, &[at(0, 2)], Some((8, 7)));
}

#[test]
fn by_the_clients_clock_the_edges_of_windows_are_unknown() {
    let check = |limit, rows: &[Row], expected| {
        check_by(TimeSource::Client, limit, 1, rows, expected);
    };
    check("3/s fixed", &[(0, 10, 3), (20, 30, 3)], None);
    check("3/s fixed", &[(0, 10, 4), (20, 30, 3)], Some((7, 6)));
    check("100/s", &[(0, 10, 100)], None);
    check("100/s", &[(0, 10, 102)], Some((102, 100)));
    check("20 concurrent lease 1s", &[(0, 10, 100)], None);
}
