//! Numbers that look random and are the same for the same seed.

/// SplitMix64: <https://prng.di.unimi.it/splitmix64.c>. Fast, and good enough to choose keys.
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    /// A stream of numbers: another one for another seed or stream.
    pub(crate) fn new(seed: u64, stream: u64) -> Self {
        let mut random = Random(seed);
        let base = random.next();
        Random(base ^ stream.wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `bound`: the high half of a product, which favours none by more than a part in
    /// 2^32.
    pub(crate) fn below(&mut self, bound: u32) -> u32 {
        let product = (self.next() >> 32) * u64::from(bound);
        u32::try_from(product >> 32).unwrap_or(0)
    }
}
