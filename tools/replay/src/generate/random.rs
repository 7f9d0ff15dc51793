//! Random numbers of synthetic traffic.
//!
//! Logs and pictures that tests compare byte by byte depend on this sequence, so it is not replaced by
//! a crate whose algorithm may change.
#![expect(clippy::float_arithmetic, reason = "this generates traffic and decides nothing")]

use crate::convert::to_u32;

/// SplitMix64: one addition and three mixing steps per 64 bits; accepts any seed.
#[derive(Clone, Debug)]
pub(super) struct Random {
    state: u64,
}

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        Random { state: seed }
    }

    fn bits(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A uniform number in [0, 1).
    pub(super) fn unit(&mut self) -> f64 {
        let bits = self.bits();
        let [high, low] = [bits >> 43, (bits >> 11) & 0xFFFF_FFFF];
        let small = |half: u64| f64::from(to_u32(half));
        (small(high) * 4_294_967_296.0 + small(low)) / 9_007_199_254_740_992.0
    }

    /// A uniform number below `end`.
    pub(super) fn below(&mut self, end: u32) -> u32 {
        let product = u128::from(self.bits()) * u128::from(end);
        to_u32(product >> 64)
    }

    /// The time between two events of a Poisson process with mean 1.
    pub(super) fn gap(&mut self) -> f64 {
        -(1.0 - self.unit()).ln()
    }
}

/// Draws k from 1 to n with a probability proportional to 1/k, in constant time and memory, by
/// rejection-inversion: W. Hörmann and G. Derflinger, "Rejection-inversion to generate variates from
/// monotone discrete distributions", 1996.
#[derive(Clone, Debug)]
pub(super) struct Zipf {
    n: f64,
    /// The integrals of 1/x at both ends, which are logarithms.
    first: f64,
    last: f64,
    /// Within this distance of the drawn point, the number is accepted without a further test.
    near: f64,
}

impl Zipf {
    pub(super) fn new(n: u32) -> Self {
        let n = f64::from(n.max(1));
        Zipf {
            n,
            first: 1.5_f64.ln() - 1.0,
            last: (n + 0.5).ln(),
            near: 2.0 - (2.5_f64.ln() - 0.5).exp(),
        }
    }

    /// A number from 0 to n − 1; 0 is most likely.
    pub(super) fn draw(&self, random: &mut Random) -> u32 {
        loop {
            let area = self.last + random.unit() * (self.first - self.last);
            let point = area.exp();
            let number = point.round().clamp(1.0, self.n);
            if number - point <= self.near || area >= (number + 0.5).ln() - 1.0 / number {
                return to_u32(whole(number - 1.0));
            }
        }
    }
}

/// A number rounded down; negative numbers and NaN become 0.
#[expect(clippy::as_conversions, reason = "the only conversion from a float; `as` saturates")]
pub(super) fn whole(number: f64) -> u64 {
    number as u64
}

/// The nearest number with 53 bits.
#[expect(clippy::as_conversions, reason = "the only conversion to a float")]
pub(super) fn float(number: u64) -> f64 {
    number as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_follow_the_zipf_distribution() {
        let (mut random, zipf) = (Random::new(1), Zipf::new(1_000));
        let mut counts = vec![0_u32; 1_000];
        for _ in 0..4_000_000 {
            counts[usize::try_from(zipf.draw(&mut random)).unwrap()] += 1;
        }
        let all: f64 = (1..=1_000).map(|n| 1.0 / f64::from(n)).sum();
        for (at, k) in [(0, 1.0), (1, 2.0), (9, 10.0), (99, 100.0)] {
            let expected = 4_000_000.0 / k / all;
            let error = (f64::from(counts[at]) - expected).abs() / expected;
            assert!(error < 0.05, "{k}: {} for {expected}", counts[at]);
        }
        assert!(counts.iter().all(|count| *count > 0));
    }

    #[test]
    fn gaps_have_mean_one_and_units_are_below_one() {
        let mut random = Random::new(2);
        let gaps: f64 = (0..100_000).map(|_| random.gap()).sum();
        assert!((gaps / 100_000.0 - 1.0).abs() < 0.02, "{gaps}");
        assert!((0..100_000).all(|_| (0.0..1.0).contains(&random.unit())));
        assert_eq!(Zipf::new(1).draw(&mut random), 0);
    }
}
