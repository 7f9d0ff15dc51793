//! The model decides cases of the test suites of other libraries as they do.
#![allow(clippy::expect_used, reason = "a test")]

use tollgate_algorithms::{Check, Cost, Micros, Operation, Policy, Request, Timestamp};
use tollgate_conformance::model::{Expected, Model};

/// The start of a day and a minute.
const START: u64 = 1_763_596_800_000_000;
const CHECK: Operation = Operation::Check { lease: None };

/// A model and a policy. Times are relative to [`START`].
struct TestModel {
    model: Model,
    policy: Policy,
}

impl TestModel {
    fn new(limits: &str) -> Self {
        TestModel { model: Model::default(), policy: limits.parse().expect("the limits are valid") }
    }

    fn decide(&mut self, time: u64, operation: Operation, cost: u64) -> Expected {
        let cost = Cost::new(cost).expect("the cost is in range");
        let check = Check { policy: &self.policy, key: b"key", cost };
        let request = Request { operation, checks: &[check], request_id: None };
        let now = Timestamp::from_micros(START + time);
        self.model.decide(&request, now).expect("the request is valid").remove(0)
    }

    /// Decides each (time in ms, operation, cost), and compares the decision as one line of text.
    fn check(&mut self, rows: &[(u64, Operation, u64, &str)]) {
        for (index, (ms, operation, cost, expected)) in rows.iter().enumerate() {
            let answer = self.decide(ms * 1_000, *operation, *cost);
            assert_eq!(line(&answer), *expected, "row {index}: {operation:?} {cost} at {ms} ms");
        }
    }
}

/// A decision as text: `yes` or `no`, the granted cost, r(emaining), and in ms rs (reset) and ra
/// (retry).
fn line(decision: &Expected) -> String {
    let ms = |micros: Micros| micros.get().div_ceil(1_000).to_string();
    let word = if decision.allowed { "yes" } else { "no" };
    let reset = decision.reset_after.map_or("-".to_owned(), ms);
    let retry = match (decision.never, decision.retry_after) {
        (true, _) => " never".to_owned(),
        (false, Some(value)) => format!(" ra{}", ms(value)),
        (false, None) => String::new(),
    };
    format!("{word} {} r{} rs{reset}{retry}", decision.granted, decision.remaining)
}

#[test]
fn throttled_gcra() {
    TestModel::new("1/s burst 5").check(&[
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
fn redis_rate_allow() {
    TestModel::new("10/s").check(&[
        (0, CHECK, 1, "yes 1 r9 rs100"),
        (0, Operation::Reset, 1, "yes 0 r10 rs0"),
        (0, CHECK, 1, "yes 1 r9 rs100"),
        (0, CHECK, 2, "yes 2 r7 rs300"),
        (0, CHECK, 7, "yes 7 r0 rs1000"),
        // redis_rate waits 99 s for 1000 of 10; here a cost above the capacity is never admitted.
        (0, CHECK, 1_000, "no 0 r0 rs1000 never"),
    ]);
}

#[test]
fn redis_rate_peek() {
    TestModel::new("10/s").check(&[
        (0, Operation::Peek, 1, "yes 0 r10 rs0"),
        (0, CHECK, 1, "yes 1 r9 rs100"),
        (0, Operation::Peek, 1, "yes 0 r9 rs100"),
    ]);
}

#[test]
fn redis_rate_at_most() {
    TestModel::new("10/s").check(&[
        (0, CHECK, 1, "yes 1 r9 rs100"),
        (0, Operation::Take, 2, "yes 2 r7 rs300"),
        (0, Operation::Peek, 0, "yes 0 r7 rs300"),
        (0, Operation::Take, 10, "yes 7 r0 rs1000"),
        (0, Operation::Take, 1_000, "no 0 r0 rs1000 ra100"),
    ]);
}

#[test]
fn retry_is_never_longer_than_one_token() {
    let mut model = TestModel::new("1/ms");
    let (mut admitted, mut denied) = (0, 0);
    for call in 0..1_000 {
        let answer = model.decide(call * 37, CHECK, 1);
        match answer.retry_after {
            None => admitted += 1,
            Some(retry_after) => {
                denied += 1;
                assert!(retry_after.get() <= 1_000, "{retry_after:?}");
            }
        }
    }
    // One of 28 calls: at 1036 us, because the bucket is full from 1000 us on.
    assert_eq!((admitted, denied), (36, 964));
}

/// Bucket4j's test has windows of some ns; here 1 ns is 1 ms, the shortest window.
#[test]
fn bucket4j_try_consume() {
    let rows: [(u64, u64, &str); 5] = [
        (100, 49, "yes 49 r51 rs49"),
        (1, 1, "yes 1 r0 rs100"),
        (70, 80, "no 0 r70 rs30 ra10"),
        (0, 10, "no 0 r0 rs100 ra10"),
        (10, 120, "no 0 r10 rs90 never"),
    ];
    for (initial, cost, expected) in rows {
        // A peek changes nothing.
        let mut model = TestModel::new("100/100ms");
        model.decide(0, CHECK, 100 - initial);
        let peeked = model.decide(0, Operation::Peek, cost);
        let answer = model.decide(0, CHECK, cost);
        assert_eq!(line(&answer), expected, "{initial} take {cost}");
        assert_eq!(
            (peeked.allowed, peeked.retry_after, peeked.never),
            (answer.allowed, answer.retry_after, answer.never)
        );
    }
}

#[test]
fn bucket4j_interval_refill() {
    TestModel::new("100/100ms fixed").check(&[
        (0, CHECK, 30, "yes 30 r70 rs100"),
        (0, Operation::Peek, 80, "no 0 r70 rs100 ra100"),
        (0, CHECK, 70, "yes 70 r0 rs100"),
        (0, Operation::Peek, 10, "no 0 r0 rs100 ra100"),
        (0, Operation::Peek, 120, "no 0 r0 rs100 never"),
    ]);
}

#[test]
fn bucket4j_no_fraction_is_lost() {
    TestModel::new("10/100ms").check(&[
        (0, CHECK, 10, "yes 10 r0 rs100"),
        (97, CHECK, 9, "yes 9 r0 rs93"),
        (97, CHECK, 1, "no 0 r0 rs93 ra3"),
        (100, CHECK, 1, "yes 1 r0 rs100"),
        (100, CHECK, 1, "no 0 r0 rs100 ra10"),
    ]);
    // A full bucket loses the fraction.
    TestModel::new("10/100ms").check(&[
        (0, CHECK, 10, "yes 10 r0 rs100"),
        (97, CHECK, 9, "yes 9 r0 rs93"),
        (97, Operation::Refund { time: None }, 10, "yes 9 r10 rs0"),
        (97, CHECK, 10, "yes 10 r0 rs100"),
        (100, CHECK, 1, "no 0 r0 rs97 ra7"),
    ]);
}

#[test]
fn bucket4j_denials_change_nothing() {
    TestModel::new("1/s burst 4").check(&[
        (0, CHECK, 3, "yes 3 r1 rs3000"),
        (0, Operation::Take, 4, "yes 1 r0 rs4000"),
        (200, CHECK, 1, "no 0 r0 rs3800 ra800"),
        (200, CHECK, 3, "no 0 r0 rs3800 ra2800"),
        (1_000, CHECK, 1, "yes 1 r0 rs4000"),
    ]);
}

/// Columns: the tokens at 0, the policy, a time in ms, the tokens then.
#[test]
fn bucket4j_refill() {
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
        let mut model = TestModel::new(policy);
        let full = model.policy.limits()[0].capacity();
        model.decide(0, CHECK, full - initial);
        assert_eq!(
            model.decide(ms * 1_000, Operation::Peek, 0).remaining,
            expected,
            "{policy} at {ms} ms"
        );
    }
}

#[test]
fn bucket4j_clock_step_back_refills_nothing() {
    let mut model = TestModel::new("1000/s");
    model.decide(1_000, CHECK, 945);
    assert_eq!(model.decide(0, Operation::Peek, 0).remaining, 55);
}

/// The debt is at most one capacity, while Bucket4j's has no bound.
#[test]
fn bucket4j_debt() {
    let mut model = TestModel::new("100/100ms");
    model.decide(0, CHECK, 100);
    model.check(&[
        (50, Operation::Penalize, 52, "yes 52 r0 rs102"),
        (50, CHECK, 1, "no 0 r0 rs102 ra3"),
        (50, CHECK, 0, "no 0 r0 rs102 ra2"),
        (52, CHECK, 0, "yes 0 r0 rs100"),
        (52, Operation::Penalize, 400, "yes 100 r0 rs200"),
        (52, Operation::Penalize, 1, "yes 0 r0 rs200"),
    ]);
}

#[test]
fn bucket4j_take_as_much_as_possible() {
    let rows: [(u64, u64, u64); 2] = [(4, 5, 4), (5, 5, 5)];
    for (initial, most, expected) in rows {
        let mut model = TestModel::new("10/s");
        model.decide(0, CHECK, 10 - initial);
        assert_eq!(model.decide(0, Operation::Take, most).granted, expected);
    }
    TestModel::new("10/s").check(&[
        (0, Operation::Take, 8, "yes 8 r2 rs800"),
        (0, Operation::Take, 8, "yes 2 r0 rs1000"),
        (0, Operation::Take, 3, "no 0 r0 rs1000 ra100"),
    ]);
}

#[test]
fn fixed_window() {
    let mut model = TestModel::new("10/2s fixed");
    for call in 1..=10 {
        let expected = format!("yes 1 r{} rs2000", 10 - call);
        assert_eq!(line(&model.decide(0, CHECK, 1)), expected);
    }
    model.check(&[(0, CHECK, 1, "no 0 r0 rs2000 ra2000"), (2_000, CHECK, 1, "yes 1 r9 rs2000")]);
    TestModel::new("10/2s fixed").check(&[
        (0, CHECK, 11, "no 0 r10 rs0 never"),
        (0, CHECK, 5, "yes 5 r5 rs2000"),
        (0, Operation::Peek, 6, "no 0 r5 rs2000 ra2000"),
        (0, CHECK, 6, "no 0 r5 rs2000 ra2000"),
    ]);
}

/// After 3 of 5, a cost of 3 is denied. Then a cost of 2 is denied only if denials are counted.
#[test]
fn fixed_window_counts_denials_if_configured() {
    let rows = [
        ("5/2s fixed count-denied", "no 0 r0 rs2000 ra2000"),
        ("5/2s fixed", "yes 2 r0 rs2000"),
        ("5/2s log", "yes 2 r0 rs2000"),
    ];
    for (policy, expected) in rows {
        let mut model = TestModel::new(policy);
        model.decide(0, CHECK, 3);
        assert!(!model.decide(0, CHECK, 3).allowed, "{policy}");
        assert_eq!(line(&model.decide(0, CHECK, 2)), expected, "{policy}");
    }
}

#[test]
fn moving_window() {
    TestModel::new("2/min log").check(&[
        (0, CHECK, 1, "yes 1 r1 rs60000"),
        (1_000, CHECK, 1, "yes 1 r0 rs60000"),
        (2_000, CHECK, 1, "no 0 r0 rs59000 ra58000"),
    ]);
    TestModel::new("10/2s log").check(&[
        (0, CHECK, 5, "yes 5 r5 rs2000"),
        (1_800, CHECK, 4, "yes 4 r1 rs2000"),
        (1_800, Operation::Peek, 2, "no 0 r1 rs2000 ra200"),
        (1_800, CHECK, 1, "yes 1 r0 rs2000"),
        (2_000, CHECK, 5, "yes 5 r0 rs2000"),
        (2_000, CHECK, 2, "no 0 r0 rs2000 ra1800"),
    ]);
    TestModel::new("5/min log").check(&[
        (0, CHECK, 5, "yes 5 r0 rs60000"),
        (0, CHECK, 2, "no 0 r0 rs60000 ra60000"),
        (0, Operation::Reset, 1, "yes 0 r5 rs0"),
        (0, CHECK, 5, "yes 5 r0 rs60000"),
    ]);
}
