//! How long to wait before the next attempt to connect.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

const FIRST: Duration = Duration::from_millis(10);
const MAX_DELAY: Duration = Duration::from_secs(1);

/// Waits that double from 10 ms to 1 s, each drawn from its upper half so that many who lost the
/// same server do not come back together.
#[derive(Debug)]
pub(crate) struct Backoff {
    next: Duration,
    random: RandomState,
    drawn: u64,
}

impl Default for Backoff {
    fn default() -> Self {
        Backoff { next: Duration::ZERO, random: RandomState::new(), drawn: 0 }
    }
}

impl Backoff {
    /// The wait before the next attempt: none before the first.
    pub(crate) fn wait(&mut self) -> Duration {
        let wait = self.next;
        self.next = (wait * 2).clamp(FIRST, MAX_DELAY);
        self.drawn += 1;
        let share = u32::try_from(self.random.hash_one(self.drawn) % 512).unwrap_or(0);
        wait / 2 + wait / 1024 * share
    }

    /// An attempt succeeded.
    pub(crate) fn reset(&mut self) {
        self.next = Duration::ZERO;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_a_second() {
        let mut backoff = Backoff::default();
        let mut most = Duration::ZERO;
        for _ in 0..20 {
            let wait = backoff.wait();
            assert!(wait >= most / 2 && wait <= most, "{wait:?} of {most:?}");
            most = (most * 2).clamp(FIRST, MAX_DELAY);
        }
        backoff.reset();
        assert_eq!(backoff.wait(), Duration::ZERO);
    }
}
