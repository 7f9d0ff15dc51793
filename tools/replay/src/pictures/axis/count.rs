//! An axis of counts from 0.

use std::ops::Range;

use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, Ranged};

use crate::convert::to_u64;

/// The position of a value between two ends, in units of the picture.
#[expect(clippy::expect_used, reason = "the position lies between the two ends")]
pub(super) fn position(value: u64, (from, to): (u64, u64), ends: (i32, i32)) -> i32 {
    let length = i128::from(to.saturating_sub(from)).max(1);
    let along = i128::from(value.clamp(from, to.max(from)) - from);
    let run = i128::from(ends.1) - i128::from(ends.0);
    let moved = (along * run * 2 + length * run.signum()) / (length * 2);
    i32::try_from(i128::from(ends.0) + moved).expect("a position between two i32")
}

/// Counts from 0 to slightly above the maximum.
#[derive(Clone, Debug)]
pub(in crate::pictures) struct Counts {
    top: u64,
}

impl Counts {
    pub(in crate::pictures) fn up_to(greatest: u64) -> Self {
        Counts { top: greatest.saturating_add(greatest / 16).max(1) }
    }

    /// Round numbers, at most `max` above 0.
    pub(in crate::pictures) fn ticks(&self, max: usize) -> Vec<u64> {
        let max = to_u64(max.max(1));
        let steps = (0..20)
            .flat_map(|power| [1, 2, 5].map(|digit: u64| digit.saturating_mul(10_u64.pow(power))));
        let step = steps.into_iter().find(|step| self.top / step <= max).unwrap_or(u64::MAX);
        (0..=self.top / step).map(|times| times * step).collect()
    }

    /// A short form of a number: `1,500`, `20k`, `1.5M`.
    pub(in crate::pictures) fn label(number: u64) -> String {
        const UNITS: [(u64, &str); 6] = [
            (1_000_000_000_000_000_000, "E"),
            (1_000_000_000_000_000, "P"),
            (1_000_000_000_000, "T"),
            (1_000_000_000, "G"),
            (1_000_000, "M"),
            (1_000, "k"),
        ];
        if number < 10_000 {
            return crate::report::format::grouped(number);
        }
        let unit = UNITS.iter().find(|(unit, _)| number >= *unit);
        let Some((unit, word)) = unit else {
            return number.to_string();
        };
        match number % unit / (unit / 10) {
            0 => format!("{}{word}", number / unit),
            tenths => format!("{}.{tenths}{word}", number / unit),
        }
    }
}

impl Ranged for Counts {
    type FormatOption = NoDefaultFormatting;
    type ValueType = u64;

    fn map(&self, value: &u64, limit: (i32, i32)) -> i32 {
        position(*value, (0, self.top), limit)
    }

    fn key_points<Hint: KeyPointHint>(&self, hint: Hint) -> Vec<u64> {
        self.ticks(hint.max_num_points())
    }

    fn range(&self) -> Range<u64> {
        0..self.top
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_few() {
        for (greatest, expected) in [
            (0, vec![0, 1]),
            (1, vec![0, 1]),
            (7, vec![0, 2, 4, 6]),
            (100, vec![0, 50, 100]),
            (950, vec![0, 500, 1_000]),
            (
                u64::MAX,
                vec![
                    0,
                    5_000_000_000_000_000_000,
                    10_000_000_000_000_000_000,
                    15_000_000_000_000_000_000,
                ],
            ),
        ] {
            assert_eq!(Counts::up_to(greatest).ticks(3), expected, "{greatest}");
        }
    }

    #[test]
    fn labels_are_short() {
        for (number, expected) in [
            (0, "0"),
            (9_999, "9,999"),
            (20_000, "20k"),
            (1_500_000, "1.5M"),
            (15_000_000_000_000_000_000, "15E"),
        ] {
            assert_eq!(Counts::label(number), expected);
        }
    }
}
