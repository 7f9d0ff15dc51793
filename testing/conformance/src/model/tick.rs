//! The tick of a limit: the unit of time of its arithmetic.

use super::number::{Int, gcd};

/// The bound of every product in a decision.
pub(super) const EXACT: Int = 1 << 53;

/// The tick in µs of a limit of `count` per `window`: 1 if the products are below
/// [`EXACT`] with it, else the smallest coarser one that divides the window, is no longer than
/// window / count and keeps the products below. `product` is the largest product in a decision, given
/// the window in ticks.
pub(super) fn tick(count: Int, window: Int, product: impl Fn(Int) -> Int) -> Option<Int> {
    let ticks = [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000];
    ticks.into_iter().find(|&tick| {
        let whole = window % tick == 0;
        let fine = tick == 1 || tick * count <= window;
        whole && fine && product(window / tick) < EXACT
    })
}

/// The greatest product of a token bucket or queue: twice its capacity in parts of a unit, or
/// twice what drains in a tick.
pub(super) fn bucket_product(count: Int, capacity: Int) -> impl Fn(Int) -> Int {
    move |window| 2 * (capacity * window).max(count) / gcd(count, window)
}

/// The greatest product of a sliding window counter: twice its capacity times its ticks.
pub(super) fn weighted_product(capacity: Int) -> impl Fn(Int) -> Int {
    move |window| 2 * capacity * window
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_of_known_limits() {
        let day = 86_400_000_000;
        let rows = [
            (10, 1_000_000, 10, Some(1)),
            (1_000_000, 1_000_000, 1_000_000, Some(1)),
            (10_000_000, 30 * day, 10_000_000, Some(1)),
            (9_999_991, 30 * day, 9_999_991, Some(10_000)),
            (9_999_991, 1_000_000, 9_999_991, Some(1)),
            (999_999_937, day, 999_999_937, None),
        ];
        for (count, window, capacity, expected) in rows {
            let found = tick(count, window, bucket_product(count, capacity));
            assert_eq!(found, expected, "{count} per {window} us");
        }
        assert_eq!(tick(10_000_000, 30 * day, weighted_product(10_000_000)), Some(10_000));
    }
}
