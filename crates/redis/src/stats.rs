//! What has happened in a store.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use tollgate_core::Anomalies;
use tollgate_store::{FailureKind, StoreError};

/// What has happened in a [`RedisStore`](crate::RedisStore) since it was opened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RedisStats {
    /// Calls of the script that were sent, each a round trip.
    pub calls: u64,
    /// Requests in them.
    pub requests: u64,
    /// Calls by how many requests they carried: the most, and the calls of up to so many.
    pub batches: Vec<(u64, u64)>,
    /// Keys that held what no charge can have made, and were begun anew.
    pub junk: u64,
    /// States too far ahead of the clock to be believed.
    pub disbelieved: u64,
    /// Log entries merged because a key has more than a log keeps.
    pub merged: u64,
    /// Connections that were made, beyond the first of each.
    pub reconnects: u64,
    /// Calls repeated because the server did not know the script.
    pub noscripts: u64,
    /// Calls that were sent elsewhere because a slot or a primary had moved.
    pub redirections: u64,
    /// Requests that were not answered, by kind.
    pub errors: BTreeMap<FailureKind, u64>,
    /// Of those, requests of which it is unknown whether they were charged.
    pub unknown_outcomes: u64,
    /// Requests whose caller was gone before they were sent.
    pub abandoned: u64,
}

/// The classes of batches, by their most requests.
const CLASSES: [u64; 10] = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512];

/// The same, as it is counted.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    calls: AtomicU64,
    requests: AtomicU64,
    batches: [AtomicU64; CLASSES.len()],
    junk: AtomicU64,
    disbelieved: AtomicU64,
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
    pub(crate) fn count(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

impl Counters {
    pub(crate) fn sent(&self, requests: usize) {
        let requests = u64::try_from(requests).unwrap_or(u64::MAX);
        self.calls.fetch_add(1, Ordering::Relaxed);
        self.requests.fetch_add(requests, Ordering::Relaxed);
        let class = CLASSES.partition_point(|most| *most < requests).min(CLASSES.len() - 1);
        if let Some(class) = self.batches.get(class) {
            class.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(crate) fn answered(&self, junk: u64, anomalies: Anomalies) {
        if junk > 0 {
            self.junk.fetch_add(junk, Ordering::Relaxed);
        }
        if anomalies != Anomalies::default() {
            self.disbelieved.fetch_add(anomalies.implausible, Ordering::Relaxed);
            self.merged.fetch_add(anomalies.merged, Ordering::Relaxed);
        }
    }

    pub(crate) fn failed(&self, error: &StoreError) {
        let Some(kind) = error.failure() else { return };
        if kind.is_outcome_unknown() {
            self.unknown.fetch_add(1, Ordering::Relaxed);
        }
        let mut errors = self.errors.lock().unwrap_or_else(PoisonError::into_inner);
        *errors.entry(kind).or_default() += 1;
    }

    pub(crate) fn read(&self) -> RedisStats {
        let of = |atomic_u64: &AtomicU64| atomic_u64.load(Ordering::Relaxed);
        RedisStats {
            calls: of(&self.calls),
            requests: of(&self.requests),
            batches: CLASSES.into_iter().zip(self.batches.iter().map(of)).collect(),
            junk: of(&self.junk),
            disbelieved: of(&self.disbelieved),
            merged: of(&self.merged),
            reconnects: of(&self.reconnects.0),
            noscripts: of(&self.noscripts.0),
            redirections: of(&self.redirections.0),
            errors: self.errors.lock().unwrap_or_else(PoisonError::into_inner).clone(),
            unknown_outcomes: of(&self.unknown),
            abandoned: of(&self.abandoned.0),
        }
    }
}
