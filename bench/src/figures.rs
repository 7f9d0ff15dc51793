//! Numbers as benchmarks print them: hundredths of a unit, medians, ratios.

/// Hundredths of a unit: two decimals without floating-point numbers.
pub type Hundredths = u64;

/// `part` divided by `whole`; 0 if `whole` is 0, as in a run too short to be measured.
#[must_use]
pub fn ratio(part: u64, whole: u64) -> Hundredths {
    (part * 100).checked_div(whole).unwrap_or(0)
}

/// The median of an odd number of figures.
///
/// # Panics
/// There are no figures.
pub fn median(figures: impl Iterator<Item = u64>) -> u64 {
    let mut figures: Vec<u64> = figures.collect();
    figures.sort_unstable();
    figures[figures.len() / 2]
}

/// A figure with two decimals below 100 and one decimal above.
#[must_use]
pub fn decimal(figure: Hundredths) -> String {
    if figure < 10_000 {
        format!("{}.{:02}", figure / 100, figure % 100)
    } else {
        format!("{}.{}", figure / 100, figure % 100 / 10)
    }
}

/// A count as a figure.
///
/// # Panics
/// The count needs more than 64 bits.
#[must_use]
#[expect(clippy::expect_used, reason = "supported targets have at most 64-bit addresses")]
pub fn number(count: usize) -> u64 {
    u64::try_from(count).expect("a usize fits 64 bits")
}
