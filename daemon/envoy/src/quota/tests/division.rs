//! What can be divided, and the numbers.

use tollgate::{Micros, Policy};

use crate::quota::division::{Division, FULL_DEMAND, Indivisible, digits, sum};

fn divide(limits: &str) -> Result<Division, Indivisible> {
    Division::new(&Policy::named("p", limits).unwrap())
}

#[test]
fn a_rate_is_divided_into_units_with_tokens() {
    let division = divide("1000/s burst 400").unwrap();
    assert_eq!((division.units, division.fill), (980, 1));
    assert_eq!(division.rates.to_string(), "980 concurrent lease 13s");
    assert_eq!(division.starts.to_string(), "1000/50s burst 100");
    assert_eq!((division.max_tokens(980), division.max_tokens(490)), (300, 150));
    assert_eq!((division.refill(490), division.min_units()), (490, 4));

    // A unit is one token in 20 s.
    let slow = divide("10/s burst 20").unwrap();
    assert_eq!((slow.units, slow.fill), (196, 20));
    // A unit is several tokens.
    let fast = divide("1000000/s").unwrap();
    assert_eq!((fast.units, fast.refill(1), fast.refill(fast.units)), (5_000, 196, 980_000));
}

#[test]
fn a_window_is_divided_so_that_no_window_admits_more() {
    for kind in ["fixed", "fixed from-first", "sliding", "sliding by 1s", "log"] {
        let division = divide(&format!("60000/min {kind}")).unwrap();
        // 57,000 a minute and a burst of 3,000.
        assert_eq!((division.units, division.refill(division.units)), (931, 931), "{kind}");
        assert_eq!(division.max_tokens(division.units), 2_250, "{kind}");
        assert_eq!(division.starts.to_string(), "57000/50min burst 750", "{kind}");
    }
}

#[test]
fn what_cannot_be_divided_has_a_reason() {
    for (limits, reason) in [
        ("10/s; 100/min", Indivisible::Several),
        ("10/s queue 5", Indivisible::Kind),
        ("10 concurrent lease 60s", Indivisible::Kind),
        ("6000/min log count-denied", Indivisible::CountsDenied),
        ("10/min burst 10", Indivisible::Small),
        ("1000/s burst 5", Indivisible::Burst),
        ("119/s fixed", Indivisible::Burst),
    ] {
        assert_eq!(divide(limits).unwrap_err(), reason, "{limits}");
    }
    let long = "n".repeat(120);
    let policy = Policy::named(&long, "1000/s").unwrap();
    assert_eq!(Division::new(&policy).unwrap_err(), Indivisible::Name);
    let longest = Policy::named(&"n".repeat(110), "1000/s").unwrap();
    assert!(Division::new(&longest).is_ok());
}

#[test]
fn demands_are_fractions_of_the_limit() {
    let division = divide("1000/s").unwrap();
    let second = Micros::from_secs(1);
    assert_eq!(division.demand(0, second), 1);
    // 784 of 980 requests a second, and a quarter more, are the whole limit.
    assert_eq!(division.demand(784, second), FULL_DEMAND);
    assert_eq!(division.demand(784 * 5, Micros::from_secs(5)), FULL_DEMAND);
    assert_eq!(division.demand(u64::MAX, second), 2 * FULL_DEMAND);
    for demand in [1, 49, 50, 51, 2_500, 5_000] {
        let remaining = digits(demand).map(|held| 10_000 - held);
        assert_eq!(sum(remaining), demand);
    }
}

#[test]
fn shares_follow_the_demands_when_all_together_exceed_the_limit() {
    let division = divide("1000/s").unwrap();
    // Half of the limit is free.
    assert_eq!(division.share(1_000, 1_250), 392);
    // Four fifths.
    assert_eq!(division.share(4_000, 5_000), 784);
    assert_eq!(division.share(1_000, 5_000), 196);
    // At least one token.
    assert_eq!(division.share(1, 5_000), division.min_units());
}
