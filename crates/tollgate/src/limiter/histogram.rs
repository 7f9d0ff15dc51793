//! A histogram of the store's latency.

use std::sync::atomic::{AtomicU64, Ordering};

use tollgate_algorithms::Micros;

/// The upper bounds of the buckets, in µs; one more bucket is unbounded.
const BOUNDS: [u64; 13] =
    [25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000];

/// A histogram of the time spent waiting for the store.
#[derive(Debug, Default)]
pub(super) struct LatencyHistogram {
    counts: [AtomicU64; BOUNDS.len() + 1],
    sum_us: AtomicU64,
}

impl LatencyHistogram {
    pub(super) fn record(&self, latency: Micros) {
        let bucket = BOUNDS.partition_point(|bound| *bound < latency.get());
        self.counts[bucket].fetch_add(1, Ordering::Relaxed);
        self.sum_us.fetch_add(latency.get(), Ordering::Relaxed);
    }

    /// Returns each bucket's upper bound in µs and its count; the last bucket has no bound.
    pub(super) fn buckets(&self) -> Vec<(Option<u64>, u64)> {
        let bounds = BOUNDS.into_iter().map(Some).chain([None]);
        bounds.zip(self.counts.iter().map(|count| count.load(Ordering::Relaxed))).collect()
    }

    /// Returns the sum of all latencies, in µs.
    pub(super) fn sum_us(&self) -> u64 {
        self.sum_us.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_latency_counts_in_the_first_bucket_whose_bound_it_does_not_exceed() {
        let histogram = LatencyHistogram::default();
        for latency in [0, 25, 26, 250_000, 250_001, u64::from(u32::MAX)] {
            histogram.record(Micros::new(latency));
        }
        let filled: Vec<_> =
            histogram.buckets().into_iter().filter(|(_, count)| *count > 0).collect();
        assert_eq!(filled, [(Some(25), 2), (Some(50), 1), (Some(250_000), 1), (None, 2)]);
        assert_eq!(histogram.sum_us(), 25 + 26 + 250_000 + 250_001 + u64::from(u32::MAX));
    }
}
