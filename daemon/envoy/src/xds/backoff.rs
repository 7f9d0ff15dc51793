//! How long to wait before the next try.

use std::time::Duration;

/// Doubles from one wait to the next, up to a most; of each a part between half and all is waited,
/// so that daemons that lost one server do not come back at one moment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Backoff {
    initial: Duration,
    most: Duration,
    next: Duration,
}

impl Backoff {
    pub(super) fn new(initial: Duration, most: Duration) -> Self {
        Backoff { initial, most, next: initial }
    }

    /// Starts again from the initial delay.
    pub(super) fn reset(&mut self) {
        self.next = self.initial;
    }

    /// How long to wait now.
    pub(super) fn next(&mut self) -> Duration {
        // Where chance is not to be had, all wait for all of it.
        self.next_by(getrandom::u32().unwrap_or(u32::MAX))
    }

    fn next_by(&mut self, chance: u32) -> Duration {
        let wait = self.next.min(self.most);
        self.next = wait.saturating_mul(2);
        let half = wait / 2;
        let nanos = (wait - half).as_nanos() * u128::from(chance) / u128::from(u32::MAX);
        half + Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_to_a_most_and_are_between_half_and_all() {
        let seconds = Duration::from_secs;
        for (chance, expected) in
            [(u32::MAX, [2, 4, 8, 10, 10].map(seconds)), (0, [1, 2, 4, 5, 5].map(seconds))]
        {
            let mut backoff = Backoff::new(seconds(2), seconds(10));
            for _ in 0..2 {
                assert_eq!([0; 5].map(|_| backoff.next_by(chance)), expected);
                backoff.reset();
            }
        }
        let mut drawn = Backoff::new(seconds(2), seconds(2));
        assert!((seconds(1)..=seconds(2)).contains(&drawn.next()));
    }
}
