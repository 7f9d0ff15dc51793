//! The report as text for a terminal, in columns that fit.

use std::fmt::Write;

use Side::{Left, Right, Spare};
use tollgate::Limit;

use super::cells::notices;
use super::format::{counted, grouped, key, length, ppm, second, share, text};
use super::{Outcome, Report};
use crate::convert::index;

/// Narrower terminals get lines of this width.
const MIN_WIDTH: usize = 40;
/// The width to which a text may be cut before a column is omitted.
const MIN_TEXT_WIDTH: usize = 16;
const GAP: &str = "  ";
const BAR: u64 = 10;

/// Writes a line. Writing to a string does not fail.
macro_rules! line {
    ($out:expr, $($words:tt)*) => {
        let _ = writeln!($out, $($words)*);
    };
}

impl Report {
    /// The report as lines of at most `width` columns. Below 40 columns, and for numbers that
    /// cannot be cut, lines are longer.
    pub fn table(&self, width: usize) -> String {
        let width = width.max(MIN_WIDTH);
        let mut out = String::new();
        write_source(&mut out, self);
        if self.offered.requests > 0 {
            write_outcomes(&mut out, self, width);
            write_suggestions(&mut out, self, width);
            for outcome in &self.outcomes {
                write_worst(&mut out, outcome, width);
            }
            write_peaks(&mut out, self, width);
        }
        for sample in &self.source.invalid_samples {
            line!(out, "\n{}:{}: {}", text(&sample.name), sample.line, text(&sample.reason));
            line!(out, "  {}", text(&sample.text));
        }
        out
    }
}

fn write_source(out: &mut String, report: &Report) {
    let names: Vec<_> = report.source.names.iter().map(|name| text(name)).collect();
    let format = report.source.format.map_or_else(String::new, |f| format!(" ({f})"));
    let requests = counted(report.offered.requests, "request");
    line!(out, "{}{format}: {requests} of {}", names.join(", "), counted(report.keys, "key"));
    if report.offered.cost != report.offered.requests {
        line!(out, "cost {} in all", grouped(report.offered.cost));
    }
    if let Some((first, last)) = report.source.span {
        let span = length(last.duration_since(first));
        line!(out, "{} to {} UTC, {span}", second(first), second(last));
    }
    for notice in notices(report) {
        line!(out, "note: {notice}");
    }
}

fn write_outcomes(out: &mut String, report: &Report, width: usize) {
    let heads = [
        ("limit", Left),
        ("admitted", Right),
        ("denied", Right),
        ("", Right),
        ("keys denied", Right),
        ("", Right),
        ("longest denial", Right),
        ("", Spare),
    ];
    let rows = report.outcomes.iter().map(|outcome| {
        let mut cells = outcome.cells(report, "-");
        cells.push(bar(outcome.admitted.requests, report.offered.requests));
        cells
    });
    out.push('\n');
    write_columns(out, width, &heads, rows.collect());
}

fn write_suggestions(out: &mut String, report: &Report, width: usize) {
    let found =
        report.outcomes.iter().filter_map(|outcome| Some((outcome, outcome.suggestion.as_ref()?)));
    let found: Vec<_> = found.collect();
    let Some((_, first)) = found.first() else { return };
    let rows = found.iter().map(|(outcome, found)| {
        let limits: Vec<_> = found.limits.iter().map(Limit::to_string).collect();
        let denied = share(found.keys_denied, report.keys);
        vec![text(&outcome.name), limits.join("; "), grouped(found.keys_denied), denied]
    });
    line!(out, "\nto deny at most {} of the keys", ppm(first.share_ppm));
    let heads = [("instead of", Left), ("use", Left), ("keys denied", Right), ("", Right)];
    write_columns(out, width, &heads, rows.collect());
}

fn bar(part: u64, whole: u64) -> String {
    let tenths = u128::from(part) * u128::from(BAR) / u128::from(whole.max(1));
    let full = index(tenths.min(u128::from(BAR)));
    let rest = index(BAR) - full;
    format!("{}{}", "#".repeat(full), ".".repeat(rest))
}

fn write_worst(out: &mut String, outcome: &Outcome, width: usize) {
    if outcome.worst.is_empty() {
        return;
    }
    let mut heads = vec![
        ("key", Left),
        ("denied", Right),
        ("of", Right),
        ("", Right),
        ("longest denial", Right),
        ("first denied (UTC)", Right),
    ];
    let has_policies = outcome.worst.iter().any(|worst| worst.policy.is_some());
    if has_policies {
        heads.insert(0, ("policy", Left));
    }
    let rows = outcome.worst.iter().map(|worst| {
        let policy = has_policies.then(|| text(worst.policy.as_deref().unwrap_or("")));
        policy.into_iter().chain([key(&worst.key)]).chain(worst.cells()).collect()
    });
    line!(out, "\ndenied most by {}", text(&outcome.name));
    write_columns(out, width, &heads, rows.collect());
}

fn write_peaks(out: &mut String, report: &Report, width: usize) {
    if report.peaks.is_empty() {
        return;
    }
    let heads = [
        ("within", Right),
        ("half at most", Right),
        ("99 % at most", Right),
        ("highest", Right),
        ("by", Left),
    ];
    let rows = report.peaks.iter().map(|peak| peak.cells("-"));
    line!(out, "\nthe most {} of single keys", report.unit());
    write_columns(out, width, &heads, rows.collect());
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    /// A text, which is cut if there is not enough space.
    Left,
    /// A number, which is never cut.
    Right,
    /// A redundant column, which is omitted before any text is cut.
    Spare,
}

/// Writes rows in columns, which are in the order of importance: if there is not enough space, the
/// last ones are omitted.
fn write_columns(out: &mut String, width: usize, heads: &[(&str, Side)], rows: Vec<Vec<String>>) {
    let names = heads.iter().map(|(head, _)| (*head).to_owned()).collect();
    let rows = [vec![names], rows].concat();
    let widths = column_widths(width, heads, &rows);
    for row in &rows {
        let cells = row.iter().zip(heads).zip(&widths);
        let line: String =
            cells.map(|((cell, (_, side)), width)| pad(cell, *side, *width)).collect();
        line!(out, "{}", line.trim_end());
    }
}

/// The widths of the columns that fit.
fn column_widths(width: usize, heads: &[(&str, Side)], rows: &[Vec<String>]) -> Vec<usize> {
    let widest =
        |at: usize| rows.iter().filter_map(move |row| row.get(at)).map(|cell| columns(cell));
    let natural: Vec<usize> = (0..heads.len()).map(|at| widest(at).max().unwrap_or(0)).collect();
    let mut widths = natural.clone();
    let total = |widths: &[usize]| widths.iter().map(|width| width + GAP.len()).sum::<usize>();
    loop {
        let excess = total(&widths).saturating_sub(width);
        if excess == 0 {
            return widths;
        }
        let count = widths.len();
        let has_spare = heads[..count].last().is_some_and(|(_, side)| *side == Spare);
        let texts = widths.iter_mut().zip(heads);
        let texts = texts.filter(|(width, (_, side))| *side == Left && **width > MIN_TEXT_WIDTH);
        match texts.map(|(width, _)| width).max_by_key(|width| **width) {
            Some(longest) if !has_spare => {
                *longest = longest.saturating_sub(excess).max(MIN_TEXT_WIDTH);
            }
            // The space of an omitted column goes to the texts.
            _ if count > 1 => widths = natural[..count - 1].to_vec(),
            _ => return widths,
        }
    }
}

fn pad(cell: &str, side: Side, width: usize) -> String {
    let cell = if columns(cell) > width { cut(cell, width) } else { cell.to_owned() };
    let fill = " ".repeat(width.saturating_sub(columns(&cell)));
    match side {
        Left | Spare => format!("{GAP}{cell}{fill}"),
        Right => format!("{GAP}{fill}{cell}"),
    }
}

/// The beginning of a text that fits, followed by `...`.
fn cut(text: &str, width: usize) -> String {
    let mut room = width.saturating_sub(3);
    let fits = |letter: &char| {
        let taken = columns_of(*letter);
        let fits = taken <= room;
        room = room.saturating_sub(taken);
        fits
    };
    let mut shortened: String = text.chars().take_while(fits).collect();
    shortened.push_str("...");
    shortened
}

/// The number of terminal columns of a text.
fn columns(text: &str) -> usize {
    text.chars().map(columns_of).sum()
}

/// East Asian letters and emoji take two columns.
fn columns_of(letter: char) -> usize {
    match letter {
        '\u{1100}'..='\u{115f}'
        | '\u{2e80}'..='\u{a4cf}'
        | '\u{ac00}'..='\u{d7a3}'
        | '\u{f900}'..='\u{faff}'
        | '\u{fe30}'..='\u{fe6f}'
        | '\u{ff00}'..='\u{ff60}'
        | '\u{1f300}'..='\u{1faff}'
        | '\u{20000}'..='\u{3fffd}' => 2,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_is_full_only_for_the_whole() {
        for (part, whole, expected) in [
            (0, 0, ".........."),
            (99, 100, "#########."),
            (100, 100, "##########"),
            (u64::MAX, 1, "##########"),
        ] {
            assert_eq!(bar(part, whole), expected);
        }
    }

    fn written(width: usize, heads: &[(&str, Side)], row: &[&str]) -> String {
        let mut out = String::new();
        write_columns(&mut out, width, heads, vec![row.iter().map(ToString::to_string).collect()]);
        out
    }

    #[test]
    fn texts_are_cut_before_columns_are_omitted() {
        for (width, expected) in [
            (80, ["key asked of", "a key of some length 12,345 7 %"]),
            (33, ["key asked of", "a key of some l... 12,345 7 %"]),
            (30, ["key asked", "a key of some length 12,345"]),
            (26, ["key asked", "a key of some... 12,345"]),
            (10, ["key", "a key of some..."]),
        ] {
            let heads = [("key", Left), ("asked", Right), ("of", Right)];
            let out = written(width, &heads, &["a key of some length", "12,345", "7 %"]);
            let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
            let lines: Vec<_> = out.lines().map(words).collect();
            assert_eq!(lines, expected, "{width}");
            let widest = out.lines().map(columns).max();
            assert!(widest <= Some(width.max(18)), "{width}\n{out}");
        }
    }

    #[test]
    fn a_redundant_column_is_omitted_before_a_text_is_cut() {
        for (width, expected) in
            [(36, "  10/s burst 20; 100/min  ####......"), (35, "  10/s burst 20; 100/min")]
        {
            let heads = [("limit", Left), ("", Spare)];
            let out = written(width, &heads, &["10/s burst 20; 100/min", "####......"]);
            assert_eq!(out.lines().last(), Some(expected), "{width}");
        }
    }

    #[test]
    fn wide_letters_take_two_columns() {
        assert_eq!(columns("日本"), 4);
        assert_eq!(cut("日本語日本語", 8), "日本...");
    }
}
