//! Statistics of a store.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tollgate_algorithms::Anomalies;
use tollgate_state::{FailureKind, StoreError};

/// Counters of a [`RedisStore`](crate::RedisStore) since it was opened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RedisStats {
    /// Calls of the script, each a round trip.
    pub calls: u64,
    /// Requests in these calls.
    pub requests: u64,
    /// Histogram of the requests per call: the inclusive upper bound of each bucket, and its count.
    pub batches: Vec<(u64, u64)>,
    /// Keys with corrupt contents, which were reset.
    pub corrupt: u64,
    /// States too far ahead of the clock to be plausible.
    pub implausible: u64,
    /// Log entries merged because a key exceeded the maximum length of its log.
    pub merged: u64,
    /// Connections made after the first of each.
    pub reconnects: u64,
    /// Calls repeated because the server did not have the script (`NOSCRIPT`).
    pub noscripts: u64,
    /// Calls sent again because a slot or a primary had moved.
    pub redirections: u64,
    /// Histogram of the round trips of calls: the inclusive upper bound of each bucket in µs, and its
    /// count. The last bucket has no bound.
    pub round_trips: Vec<(Option<u64>, u64)>,
    /// Sum of the round trips, in µs.
    pub round_trip_sum_us: u64,
    /// Calls of a request that were answered after their deadline. A request over several partitions has
    /// several calls, and the first have half of its time.
    pub late: u64,
    /// Failed requests, by kind of failure.
    pub errors: BTreeMap<FailureKind, u64>,
    /// Failed requests that may have been charged.
    pub unknown_outcomes: u64,
    /// Requests whose future was dropped before they were sent.
    pub abandoned: u64,
    /// Attempts to connect.
    pub dials: u64,
    /// Passwords that were replaced on all connections, because their file had changed.
    pub replaced_passwords: u64,
    /// Attempts to replace a password that a server rejected. The connections keep their login.
    pub rejected_passwords: u64,
    /// Charges that were taken back, because the answer came after the deadline and the caller had
    /// denied the request.
    pub reconciled: u64,
    /// Requests that the caller admitted after the deadline, and which the store then denied.
    pub overshoot: u64,
}

/// The upper bounds of the buckets of requests per call.
const BATCH_BOUNDS: [u64; 10] = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512];

/// The upper bounds of the buckets of round trips, in µs.
const ROUND_TRIP_BOUNDS: [u64; 10] =
    [100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 100_000, 500_000];

/// The counters of a store or of one of its nodes. A call locks them when it is sent and when it is
/// answered.
#[derive(Debug)]
pub(crate) struct Counters(Mutex<RedisStats>);

impl Default for Counters {
    fn default() -> Self {
        let batches = BATCH_BOUNDS.into_iter().map(|bound| (bound, 0)).collect();
        let bounds = ROUND_TRIP_BOUNDS.into_iter().map(Some).chain([None]);
        let round_trips = bounds.map(|bound| (bound, 0)).collect();
        Counters(Mutex::new(RedisStats { batches, round_trips, ..RedisStats::default() }))
    }
}

impl Counters {
    /// Returns the counters, locked.
    pub(crate) fn lock(&self) -> MutexGuard<'_, RedisStats> {
        // A panic cannot leave a counter half updated.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn record_call(&self, requests: usize) {
        #[expect(clippy::expect_used, reason = "no platform has wider pointers")]
        let requests = u64::try_from(requests).expect("usize fits u64");
        let mut stats = self.lock();
        stats.calls += 1;
        stats.requests += requests;
        // MAX_BATCH is below the last bound.
        let bucket = BATCH_BOUNDS.partition_point(|bound| *bound < requests);
        stats.batches[bucket].1 += 1;
    }

    pub(crate) fn record_round_trip(&self, round_trip: Duration) {
        let micros = u64::try_from(round_trip.as_micros()).unwrap_or(u64::MAX);
        let bucket = ROUND_TRIP_BOUNDS.partition_point(|bound| *bound < micros);
        let mut stats = self.lock();
        stats.round_trips[bucket].1 += 1;
        stats.round_trip_sum_us = stats.round_trip_sum_us.saturating_add(micros);
    }

    pub(crate) fn record_reply(&self, corrupt: u64, anomalies: Anomalies) {
        if corrupt > 0 || anomalies != Anomalies::default() {
            let mut stats = self.lock();
            stats.corrupt += corrupt;
            stats.implausible += anomalies.implausible;
            stats.merged += anomalies.merged;
        }
    }

    /// Records that it is known now what became of requests whose outcome was unknown. Requests of a
    /// connection task that panicked were not counted.
    pub(crate) fn resolve_unknown(&self, requests: u64) {
        let mut stats = self.lock();
        stats.unknown_outcomes = stats.unknown_outcomes.saturating_sub(requests);
    }

    pub(crate) fn record_late(&self, requests: usize) {
        #[expect(clippy::expect_used, reason = "no platform has wider pointers")]
        let requests = u64::try_from(requests).expect("usize fits u64");
        self.lock().late += requests;
    }

    pub(crate) fn record_reconciled(&self, charges: usize) {
        #[expect(clippy::expect_used, reason = "no platform has wider pointers")]
        let charges = u64::try_from(charges).expect("usize fits u64");
        self.lock().reconciled += charges;
    }

    /// Records a failed request; `may_charge` is whether it charges, if it was executed.
    pub(crate) fn record_error(&self, error: &StoreError, may_charge: bool) {
        let Some(kind) = error.failure() else { return };
        let mut stats = self.lock();
        stats.unknown_outcomes += u64::from(may_charge && kind.is_outcome_unknown());
        *stats.errors.entry(kind).or_default() += 1;
    }
}
