//! What benchmarks share: keys and the order in which they are asked for, processes on cores of
//! their own, figures.

pub mod figures;
pub mod process;

/// 24-byte keys, all different.
#[must_use]
pub fn keys(count: usize) -> Vec<String> {
    (0..count).map(|n| format!("user:{n:019}")).collect()
}

/// Indices below `count` by Zipf's law with exponent 1, drawn from a fixed seed: index k comes
/// up in proportion to 1/(k + 1). Shuffled, so that hot keys are not neighbours.
#[must_use]
pub fn zipf(count: usize, draws: usize) -> Vec<usize> {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let mut place: Vec<usize> = (0..count).collect();
    for index in (1..count).rev() {
        place.swap(index, random.below(index + 1));
    }
    // Harmonic sums in units of 2^-32.
    let mut sums = Vec::with_capacity(count);
    let mut sum = 0_u64;
    for rank in 1..=count {
        sum += (1_u64 << 32) / u64::try_from(rank).unwrap_or(u64::MAX);
        sums.push(sum);
    }
    let draw = |random: &mut Random| {
        let at = random.next() % sum;
        place[sums.partition_point(|sum| *sum <= at)]
    };
    (0..draws).map(|_| draw(&mut random)).collect()
}

/// Indices below `count`, each as likely as any other, drawn from a fixed seed.
#[must_use]
pub fn uniform(count: usize, draws: usize) -> Vec<usize> {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    (0..draws).map(|_| random.below(count)).collect()
}

/// Marsaglia's xorshift, 64 bits.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, end: usize) -> usize {
        let end = u64::try_from(end).unwrap_or(u64::MAX).max(1);
        usize::try_from(self.next() % end).unwrap_or(0)
    }
}
