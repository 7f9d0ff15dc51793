//! The outcome of a run.

use std::time::Duration;

use hdrhistogram::Histogram;
use tollgate::Limit;

use crate::reply::ErrorKind;
use crate::tally::Counts;
use crate::verify::Verdict;

/// The outcome of a run, or of the part before it ended early.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Why the run ended.
    pub end: EndReason,
    /// From the first request to the last response.
    pub elapsed: Duration,
    /// Requests that were due at the rate; without a rate, requests that were sent.
    pub due: u64,
    /// Requests that were sent.
    pub sent: u64,
    /// Decisions by limits, lists and blocks.
    pub decisions: Counts,
    /// Decisions that the server made without its store.
    pub degraded: Counts,
    /// Failed requests by kind; a connection that could not be opened counts as one.
    pub errors: Vec<ErrorCount>,
    /// From the scheduled time of a request to its response.
    pub latency: Latency,
    /// The resources that the generator used.
    pub generator: GeneratorUsage,
    /// The result of the verification, if the plan asks for one.
    pub verification: Option<Verification>,
}

impl Outcome {
    /// The number of responses with a decision.
    #[must_use]
    pub const fn responses(&self) -> u64 {
        self.decisions.total() + self.degraded.total()
    }

    /// Responses with a decision per second.
    #[must_use]
    #[expect(clippy::expect_used, reason = "2^64 responses within a nanosecond cannot be")]
    pub fn responses_per_second(&self) -> u64 {
        let elapsed = self.elapsed.as_nanos().max(1);
        let rate = u128::from(self.responses()) * 1_000_000_000 / elapsed;
        u64::try_from(rate).expect("a rate below 2^64")
    }
}

/// Why a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndReason {
    /// All requests were sent, or the time was up.
    Finished,
    /// The caller stopped it.
    Interrupted,
    /// All connections failed too many times in a row.
    TargetGone,
}

/// The failed requests of one kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrorCount {
    /// Why they failed.
    pub kind: ErrorKind,
    /// How many failed.
    pub count: u64,
    /// The message of the first error.
    pub first: String,
}

/// Percentiles of latency.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Latency {
    /// The median.
    pub p50: Duration,
    /// The 90th percentile.
    pub p90: Duration,
    /// The 99th percentile.
    pub p99: Duration,
    /// The 99.9th percentile.
    pub p999: Duration,
    /// The maximum.
    pub max: Duration,
}

impl Latency {
    pub(crate) fn from_histogram(histogram: &Histogram<u64>) -> Self {
        if histogram.is_empty() {
            return Latency::default();
        }
        let max = Duration::from_nanos(histogram.max());
        // A quantile is the upper end of its bucket, which may exceed the maximum.
        let [p50, p90, p99, p999] = [0.5, 0.9, 0.99, 0.999]
            .map(|quantile| Duration::from_nanos(histogram.value_at_quantile(quantile)).min(max));
        Latency { p50, p90, p99, p999, max }
    }
}

/// The resources that the generator used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GeneratorUsage {
    /// The number of threads.
    pub threads: usize,
    /// The CPU time of all threads.
    pub cpu: Duration,
    /// The share of the time that the busiest thread spent on a CPU, in thousandths.
    pub busiest: u64,
}

impl GeneratorUsage {
    /// Whether the generator may have been the bottleneck: a thread was busy for 90 % of the time.
    #[must_use]
    pub const fn is_bottleneck(&self) -> bool {
        self.busiest >= 900
    }
}

/// The result of checking admissions against limits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verification {
    /// The limits.
    pub limits: Vec<Limit>,
    /// The limits that cannot be verified over this protocol.
    pub unverifiable: Vec<Limit>,
    /// The violations.
    pub verdict: Verdict,
    /// Admissions that exceeded [`MAX_ADMISSIONS`](crate::MAX_ADMISSIONS) and were not verified.
    pub dropped: u64,
    /// Whether replies contained the store's time.
    pub by_store_time: bool,
}
