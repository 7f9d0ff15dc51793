//! Latencies by bucket, and their percentiles.

use serde::Serialize;
use tollgate::Micros;

use crate::number::Decimal;

/// The upper bound of each bucket in µs, which the last one lacks, and its count.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Histogram(pub(crate) Vec<(Option<u64>, u64)>);

/// Percentiles of latencies in seconds; absent without any request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Percentiles {
    pub(crate) requests: u64,
    pub(crate) p50: Option<Decimal>,
    pub(crate) p90: Option<Decimal>,
    pub(crate) p99: Option<Decimal>,
}

impl Histogram {
    /// Adds the counts of another histogram with the same buckets, or with any if this has none.
    pub(crate) fn add(&mut self, other: &Histogram) {
        if self.0.is_empty() {
            return self.0.clone_from(&other.0);
        }
        for ((_, count), (_, more)) in self.0.iter_mut().zip(&other.0) {
            *count = count.saturating_add(*more);
        }
    }

    /// What was counted since an earlier time. A histogram without buckets is empty.
    pub(crate) fn since(&self, before: &Histogram) -> Histogram {
        let earlier = before.0.iter().map(|(_, count)| *count).chain(std::iter::repeat(0));
        let buckets = self.0.iter().zip(earlier);
        Histogram(
            buckets
                .map(|((bound, count), earlier)| (*bound, count.saturating_sub(earlier)))
                .collect(),
        )
    }

    pub(crate) fn percentiles(&self) -> Percentiles {
        let requests = self.0.iter().map(|(_, count)| count).sum();
        let percentile = |percent| self.percentile(percent, requests).map(Decimal::from);
        Percentiles { requests, p50: percentile(50), p90: percentile(90), p99: percentile(99) }
    }

    /// The latency that so many percent of the requests do not exceed, interpolated within its
    /// bucket. In the last bucket, it is its lower bound.
    fn percentile(&self, percent: u64, requests: u64) -> Option<Micros> {
        let rank = requests.checked_mul(percent)?.div_ceil(100);
        let (mut below, mut lower) = (0, 0);
        for (bound, count) in &self.0 {
            if *count > 0 && below + count >= rank {
                let Some(upper) = bound else { return Some(Micros::new(lower)) };
                let share = (upper - lower).saturating_mul(rank - below) / count;
                return Some(Micros::new(lower + share));
            }
            below += count;
            lower = bound.unwrap_or(lower);
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_interpolated_within_their_bucket() {
        let histogram = |counts: [u64; 4]| {
            let bounds = [Some(100), Some(200), Some(1_000), None];
            Histogram(bounds.into_iter().zip(counts).collect())
        };
        for (counts, percent, expected) in [
            ([0, 0, 0, 0], 50, None),
            ([100, 0, 0, 0], 50, Some(50)),
            ([100, 0, 0, 0], 99, Some(99)),
            ([50, 50, 0, 0], 50, Some(100)),
            ([50, 50, 0, 0], 90, Some(180)),
            ([0, 0, 1, 0], 50, Some(1_000)),
            ([98, 0, 0, 2], 99, Some(1_000)),
        ] {
            let histogram = histogram(counts);
            let found = histogram.percentile(percent, counts.iter().sum()).map(Micros::get);
            assert_eq!(found, expected, "p{percent} of {counts:?}");
        }
    }

    #[test]
    fn a_difference_contains_what_was_counted_between() {
        let before = Histogram(vec![(Some(100), 3), (None, 1)]);
        let after = Histogram(vec![(Some(100), 5), (None, 1)]);
        let mut difference = after.since(&before);
        assert_eq!(difference, Histogram(vec![(Some(100), 2), (None, 0)]));
        assert_eq!(after.since(&Histogram::default()), after);
        difference.add(&before);
        assert_eq!(difference, after);
    }
}
