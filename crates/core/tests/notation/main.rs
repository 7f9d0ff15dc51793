//! The notation of limits: texts and their canonical form.

use std::fmt::Display;

use tollgate_core::{
    Kind, Limit, LimitError, Micros, NotationError, Policy, Spec, parse_duration, parse_limits,
};

mod errors;
mod properties;

/// Parses each text and compares it with its canonical text, or with `column N: message`.
#[track_caller]
fn check<T: Display>(read: impl Fn(&str) -> Result<T, NotationError>, rows: &[(&str, &str)]) {
    for (text, expected) in rows {
        let (found, expected) = match read(text) {
            Ok(value) => (value.to_string(), String::from(*expected)),
            Err(error) => (error.to_string(), format!("in {text:?}, {expected}")),
        };
        assert_eq!(found, expected, "of {text:?}");
    }
}

fn limit(text: &str) -> Result<Limit, NotationError> {
    text.parse()
}

fn limits(text: &str) -> Result<String, NotationError> {
    let all: Vec<_> = parse_limits(text)?.iter().map(Limit::to_string).collect();
    Ok(all.join("; "))
}

#[test]
fn notation_of_every_kind_is_canonical() {
    check(
        limit,
        &[
            ("10/s", "10/s"),
            ("10/s token", "10/s"),
            ("10/s gcra", "10/s"),
            ("10/s burst 50", "10/s burst 50"),
            ("10/s burst 10", "10/s"),
            ("10/s burst 5", "10/s burst 5"),
            ("100/min fixed", "100/min fixed"),
            ("100/min fixed offset 5s", "100/min fixed offset 5s"),
            ("100/min fixed offset 0s", "100/min fixed"),
            ("100/d fixed offset 5h count-denied", "100/d fixed offset 5h count-denied"),
            ("100/min fixed from-first", "100/min fixed from-first"),
            ("100/min count-denied from-first fixed", "100/min fixed from-first count-denied"),
            ("100/min log", "100/min log"),
            ("100/min log count-denied", "100/min log count-denied"),
            ("100/min sliding", "100/min sliding"),
            ("100/min sliding count-denied", "100/min sliding count-denied"),
            ("240/h sliding by 1m", "240/h sliding by 1min"),
            ("240/h sliding by 1m strict", "240/h sliding by 1min strict"),
            ("20/s queue 100", "20/s queue 100"),
            ("20/s queue 0", "20/s queue 0"),
            ("20 concurrent lease 60s", "20 concurrent lease 1min"),
        ],
    );
}

#[test]
fn notation_accepts_words_in_any_order_case_and_spacing() {
    check(
        limit,
        &[
            ("10/s burst 50 token", "10/s burst 50"),
            ("100/min count-denied fixed", "100/min fixed count-denied"),
            ("100/d offset 1h fixed", "100/d fixed offset 1h"),
            ("240/h strict sliding by 1m", "240/h sliding by 1min strict"),
            (
                "240/h by 1m count-denied strict sliding",
                "240/h sliding by 1min strict count-denied",
            ),
            ("20 lease 60s concurrent", "20 concurrent lease 1min"),
            ("10 / 1 s", "10/s"),
            ("10/10s", "10/10s"),
            ("10 / 10 s", "10/10s"),
            (" \t10 /\u{a0}s\n", "10/s"),
            ("20concurrent lease 1 min", "20 concurrent lease 1min"),
            ("10/S BURST 50", "10/s burst 50"),
            ("010/01s", "10/s"),
        ],
    );
}

#[test]
fn notation_reduces_units() {
    check(
        limit,
        &[
            ("1/60000ms", "1/min"),
            ("1/7d", "1/w"),
            ("1/14d", "1/2w"),
            ("1/30d", "1/30d"),
            ("1/366d", "1/366d"),
            ("1/600s", "1/10min"),
            ("1/24h", "1/d"),
            ("1/90s", "1/90s"),
            ("1/1500 milliseconds", "1/1500ms"),
            ("1/millisecond", "1/ms"),
            ("1/2 msec", "1/2ms"),
            ("1/second", "1/s"),
            ("1/2 seconds", "1/2s"),
            ("1/2 sec", "1/2s"),
            ("1/m", "1/min"),
            ("1/minute", "1/min"),
            ("1/2 minutes", "1/2min"),
            ("1/hour", "1/h"),
            ("1/2 hours", "1/2h"),
            ("1/2hr", "1/2h"),
            ("1/day", "1/d"),
            ("1/2 days", "1/2d"),
            ("1/week", "1/w"),
            ("1/2 weeks", "1/2w"),
        ],
    );
}

#[test]
fn notation_of_the_greatest_limits_of_every_kind() {
    check(
        limit,
        &[
            ("10000000/30d", "10000000/30d"),
            ("10000000/30d fixed", "10000000/30d fixed"),
            ("10000000/30d fixed from-first", "10000000/30d fixed from-first"),
            ("10000000/30d log", "10000000/30d log"),
            ("10000000/30d sliding", "10000000/30d sliding"),
            ("10000000/30d sliding by 1d", "10000000/30d sliding by 1d"),
            ("10000000/30d sliding by 15min", "10000000/30d sliding by 15min"),
            ("10000000/30d queue 10000000", "10000000/30d queue 10000000"),
            ("10000 concurrent lease 30d", "10000 concurrent lease 30d"),
            ("1000000/s burst 1000000", "1000000/s"),
        ],
    );
}

#[test]
fn notation_of_policies() {
    check(
        limits,
        &[
            (
                "10/s fixed; 120/min fixed;240/h sliding by 1m",
                "10/s fixed; 120/min fixed; 240/h sliding by 1min",
            ),
            ("", "column 1: a limit is missing; write one, as in 10/s"),
            (
                "10/s;",
                "column 6: a limit is missing; write one, as in 10/s, or leave the semicolon out",
            ),
            (
                "10/s; ;5/s",
                r#"column 7: a limit is missing before ";"; write one, as in 10/s, or leave the semicolon out"#,
            ),
            ("10/s; 5/min; 3/s fixd", r#"column 18: unknown word "fixd"; did you mean "fixed"?"#),
        ],
    );
    let seventeen = Vec::from_iter((1..=17).map(|n| format!("{n}/s"))).join(";");
    check(
        str::parse::<Policy>,
        &[
            ("120/min fixed; 10/s fixed", "10/s fixed; 120/min fixed"),
            (&seventeen, "column 1: 17 limits are too many for one policy; it has at most 16"),
        ],
    );
}

#[test]
fn notation_of_durations() {
    check(
        parse_duration,
        &[
            ("30s", "30"),
            ("5 min", "300"),
            ("1h", "3600"),
            ("1500ms", "1.5"),
            ("0s", "0"),
            ("", "column 1: a duration is missing; write a number and a unit, as in 30s"),
            ("min", r#"column 1: the number is missing before "min"; write it first, as in 30s"#),
            (
                "5",
                "column 2: the unit is missing; write ms, s, min, h, d or w after the number, as in 10s",
            ),
            ("5s 5", r#"column 4: "5" is not accepted; a duration is one number and one unit"#),
            ("1.5h", r#"column 1: "1.5h" has a decimal point; write 90min"#),
            ("213503983d", r#"column 1: "213503983d" is too large; at most 213503982d"#),
        ],
    );
}

#[test]
fn notation_of_invalid_numbers() {
    let spec = |us, kind| Spec::new(10, Micros::new(us), kind).to_string();
    assert_eq!(spec(1_500, Kind::Log), "10/1500us log");
    assert_eq!(spec(0, Kind::Log), "10/0s log");
    let by = Kind::SlidingBy { precision: Micros::new(1), strict: true };
    assert_eq!(spec(1_000, by), "10/ms sliding by 1us strict");
    // A limit without a text would have no canonical form.
    let window = Micros::new(1_500);
    assert_eq!(Spec::new(10, window, Kind::Log).build(), Err(LimitError::Window(window)));
}
