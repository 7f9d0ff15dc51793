//! Which keys are asked for, and how often each.

use std::sync::Arc;

use crate::random::Random;

/// The keys of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Keys {
    /// What each key begins with, before its number.
    pub prefix: String,
    /// How many there are, at least 1.
    pub count: u32,
    /// The exponent of Zipf's law, by which the k-th key is asked for in proportion to 1/k^s; without
    /// one all are asked for as often.
    pub zipf: Option<f64>,
    /// The same seed chooses the same keys.
    pub seed: u64,
}

impl Keys {
    /// The digits of each number: all keys are as long as the others.
    pub(crate) fn width(&self) -> usize {
        usize::try_from(self.count.saturating_sub(1).checked_ilog10().unwrap_or(0) + 1).unwrap_or(1)
    }

    /// A key as text.
    #[must_use]
    pub fn name(&self, number: u32) -> String {
        let width = self.width();
        format!("{}{number:0width$}", self.prefix)
    }

    pub(crate) fn choice(&self) -> Choice {
        let table = self.zipf.map(|exponent| Arc::new(Table::zipf(self.count, exponent)));
        Choice { count: self.count, table }
    }
}

/// How keys are chosen; clones share the table.
#[derive(Clone, Debug)]
pub(crate) struct Choice {
    count: u32,
    table: Option<Arc<Table>>,
}

impl Choice {
    pub(crate) fn choose(&self, random: &mut Random) -> u32 {
        let column = random.below(self.count);
        match &self.table {
            None => column,
            Some(table) => table.choose(column, random),
        }
    }
}

/// An alias table (Walker 1977, built as Vose 1991): a column drawn evenly is itself, or its alias, by
/// a threshold. Eight bytes for each key.
#[derive(Debug)]
struct Table(Vec<Column>);

#[derive(Clone, Copy, Debug)]
struct Column {
    /// It is itself if 32 random bits are below this.
    threshold: u32,
    alias: u32,
}

impl Table {
    #[expect(clippy::float_arithmetic, reason = "it shapes a load, and decides nothing")]
    fn zipf(count: u32, exponent: f64) -> Self {
        let weight = |number: u32| (f64::from(number) + 1.0).powf(-exponent);
        let total: f64 = (0..count).map(weight).sum();
        let mut shares: Vec<f64> =
            (0..count).map(|n| weight(n) / total * f64::from(count)).collect();
        let mut columns: Vec<Column> =
            (0..count).map(|n| Column { threshold: u32::MAX, alias: n }).collect();
        let at = |number: u32| usize::try_from(number).unwrap_or(usize::MAX);
        let (mut small, mut large): (Vec<u32>, Vec<u32>) =
            (0..count).partition(|n| shares[at(*n)] < 1.0);
        while let (Some(less), Some(&more)) = (small.pop(), large.last()) {
            let share = shares[at(less)];
            columns[at(less)] = Column { threshold: fraction(share), alias: more };
            shares[at(more)] -= 1.0 - share;
            if shares[at(more)] < 1.0 {
                small.extend(large.pop());
            }
        }
        Table(columns)
    }

    fn choose(&self, column: u32, random: &mut Random) -> u32 {
        let Some(value) = usize::try_from(column).ok().and_then(|at| self.0.get(at)) else {
            return 0;
        };
        let drawn = u32::try_from(random.next() >> 32).unwrap_or(0);
        if drawn < value.threshold { column } else { value.alias }
    }
}

/// A fraction of one, in parts of 2^32.
#[expect(
    clippy::float_arithmetic,
    clippy::as_conversions,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a float becomes an integer by `as` only, which stays within its range"
)]
fn fraction(share: f64) -> u32 {
    (share * 4_294_967_296.0) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(zipf: Option<f64>, count: u32) -> Vec<u32> {
        let keys = Keys { prefix: "k".into(), count, zipf, seed: 1 };
        let (choice, mut random) = (keys.choice(), Random::new(keys.seed, 0));
        let mut drawn = vec![0; usize::try_from(count).unwrap()];
        for _ in 0..100_000 {
            drawn[usize::try_from(choice.choose(&mut random)).unwrap()] += 1;
        }
        drawn
    }

    #[test]
    fn keys_are_drawn_as_often_as_the_law_has_it() {
        let check = |zipf, count, expected: &[u32]| {
            for (drawn, expected) in drawn(zipf, count).iter().zip(expected) {
                assert!(drawn.abs_diff(*expected) < 1_000, "{drawn}, not {expected} of {zipf:?}");
            }
        };
        check(None, 4, &[25_000; 4]);
        check(Some(1.0), 3, &[54_545, 27_273, 18_182]);
        check(Some(2.0), 4, &[70_244, 17_561, 7_805, 4_390]);
        check(Some(1.0), 1_000, &[13_359, 6_680, 4_453]);
        check(Some(3.0), 1, &[100_000]);
    }

    #[test]
    fn all_keys_are_as_long() {
        let keys = |count| Keys { prefix: "k".into(), count, zipf: None, seed: 1 };
        assert_eq!([keys(1).name(0), keys(10).name(9)], ["k0", "k9"]);
        assert_eq!([keys(11).name(0), keys(11).name(10)], ["k00", "k10"]);
    }
}
