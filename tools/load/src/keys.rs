//! The keys of a run and their popularity.

use std::sync::Arc;

use fastrand::Rng;

/// The keys of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Keys {
    /// The text before the number of each key.
    pub prefix: String,
    /// The number of keys, at least 1.
    pub count: u32,
    /// The exponent s of a Zipf distribution: key k is chosen in proportion to 1/k^s. Without it,
    /// all keys are equally likely.
    pub zipf: Option<f64>,
    /// The seed of the choice: equal seeds choose the same keys.
    pub seed: u64,
}

impl Keys {
    /// The number of digits: all keys have the same length.
    pub(crate) fn width(&self) -> usize {
        let highest = self.count.saturating_sub(1);
        highest.to_string().len()
    }

    /// The text of a key.
    #[must_use]
    pub fn name(&self, number: u32) -> String {
        let width = self.width();
        format!("{}{number:0width$}", self.prefix)
    }

    pub(crate) fn selector(&self) -> KeySelector {
        let table = self.zipf.map(|exponent| Arc::new(AliasTable::zipf(self.count, exponent)));
        KeySelector { count: self.count, table }
    }
}

/// Chooses keys; clones share the table.
#[derive(Clone, Debug)]
pub(crate) struct KeySelector {
    count: u32,
    table: Option<Arc<AliasTable>>,
}

impl KeySelector {
    pub(crate) fn choose(&self, random: &mut Rng) -> u32 {
        let column = random.u32(..self.count);
        match &self.table {
            None => column,
            Some(table) => table.choose(column, random),
        }
    }
}

/// An alias table (Walker 1977, built as in Vose 1991): a uniformly drawn column stands for itself
/// or for its alias, depending on a threshold. Eight bytes per key.
#[derive(Debug)]
struct AliasTable(Vec<Column>);

#[derive(Clone, Copy, Debug)]
struct Column {
    /// The column stands for itself if 32 random bits are below this.
    threshold: u32,
    alias: u32,
}

impl AliasTable {
    #[expect(clippy::float_arithmetic, reason = "this shapes a load and decides nothing")]
    fn zipf(count: u32, exponent: f64) -> Self {
        let weight = |number: u32| (f64::from(number) + 1.0).powf(-exponent);
        let total: f64 = (0..count).map(weight).sum();
        let mut shares: Vec<f64> =
            (0..count).map(|n| weight(n) / total * f64::from(count)).collect();
        let mut columns: Vec<Column> =
            (0..count).map(|n| Column { threshold: u32::MAX, alias: n }).collect();
        let (mut small, mut large): (Vec<u32>, Vec<u32>) =
            (0..count).partition(|n| shares[index(*n)] < 1.0);
        while let (Some(less), Some(&more)) = (small.pop(), large.last()) {
            let share = shares[index(less)];
            columns[index(less)] = Column { threshold: fraction(share), alias: more };
            shares[index(more)] -= 1.0 - share;
            if shares[index(more)] < 1.0 {
                small.extend(large.pop());
            }
        }
        AliasTable(columns)
    }

    fn choose(&self, column: u32, random: &mut Rng) -> u32 {
        let Column { threshold, alias } = self.0[index(column)];
        if random.u32(..) < threshold { column } else { alias }
    }
}

#[expect(clippy::expect_used, reason = "supported targets have at least 32-bit addresses")]
fn index(number: u32) -> usize {
    usize::try_from(number).expect("32 bits fit a usize")
}

/// A fraction of one in units of 2^-32.
#[expect(
    clippy::float_arithmetic,
    clippy::as_conversions,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "`as` is the only conversion from a float to an integer, and saturates"
)]
fn fraction(share: f64) -> u32 {
    (share * 4_294_967_296.0) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frequencies(zipf: Option<f64>, count: u32) -> Vec<u32> {
        let keys = Keys { prefix: "k".into(), count, zipf, seed: 1 };
        let (selector, mut random) = (keys.selector(), Rng::with_seed(keys.seed));
        let mut frequencies = vec![0; usize::try_from(count).unwrap()];
        for _ in 0..100_000 {
            frequencies[usize::try_from(selector.choose(&mut random)).unwrap()] += 1;
        }
        frequencies
    }

    #[test]
    fn keys_follow_the_chosen_distribution() {
        let check = |zipf, count, expected: &[u32]| {
            for (found, expected) in frequencies(zipf, count).iter().zip(expected) {
                assert!(found.abs_diff(*expected) < 1_000, "{found}, not {expected} of {zipf:?}");
            }
        };
        check(None, 4, &[25_000; 4]);
        check(Some(1.0), 3, &[54_545, 27_273, 18_182]);
        check(Some(2.0), 4, &[70_244, 17_561, 7_805, 4_390]);
        check(Some(1.0), 1_000, &[13_359, 6_680, 4_453]);
        check(Some(3.0), 1, &[100_000]);
    }

    #[test]
    fn all_keys_have_the_same_length() {
        let keys = |count| Keys { prefix: "k".into(), count, zipf: None, seed: 1 };
        assert_eq!([keys(1).name(0), keys(10).name(9)], ["k0", "k9"]);
        assert_eq!([keys(11).name(0), keys(11).name(10)], ["k00", "k10"]);
    }
}
