//! `tollgate keys`, and what `tollgate inspect` shows of what is recorded about a key.

use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, bail};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::{Deserialize, Serialize};

use crate::arguments::{Form, KeysArguments};
use crate::client::{Client, Reply};
use crate::output;

/// The totals of a key. Times are seconds since the Unix epoch.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Usage {
    pub(crate) first_seen: f64,
    pub(crate) last_seen: f64,
    pub(crate) allowed: u64,
    pub(crate) denied: u64,
    pub(crate) cost: u64,
}

#[derive(Debug, Deserialize)]
struct Page {
    keys: Vec<Key>,
    cursor: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Key {
    key: String,
    #[serde(flatten)]
    usage: Usage,
}

/// A decision about a key.
#[derive(Debug, Deserialize)]
pub(crate) struct Note {
    time: f64,
    cost: u64,
    answer: String,
    note: Option<String>,
}

/// The time series of a key.
#[derive(Debug, Deserialize)]
pub(crate) struct Timeline {
    interval: f64,
    intervals: Vec<Interval>,
}

#[derive(Debug, Deserialize)]
struct Interval {
    start: f64,
    allowed: u64,
    denied: u64,
    cost: u64,
}

/// The notes and the intervals that `inspect` shows; JSON has all.
const MAX_LINES: usize = 20;

pub(crate) fn keys(arguments: &KeysArguments) -> Result<ExitCode> {
    let mut query = format!("/v1/keys?policy={}", encoded(&arguments.policy));
    query.push_str(&format!("&order={}&limit={}", encoded(&arguments.order), arguments.limit));
    for (name, value) in [("prefix", &arguments.prefix), ("cursor", &arguments.cursor)] {
        if let Some(value) = value {
            query.push_str(&format!("&{name}={}", encoded(value)));
        }
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let client = Client::new(&arguments.daemon)?;
    let response = match runtime.block_on(client.get(&query))? {
        Reply::Response(response) => response,
        Reply::Unreachable(error) => {
            bail!("no daemon at {} ({error}); set --url to its URL", arguments.daemon.url)
        }
    };
    match arguments.output {
        Form::Json => output::print(&format!("{response}\n"))?,
        Form::Text => {
            let page: Page =
                serde_json::from_str(&response).context("the response is not a page")?;
            output::print(&table(&page, now()))?;
            if let Some(cursor) = page.cursor {
                output::print_error(&format!("more keys: add --cursor {cursor}\n"));
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn encoded(text: &str) -> String {
    utf8_percent_encode(text, NON_ALPHANUMERIC).to_string()
}

/// The system's time in seconds.
#[expect(clippy::disallowed_methods, reason = "ages for display, of times of another process")]
fn now() -> f64 {
    let elapsed = SystemTime::now().duration_since(UNIX_EPOCH);
    // A clock before 1970 shows every time as now.
    elapsed.map_or(0.0, |elapsed| elapsed.as_secs_f64())
}

/// A time as text, such as `5s ago`.
#[expect(clippy::float_arithmetic, reason = "a rounded time for display")]
pub(crate) fn ago(time: f64, now: f64) -> String {
    let seconds = (now - time).max(0.0);
    match seconds {
        seconds if seconds < 120.0 => format!("{seconds:.0}s ago"),
        seconds if seconds < 7_200.0 => format!("{:.0}min ago", seconds / 60.0),
        seconds if seconds < 172_800.0 => format!("{:.0}h ago", seconds / 3_600.0),
        seconds => format!("{:.0}d ago", seconds / 86_400.0),
    }
}

/// The keys in columns.
fn table(page: &Page, now: f64) -> String {
    if page.keys.is_empty() {
        return "no keys\n".to_owned();
    }
    let mut rows = vec![["KEY", "ALLOWED", "DENIED", "COST", "FIRST", "LAST"].map(str::to_owned)];
    rows.extend(page.keys.iter().map(|Key { key, usage }| {
        [
            key.escape_debug().to_string(),
            usage.allowed.to_string(),
            usage.denied.to_string(),
            usage.cost.to_string(),
            ago(usage.first_seen, now),
            ago(usage.last_seen, now),
        ]
    }));
    output::table(&rows)
}

/// The lines about what is recorded about a key.
pub(crate) fn lines(
    usage: Option<&Usage>,
    recent: &[Note],
    timeline: Option<&Timeline>,
) -> Vec<String> {
    let now = now();
    let mut lines = Vec::new();
    if let Some(usage) = usage {
        let Usage { first_seen, last_seen, allowed, denied, cost } = usage;
        let (first, last) = (ago(*first_seen, now), ago(*last_seen, now));
        lines.push(format!(
            "usage: {allowed} allowed, {denied} denied, cost {cost}; first {first}, last {last}"
        ));
    }
    for Note { time, cost, answer, note } in recent.iter().take(MAX_LINES) {
        let note =
            note.as_ref().map_or_else(String::new, |note| format!("  {}", note.escape_debug()));
        lines.push(format!("{}: {answer}, cost {cost}{note}", ago(*time, now)));
    }
    if let Some(Timeline { interval, intervals }) = timeline {
        let skipped = intervals.len().saturating_sub(MAX_LINES);
        for Interval { start, allowed, denied, cost } in intervals.iter().skip(skipped) {
            let start = ago(*start, now);
            lines.push(format!(
                "{interval}s from {start}: {allowed} allowed, {denied} denied, cost {cost}"
            ));
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_rounded_to_their_largest_unit() {
        for (seconds, expected) in [
            (-1.0, "0s ago"),
            (0.4, "0s ago"),
            (119.0, "119s ago"),
            (120.0, "2min ago"),
            (7_200.0, "2h ago"),
            (172_800.0, "2d ago"),
        ] {
            assert_eq!(ago(1_000_000.0 - seconds, 1_000_000.0), expected);
        }
    }
}
