//! The model by itself against cases that other libraries' suites state as facts:
//! `research/libraries.md` §4, by their names there.
#![allow(clippy::expect_used, reason = "a test")]

use tollgate_conformance::model::{Expected, Model};
use tollgate_core::{Check, Cost, Micros, Operation, Policy, Request, Timestamp};

/// Far enough from the epoch that nothing is special, and the start of a day and a minute.
const START: u64 = 1_763_596_800_000_000;
const CHECK: Operation = Operation::Check { lease: None };

/// A model, a policy and a key, with time counted from [`START`].
struct Bench {
    model: Model,
    policy: Policy,
}

impl Bench {
    fn new(limits: &str) -> Self {
        Bench { model: Model::default(), policy: limits.parse().expect("the limits are valid") }
    }

    fn ask(&mut self, time: u64, operation: Operation, cost: u64) -> Expected {
        let cost = Cost::new(cost).expect("the cost is in range");
        let check = Check { policy: &self.policy, key: b"key", cost };
        let request = Request { operation, checks: &[check], request_id: None };
        let now = Timestamp::from_micros(START + time);
        self.model.decide(&request, now).expect("the request is valid").remove(0)
    }

    /// Asks each (time in ms, operation, cost) and compares what it says in one line.
    fn check(&mut self, rows: &[(u64, Operation, u64, &str)]) {
        for (index, (ms, operation, cost, expected)) in rows.iter().enumerate() {
            let answer = self.ask(ms * 1_000, *operation, *cost);
            assert_eq!(line(&answer), *expected, "row {index}: {operation:?} {cost} at {ms} ms");
        }
    }
}

/// `yes` or `no`, what was granted, r(emaining), rs (reset) and ra (retry) in ms.
fn line(it: &Expected) -> String {
    let ms = |micros: Micros| micros.get().div_ceil(1_000).to_string();
    let word = if it.allowed { "yes" } else { "no" };
    let reset = it.reset_after.map_or("-".to_owned(), ms);
    let retry = match (it.never, it.retry_after) {
        (true, _) => " never".to_owned(),
        (false, Some(value)) => format!(" ra{}", ms(value)),
        (false, None) => String::new(),
    };
    format!("{word} {} r{} rs{reset}{retry}", it.granted, it.remaining)
}

#[test]
fn g1_throttled() {
    Bench::new("1/s burst 5").check(&[
        (0, CHECK, 6, "no 0 r5 rs0 never"),
        (0, CHECK, 1, "yes 1 r4 rs1000"),
        (0, CHECK, 1, "yes 1 r3 rs2000"),
        (0, CHECK, 1, "yes 1 r2 rs3000"),
        (0, CHECK, 1, "yes 1 r1 rs4000"),
        (0, CHECK, 1, "yes 1 r0 rs5000"),
        (0, CHECK, 1, "no 0 r0 rs5000 ra1000"),
        (3_000, CHECK, 1, "yes 1 r2 rs3000"),
        (3_100, CHECK, 1, "yes 1 r1 rs3900"),
        (4_000, CHECK, 1, "yes 1 r1 rs4000"),
        (8_000, CHECK, 1, "yes 1 r4 rs1000"),
        (9_500, CHECK, 1, "yes 1 r4 rs1000"),
        (9_500, CHECK, 0, "yes 0 r4 rs1000"),
        (9_500, CHECK, 2, "yes 2 r2 rs3000"),
        (9_500, CHECK, 5, "no 0 r2 rs3000 ra3000"),
        (15_000, CHECK, 6, "no 0 r5 rs0 never"),
    ]);
}

#[test]
fn g2_redis_rate_allow() {
    Bench::new("10/s").check(&[
        (0, CHECK, 1, "yes 1 r9 rs100"),
        (0, Operation::Reset, 1, "yes 0 r10 rs0"),
        (0, CHECK, 1, "yes 1 r9 rs100"),
        (0, CHECK, 2, "yes 2 r7 rs300"),
        (0, CHECK, 7, "yes 7 r0 rs1000"),
        // Theirs waits 99 s for 1000 of 10; a cost above the capacity never passes here.
        (0, CHECK, 1_000, "no 0 r0 rs1000 never"),
    ]);
}

#[test]
fn g3_redis_rate_peek() {
    Bench::new("10/s").check(&[
        (0, Operation::Peek, 1, "yes 0 r10 rs0"),
        (0, CHECK, 1, "yes 1 r9 rs100"),
        (0, Operation::Peek, 1, "yes 0 r9 rs100"),
    ]);
}

#[test]
fn g4_redis_rate_at_most() {
    Bench::new("10/s").check(&[
        (0, CHECK, 1, "yes 1 r9 rs100"),
        (0, Operation::Take, 2, "yes 2 r7 rs300"),
        (0, Operation::Peek, 0, "yes 0 r7 rs300"),
        (0, Operation::Take, 10, "yes 7 r0 rs1000"),
        (0, Operation::Take, 1_000, "no 0 r0 rs1000 ra100"),
    ]);
}

#[test]
fn g5_retry_is_never_longer_than_one_token() {
    let mut bench = Bench::new("1/ms");
    let (mut admitted, mut denied) = (0, 0);
    for call in 0..1_000 {
        let answer = bench.ask(call * 37, CHECK, 1);
        match answer.retry_after {
            None => admitted += 1,
            Some(retry_after) => {
                denied += 1;
                assert!(retry_after.get() <= 1_000, "{retry_after:?}");
            }
        }
    }
    // One every 28 calls: at 1036 us, as what runs over the brim at 1000 us is lost.
    assert_eq!((admitted, denied), (36, 964));
}

/// Their unit of time is ns; one of theirs is 1 ms here, as no window is shorter.
#[test]
fn b1_bucket4j_try_consume() {
    let rows: [(u64, u64, &str); 5] = [
        (100, 49, "yes 49 r51 rs49"),
        (1, 1, "yes 1 r0 rs100"),
        (70, 80, "no 0 r70 rs30 ra10"),
        (0, 10, "no 0 r0 rs100 ra10"),
        (10, 120, "no 0 r10 rs90 never"),
    ];
    for (initial, cost, expected) in rows {
        // B2: to ask first changes nothing.
        let mut bench = Bench::new("100/100ms");
        bench.ask(0, CHECK, 100 - initial);
        let peeked = bench.ask(0, Operation::Peek, cost);
        let answer = bench.ask(0, CHECK, cost);
        assert_eq!(line(&answer), expected, "{initial} take {cost}");
        assert_eq!(
            (peeked.allowed, peeked.retry_after, peeked.never),
            (answer.allowed, answer.retry_after, answer.never)
        );
    }
}

#[test]
fn b2_bucket4j_interval_refill() {
    Bench::new("100/100ms fixed").check(&[
        (0, CHECK, 30, "yes 30 r70 rs100"),
        (0, Operation::Peek, 80, "no 0 r70 rs100 ra100"),
        (0, CHECK, 70, "yes 70 r0 rs100"),
        (0, Operation::Peek, 10, "no 0 r0 rs100 ra100"),
        (0, Operation::Peek, 120, "no 0 r0 rs100 never"),
    ]);
}

#[test]
fn b3_no_fraction_is_lost() {
    Bench::new("10/100ms").check(&[
        (0, CHECK, 10, "yes 10 r0 rs100"),
        (97, CHECK, 9, "yes 9 r0 rs93"),
        (97, CHECK, 1, "no 0 r0 rs93 ra3"),
        (100, CHECK, 1, "yes 1 r0 rs100"),
        (100, CHECK, 1, "no 0 r0 rs100 ra10"),
    ]);
    // The fraction is gone once the bucket has been full.
    Bench::new("10/100ms").check(&[
        (0, CHECK, 10, "yes 10 r0 rs100"),
        (97, CHECK, 9, "yes 9 r0 rs93"),
        (97, Operation::Refund { time: None }, 10, "yes 9 r10 rs0"),
        (97, CHECK, 10, "yes 10 r0 rs100"),
        (100, CHECK, 1, "no 0 r0 rs97 ra7"),
    ]);
}

#[test]
fn b4_denials_do_not_move_the_clock() {
    Bench::new("1/s burst 4").check(&[
        (0, CHECK, 3, "yes 3 r1 rs3000"),
        (0, Operation::Take, 4, "yes 1 r0 rs4000"),
        (200, CHECK, 1, "no 0 r0 rs3800 ra800"),
        (200, CHECK, 3, "no 0 r0 rs3800 ra2800"),
        (1_000, CHECK, 1, "yes 1 r0 rs4000"),
    ]);
}

/// Columns: tokens at 0, the policy, ms later, tokens then.
#[test]
fn b5_bucket4j_refill() {
    let rows = [
        (0, "1000/s", 40, 40),
        (50, "1000/s", 1, 51),
        (200, "1000/s", 10_000, 1_000),
        (0, "100/s", 3, 0),
        (0, "100/s", 10, 1),
        (90, "100/s", 17, 91),
        (90, "100/s", 20, 92),
    ];
    for (initial, policy, ms, expected) in rows {
        let mut bench = Bench::new(policy);
        let full = bench.policy.limits()[0].capacity();
        bench.ask(0, CHECK, full - initial);
        assert_eq!(
            bench.ask(ms * 1_000, Operation::Peek, 0).remaining,
            expected,
            "{policy} at {ms} ms"
        );
    }
}

#[test]
fn b5_a_clock_that_steps_back_refills_nothing() {
    let mut bench = Bench::new("1000/s");
    bench.ask(1_000, CHECK, 945);
    assert_eq!(bench.ask(0, Operation::Peek, 0).remaining, 55);
}

/// Ours goes one capacity into debt, theirs any depth: the last row is cut there.
#[test]
fn b6_debt() {
    let mut bench = Bench::new("100/100ms");
    bench.ask(0, CHECK, 100);
    bench.check(&[
        (50, Operation::Penalize, 52, "yes 52 r0 rs102"),
        (50, CHECK, 1, "no 0 r0 rs102 ra3"),
        (50, CHECK, 0, "no 0 r0 rs102 ra2"),
        (52, CHECK, 0, "yes 0 r0 rs100"),
        (52, Operation::Penalize, 400, "yes 100 r0 rs200"),
        (52, Operation::Penalize, 1, "yes 0 r0 rs200"),
    ]);
}

#[test]
fn b8_as_much_as_possible() {
    let rows: [(u64, u64, u64); 2] = [(4, 5, 4), (5, 5, 5)];
    for (initial, most, expected) in rows {
        let mut bench = Bench::new("10/s");
        bench.ask(0, CHECK, 10 - initial);
        assert_eq!(bench.ask(0, Operation::Take, most).granted, expected);
    }
    Bench::new("10/s").check(&[
        (0, Operation::Take, 8, "yes 8 r2 rs800"),
        (0, Operation::Take, 8, "yes 2 r0 rs1000"),
        (0, Operation::Take, 3, "no 0 r0 rs1000 ra100"),
    ]);
}

#[test]
fn w1_fixed_window() {
    let mut bench = Bench::new("10/2s fixed");
    for call in 1..=10 {
        let expected = format!("yes 1 r{} rs2000", 10 - call);
        assert_eq!(line(&bench.ask(0, CHECK, 1)), expected);
    }
    bench.check(&[(0, CHECK, 1, "no 0 r0 rs2000 ra2000"), (2_000, CHECK, 1, "yes 1 r9 rs2000")]);
    Bench::new("10/2s fixed").check(&[
        (0, CHECK, 11, "no 0 r10 rs0 never"),
        (0, CHECK, 5, "yes 5 r5 rs2000"),
        (0, Operation::Peek, 6, "no 0 r5 rs2000 ra2000"),
        (0, CHECK, 6, "no 0 r5 rs2000 ra2000"),
    ]);
}

/// After 3 of 5, deny 3, then 2: only a limit that counts the denied one says no.
#[test]
fn w1_what_a_denial_costs() {
    let rows = [
        ("5/2s fixed count-denied", "no 0 r0 rs2000 ra2000"),
        ("5/2s fixed", "yes 2 r0 rs2000"),
        ("5/2s log", "yes 2 r0 rs2000"),
    ];
    for (policy, expected) in rows {
        let mut bench = Bench::new(policy);
        bench.ask(0, CHECK, 3);
        assert!(!bench.ask(0, CHECK, 3).allowed, "{policy}");
        assert_eq!(line(&bench.ask(0, CHECK, 2)), expected, "{policy}");
    }
}

#[test]
fn w2_moving_window() {
    Bench::new("2/min log").check(&[
        (0, CHECK, 1, "yes 1 r1 rs60000"),
        (1_000, CHECK, 1, "yes 1 r0 rs60000"),
        (2_000, CHECK, 1, "no 0 r0 rs59000 ra58000"),
    ]);
    Bench::new("10/2s log").check(&[
        (0, CHECK, 5, "yes 5 r5 rs2000"),
        (1_800, CHECK, 4, "yes 4 r1 rs2000"),
        (1_800, Operation::Peek, 2, "no 0 r1 rs2000 ra200"),
        (1_800, CHECK, 1, "yes 1 r0 rs2000"),
        (2_000, CHECK, 5, "yes 5 r0 rs2000"),
        (2_000, CHECK, 2, "no 0 r0 rs2000 ra1800"),
    ]);
    Bench::new("5/min log").check(&[
        (0, CHECK, 5, "yes 5 r0 rs60000"),
        (0, CHECK, 2, "no 0 r0 rs60000 ra60000"),
        (0, Operation::Reset, 1, "yes 0 r5 rs0"),
        (0, CHECK, 5, "yes 5 r0 rs60000"),
    ]);
}
