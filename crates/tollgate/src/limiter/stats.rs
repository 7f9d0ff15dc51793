//! Statistics about a limiter's store.

use std::collections::BTreeMap;

use tollgate_state::{Failure, FailureKind};

/// How often the store failed since the limiter was opened, and what the policies decided instead.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LimiterStats {
    /// Checks that a policy admitted because the store failed.
    pub degraded_allowed: u64,
    /// Checks that a policy denied because the store failed.
    pub degraded_denied: u64,
    /// Requests that were denied without the store, because it had denied the same key and cost within
    /// the last second.
    pub denied_from_memory: u64,
    /// Requests that were admitted from quota that this process had charged in advance.
    pub leased_allowed: u64,
    /// Requests that were denied because none of it was left, and the store had no more.
    pub leased_denied: u64,
    /// How often this process has charged quota in advance.
    pub lease_requests: u64,
    /// The number of processes that share the limits, this one included; `None` while this process has
    /// no share, because the store has not known it for long enough.
    pub members: Option<usize>,
    /// Why the last heartbeat of this process could not be written.
    pub membership_failure: Option<Failure>,
    /// Keys that this process decides, because it has admitted requests for them for which the store
    /// was not charged yet.
    pub pending_keys: usize,
    /// The cost of requests that this process admitted with its shares, and for which the store was
    /// charged afterwards.
    pub charged_back: u64,
    /// The cost of such requests for which the store could not be charged.
    pub not_charged_back: u64,
    /// Requests that the store did not answer, by kind of failure.
    pub errors: BTreeMap<FailureKind, u64>,
    /// The most recent failure.
    pub last_failure: Option<Failure>,
    /// Histogram of the store's latency: the inclusive upper bound of each bucket in µs, and its
    /// count. The last bucket has no bound.
    pub latency_buckets: Vec<(Option<u64>, u64)>,
    /// Sum of the store's latency, in µs.
    pub latency_sum_us: u64,
}

#[cfg(feature = "redis")]
impl LimiterStats {
    pub(super) fn record_failure(&mut self, failure: &Failure) {
        *self.errors.entry(failure.kind).or_default() += 1;
        self.last_failure = Some(failure.clone());
    }
}
