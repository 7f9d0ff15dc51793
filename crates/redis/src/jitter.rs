//! Random parts of delays, so that clients of one server do not act at the same time.

use std::time::Duration;

/// A random number from 0 to 1, in 1,024 parts, which a state machine gets as an argument.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Jitter(u32);

impl Jitter {
    const SCALE: u32 = 1024;
    #[cfg(test)]
    pub(crate) const MIN: Jitter = Jitter(0);
    #[cfg(test)]
    pub(crate) const HALF: Jitter = Jitter(Self::SCALE / 2);
    #[cfg(test)]
    pub(crate) const MAX: Jitter = Jitter(Self::SCALE);

    pub(crate) fn random() -> Self {
        Jitter(fastrand::u32(..=Self::SCALE))
    }

    /// Returns a part of a duration, from none to all.
    pub(crate) fn part_of(self, duration: Duration) -> Duration {
        duration * self.0 / Self::SCALE
    }
}
