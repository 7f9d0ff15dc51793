//! The report of mistakes in the style of a compiler: an excerpt of the file with carets.

use std::fmt::Write as _;
use std::ops::Range;

use crate::error::{ConfigError, ConfigErrors};

/// The number of characters of a line that are shown.
const WIDTH: usize = 160;

pub(crate) fn write(errors: &ConfigErrors) -> String {
    let mut report = String::new();
    for error in errors.iter() {
        // Writing into a text does not fail.
        let _ = writeln!(report, "error: {}", error.full_message());
        if let Some(place) = error.place() {
            let _ = writeln!(report, " --> {place}");
        }
        write_excerpt(&mut report, errors, error);
        report.push('\n');
    }
    match errors.more() {
        0 => {}
        more => {
            let _ = writeln!(report, "… and {more} more\n");
        }
    }
    report.truncate(report.trim_end().len());
    report.push('\n');
    report
}

/// Writes the line of an error, and carets under the mistake.
fn write_excerpt(report: &mut String, errors: &ConfigErrors, error: &ConfigError) {
    let (Some(source), Some(span)) = (&errors.source, error.span()) else { return };
    let from = source
        .get(..span.bytes.start)
        .and_then(|text| text.rfind('\n'))
        .map_or(0, |newline| newline + 1);
    let Some(rest) = source.get(from..) else { return };
    // An empty rest is an empty line.
    let line = rest.lines().next().unwrap_or_default();
    let shown = masked(line, from, &errors.secrets);
    let before = span.column.saturating_sub(1);
    let of_span = source.get(span.bytes.clone()).unwrap_or_default();
    let width = of_span.lines().next().unwrap_or_default().trim_end().chars().count().max(1);
    // A mistake beyond the width has no carets: the line is too long to read anyway.
    let carets = if before < WIDTH { width.min(WIDTH - before) } else { 0 };
    let shown: String = shown.chars().take(WIDTH).collect();
    let number = span.line.to_string();
    let margin = " ".repeat(number.len());
    let _ = writeln!(report, "{margin} |");
    let _ = writeln!(report, "{number} | {}", shown.trim_end());
    if carets > 0 {
        let indent: String = shown.chars().take(before).map(blank).collect();
        let _ = writeln!(
            report,
            "{margin} | {indent}{}{}",
            missing(&shown, before),
            "^".repeat(carets)
        );
    }
}

/// The blank that is as wide as a character, so that carets line up after tabs.
fn blank(character: char) -> char {
    if character == '\t' { '\t' } else { ' ' }
}

/// The spaces that extend a line to a column.
fn missing(line: &str, column: usize) -> String {
    " ".repeat(column.saturating_sub(line.chars().count()))
}

/// A line with each character of a secret replaced by a star.
fn masked(line: &str, from: usize, secrets: &[Range<usize>]) -> String {
    let is_secret = |at: usize| secrets.iter().any(|secret| secret.contains(&(from + at)));
    let stars = |(at, character)| if is_secret(at) { '*' } else { character };
    line.char_indices().map(stars).collect()
}
