//! Integer arithmetic on which Rust's `u64` and Lua's doubles agree to the last bit.

/// Integers below this are exact in a double. Every product in a decision stays below it.
pub(crate) const EXACT: u64 = 1 << 53;

/// The greatest common divisor.
pub(crate) const fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// A divisor that divides any `n` below 2^53 exactly, with one multiplication.
///
/// The reciprocal is that of Granlund and Montgomery, *Division by Invariant Integers using
/// Multiplication* (1994), theorem 4.2, with N = 53: with l = ⌈log2 d⌉ and
/// m = ⌊2^(53+l) / d⌋ + 1, ⌊n·m / 2^(53+l)⌋ = ⌊n / d⌋ for every n < 2^53.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Divisor {
    divisor: u64,
    reciprocal: u64,
    shift: u32,
}

impl Divisor {
    /// Prepares division by `divisor`, which is in 1..=2^53.
    pub(crate) fn new(divisor: u64) -> Self {
        debug_assert!((1..=EXACT).contains(&divisor));
        let shift = u64::BITS - (divisor - 1).leading_zeros();
        // At most 2^54, since d > 2^(l-1).
        let reciprocal = low_u64((1_u128 << (53 + shift)) / u128::from(divisor) + 1);
        Divisor { divisor, reciprocal, shift }
    }

    pub(crate) const fn get(self) -> u64 {
        self.divisor
    }

    /// ⌊n / d⌋ for n below 2^53.
    #[inline]
    pub(crate) fn floor(self, n: u64) -> u64 {
        debug_assert!(n < EXACT);
        // The high half of (n · 2^11) · m is ⌊n·m / 2^53⌋.
        let product = u128::from(n << 11) * u128::from(self.reciprocal);
        low_u64(product >> 64) >> self.shift
    }

    /// ⌈n / d⌉ for n below 2^53.
    #[inline]
    pub(crate) fn ceil(self, n: u64) -> u64 {
        let floor = self.floor(n);
        floor + u64::from(floor * self.divisor < n)
    }
}

/// The low half of a number whose high half is zero.
#[inline]
#[expect(clippy::as_conversions, reason = "the caller's number is below 2^64")]
fn low_u64(wide: u128) -> u64 {
    debug_assert!(wide <= u128::from(u64::MAX));
    wide as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn divisor_divides_every_number_below_2_pow_53_exactly(n in 0..EXACT, d in 1..=EXACT, small in 1_u64..100_000) {
            for d in [1, EXACT, d, small, d.next_power_of_two().min(EXACT), (d >> 20).max(1)] {
                // A wrong reciprocal shows first around multiples of d.
                for n in [n, n / d * d, (n / d * d).saturating_sub(1), EXACT - 1] {
                    prop_assert_eq!(Divisor::new(d).floor(n), n / d);
                    prop_assert_eq!(Divisor::new(d).ceil(n), n.div_ceil(d));
                }
            }
        }
    }
}
