//! Rate-limited logging.

use std::sync::{Mutex, PoisonError};

use tollgate::{Micros, Timestamp};

/// The minimum time between two lines, so that clients that provoke an event cannot fill the disk.
const INTERVAL: Micros = Micros::from_secs(10);

/// Counts an event, and allows one log line about it per interval.
#[derive(Debug, Default)]
pub struct LogThrottle(Mutex<Counts>);

#[derive(Debug, Default)]
struct Counts {
    total: u64,
    /// Events since the last line.
    unreported: u64,
    /// When the next line is allowed.
    next: Timestamp,
}

impl LogThrottle {
    /// Counts one event. Returns the events since the last line and in total if a line is due.
    pub fn count(&self, now: Timestamp) -> Option<(u64, u64)> {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        counts.total = counts.total.saturating_add(1);
        counts.unreported = counts.unreported.saturating_add(1);
        if now < counts.next {
            return None;
        }
        counts.next = now.saturating_add(INTERVAL);
        Some((std::mem::take(&mut counts.unreported), counts.total))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_reports_all_events_since_the_last() {
        let throttle = LogThrottle::default();
        let at = |seconds: u64| throttle.count(Timestamp::from_micros(seconds * 1_000_000));
        assert_eq!(at(100), Some((1, 1)));
        assert_eq!([at(100), at(105), at(109)], [None; 3]);
        assert_eq!(at(110), Some((4, 5)));
        assert_eq!(at(111), None);
    }
}
