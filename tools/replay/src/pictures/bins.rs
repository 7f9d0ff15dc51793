//! Rebins a timeline for a picture.

use super::axis::even_multiple;
use crate::convert::to_u64;
use crate::report::Timeline;

/// How many bins are distinguishable at the usual size of a picture.
const MAX_BINS: u64 = 320;

/// Bins of equal width, which is a multiple of that of the timeline.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bins {
    timeline_start: u64,
    timeline_width: u64,
    /// Microseconds since the epoch; a multiple of the width.
    pub(super) start: u64,
    /// Microseconds.
    pub(super) width: u64,
    pub(super) count: usize,
}

impl Bins {
    /// Bins for a timeline; `None` if it is empty.
    pub(super) fn for_timeline(timeline: &Timeline) -> Option<Self> {
        let (start, width) = (timeline.start.as_micros(), timeline.width.get());
        let length = u64::try_from(timeline.costs.len()).ok()?;
        if width == 0 || length == 0 {
            return None;
        }
        let last = start.saturating_add(width.saturating_mul(length - 1));
        let count = |wide: u64| last / wide - start / wide + 1;
        let whole = width.saturating_mul(length.div_ceil(MAX_BINS - 1));
        // An even width is easier to read, unless it leaves far fewer bins.
        let fits = |even: u64| count(even) <= MAX_BINS && even / 8 <= whole;
        let wide = even_multiple(width, fits).unwrap_or(whole);
        Some(Bins {
            timeline_start: start,
            timeline_width: width,
            start: start / wide * wide,
            width: wide,
            count: usize::try_from(count(wide)).ok()?,
        })
    }

    /// Sums the costs of the timeline into these bins.
    pub(super) fn fill(&self, costs: &[u64]) -> Vec<u64> {
        let mut filled = vec![0_u64; self.count];
        let mut at = self.timeline_start;
        for cost in costs {
            let place = (at - self.start) / self.width;
            let bin = usize::try_from(place).ok().and_then(|place| filled.get_mut(place));
            if let Some(bin) = bin {
                *bin = bin.saturating_add(*cost);
            }
            at = at.saturating_add(self.timeline_width);
        }
        filled
    }

    pub(super) fn end(&self) -> u64 {
        let count = to_u64(self.count);
        self.start.saturating_add(self.width.saturating_mul(count))
    }
}

#[cfg(test)]
mod tests {
    use tollgate::{Micros, Timestamp};

    use super::*;

    #[test]
    fn bins_are_even_and_few_and_lose_nothing() {
        for (start, width, length, expected_width, expected_count) in [
            (0, 1_000_000, 1, 1_000_000, 1),
            (7_000_000, 1_000_000, 320, 1_000_000, 320),
            (7_000_000, 1_000_000, 321, 2_000_000, 161),
            (0, 1_000_000, 86_400, 300_000_000, 288),
            (0, 7, 10_000, 7 * 32, 313),
            (8_500_000_000_000_000, u64::MAX, 3, u64::MAX, 2),
        ] {
            let timeline = Timeline {
                start: Timestamp::from_micros(start),
                width: Micros::new(width),
                costs: vec![1; length],
            };
            let bins = Bins::for_timeline(&timeline).unwrap();
            assert_eq!((bins.width, bins.count), (expected_width, expected_count), "{start}");
            let filled: u64 = bins.fill(&timeline.costs).iter().sum();
            assert_eq!(filled, u64::try_from(length).unwrap(), "{start}");
        }
        assert!(Bins::for_timeline(&Timeline::default()).is_none());
    }
}
