//! The report as text for a terminal.

use std::fmt::Write;

use tollgate::Limit;

use super::columns::{Columns, Side};
use super::format::{counted, grouped, key, length, ppm, second, share, text, window};
use super::notices::notices;
use super::{Outcome, Peaks, Report};
use crate::convert::index;

/// Narrower terminals get lines of this width.
const MIN_WIDTH: usize = 40;
/// The length of a bar.
const BAR: u64 = 10;

impl Report {
    /// The report as lines of at most `width` columns. Below 40 columns, and for numbers that cannot be
    /// cut, lines are longer.
    #[must_use]
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
        write_broken(&mut out, self);
        out
    }
}

/// Writes a line. Writing to a string does not fail.
macro_rules! line {
    ($out:expr, $($words:tt)*) => {
        let _ = writeln!($out, $($words)*);
    };
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
    let mut columns = Columns::new(&[
        ("limit", Side::Left),
        ("admitted", Side::Right),
        ("denied", Side::Right),
        ("", Side::Right),
        ("keys denied", Side::Right),
        ("", Side::Right),
        ("longest denial", Side::Right),
        ("", Side::Spare),
    ]);
    for outcome in &report.outcomes {
        let longest = outcome
            .longest_denial
            .as_ref()
            .map_or("-".to_owned(), |longest_denial| length(longest_denial.length));
        columns.row(vec![
            text(&outcome.name),
            grouped(outcome.admitted.requests),
            grouped(outcome.denied.requests),
            share(outcome.denied.requests, report.offered.requests),
            grouped(outcome.keys_denied),
            share(outcome.keys_denied, report.keys),
            longest,
            bar(outcome.admitted.requests, report.offered.requests),
        ]);
    }
    out.push('\n');
    columns.write(out, width);
}

fn write_suggestions(out: &mut String, report: &Report, width: usize) {
    let found =
        report.outcomes.iter().filter_map(|outcome| Some((outcome, outcome.suggestion.as_ref()?)));
    let found: Vec<_> = found.collect();
    let Some((_, first)) = found.first() else { return };
    let mut columns = Columns::new(&[
        ("instead of", Side::Left),
        ("use", Side::Left),
        ("keys denied", Side::Right),
        ("", Side::Right),
    ]);
    for (outcome, found) in &found {
        let limits: Vec<_> = found.limits.iter().map(Limit::to_string).collect();
        columns.row(vec![
            text(&outcome.name),
            limits.join("; "),
            grouped(found.keys_denied),
            share(found.keys_denied, report.keys),
        ]);
    }
    line!(out, "\nto deny at most {} of the keys", ppm(first.share_ppm));
    columns.write(out, width);
}

/// A share as a bar.
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
        ("key", Side::Left),
        ("denied", Side::Right),
        ("of", Side::Right),
        ("", Side::Right),
        ("longest denial", Side::Right),
        ("first denied (UTC)", Side::Right),
    ];
    let has_policies = outcome.worst.iter().any(|worst| worst.policy.is_some());
    if has_policies {
        heads.insert(0, ("policy", Side::Left));
    }
    let mut columns = Columns::new(&heads);
    for worst in &outcome.worst {
        let policy = worst.policy.as_deref().unwrap_or("");
        let policy = has_policies.then(|| text(policy));
        columns.row(
            policy
                .into_iter()
                .chain([
                    key(&worst.key),
                    grouped(worst.denied.requests),
                    grouped(worst.offered.requests),
                    share(worst.denied.requests, worst.offered.requests),
                    length(worst.longest_denial),
                    second(worst.first_denied),
                ])
                .collect(),
        );
    }
    line!(out, "\ndenied most by {}", text(&outcome.name));
    columns.write(out, width);
}

fn write_peaks(out: &mut String, report: &Report, width: usize) {
    if report.peaks.is_empty() {
        return;
    }
    let mut columns = Columns::new(&[
        ("within", Side::Right),
        ("half at most", Side::Right),
        ("99 % at most", Side::Right),
        ("highest", Side::Right),
        ("by", Side::Left),
    ]);
    for peak in &report.peaks {
        let (highest, by) =
            peak.highest.as_ref().map_or(("-".to_owned(), String::new()), |highest| {
                (grouped(highest.0), key(&highest.1))
            });
        let peak_of = |percent| peak.peak_of(percent).map_or("-".to_owned(), grouped);
        columns.row(vec![window(peak.window), peak_of(50), peak_of(99), highest, by]);
    }
    line!(out, "\nthe most {} of single keys", report.unit());
    columns.write(out, width);
}

fn write_broken(out: &mut String, report: &Report) {
    for sample in &report.source.invalid_samples {
        line!(out, "\n{}:{}: {}", text(&sample.name), sample.line, text(&sample.reason));
        line!(out, "  {}", text(&sample.text));
    }
}

impl Peaks {
    /// The peak that is not exceeded by this percentage of the keys.
    pub(crate) fn peak_of(&self, percent: u64) -> Option<u64> {
        let keys = self.keys_by_cost.iter().map(|(_, keys)| u128::from(*keys)).sum::<u128>();
        let wanted = (keys * u128::from(percent)).div_ceil(100);
        let mut seen = 0;
        let reached = self.keys_by_cost.iter().find(|(_, keys)| {
            seen += u128::from(*keys);
            seen >= wanted
        });
        reached.map(|(cost, _)| *cost)
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

    #[test]
    fn a_percentile_is_the_lowest_sufficient_peak() {
        let peaks = Peaks { keys_by_cost: vec![(1, 50), (2, 49), (900, 1)], ..Peaks::default() };
        assert_eq!(
            [1, 50, 51, 99, 100].map(|percent| peaks.peak_of(percent)),
            [1, 1, 2, 2, 900].map(Some)
        );
        assert_eq!(Peaks::default().peak_of(50), None);
    }
}
