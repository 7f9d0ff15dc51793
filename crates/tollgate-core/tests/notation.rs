//! The notation of limits as rows: what parses and to what, and what is said of the rest.

use std::fmt::Display;

use tollgate_core::{
    Kind, Limit, LimitError, Micros, NotationError, NotationErrorKind, Policy, Spec,
    parse_duration, parse_limits,
};

/// Reads each text and holds it to its canonical text, or to `column N: message`.
#[track_caller]
fn check<T: Display>(read: impl Fn(&str) -> Result<T, NotationError>, rows: &[(&str, &str)]) {
    for (text, expected) in rows {
        let (found, expected) = match read(text) {
            Ok(it) => (it.to_string(), String::from(*expected)),
            Err(it) => (it.to_string(), format!("in {text:?}, {expected}")),
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

/// The seconds of a duration.
fn duration(text: &str) -> Result<Micros, NotationError> {
    parse_duration(text)
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
fn notation_takes_words_in_any_order_case_and_spacing() {
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
fn notation_of_the_greatest_limits_that_every_kind_must_take() {
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
fn notation_errors_of_what_is_missing() {
    check(
        limit,
        &[
            ("", "column 1: a limit is missing; write one, as in 10/s"),
            ("  ", "column 1: a limit is missing; write one, as in 10/s"),
            ("/s", r#"column 1: the count is missing before "/"; write it first, as in 10/s"#),
            (
                "fixed 10/s",
                r#"column 1: the count is missing before "fixed"; write it first, as in 10/s"#,
            ),
            ("10", "column 3: the window is missing; write it after the count, as in 10/s"),
            ("10 fixed", "column 3: the window is missing; write it after the count, as in 10/s"),
            (
                "10/",
                "column 4: the window is missing; write it after the slash, as in 10/s or 10/5min",
            ),
            (
                "10//s",
                r#"column 4: the window is missing before "/"; write it after the slash, as in 10/s or 10/5min"#,
            ),
            (
                "10/log",
                r#"column 4: the window is missing before "log"; write it after the slash, as in 10/s or 10/5min"#,
            ),
            (
                "10 second",
                r#"column 4: "/" is missing before "second"; write it after the count, as in 10/s"#,
            ),
            (
                "10/60",
                "column 6: the unit is missing; write ms, s, min, h, d or w after the number, as in 10s",
            ),
            (
                "10/5 log",
                r#"column 6: the unit is missing before "log"; write ms, s, min, h, d or w after the number, as in 10s"#,
            ),
            (
                "10/s burst",
                "column 11: the number is missing; write it after burst, as in burst 50",
            ),
            (
                "10/s queue token",
                r#"column 12: the number is missing before "token"; write it after queue, as in queue 100"#,
            ),
            (
                "10/d fixed offset",
                "column 18: the duration is missing; write it after offset, as in offset 5h",
            ),
            (
                "10/h sliding by",
                "column 16: the duration is missing; write it after by, as in sliding by 1min",
            ),
            (
                "20 concurrent lease min",
                r#"column 21: the duration is missing before "min"; write it after lease, as in lease 60s"#,
            ),
            (
                "20 concurrent",
                "column 14: the lease is missing; write it after concurrent, as in 20 concurrent lease 60s",
            ),
        ],
    );
}

#[test]
fn notation_errors_of_numbers() {
    let fraction = "take a longer window or a smaller unit, as in 3/2s for 1.5/s or 90min for 1.5h";
    check(
        limit,
        &[
            ("+10/s", r#"column 1: "+10" has a sign; write 10"#),
            ("-5/s", r#"column 1: "-5" has a sign; write 5"#),
            ("\u{2212}5/s", "column 1: \"\u{2212}5\" has a sign; write 5"),
            ("1.0/s", r#"column 1: "1.0" has a decimal point; write 1"#),
            ("1.5/s", &format!(r#"column 1: "1.5" has a decimal point; {fraction}"#)),
            ("1,5/s", &format!(r#"column 1: "1,5" has a decimal point; {fraction}"#)),
            ("10/1.5h", r#"column 4: "1.5h" has a decimal point; write 90min"#),
            ("10/.5s", r#"column 4: ".5s" has a decimal point; write 500ms"#),
            ("10/0.0005s", &format!(r#"column 4: "0.0005s" has a decimal point; {fraction}"#)),
            ("10/1h30m", r#"column 4: "1h30m" has several units; write 90min"#),
            ("1_000/s", r#"column 1: "1_000" has separators between its digits; write 1000"#),
            (
                "1,000,000/s",
                r#"column 1: "1,000,000" has separators between its digits; write 1000000"#,
            ),
            ("10/s burst 1e3", r#"column 12: "1e3" has an exponent; write 1000"#),
            (
                "1e99/s",
                r#"column 1: "1e99" is not a number; write decimal digits only, as in 1000"#,
            ),
            (
                "0x10/s",
                r#"column 1: "0x10" is not a number; write decimal digits only, as in 1000"#,
            ),
            (
                "１０/s",
                r#"column 1: "１０" is not a number; write decimal digits only, as in 1000"#,
            ),
            ("1\u{1b}.0/s", &format!(r#"column 1: "1\u{{1b}}.0" has a decimal point; {fraction}"#)),
            (
                "18446744073709551616/s",
                r#"column 1: "18446744073709551616" is too large; at most 4503599627370495"#,
            ),
            (
                "10/18446744073709551616s",
                r#"column 4: "18446744073709551616" is too large; at most 366d"#,
            ),
            (
                "10/18446744073709551615w",
                r#"column 4: "18446744073709551615w" is too large; at most 366d"#,
            ),
        ],
    );
}

#[test]
fn notation_errors_of_words() {
    let known = "known are token, fixed, log, sliding, queue, concurrent, burst, from-first, \
                 offset, by, strict, lease and count-denied";
    check(
        limit,
        &[
            ("10/s burts 20", r#"column 6: unknown word "burts"; did you mean "burst"?"#),
            ("10/s Slidnig", r#"column 6: unknown word "Slidnig"; did you mean "sliding"?"#),
            (
                "10/s from_first",
                r#"column 6: unknown word "from_first"; did you mean "from-first"?"#,
            ),
            (
                "10/s fixed from first",
                r#"column 12: unknown word "from"; did you mean "from-first"?"#,
            ),
            ("10/s burst=50", r#"column 6: unknown word "burst=50"; did you mean "burst"?"#),
            ("10/s wrong", &format!(r#"column 6: unknown word "wrong"; {known}"#)),
            ("10/s \u{1b}[1m", &format!(r#"column 6: unknown word "\u{{1b}}[1m"; {known}"#)),
            ("10/s é日 log", &format!(r#"column 6: unknown word "é日"; {known}"#)),
            ("10/seccond", r#"column 4: unknown unit "seccond"; did you mean "second"?"#),
            ("10/é", r#"column 4: unknown unit "é"; known are ms, s, min, h, d and w"#),
            ("10/s fixed é", &format!(r#"column 12: unknown word "é"; {known}"#)),
            (
                "10/month",
                r#"column 4: "month" is not accepted; months differ in length: write 30d, or 1d windows"#,
            ),
            (
                "10/2 mo",
                r#"column 6: "mo" is not accepted; months differ in length: write 30d, or 1d windows"#,
            ),
            ("10/year", r#"column 4: "year" is not accepted; years differ in length: write 365d"#),
            ("10/us", r#"column 4: "us" is not accepted; the shortest unit is ms"#),
            ("10 per second", r#"column 4: "per" is not accepted; write "/", as in 10/s"#),
            ("10 requests/s", r#"column 4: "requests" is not accepted; leave it out, as in 10/s"#),
            ("10k/s", r#"column 3: "k" is not accepted; write the number out, as in 10000/s"#),
            (
                "10/s 5",
                r#"column 6: "5" is not accepted; a number follows burst, queue, offset, by or lease"#,
            ),
            (
                "10/s/5",
                r#"column 5: "/" is not accepted; a limit has one window, right after its count"#,
            ),
            (
                "10/s; 5/s",
                r#"column 5: ";" is not accepted; it joins the limits of a policy, and one limit is read here"#,
            ),
        ],
    );
}

#[test]
fn notation_errors_of_words_that_do_not_go_together() {
    let out = "leave one of them out";
    check(
        limit,
        &[
            (
                "10/s burst 5 burst 6",
                &format!(r#"column 14: "burst" repeats "burst" at column 6; {out}"#),
            ),
            (
                "10/s token gcra",
                &format!(r#"column 12: "gcra" repeats "token" at column 6; {out}"#),
            ),
            (
                "10/s fixed log",
                &format!(r#"column 12: "log" does not go with "fixed" at column 6; {out}"#),
            ),
            (
                "10/s burst 5 fixed",
                &format!(r#"column 6: "burst" does not go with "fixed" at column 14; {out}"#),
            ),
            (
                "10/d offset 5h fixed from-first",
                &format!(r#"column 22: "from-first" does not go with "offset" at column 6; {out}"#),
            ),
            (
                "10 / s concurrent",
                &format!(r#"column 8: "concurrent" does not go with "/ s" at column 4; {out}"#),
            ),
            ("10/s offset 5h", r#"column 6: "offset" needs "fixed"; write both, or neither"#),
            ("10/s strict sliding", r#"column 6: "strict" needs "by"; write both, or neither"#),
            ("20 lease 60s", r#"column 4: "lease" needs "concurrent"; write both, or neither"#),
        ],
    );
}

#[test]
fn notation_errors_point_at_the_number_that_makes_no_limit() {
    let lengths = "windows and leases are whole milliseconds from 1ms to 366d";
    let too_large = "is too large to be decided exactly; the nearest lower limit that fits is";
    let counts = "only fixed, sliding and log limits count denied requests; leave out count-denied";
    check(
        limit,
        &[
            ("0/s", "column 1: the count is 0; it must be at least 1"),
            ("10 / 0s", &format!("column 6: the window is 0s; {lengths}")),
            ("10/367d", &format!("column 4: the window is 367d; {lengths}")),
            ("20 concurrent lease 400d", &format!("column 21: the window is 400d; {lengths}")),
            ("10/s burst 0", "column 12: the burst is 0; it must be at least 1"),
            (
                "10/s fixed offset 5h",
                "column 19: the offset is 5h; it must be whole milliseconds and shorter than the window of 1s",
            ),
            (
                "10/h sliding by 7min",
                "column 17: the precision is 7min; it must divide the window of 1h into 1 to 4096 buckets of whole milliseconds",
            ),
            (
                "10001 concurrent lease 1s",
                "column 1: 10001 in flight are too many; at most 10000 leases are kept a key",
            ),
            ("10/s count-denied", &format!("column 6: {counts}")),
            (
                "9007199254740992/s log",
                &format!("column 1: 9007199254740992/s log {too_large} 4503599627370495/s log"),
            ),
            (
                "7/s burst 9007199254740992",
                &format!(
                    "column 11: 7/s burst 9007199254740992 {too_large} 7/s burst 450359962737049"
                ),
            ),
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
    let seventeen = Vec::from_iter((1..=17).map(|it| format!("{it}/s"))).join(";");
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
        duration,
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
fn notation_of_numbers_that_make_no_limit() {
    let spec = |us, kind| Spec::new(10, Micros::new(us), kind).to_string();
    assert_eq!(spec(1_500, Kind::Log), "10/1500us log");
    assert_eq!(spec(0, Kind::Log), "10/0s log");
    let by = Kind::SlidingBy { precision: Micros::new(1), strict: true };
    assert_eq!(spec(1_000, by), "10/ms sliding by 1us strict");
    // A limit that could not be written would have no canonical text.
    let window = Micros::new(1_500);
    assert_eq!(Spec::new(10, window, Kind::Log).build(), Err(LimitError::Window(window)));
}

#[test]
fn notation_errors_of_long_texts_show_what_matters() {
    let long = format!("10/s {}", "x".repeat(300));
    let error = limit(&long).unwrap_err();
    assert_eq!(*error.kind(), NotationErrorKind::TooLong { bytes: 305, most: 256 });
    assert_eq!((error.text(), error.span()), (long.as_str(), 0..305));
    let shown = format!(
        "in \"10/s {}\"…, column 1: the text has 305 bytes; at most 256 are read",
        "x".repeat(91)
    );
    assert_eq!(error.to_string(), shown);

    let policy = format!("{}5/min burts 7; {}", "10/s; ".repeat(30), "10/s; ".repeat(30));
    let error = parse_limits(&policy).unwrap_err();
    assert_eq!(&error.text()[error.span()], "burts");
    let (before, after) = ["; 10/s".repeat(5), "; 10/s".repeat(8)].into();
    let shown = format!("in …\"/s{before}; 5/min burts 7{after};\"…, column 187: ");
    assert_eq!(error.to_string(), shown + r#"unknown word "burts"; did you mean "burst"?"#);

    let huge = parse_limits(&"é".repeat(5_000)).unwrap_err();
    assert_eq!((huge.text().len(), huge.span()), (4_096, 0..4_096));
}

#[test]
fn notation_pointer_stands_under_the_word() {
    let pointer = |text: &str| limit(text).unwrap_err().pointer().to_string();
    let rows = [
        (
            "10/s burts 20",
            "10/s burts 20\n     ^^^^^ unknown word \"burts\"; did you mean \"burst\"?",
        ),
        ("10\t/sek", "10\\t/sek\n     ^^^ unknown unit \"sek\"; did you mean \"sec\"?"),
        ("é/s", "é/s\n^ the count is missing before \"é\"; write it first, as in 10/s"),
        (
            "10/s burst",
            "10/s burst\n          ^ the number is missing; write it after burst, as in burst 50",
        ),
    ];
    for (text, expected) in rows {
        assert_eq!(pointer(text), expected);
    }
}
