//! Parts that several benchmarks share: keys and their order, processes on cores of their own,
//! figures and reports.

pub mod chart;
pub mod figures;
pub mod machine;
pub mod process;
pub mod report;

use fastrand::Rng;

/// How much a benchmark measures.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// Each figure is the median of this many rounds.
    pub rounds: usize,
    /// The divisor of the number of requests in a round.
    pub divisor: usize,
}

impl Effort {
    /// This many rounds; with `--quick` one round, divided by `quick_divisor`, which only shows
    /// that the benchmark works. `None` without `--bench`: `cargo test --benches` starts the
    /// program too.
    #[must_use]
    pub fn from_args(rounds: usize, quick_divisor: usize) -> Option<Self> {
        let has = |flag| std::env::args().any(|arg| arg == flag);
        let effort = match has("--quick") {
            true => Effort { rounds: 1, divisor: quick_divisor },
            false => Effort { rounds, divisor: 1 },
        };
        has("--bench").then_some(effort)
    }
}

/// The seed of random orders, so that every run and every limiter has the same one.
const SEED: u64 = 1;

/// 24-byte keys, all different.
#[must_use]
pub fn keys(count: usize) -> Vec<String> {
    (0..count).map(|n| format!("user:{n:019}")).collect()
}

/// Random indices below `count` by Zipf's law with exponent 1: the index of rank k is drawn in
/// proportion to 1/k. Ranks are shuffled, so that hot keys are not neighbours.
#[must_use]
pub fn zipf(count: usize, draws: usize) -> Vec<usize> {
    let mut random = Rng::with_seed(SEED);
    let mut indices: Vec<usize> = (0..count).collect();
    random.shuffle(&mut indices);
    // Cumulative weights in units of 2^-32.
    let mut sums = Vec::with_capacity(count);
    let mut sum = 0_u64;
    for rank in 1..=figures::number(count) {
        sum += (1 << 32) / rank;
        sums.push(sum);
    }
    let draw = |_| {
        let drawn = random.u64(..sum);
        indices[sums.partition_point(|sum| *sum <= drawn)]
    };
    (0..draws).map(draw).collect()
}

/// Random indices below `count`, all equally likely.
#[must_use]
pub fn uniform(count: usize, draws: usize) -> Vec<usize> {
    let mut random = Rng::with_seed(SEED);
    (0..draws).map(|_| random.usize(..count)).collect()
}
