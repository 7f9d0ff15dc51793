//! Statistics of a store.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use tollgate_core::Anomalies;
use tollgate_store::{FailureKind, StoreError};

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
    /// Failed requests, by kind of failure.
    pub errors: BTreeMap<FailureKind, u64>,
    /// Failed requests that may have been charged.
    pub unknown_outcomes: u64,
    /// Requests whose future was dropped before they were sent.
    pub abandoned: u64,
}

/// The upper bounds of the buckets of requests per call.
const BATCH_BOUNDS: [u64; 10] = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512];

/// The counters behind [`RedisStats`].
#[derive(Debug, Default)]
pub(crate) struct Counters {
    calls: AtomicU64,
    requests: AtomicU64,
    batches: [AtomicU64; BATCH_BOUNDS.len()],
    corrupt: AtomicU64,
    implausible: AtomicU64,
    merged: AtomicU64,
    pub(crate) reconnects: Counter,
    pub(crate) noscripts: Counter,
    pub(crate) redirections: Counter,
    pub(crate) abandoned: Counter,
    unknown: AtomicU64,
    errors: Mutex<BTreeMap<FailureKind, u64>>,
}

#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn increment(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

impl Counters {
    pub(crate) fn record_call(&self, requests: usize) {
        #[expect(clippy::expect_used, reason = "no platform has wider pointers")]
        let requests = u64::try_from(requests).expect("usize fits u64");
        self.calls.fetch_add(1, Ordering::Relaxed);
        self.requests.fetch_add(requests, Ordering::Relaxed);
        // MAX_BATCH is below the last bound.
        let bucket = BATCH_BOUNDS.partition_point(|bound| *bound < requests);
        self.batches[bucket].fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn record_reply(&self, corrupt: u64, anomalies: Anomalies) {
        if corrupt > 0 {
            self.corrupt.fetch_add(corrupt, Ordering::Relaxed);
        }
        if anomalies != Anomalies::default() {
            self.implausible.fetch_add(anomalies.implausible, Ordering::Relaxed);
            self.merged.fetch_add(anomalies.merged, Ordering::Relaxed);
        }
    }

    pub(crate) fn record_error(&self, error: &StoreError) {
        let Some(kind) = error.failure() else { return };
        if kind.is_outcome_unknown() {
            self.unknown.fetch_add(1, Ordering::Relaxed);
        }
        let mut errors = self.errors.lock().unwrap_or_else(PoisonError::into_inner);
        *errors.entry(kind).or_default() += 1;
    }

    pub(crate) fn read(&self) -> RedisStats {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        RedisStats {
            calls: load(&self.calls),
            requests: load(&self.requests),
            batches: BATCH_BOUNDS.into_iter().zip(self.batches.iter().map(load)).collect(),
            corrupt: load(&self.corrupt),
            implausible: load(&self.implausible),
            merged: load(&self.merged),
            reconnects: load(&self.reconnects.0),
            noscripts: load(&self.noscripts.0),
            redirections: load(&self.redirections.0),
            errors: self.errors.lock().unwrap_or_else(PoisonError::into_inner).clone(),
            unknown_outcomes: load(&self.unknown),
            abandoned: load(&self.abandoned.0),
        }
    }
}
