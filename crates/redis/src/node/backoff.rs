//! Exponential backoff between attempts to connect.

use std::time::Duration;

const MIN_DELAY: Duration = Duration::from_millis(10);
const MAX_DELAY: Duration = Duration::from_secs(1);

/// Delays that double from 10 ms to 1 s. Each has up to 50 % jitter, so that clients that lost the
/// same server do not reconnect at the same time.
#[derive(Debug, Default)]
pub(crate) struct Backoff {
    next: Duration,
}

impl Backoff {
    /// Returns the delay before the next attempt; zero before the first.
    pub(crate) fn next_delay(&mut self) -> Duration {
        let delay = self.next;
        self.next = (delay * 2).clamp(MIN_DELAY, MAX_DELAY);
        delay / 2 + delay / 1024 * fastrand::u32(..512)
    }

    /// Restarts after a successful attempt.
    pub(crate) fn reset(&mut self) {
        self.next = Duration::ZERO;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_double_up_to_a_second() {
        let mut backoff = Backoff::default();
        let mut max = Duration::ZERO;
        for _ in 0..20 {
            let delay = backoff.next_delay();
            assert!(delay >= max / 2 && delay <= max, "{delay:?} of {max:?}");
            max = (max * 2).clamp(MIN_DELAY, MAX_DELAY);
        }
        backoff.reset();
        assert_eq!(backoff.next_delay(), Duration::ZERO);
    }
}
