//! The numbers of the model: signed 128-bit integers, which never wrap or saturate here.

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
}
