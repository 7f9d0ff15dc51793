//! What came of a run.

use std::time::Duration;

use hdrhistogram::Histogram;
use tollgate::Limit;

use crate::answer::ErrorKind;
use crate::tally::{Counts, Tally};
use crate::verify::Verdict;

/// What came of a run, or of as much of it as there was.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// How it ended.
    pub ended: Ended,
    /// From the first request to the last answer.
    pub elapsed: Duration,
    /// Requests that were due, if they had a rate; else those that were sent.
    pub due: u64,
    /// Requests that were sent.
    pub sent: u64,
    /// Answers by limits, lists and blocks.
    pub answers: Counts,
    /// Answers of what stood in for a store that was away.
    pub degraded: Counts,
    /// Requests without an answer, by why; a connection that could not be made is one.
    pub errors: Vec<Errors>,
    /// From when a request was due to its answer.
    pub latency: Latency,
    /// What it cost to ask.
    pub generator: Generator,
    /// What holding the admissions against the limits said.
    pub held: Option<Held>,
}

impl Outcome {
    /// Answers of all kinds.
    #[must_use]
    pub const fn answered(&self) -> u64 {
        self.answers.all() + self.degraded.all()
    }

    /// Answers a second.
    #[must_use]
    pub fn answered_per_second(&self) -> u64 {
        let passed = self.elapsed.as_nanos().max(1);
        let rate = u128::from(self.answered()) * 1_000_000_000 / passed;
        u64::try_from(rate).unwrap_or(u64::MAX)
    }
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// All was asked, or the time was up.
    Finished,
    /// It was told to stop.
    Interrupted,
    /// Nobody was there to be asked any more.
    Gone,
}

/// Requests without an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Errors {
    /// Why.
    pub kind: ErrorKind,
    /// How many.
    pub count: u64,
    /// The first of them, in words.
    pub first: String,
}

/// Percentiles of latency.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Latency {
    /// Half were faster.
    pub p50: Duration,
    /// Nine in ten were faster.
    pub p90: Duration,
    /// 99 in 100 were faster.
    pub p99: Duration,
    /// 999 in 1,000 were faster.
    pub p999: Duration,
    /// The slowest.
    pub max: Duration,
}

impl Latency {
    fn of(it: &Histogram<u64>) -> Self {
        let at = |quantile| Duration::from_nanos(it.value_at_quantile(quantile));
        if it.is_empty() {
            return Latency::default();
        }
        let max = Duration::from_nanos(it.max());
        // A quantile is told as the upper end of its step, which may lie above the greatest.
        let [p50, p90, p99, p999] = [0.5, 0.9, 0.99, 0.999].map(|x| at(x).min(max));
        Latency { p50, p90, p99, p999, max }
    }
}

/// What it cost to ask.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Generator {
    /// How many threads asked.
    pub threads: usize,
    /// The CPU that all of them spent.
    pub cpu: Duration,
    /// Of the thread that was busiest, the share of the time that it was on a CPU, in thousandths.
    pub busiest: u64,
}

impl Generator {
    /// Whether it can be that the other side could have answered more: a thread was busy nine tenths
    /// of the time.
    #[must_use]
    pub const fn is_limit(&self) -> bool {
        self.busiest >= 900
    }
}

/// What holding the admissions against the limits said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    /// The limits.
    pub limits: Vec<Limit>,
    /// Those that no bound is known of over this protocol.
    pub unheld: Vec<Limit>,
    /// What was found.
    pub verdict: Verdict,
    /// Admissions beyond those that are kept; nothing is known of them.
    pub unkept: u64,
    /// Whether the answers told the store's time.
    pub by_store_time: bool,
}

pub(crate) fn outcome(
    tally: &Tally,
    ended: Ended,
    elapsed: Duration,
    due: u64,
    generator: Generator,
    held: Option<Held>,
) -> Outcome {
    let errors = ErrorKind::ALL.iter().zip(tally.errors).zip(&tally.samples);
    let errors = errors.filter(|((_, count), _)| *count > 0).map(|((kind, count), first)| Errors {
        kind: *kind,
        count,
        first: first.clone().unwrap_or_default(),
    });
    Outcome {
        ended,
        elapsed,
        due: due.max(tally.sent),
        sent: tally.sent,
        answers: tally.answers,
        degraded: tally.degraded,
        errors: errors.collect(),
        latency: Latency::of(&tally.latency),
        generator,
        held,
    }
}
