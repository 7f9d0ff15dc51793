//! An axis on which equal ratios are equally far apart.

use std::ops::Range;

use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, Ranged};

/// Counts in tenths, so that there is room below 1.
#[derive(Clone, Debug)]
pub(in crate::pictures) struct Log {
    from: u64,
    to: u64,
}

impl Log {
    /// From one number of tenths to another; neither is 0.
    pub(in crate::pictures) fn new(from: u64, to: u64) -> Self {
        let from = from.max(1);
        Log { from, to: to.max(from.saturating_add(1)) }
    }

    /// The powers of ten, in tenths, and where they are few, their doubles and fives.
    pub(in crate::pictures) fn ticks(&self, most: usize) -> Vec<u64> {
        let within = |digits: &[u64]| -> Vec<u64> {
            (1..20)
                .flat_map(|power| digits.iter().map(move |digit| (*digit, power)))
                .filter_map(|(digit, power)| digit.checked_mul(10_u64.checked_pow(power)?))
                .filter(|tick| (self.from..=self.to).contains(tick))
                .collect()
        };
        let all = [within(&[1, 2, 5]), within(&[1, 3]), within(&[1])];
        let [.., powers] = &all;
        let fitting = all.iter().find(|ticks| ticks.len() <= most);
        let stride = powers.len().div_ceil(most.max(1)).max(1);
        fitting.cloned().unwrap_or_else(|| powers.iter().copied().step_by(stride).collect())
    }

    #[expect(clippy::float_arithmetic, reason = "a logarithm is drawn, nothing is decided by it")]
    #[expect(clippy::as_conversions, reason = "a count becomes a place in a picture, rounded")]
    fn along(&self, value: u64) -> f64 {
        let ln = |n: u64| (n as f64).ln();
        (ln(value.clamp(self.from, self.to)) - ln(self.from)) / (ln(self.to) - ln(self.from))
    }
}

impl Ranged for Log {
    type FormatOption = NoDefaultFormatting;
    type ValueType = u64;

    #[expect(clippy::float_arithmetic, reason = "a place in a picture, nothing is decided by it")]
    #[expect(clippy::as_conversions, reason = "rounded to whole units; beyond i32 it saturates")]
    fn map(&self, value: &u64, limit: (i32, i32)) -> i32 {
        let run = f64::from(limit.1) - f64::from(limit.0);
        (f64::from(limit.0) + self.along(*value) * run).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, hint: Hint) -> Vec<u64> {
        self.ticks(hint.max_num_points())
    }

    fn range(&self) -> Range<u64> {
        self.from..self.to
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_ratios_are_equally_far_apart() {
        let log = Log::new(10, 10_000);
        assert_eq!([10, 100, 1_000, 10_000].map(|it| log.map(&it, (0, 300))), [0, 100, 200, 300]);
        assert_eq!([0, u64::MAX].map(|it| log.map(&it, (300, 0))), [300, 0]);
        let narrow = Log::new(u64::MAX, u64::MAX);
        assert!((0..=300).contains(&narrow.map(&u64::MAX, (0, 300))));
    }

    #[test]
    fn ticks_are_powers_of_ten_and_what_fits_between() {
        for (to, most, expected) in [
            (100, 8, vec![10, 20, 50, 100]),
            (10_000, 7, vec![10, 30, 100, 300, 1_000, 3_000, 10_000]),
            (10_000, 4, vec![10, 100, 1_000, 10_000]),
            (10_000, 2, vec![10, 1_000]),
        ] {
            assert_eq!(Log::new(7, to).ticks(most), expected);
        }
    }
}
