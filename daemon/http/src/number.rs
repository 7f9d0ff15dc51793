//! Numbers as they were written: nothing passes through a float on its way.

use tollgate::{Cost, Micros};

/// Reads a cost: an integer from 0 to 2^53 − 1, in digits alone.
///
/// # Errors
/// The remedy.
pub(super) fn cost(literal: &str) -> Result<Cost, &'static str> {
    const LARGE: &str = "the greatest cost is 9007199254740991 (2^53 - 1)";
    if literal.starts_with('"') {
        return Err("write the number without quotes");
    }
    if literal.starts_with('-') {
        return Err("a cost is 0 or more; refund gives back");
    }
    if !literal.starts_with(|c: char| c.is_ascii_digit()) {
        return Err("write an integer from 0 to 9007199254740991, such as 1");
    }
    if !is_digits(literal) {
        return Err("write an integer in digits alone, without a point or an exponent, such as 1");
    }
    literal.parse().ok().and_then(Cost::new).ok_or(LARGE)
}

/// Reads seconds with up to six decimals, such as `1.5`, exactly.
///
/// # Errors
/// The remedy.
pub(super) fn seconds(literal: &str) -> Result<Micros, &'static str> {
    const LARGE: &str = "that is longer than can be told in microseconds; write a smaller number";
    if literal.starts_with('-') {
        return Err("write seconds that are 0 or more");
    }
    let (whole, decimals) = literal.split_once('.').unwrap_or((literal, "0"));
    if !is_digits(whole) || !is_digits(decimals) {
        return Err("write seconds in digits, with up to six decimals, such as 1.5");
    }
    let decimals = decimals.trim_end_matches('0');
    if decimals.len() > 6 {
        return Err("time is told in microseconds; write at most six decimals");
    }
    let micros: u64 = format!("{decimals:0<6}").parse().map_err(|_| LARGE)?;
    let whole = whole.parse::<u64>().ok().and_then(|whole| whole.checked_mul(1_000_000));
    whole.and_then(|whole| whole.checked_add(micros)).map(Micros::new).ok_or(LARGE)
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cost_is_what_its_digits_say_and_nothing_else() {
        for (literal, expected) in [
            ("0", Some(0)),
            ("7", Some(7)),
            ("9007199254740991", Some(9_007_199_254_740_991)),
            ("9007199254740992", None),
            ("18446744073709551616", None),
            ("-1", None),
            ("-0", None),
            ("1.0", None),
            ("1e3", None),
            ("1E0", None),
            ("\"1\"", None),
            ("true", None),
            ("null", None),
            ("[1]", None),
            ("", None),
        ] {
            assert_eq!(cost(literal).ok().map(Cost::get), expected, "{literal}");
        }
    }

    #[test]
    fn seconds_are_exact_to_the_microsecond() {
        for (literal, expected) in [
            ("0", Some(0)),
            ("1", Some(1_000_000)),
            ("1.5", Some(1_500_000)),
            ("0.000001", Some(1)),
            ("0.1000000000", Some(100_000)),
            ("0.0000001", None),
            ("1763650000.123456", Some(1_763_650_000_123_456)),
            ("18446744073709.551615", Some(u64::MAX)),
            ("18446744073709.551616", None),
            ("18446744073710", None),
            ("1e3", None),
            ("1.", None),
            (".5", None),
            ("-1", None),
            ("\"1\"", None),
        ] {
            assert_eq!(seconds(literal).ok().map(Micros::get), expected, "{literal}");
        }
    }
}
