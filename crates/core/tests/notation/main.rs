//! The notation of limits: texts, and their canonical form or the error.

use tollgate_algorithms::{
    Kind, Limit, LimitError, Micros, NotationError, Policy, Spec, parse_duration, parse_limits,
};

mod properties;

/// Parses a text as this kind of value, and writes the value.
fn canonical(kind: &str, text: &str) -> Result<String, NotationError> {
    match kind {
        "limit" => text.parse::<Limit>().map(|limit| limit.to_string()),
        "limits" => {
            let limits: Vec<_> = parse_limits(text)?.iter().map(Limit::to_string).collect();
            Ok(limits.join("; "))
        }
        "policy" => text.parse::<Policy>().map(|policy| policy.to_string()),
        "duration" => parse_duration(text).map(|duration| duration.to_string()),
        _ => unreachable!("a section {kind:?}"),
    }
}

/// Compares the canonical form of a text, or its error, with what is expected.
fn check(kind: &str, text: &str, expected: &str) {
    let (found, expected) = match canonical(kind, text) {
        Ok(canonical) => (canonical, String::from(expected)),
        Err(error) => (error.to_string(), format!("in {text:?}, {expected}")),
    };
    assert_eq!(found, expected, "{text:?} as a {kind}");
}

#[test]
fn notation_of_every_row_is_canonical_or_an_error_that_names_the_remedy() {
    let (mut kind, mut rows) = ("", 0);
    for row in include_str!("rows.txt").lines() {
        if let Some(section) = row.strip_prefix("== ") {
            kind = section;
        } else if let Some((text, expected)) = row.split_once(" => ") {
            check(kind, text, expected);
            rows += 1;
        } else {
            assert!(row.is_empty() || row.starts_with("# "), "not a row: {row}");
        }
    }
    assert_eq!(rows, 161);
}

#[test]
fn notation_of_invisible_characters_is_accepted_or_escaped() {
    check("limit", " \t10 /\u{a0}s\n", "10/s");
    for text in ["", "  "] {
        check("limit", text, "column 1: a limit is missing; write one, as in 10/s");
    }
    check("limits", "", "column 1: a limit is missing; write one, as in 10/s");
    let missing = "column 1: a duration is missing; write a number and a unit, as in 30s";
    check("duration", "", missing);
    let point = "has a decimal point; take a longer window or a smaller unit, as in 3/2s for 1.5/s \
                 or 90min for 1.5h";
    check("limit", "1\u{1b}.0/s", &format!(r#"column 1: "1\u{{1b}}.0" {point}"#));
    let known = "known are token, fixed, log, sliding, queue, concurrent, burst, from-first, \
                 offset, by, strict, lease and count-denied";
    let unknown = format!(r#"column 6: unknown word "\u{{1b}}[1m"; {known}"#);
    check("limit", "10/s \u{1b}[1m", &unknown);
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

#[test]
fn notation_errors_of_long_texts_show_an_excerpt() {
    let long = format!("10/s {}", "x".repeat(300));
    let error = long.parse::<Limit>().unwrap_err();
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
    let pointer = |text: &str| text.parse::<Limit>().unwrap_err().pointer().to_string();
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
