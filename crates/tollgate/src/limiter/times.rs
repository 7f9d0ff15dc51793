//! How long the store was waited for.

use std::sync::atomic::{AtomicU64, Ordering};

use tollgate_core::Micros;

/// The classes of times, by the most µs of each; one more is for what took longer.
const CLASSES: [u64; 13] =
    [25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000];

/// How long the store was waited for, counted by classes.
#[derive(Debug, Default)]
pub(super) struct Times {
    counts: [AtomicU64; CLASSES.len() + 1],
    sum: AtomicU64,
}

impl Times {
    pub(super) fn count(&self, time: Micros) {
        let class = CLASSES.partition_point(|most| *most < time.get());
        if let Some(count) = self.counts.get(class) {
            count.fetch_add(1, Ordering::Relaxed);
        }
        self.sum.fetch_add(time.get(), Ordering::Relaxed);
    }

    /// The classes with their counts, the last without an end.
    pub(super) fn classes(&self) -> Vec<(Option<u64>, u64)> {
        let most = CLASSES.into_iter().map(Some).chain([None]);
        most.zip(self.counts.iter().map(|count| count.load(Ordering::Relaxed))).collect()
    }

    /// All of them together, in µs.
    pub(super) fn sum(&self) -> u64 {
        self.sum.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_of_the_first_class_that_holds_it() {
        let times = Times::default();
        for time in [0, 25, 26, 250_000, 250_001, u64::from(u32::MAX)] {
            times.count(Micros::new(time));
        }
        let counted: Vec<_> = times.classes().into_iter().filter(|class| class.1 > 0).collect();
        assert_eq!(counted, [(Some(25), 2), (Some(50), 1), (Some(250_000), 1), (None, 2)]);
        assert_eq!(times.sum(), 25 + 26 + 250_000 + 250_001 + u64::from(u32::MAX));
    }
}
