//! Numbers as they are printed: hundredths of a unit, medians, ratios.

/// A hundredth of something, so that no decimal is lost where there are no floats.
pub type Hundredths = u64;

/// `part` for each of `whole`.
#[must_use]
pub fn per(part: u64, whole: u64) -> Hundredths {
    (part * 100).checked_div(whole).unwrap_or(0)
}

/// The median of an odd number of figures.
pub fn median(figures: impl Iterator<Item = u64>) -> u64 {
    let mut figures: Vec<u64> = figures.collect();
    figures.sort_unstable();
    figures.get(figures.len() / 2).copied().unwrap_or(0)
}

/// With two decimals where there is little before them, else with one.
#[must_use]
pub fn show(figure: Hundredths) -> String {
    if figure < 10_000 {
        format!("{}.{:02}", figure / 100, figure % 100)
    } else {
        format!("{}.{}", figure / 100, figure % 100 / 10)
    }
}

/// A count as a figure.
#[must_use]
pub fn number(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}
