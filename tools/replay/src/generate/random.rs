//! Random numbers, the same for the same seed.
#![expect(clippy::float_arithmetic, reason = "traffic is drawn here, and nothing is decided")]

/// A SplitMix64 generator: one addition and three mixings for 64 bits, and any seed will do.
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

    /// Evenly from 0 up to 1, which it never is.
    pub(super) fn unit(&mut self) -> f64 {
        let bits = self.bits();
        let [high, low] = [bits >> 43, (bits >> 11) & 0xFFFF_FFFF];
        let small = |x| f64::from(u32::try_from(x).unwrap_or(0));
        (small(high) * 4_294_967_296.0 + small(low)) / 9_007_199_254_740_992.0
    }

    /// Evenly from 0 up to `end`, which it never is.
    pub(super) fn below(&mut self, end: u32) -> u32 {
        let product = u128::from(self.bits()) * u128::from(end);
        u32::try_from(product >> 64).unwrap_or(0)
    }

    /// The time between two events of a Poisson process, whose mean is 1.
    pub(super) fn gap(&mut self) -> f64 {
        -(1.0 - self.unit()).ln()
    }
}

/// Draws k from 1 to n with a chance in proportion to 1/k, in constant time and memory: rejection-inversion, W.
/// Hörmann and G. Derflinger, "Rejection-inversion to generate variates from monotone discrete
/// distributions", 1996.
#[derive(Clone, Debug)]
pub(super) struct Zipf {
    n: f64,
    /// Integrals of 1/x, which are logarithms, at both ends.
    first: f64,
    last: f64,
    /// Nearer to the drawn point than this, the number is taken without a further look.
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

    /// From 0 to n − 1, of which 0 is likeliest.
    pub(super) fn draw(&self, random: &mut Random) -> u32 {
        loop {
            let area = self.last + random.unit() * (self.first - self.last);
            let point = area.exp();
            let number = point.round().clamp(1.0, self.n);
            if number - point <= self.near || area >= (number + 0.5).ln() - 1.0 / number {
                return u32::try_from(whole(number - 1.0)).unwrap_or(0);
            }
        }
    }
}

/// A number rounded down; what is below zero or no number is 0.
#[expect(clippy::as_conversions, reason = "this is the named function; `as` saturates")]
pub(super) fn whole(number: f64) -> u64 {
    number as u64
}

/// The nearest number with 53 bits.
#[expect(clippy::as_conversions, reason = "this is the named function")]
pub(super) fn float(number: u64) -> f64 {
    number as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn popularity_follows_the_law() {
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
        assert!(counts.iter().all(|it| *it > 0));
    }

    #[test]
    fn gaps_have_the_mean_one_and_units_are_below_it() {
        let mut random = Random::new(2);
        let gaps: f64 = (0..100_000).map(|_| random.gap()).sum();
        assert!((gaps / 100_000.0 - 1.0).abs() < 0.02, "{gaps}");
        assert!((0..100_000).all(|_| (0.0..1.0).contains(&random.unit())));
        assert_eq!(Zipf::new(1).draw(&mut random), 0);
    }
}
