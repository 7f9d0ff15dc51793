//! Counters of tracking.

use std::sync::atomic::{AtomicU64, Ordering};

/// A number that many threads add to.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    #[inline]
    pub(crate) fn increment(&self) {
        self.add(1);
    }

    pub(crate) fn add(&self, number: u64) {
        self.0.fetch_add(number, Ordering::Relaxed);
    }

    pub(crate) fn set(&self, number: u64) {
        self.0.store(number, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// The counters of this process.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) dropped_queue: Counter,
    pub(crate) dropped_long_keys: Counter,
    pub(crate) dropped_store: Counter,
    pub(crate) evicted: Counter,
    pub(crate) retried: Counter,
    pub(crate) pending_keys: Counter,
    pub(crate) keys: Counter,
    pub(crate) bytes: Counter,
}

/// The numbers of metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InsightStats {
    /// Decisions that were not recorded, by reason: the queue was full, the key is too long, or the
    /// store did not take them in time.
    pub dropped: [(&'static str, u64); 3],
    /// Keys that were evicted because there were more than `max_keys`, or more bytes than `max_bytes`.
    pub evicted: u64,
    /// Batches that were sent again.
    pub retried: u64,
    /// Keys that wait to be written. Redis only.
    pub pending_keys: u64,
    /// Tracked keys. Memory store only.
    pub keys: u64,
    /// The size of their records in bytes. Memory store only.
    pub bytes: u64,
}

impl Counters {
    pub(crate) fn stats(&self) -> InsightStats {
        InsightStats {
            dropped: [
                ("queue_full", self.dropped_queue.get()),
                ("long_key", self.dropped_long_keys.get()),
                ("store", self.dropped_store.get()),
            ],
            evicted: self.evicted.get(),
            retried: self.retried.get(),
            pending_keys: self.pending_keys.get(),
            keys: self.keys.get(),
            bytes: self.bytes.get(),
        }
    }
}
