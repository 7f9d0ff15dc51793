//! Counters of reloads.

use tollgate::Timestamp;

use super::counter::Counter;

/// Counters of reloads.
#[derive(Debug)]
pub struct ReloadCounters {
    accepted: Counter,
    rejected: Counter,
    /// Whether the last reload was accepted: 1 or 0.
    is_last_accepted: Counter,
    /// When the active configuration was loaded, in µs.
    active_since: Counter,
}

impl ReloadCounters {
    /// The counters of a daemon that loaded a valid configuration at this time.
    pub(super) fn new(started: Timestamp) -> Self {
        let counters = ReloadCounters {
            accepted: Counter::default(),
            rejected: Counter::default(),
            is_last_accepted: Counter::default(),
            active_since: Counter::default(),
        };
        counters.is_last_accepted.set(1);
        counters.active_since.set(started.as_micros());
        counters
    }

    /// Counts a reload.
    pub fn count(&self, is_accepted: bool, now: Timestamp) {
        self.is_last_accepted.set(u64::from(is_accepted));
        if is_accepted {
            self.accepted.increment();
            self.active_since.set(now.as_micros());
        } else {
            self.rejected.increment();
        }
    }

    /// The number of reloads, by the value of the label `result`.
    #[must_use]
    pub fn by_result(&self) -> [(&'static str, u64); 2] {
        [("success", self.accepted.get()), ("failure", self.rejected.get())]
    }

    /// Whether the last reload was accepted: 1 or 0.
    #[must_use]
    pub fn is_last_accepted(&self) -> u64 {
        self.is_last_accepted.get()
    }

    /// When the active configuration was loaded, in µs since the Unix epoch.
    #[must_use]
    pub fn active_since_micros(&self) -> u64 {
        self.active_since.get()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rejected_reload_keeps_the_time_of_the_last_accepted_one() {
        let at = Timestamp::from_micros;
        let counters = ReloadCounters::new(at(1));
        let counts = || {
            let [(_, accepted), (_, rejected)] = counters.by_result();
            (accepted, rejected, counters.is_last_accepted(), counters.active_since_micros())
        };
        assert_eq!(counts(), (0, 0, 1, 1));
        counters.count(false, at(2));
        assert_eq!(counts(), (0, 1, 0, 1));
        counters.count(true, at(3));
        assert_eq!(counts(), (1, 1, 1, 3));
    }
}
