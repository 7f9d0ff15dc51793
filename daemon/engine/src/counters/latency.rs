//! Latency histograms with exemplars.

use std::sync::Mutex;

use tollgate::{Micros, Timestamp};

use super::counter::{Counter, lock};
use super::trace::TraceId;

/// The upper bounds of the buckets, in µs; one more bucket has no bound.
const BOUNDS: [u64; 13] =
    [25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000];

/// A request of a bucket whose trace is known.
#[derive(Clone, Debug)]
pub struct Exemplar {
    /// Its trace.
    pub trace: TraceId,
    /// How long it took.
    pub duration: Micros,
    /// When it ended.
    pub time: Timestamp,
}

/// One bucket of a histogram.
#[derive(Clone, Debug)]
pub struct LatencyBucket {
    /// The upper bound; absent for the last bucket.
    pub bound: Option<Micros>,
    /// The requests in this bucket alone.
    pub count: u64,
    /// The newest request whose trace is known.
    pub exemplar: Option<Exemplar>,
}

/// A histogram that is updated without locks.
#[derive(Debug, Default)]
pub struct LatencyHistogram {
    counts: [Counter; BOUNDS.len() + 1],
    sum: Counter,
    exemplars: [Mutex<Option<Exemplar>>; BOUNDS.len() + 1],
}

impl LatencyHistogram {
    /// Counts requests that took equally long.
    #[inline]
    pub(crate) fn count(&self, duration: Micros, requests: u64) {
        self.counts[bucket_index(duration)].add(requests);
        self.sum.add(duration.get().saturating_mul(requests));
    }

    /// Keeps the newest exemplar of a bucket. Skips it if another thread is storing one.
    pub(crate) fn set_exemplar(&self, exemplar: Exemplar) {
        if let Ok(mut slot) = self.exemplars[bucket_index(exemplar.duration)].try_lock() {
            *slot = Some(exemplar);
        }
    }

    /// The buckets, by ascending bound.
    #[must_use]
    pub fn buckets(&self) -> Vec<LatencyBucket> {
        let bounds = BOUNDS.into_iter().map(|bound| Some(Micros::new(bound))).chain([None]);
        bounds
            .zip(&self.counts)
            .zip(&self.exemplars)
            .map(|((bound, count), exemplar)| LatencyBucket {
                bound,
                count: count.get(),
                exemplar: lock(exemplar).clone(),
            })
            .collect()
    }

    /// The sum of all durations, in µs.
    #[must_use]
    pub fn sum_micros(&self) -> u64 {
        self.sum.get()
    }
}

#[inline]
fn bucket_index(duration: Micros) -> usize {
    BOUNDS.partition_point(|bound| *bound < duration.get())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_is_counted_in_the_first_bucket_that_contains_it() {
        let histogram = LatencyHistogram::default();
        for micros in [0, 25, 26, 250_000, 250_001, 9_000_000] {
            histogram.count(Micros::new(micros), 1);
        }
        let counts: Vec<_> = histogram.buckets().iter().map(|bucket| bucket.count).collect();
        assert_eq!(counts, [2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2]);
        assert_eq!(histogram.sum_micros(), 9_500_052);
    }
}
