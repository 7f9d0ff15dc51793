//! Any bytes are a limit or an error that points into them; what parses has one canonical text.
//!
//! `cargo xtask fuzz notation`
#![no_main]

use std::fmt::Display;

use libfuzzer_sys::fuzz_target;
use tollgate_core::{Limit, NotationError, Policy, parse_duration, parse_limits};

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

/// What was read displays as a text that reads back to the same, and displays the same again.
fn check<T: Display + PartialEq>(
    read: Result<T, NotationError>,
    again: fn(&str) -> Result<T, NotationError>,
) {
    match read {
        Ok(value) => {
            let text = value.to_string();
            let back = again(&text).unwrap_or_else(|error| panic!("{error}"));
            assert!(back == value, "{text} came back as {back}");
            assert_eq!(back.to_string(), text);
        }
        Err(error) => check_error(&error),
    }
}

/// Its span is within its text, and no control character gets into either of its forms.
fn check_error(error: &NotationError) {
    assert!(error.text().get(error.span()).is_some());
    assert!(!error.to_string().contains(char::is_control));
    let pointer = error.pointer().to_string();
    assert_eq!(pointer.chars().filter(|it| it.is_control()).count(), 1);
    assert_eq!(pointer.matches('\n').count(), 1);
}
