//! Messages for invalid limits: the column of the word, the fault and the remedy.

use tollgate_core::{NotationErrorKind, parse_limits};

use super::{check, limit};

#[test]
fn notation_errors_of_missing_parts() {
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
fn notation_errors_of_contradicting_words() {
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
fn notation_errors_point_at_the_invalid_number() {
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
fn notation_errors_of_long_texts_show_an_excerpt() {
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
fn notation_pointer_is_under_the_word() {
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
