//! A logarithmic axis.

use std::ops::Range;

use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, Ranged};

/// Counts in tenths, which leaves space below 1.
#[derive(Clone, Debug)]
pub(in crate::pictures) struct Log {
    from: u64,
    to: u64,
}

impl Log {
    /// An axis between two numbers of tenths above 0.
    pub(in crate::pictures) fn new(from: u64, to: u64) -> Self {
        let from = from.max(1);
        Log { from, to: to.max(from.saturating_add(1)) }
    }

    /// The powers of ten in tenths and, if there is space, their doubles and fives.
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

    #[expect(clippy::float_arithmetic, reason = "a logarithm for a picture; it decides nothing")]
    #[expect(clippy::as_conversions, reason = "a count becomes a position, rounded")]
    fn along(&self, value: u64) -> f64 {
        let ln = |n: u64| (n as f64).ln();
        (ln(value.clamp(self.from, self.to)) - ln(self.from)) / (ln(self.to) - ln(self.from))
    }
}

impl Ranged for Log {
    type FormatOption = NoDefaultFormatting;
    type ValueType = u64;

    #[expect(clippy::float_arithmetic, reason = "a position in a picture; it decides nothing")]
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
        assert_eq!([10, 100, 1_000, 10_000].map(|n| log.map(&n, (0, 300))), [0, 100, 200, 300]);
        assert_eq!([0, u64::MAX].map(|n| log.map(&n, (300, 0))), [300, 0]);
        let narrow = Log::new(u64::MAX, u64::MAX);
        assert!((0..=300).contains(&narrow.map(&u64::MAX, (0, 300))));
    }

    #[test]
    fn ticks_are_powers_of_ten_with_as_many_multiples_as_fit() {
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
