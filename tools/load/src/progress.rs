//! How far a run is, for whoever looks.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counts of a run that goes on.
#[derive(Debug, Default)]
pub struct Progress {
    allowed: AtomicU64,
    denied: AtomicU64,
    failed: AtomicU64,
}

impl Progress {
    pub(crate) fn answered(&self, [allowed, denied]: [u64; 2]) {
        self.allowed.fetch_add(allowed, Ordering::Relaxed);
        self.denied.fetch_add(denied, Ordering::Relaxed);
    }

    pub(crate) fn failed(&self, times: u64) {
        self.failed.fetch_add(times, Ordering::Relaxed);
    }

    /// Allowed, denied, and failed.
    #[must_use]
    pub fn counts(&self) -> [u64; 3] {
        [&self.allowed, &self.denied, &self.failed].map(|x| x.load(Ordering::Relaxed))
    }
}
