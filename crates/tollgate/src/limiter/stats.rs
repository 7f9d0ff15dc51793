//! How often the store gave no answer.

use std::collections::BTreeMap;

use tollgate_store::{Failure, FailureKind};

/// How often the store gave no answer, and what came of it, since the limiter was opened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LimiterStats {
    /// Checks that a policy admitted because the store gave no answer.
    pub degraded_allowed: u64,
    /// Checks that a policy denied because the store gave no answer.
    pub degraded_denied: u64,
    /// Requests that the store did not answer, by why.
    pub errors: BTreeMap<FailureKind, u64>,
    /// Why the last of them was not answered.
    pub last_failure: Option<Failure>,
    /// Requests by how long the store was waited for: the most, in µs, and the requests of up to
    /// so long. The last class has no end.
    pub latency_buckets: Vec<(Option<u64>, u64)>,
    /// How long it was waited for in all, in µs.
    pub latency_sum_us: u64,
}
