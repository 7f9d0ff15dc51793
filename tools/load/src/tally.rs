//! What one thread has counted and measured.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use hdrhistogram::Histogram;

use crate::clock::{Clock, Nanos};
use crate::reply::{Decision, ErrorKind, RequestError};
use crate::verify::Admission;

/// How many admissions all threads together keep for verification.
pub const MAX_ADMISSIONS: usize = 2_000_000;

/// The longest latency that is measured: one hour.
const MAX_LATENCY_NANOS: u64 = 3_600_000_000_000;

/// The number of allowed and of denied requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Requests that were allowed.
    pub allowed: u64,
    /// Requests that were denied.
    pub denied: u64,
}

impl Counts {
    pub(crate) fn add(&mut self, allowed: bool) {
        self.allowed += u64::from(allowed);
        self.denied += u64::from(!allowed);
    }

    fn merge(&mut self, other: Counts) {
        self.allowed += other.allowed;
        self.denied += other.denied;
    }

    /// The number of allowed and denied requests.
    #[must_use]
    pub const fn total(self) -> u64 {
        self.allowed + self.denied
    }
}

/// The counts of a run in progress.
#[derive(Debug, Default)]
pub struct Progress {
    allowed: AtomicU64,
    denied: AtomicU64,
    failed: AtomicU64,
}

impl Progress {
    pub(crate) fn add(&self, counts: Counts) {
        self.allowed.fetch_add(counts.allowed, Ordering::Relaxed);
        self.denied.fetch_add(counts.denied, Ordering::Relaxed);
    }

    pub(crate) fn add_failures(&self, count: u64) {
        self.failed.fetch_add(count, Ordering::Relaxed);
    }

    /// The number of allowed, denied and failed requests so far.
    #[must_use]
    pub fn counts(&self) -> [u64; 3] {
        [&self.allowed, &self.denied, &self.failed].map(|count| count.load(Ordering::Relaxed))
    }
}

impl From<bool> for Counts {
    fn from(allowed: bool) -> Self {
        let mut counts = Counts::default();
        counts.add(allowed);
        counts
    }
}

/// Which times bound an admission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AdmissionTimes {
    /// The store's time in the reply, plus the duration of the request.
    Store,
    /// The client's times of the request and of the reply.
    RoundTrip,
    /// The client's time of the request, because the client chose the window.
    Sent,
}

/// The counts and measurements of a thread.
#[derive(Clone, Debug)]
pub(crate) struct Tally {
    /// From the scheduled time of a request to its response, in ns.
    pub(crate) latency: Histogram<u64>,
    /// Decisions by limits, lists and blocks.
    pub(crate) decisions: Counts,
    /// Decisions without the store.
    pub(crate) degraded: Counts,
    pub(crate) sent: u64,
    /// The number of failed requests of each kind, and the message of the first.
    pub(crate) errors: BTreeMap<ErrorKind, (u64, String)>,
    pub(crate) admissions: Vec<Admission>,
    /// Admissions that were not kept because the tally was full.
    pub(crate) dropped: u64,
    max_admissions: usize,
    times: Option<AdmissionTimes>,
}

/// A request on its way, or answered.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SentRequest {
    pub(crate) key: u32,
    pub(crate) due: Nanos,
    pub(crate) sent: Nanos,
}

impl Tally {
    /// A tally that keeps at most `max_admissions` admissions, and none without `times`.
    pub(crate) fn new(times: Option<AdmissionTimes>, max_admissions: usize) -> Self {
        Tally {
            latency: new_histogram(),
            decisions: Counts::default(),
            degraded: Counts::default(),
            sent: 0,
            errors: BTreeMap::new(),
            admissions: Vec::new(),
            dropped: 0,
            max_admissions,
            times,
        }
    }

    /// Records a decision; returns the index of its admission, if that is kept.
    pub(crate) fn record(
        &mut self,
        clock: &Clock,
        request: SentRequest,
        now: Nanos,
        decision: &Decision,
    ) -> Option<usize> {
        self.latency.saturating_record(now.saturating_sub(request.due).max(1));
        let counts = if decision.degraded { &mut self.degraded } else { &mut self.decisions };
        counts.add(decision.allowed);
        if !decision.allowed || decision.degraded || !decision.by_limits {
            return None;
        }
        let admission = self.admission(clock, request, now, decision)?;
        if self.admissions.len() >= self.max_admissions {
            self.dropped += 1;
            return None;
        }
        self.admissions.push(admission);
        Some(self.admissions.len() - 1)
    }

    fn admission(
        &self,
        clock: &Clock,
        request: SentRequest,
        now: Nanos,
        decision: &Decision,
    ) -> Option<Admission> {
        let sent = clock.wall_micros(request.sent);
        let (from, to) = match self.times? {
            AdmissionTimes::Store => {
                let time = decision.time?;
                // The store's clock may run slightly faster than the client's.
                let took = now.saturating_sub(request.sent) / 1_000 + 1;
                (time, time.saturating_add(took + took / 8 + 1))
            }
            AdmissionTimes::RoundTrip => (sent, clock.wall_micros(now) + 1),
            AdmissionTimes::Sent => (sent, sent),
        };
        Some(Admission { delay: decision.delay, ..Admission::between(request.key, from, to) })
    }

    /// Records that the lease of an admission was released at `time` by the store's clock.
    pub(crate) fn record_release(&mut self, admission: Option<usize>, time: Option<u64>) {
        if let (Some(index), Some(time)) = (admission, time) {
            self.admissions[index].released = time;
        }
    }

    /// Records `count` requests that failed with the same error.
    pub(crate) fn record_errors(&mut self, error: RequestError, count: u64) {
        if count > 0 {
            self.errors.entry(error.kind).or_insert((0, error.message)).0 += count;
        }
    }

    /// Adds the tally of another thread.
    #[expect(clippy::expect_used, reason = "all histograms have the same bounds")]
    pub(crate) fn merge(&mut self, other: Tally) {
        self.latency.add(&other.latency).expect("the bounds are equal");
        self.decisions.merge(other.decisions);
        self.degraded.merge(other.degraded);
        self.sent += other.sent;
        for (kind, (count, message)) in other.errors {
            self.errors.entry(kind).or_insert((0, message)).0 += count;
        }
        self.admissions.extend(other.admissions);
        self.dropped += other.dropped;
    }
}

/// A histogram with three significant digits of every latency up to an hour; about 250 kB.
#[expect(clippy::expect_used, reason = "the constructor accepts these constants")]
fn new_histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, MAX_LATENCY_NANOS, 3).expect("valid bounds")
}
