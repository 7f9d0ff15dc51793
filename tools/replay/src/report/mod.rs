//! The result of a replay: plain data for the text report, JSON, HTML and pictures.

pub(crate) mod cells;
pub(crate) mod format;
mod json;
mod table;
mod timeline;

use serde::Serialize;
use tollgate::{Limit, Micros, Timestamp};

pub(crate) use timeline::Bins;
pub use timeline::Timeline;

/// The result of a replay.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Report {
    /// The source of the requests.
    pub source: Source,
    /// All requests; the same for every outcome.
    pub offered: Amount,
    /// The number of keys.
    pub keys: u64,
    /// The offered cost over time.
    pub timeline: Timeline,
    /// The outcome of each candidate, in the order of the arguments.
    pub outcomes: Vec<Outcome>,
    /// The peaks of single keys, shortest window first.
    pub peaks: Vec<Peaks>,
}

impl Report {
    /// The unit of amounts: `requests`, or `cost` if not every request costs 1.
    pub fn unit(&self) -> &'static str {
        if self.offered.requests == self.offered.cost { "requests" } else { "cost" }
    }
}

/// The source of the requests.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Source {
    /// The command line, without secrets.
    pub command: Option<String>,
    /// The names of the files, `-` for standard input; or the description of synthetic traffic.
    pub names: Vec<String>,
    /// The format of the lines; `None` for synthetic traffic.
    pub format: Option<&'static str>,
    /// The number of lines, without empty ones.
    pub lines: u64,
    /// The number of invalid lines.
    #[serde(rename = "broken")]
    pub invalid: u64,
    /// The first invalid lines.
    #[serde(rename = "broken_samples")]
    pub invalid_samples: Vec<InvalidLine>,
    /// The number of lines without a value for the key.
    pub keyless: u64,
    /// The alternatives of the key, each with the number of lines whose key it gives.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub key_alternatives: Vec<KeyAlternative>,
    /// The number of lines that no rule matches.
    pub unruled: u64,
    /// The number of lines that were too late to be put in order.
    pub late: u64,
    /// Whether times with a resolution of one second were spread over their second.
    pub spread: bool,
    /// Whether the replay was interrupted; the report covers the first part.
    pub interrupted: bool,
    /// Why the source could not be read to its end; the report covers the part before.
    pub failed: Option<String>,
    /// The times of the first and of the last request.
    #[serde(flatten, serialize_with = "json::span")]
    pub span: Span,
}

/// The times of the first and of the last request, if there is one.
pub type Span = Option<(Timestamp, Timestamp)>;

/// An alternative of the key.
#[derive(Clone, Debug, Serialize)]
#[allow(clippy::exhaustive_structs, reason = "a name and a count")]
pub struct KeyAlternative {
    /// Its name in the template, such as `ip`.
    pub name: String,
    /// The number of lines whose key it gives.
    pub lines: u64,
}

/// An invalid line.
#[derive(Clone, Debug, Serialize)]
pub struct InvalidLine {
    /// The file.
    pub name: String,
    /// The number of the line, from 1.
    pub line: u64,
    /// The beginning of the line; bytes that cannot be printed are escaped.
    pub text: String,
    /// The reason, with a hint.
    pub reason: String,
}

/// A number of requests and their cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Amount {
    /// The number of requests.
    pub requests: u64,
    /// The cost.
    pub cost: u64,
}

impl Amount {
    pub(crate) fn add(&mut self, cost: u64) {
        self.requests = self.requests.saturating_add(1);
        self.cost = self.cost.saturating_add(cost);
    }

    pub(crate) fn add_all(&mut self, other: Amount) {
        self.requests = self.requests.saturating_add(other.requests);
        self.cost = self.cost.saturating_add(other.cost);
    }
}

/// The outcome of one candidate.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Outcome {
    /// The name: the limits as text, the name of a policy, or the rules of a file.
    pub name: String,
    /// The limits, if they are the same for all keys; pictures draw their bounds.
    #[serde(serialize_with = "json::limits")]
    pub limits: Vec<Limit>,
    /// The admitted requests.
    pub admitted: Amount,
    /// The denied requests.
    pub denied: Amount,
    /// The number of keys that were denied at least once.
    pub keys_denied: u64,
    /// The admitted cost over time, in the bins of the timeline.
    pub admitted_over_time: Vec<u64>,
    /// Every decision in the order of time; empty if there are too many.
    #[serde(skip)]
    pub decisions: Vec<RequestOutcome>,
    /// The longest series of denials of a key without an admission in between.
    pub longest_denial: Option<Denial>,
    /// The most denied keys, worst first.
    pub worst: Vec<WorstKey>,
    /// The suggested limits, if they were requested and found.
    pub suggestion: Option<Suggestion>,
    /// The average size of a key's state in the memory store, in bytes.
    pub bytes_per_key: u64,
}

/// The decision on one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestOutcome {
    /// The time.
    pub time: Timestamp,
    /// Whether it was admitted.
    pub is_admitted: bool,
    /// The cost.
    pub cost: u64,
}

/// A series of denials.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Denial {
    /// The key.
    #[serde(flatten, serialize_with = "json::key")]
    pub key: Vec<u8>,
    /// The time of the first denied request.
    #[serde(serialize_with = "json::seconds")]
    pub start: Timestamp,
    /// The time until the next admitted request, or until the last denied one.
    #[serde(serialize_with = "json::seconds")]
    pub length: Micros,
}

/// One of the most denied keys.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct WorstKey {
    /// The key.
    #[serde(flatten, serialize_with = "json::key")]
    pub key: Vec<u8>,
    /// The policy, if there are several.
    pub policy: Option<String>,
    /// All requests of the key.
    pub offered: Amount,
    /// The denied requests.
    pub denied: Amount,
    /// The time of the first denial.
    #[serde(serialize_with = "json::seconds")]
    pub first_denied: Timestamp,
    /// The longest series of denials without an admission in between.
    #[serde(serialize_with = "json::seconds")]
    pub longest_denial: Micros,
}

/// Limits that deny at most a given share of the keys.
#[derive(Clone, Debug, Serialize)]
pub struct Suggestion {
    /// The share of keys that may be denied, in millionths.
    #[serde(rename = "share", serialize_with = "json::share")]
    pub share_ppm: u32,
    /// The limits of the outcome with other numbers.
    #[serde(serialize_with = "json::limits")]
    pub limits: Vec<Limit>,
    /// The number of keys that they deny at least once.
    pub keys_denied: u64,
}

/// The highest cost of single keys in windows of the clock of one length.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Peaks {
    /// The length of the windows.
    #[serde(serialize_with = "json::seconds")]
    pub window: Micros,
    /// The number of keys for each peak, ascending. Above 1,024, peaks are rounded up by at most
    /// 1/64.
    pub keys_by_cost: Vec<(u64, u64)>,
    /// The highest peak and its key.
    #[serde(serialize_with = "json::highest")]
    pub highest: Option<(u64, Vec<u8>)>,
}

/// Extends a span to a time that is not before it.
pub(crate) fn extend_span(span: &mut Span, at: Timestamp) {
    let (first, _) = span.unwrap_or((at, at));
    *span = Some((first, at));
}
