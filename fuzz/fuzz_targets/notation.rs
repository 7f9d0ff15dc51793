//! Parses arbitrary bytes as limits. An error points into the text; a limit has one canonical text.
//!
//! `cargo xtask fuzz notation`
#![no_main]

use std::fmt::Display;

use libfuzzer_sys::fuzz_target;
use tollgate_algorithms::{Limit, NotationError, Policy, parse_duration, parse_limits};

fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    check(text.parse::<Limit>(), str::parse);
    check(text.parse::<Policy>(), str::parse);
    if let Ok(limits) = parse_limits(&text) {
        assert_eq!(limits.len(), text.split(';').count());
    }
    if let Err(error) = parse_duration(&text) {
        check_error(&error);
    }
});

/// A parsed value displays as a text that parses to the same value.
fn check<T: Display + PartialEq>(
    parsed: Result<T, NotationError>,
    parse: fn(&str) -> Result<T, NotationError>,
) {
    match parsed {
        Ok(value) => {
            let text = value.to_string();
            let back = parse(&text).unwrap_or_else(|error| panic!("{error}"));
            assert!(back == value, "{text} parsed as {back}");
            assert_eq!(back.to_string(), text);
        }
        Err(error) => check_error(&error),
    }
}

/// The span is within the text, and neither form contains control characters.
fn check_error(error: &NotationError) {
    assert!(error.text().get(error.span()).is_some());
    assert!(!error.to_string().contains(char::is_control));
    let pointer = error.pointer().to_string();
    assert_eq!(pointer.chars().filter(|c| c.is_control()).count(), 1);
    assert_eq!(pointer.matches('\n').count(), 1);
}
