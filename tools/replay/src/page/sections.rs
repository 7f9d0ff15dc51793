//! The sections of the page.

use tollgate::Limit;

use super::table::{Cell, Table, code};
use crate::pictures;
use crate::pictures::lettering::escape;
use crate::report::shown::{counted, grouped, key, length, ppm, second, share, text, window};
use crate::report::{Denial, Outcome, Report, WorstKey};

/// A part of the page.
#[derive(Debug)]
pub(super) struct Section {
    pub(super) id: &'static str,
    pub(super) title: &'static str,
    /// Nothing where the report has nothing for it.
    pub(super) html: fn(&Report) -> Option<String>,
}

pub(super) const ALL: &[Section] = &[
    Section { id: "outcomes", title: "What each limit would have done", html: outcomes },
    Section { id: "time", title: "Over time", html: over_time },
    Section { id: "requests", title: "Request by request", html: requests },
    Section { id: "worst", title: "Keys denied most", html: worst },
    Section { id: "highest", title: "Peaks of single keys", html: peaks },
    Section { id: "broken", title: "Lines that could not be read", html: broken },
];

fn outcomes(report: &Report) -> Option<String> {
    let mut table = Table::new(
        format!("Of {}", counted(report.offered.requests, "request")),
        &[
            "Limit",
            "Admitted",
            "Denied",
            "Share",
            "Keys denied",
            "Share",
            "Longest denial",
            "Memory",
        ],
    );
    for outcome in &report.outcomes {
        table.row(vec![
            Cell::Code(text(&outcome.name)),
            Cell::Number(grouped(outcome.admitted.requests)),
            Cell::Number(grouped(outcome.denied.requests)),
            Cell::Number(share(outcome.denied.requests, report.offered.requests)),
            Cell::Number(grouped(outcome.keys_denied)),
            Cell::Number(share(outcome.keys_denied, report.keys)),
            Cell::Number(
                outcome
                    .longest_denial
                    .as_ref()
                    .map_or("none".to_owned(), |outcome| length(outcome.length)),
            ),
            Cell::Number(format!("{} B a key", grouped(outcome.bytes_per_key))),
        ]);
    }
    let told: String = report.outcomes.iter().filter_map(|outcome| told(outcome, report)).collect();
    let told = if told.is_empty() { told } else { format!("<ul>\n{told}</ul>\n") };
    let html = cost_table(report) + &told;
    (!report.outcomes.is_empty()).then(|| table.html() + &html)
}

/// The same in cost, where requests cost differently.
fn cost_table(report: &Report) -> String {
    let mut table = Table::new(
        format!("Of a cost of {}", grouped(report.offered.cost)),
        &["Limit", "Cost admitted", "Cost denied", "Share"],
    );
    if report.offered.cost != report.offered.requests {
        for outcome in &report.outcomes {
            table.row(vec![
                Cell::Code(text(&outcome.name)),
                Cell::Number(grouped(outcome.admitted.cost)),
                Cell::Number(grouped(outcome.denied.cost)),
                Cell::Number(share(outcome.denied.cost, report.offered.cost)),
            ]);
        }
    }
    table.html()
}

/// Whose denial was the longest, and what would deny fewer.
fn told(outcome: &Outcome, report: &Report) -> Option<String> {
    let denial = outcome.longest_denial.as_ref().map(|Denial { key: whose, start, length: x }| {
        let (whose, start) = (code(&key(whose)), second(*start));
        format!("the longest denial was that of {whose}, {} from {start}. ", escape(&length(*x)))
    });
    let suggestion = outcome.suggestion.as_ref().map(|suggestion| {
        let limits: Vec<_> = suggestion.limits.iter().map(Limit::to_string).collect();
        let (limits, most) = (code(&limits.join("; ")), ppm(suggestion.share_ppm));
        let (denied, all) =
            (counted(suggestion.keys_denied, "key"), share(suggestion.keys_denied, report.keys));
        format!("To deny at most {most} of the keys: {limits}, which denies {denied} ({all}).")
    });
    if denial.is_none() && suggestion.is_none() {
        return None;
    }
    let (denial, suggestion) = (denial.unwrap_or_default(), suggestion.unwrap_or_default());
    Some(format!("<li>{}: {denial}{suggestion}</li>\n", code(&text(&outcome.name))))
}

fn over_time(report: &Report) -> Option<String> {
    (!report.outcomes.is_empty()).then(|| figure(&pictures::over_time(report), "Picture over time"))
}

/// Only where single requests are known, and of one key, whose sums a limit is held against.
fn requests(report: &Report) -> Option<String> {
    let is_known = report.outcomes.iter().any(|outcome| !outcome.decisions.is_empty());
    (is_known && report.keys == 1)
        .then(|| figure(&pictures::burst(report), "Picture of each request"))
}

fn worst(report: &Report) -> Option<String> {
    let tables = report.outcomes.iter().map(|outcome| {
        let mut table = Table::new(
            format!("By {}", text(&outcome.name)),
            &["Key", "Denied", "Of", "Share", "Longest denial", "First denied"],
        );
        let named = |worst_key: &WorstKey| match &worst_key.policy {
            Some(policy) => format!("{} {}", text(policy), key(&worst_key.key)),
            None => key(&worst_key.key),
        };
        for worst in &outcome.worst {
            table.row(vec![
                Cell::Code(named(worst)),
                Cell::Number(grouped(worst.denied.requests)),
                Cell::Number(grouped(worst.offered.requests)),
                Cell::Number(share(worst.denied.requests, worst.offered.requests)),
                Cell::Number(length(worst.longest_denial)),
                Cell::Number(second(worst.first_denied)),
            ]);
        }
        table.html()
    });
    let tables: String = tables.collect();
    (!tables.is_empty()).then_some(tables)
}

fn peaks(report: &Report) -> Option<String> {
    let mut table = Table::new(
        format!("The most {} of one key within a window of the clock", report.unit()),
        &["Window", "Half of the keys at most", "99 % at most", "Highest", "By"],
    );
    for peak in &report.peaks {
        let peak_of =
            |percent| Cell::Number(peak.peak_of(percent).map_or("none".to_owned(), grouped));
        let highest = peak.highest.as_ref();
        table.row(vec![
            Cell::Words(window(peak.window)),
            peak_of(50),
            peak_of(99),
            Cell::Number(highest.map_or("none".to_owned(), |(cost, _)| grouped(*cost))),
            highest.map_or(Cell::Words(String::new()), |(_, whose)| Cell::Code(key(whose))),
        ]);
    }
    let has_peaks = report.peaks.iter().any(|peak| !peak.keys_by_cost.is_empty());
    has_peaks.then(|| figure(&pictures::peaks(report), "Picture of the peaks") + &table.html())
}

fn broken(report: &Report) -> Option<String> {
    let samples = &report.source.broken_samples;
    let all = counted(report.source.broken, "line");
    let mut table = Table::new(
        format!("The first {} of {all}", samples.len()),
        &["File", "Line", "What is wrong", "How it begins"],
    );
    for sample in samples {
        table.row(vec![
            Cell::Code(text(&sample.name)),
            Cell::Number(grouped(sample.line)),
            Cell::Words(text(&sample.reason)),
            Cell::Code(text(&sample.text)),
        ]);
    }
    (!samples.is_empty()).then(|| table.html())
}

/// A picture in a region that a keyboard can scroll, where the window is too narrow for it.
fn figure(svg: &str, label: &str) -> String {
    format!(
        "<figure class=\"scroll\" role=\"region\" aria-label=\"{label}\" tabindex=\"0\">\n\
         {svg}</figure>\n"
    )
}
