//! The numbers of the model: signed 128-bit integers, which never wrap or saturate here; and the tick
//! of a limit, the unit of time of its arithmetic.

/// An amount, a time in µs since the epoch, or a length in µs.
pub(super) type Int = i128;

/// The greatest common divisor of two numbers above 0.
pub(super) fn gcd(a: Int, b: Int) -> Int {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// `a / b` rounded up, for any `a` and a `b` above 0.
pub(super) fn divide_up(a: Int, b: Int) -> Int {
    -((-a).div_euclid(b))
}

/// The first number from `from` on for which `holds`, if it holds for all later ones: a search with
/// doubling, then halving steps.
pub(super) fn first(from: Int, holds: impl Fn(Int) -> bool) -> Int {
    if holds(from) {
        return from;
    }
    let mut step = 1;
    while !holds(from + step) {
        step *= 2;
    }
    let (mut not_yet, mut yet) = (from + step / 2, from + step);
    while yet - not_yet > 1 {
        let middle = (not_yet + yet) / 2;
        if holds(middle) {
            yet = middle;
        } else {
            not_yet = middle;
        }
    }
    yet
}

/// Converts to the 64 bits of the public types, saturating.
pub(super) fn bits64(int: Int) -> u64 {
    u64::try_from(int.max(0)).unwrap_or(u64::MAX)
}

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
    fn first_finds_every_edge() {
        for from in 0..20 {
            for edge in 0..50 {
                assert_eq!(first(from, |n| n >= edge), edge.max(from), "from {from}, edge {edge}");
            }
        }
    }

    #[test]
    fn divide_up_rounds_towards_later() {
        let rows = [(7, 2, 4), (6, 2, 3), (0, 5, 0), (-7, 2, -3), (1, 5, 1)];
        for (a, b, expected) in rows {
            assert_eq!(divide_up(a, b), expected, "{a} / {b}");
        }
    }

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
