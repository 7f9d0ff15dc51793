//! The sections of the page.

use tollgate::Limit;

use super::table::{Cell, Table, code};
use crate::pictures;
use crate::report::format::{
    counted, escape, grouped, key, length, ppm, second, share, text, window,
};
use crate::report::{Outcome, Report, WorstKey};

/// A section of the page.
#[derive(Debug)]
pub(super) struct Section {
    pub(super) id: &'static str,
    pub(super) title: &'static str,
    /// `None` if the report has no content for it.
    pub(super) html: fn(&Report) -> Option<String>,
}

pub(super) const ALL: &[Section] = &[
    Section { id: "outcomes", title: "Outcome of each limit", html: outcomes },
    Section { id: "time", title: "Over time", html: over_time },
    Section { id: "requests", title: "Request by request", html: requests },
    Section { id: "worst", title: "Most denied keys", html: worst },
    Section { id: "highest", title: "Peaks of single keys", html: peaks },
    Section { id: "broken", title: "Invalid lines", html: broken },
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
            Cell::Number(format!("{} bytes per key", grouped(outcome.bytes_per_key))),
        ]);
    }
    let details: String =
        report.outcomes.iter().filter_map(|outcome| details(outcome, report)).collect();
    let details = if details.is_empty() { details } else { format!("<ul>\n{details}</ul>\n") };
    let html = cost_table(report) + &details;
    (!report.outcomes.is_empty()).then(|| table.html() + &html)
}

/// The outcomes in cost, if requests have different costs.
fn cost_table(report: &Report) -> String {
    let mut table = Table::new(
        format!("Of a total cost of {}", grouped(report.offered.cost)),
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

/// The key with the longest denial, and the suggested limits.
fn details(outcome: &Outcome, report: &Report) -> Option<String> {
    let denial = outcome.longest_denial.as_ref().map(|denial| {
        let (key, start) = (code(&key(&denial.key)), second(denial.start));
        let length = escape(&length(denial.length));
        format!("the key {key} had the longest denial, {length} from {start}. ")
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

/// Only for a single key, whose sums are comparable with a limit, and if the decisions are kept.
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
        format!("Highest {} of one key within a window of the clock", report.unit()),
        &["Window", "Half of the keys at most", "99 % at most", "Highest", "By"],
    );
    for peak in &report.peaks {
        let peak_of =
            |percent| Cell::Number(peak.peak_of(percent).map_or("none".to_owned(), grouped));
        let highest = peak.highest.as_ref();
        table.row(vec![
            Cell::Text(window(peak.window)),
            peak_of(50),
            peak_of(99),
            Cell::Number(highest.map_or("none".to_owned(), |(cost, _)| grouped(*cost))),
            highest.map_or(Cell::Text(String::new()), |(_, whose)| Cell::Code(key(whose))),
        ]);
    }
    let has_peaks = report.peaks.iter().any(|peak| !peak.keys_by_cost.is_empty());
    has_peaks.then(|| figure(&pictures::peaks(report), "Picture of the peaks") + &table.html())
}

fn broken(report: &Report) -> Option<String> {
    let samples = &report.source.invalid_samples;
    let all = counted(report.source.invalid, "line");
    let mut table = Table::new(
        format!("The first {} of {all}", samples.len()),
        &["File", "Line", "Reason", "Beginning of the line"],
    );
    for sample in samples {
        table.row(vec![
            Cell::Code(text(&sample.name)),
            Cell::Number(grouped(sample.line)),
            Cell::Text(text(&sample.reason)),
            Cell::Code(text(&sample.text)),
        ]);
    }
    (!samples.is_empty()).then(|| table.html())
}

/// A picture in a region that can be scrolled with the keyboard.
fn figure(svg: &str, label: &str) -> String {
    format!(
        "<figure class=\"scroll\" role=\"region\" aria-label=\"{label}\" tabindex=\"0\">\n\
         {svg}</figure>\n"
    )
}
