//! Shared numbers: the counters of listeners and of reloads.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tollgate::Timestamp;

/// A number that many threads add to, at the price of one atomic operation.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Adds one.
    #[inline]
    pub fn increment(&self) {
        self.add(1);
    }

    /// Adds a number.
    #[inline]
    pub fn add(&self, number: u64) {
        self.0.fetch_add(number, Ordering::Relaxed);
    }

    /// Replaces the number.
    pub fn set(&self, value: u64) {
        self.0.store(value, Ordering::Relaxed);
    }

    /// The number.
    #[must_use]
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Locks counts, which are valid after every single update.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Why the daemon closed a connection, or lost it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Closure {
    /// The client was too slow, or idle for too long.
    Overdue,
    /// The drain timeout expired.
    Drained,
    /// A protocol or network error.
    Failed,
}

/// Counters of a listener.
#[derive(Debug, Default)]
pub struct ListenerCounters {
    overdue: Counter,
    drained: Counter,
    failed: Counter,
    informational: Counter,
    success: Counter,
    redirection: Counter,
    client_error: Counter,
    server_error: Counter,
}

impl ListenerCounters {
    /// Counts connections that the client did not close itself.
    pub fn count_closures(&self, number: u64, reason: Closure) {
        match reason {
            Closure::Overdue => &self.overdue,
            Closure::Drained => &self.drained,
            Closure::Failed => &self.failed,
        }
        .add(number);
    }

    /// Counts a response by its HTTP status.
    pub fn count_response(&self, status: u16) {
        match status {
            ..200 => &self.informational,
            200..300 => &self.success,
            300..400 => &self.redirection,
            400..500 => &self.client_error,
            500.. => &self.server_error,
        }
        .increment();
    }

    /// The closed connections, by the value of the label `reason`.
    #[must_use]
    pub fn closures(&self) -> [(&'static str, u64); 3] {
        [
            ("overdue", self.overdue.get()),
            ("drained", self.drained.get()),
            ("failed", self.failed.get()),
        ]
    }

    /// The responses, by the value of the label `class`.
    #[must_use]
    pub fn responses(&self) -> [(&'static str, u64); 5] {
        [
            ("1xx", self.informational.get()),
            ("2xx", self.success.get()),
            ("3xx", self.redirection.get()),
            ("4xx", self.client_error.get()),
            ("5xx", self.server_error.get()),
        ]
    }
}

/// Counters of reloads.
#[derive(Debug)]
pub struct ReloadCounters {
    accepted: Counter,
    rejected: Counter,
    /// Whether the last reload was accepted: 1 or 0.
    is_last_accepted: Counter,
    /// When the active configuration was loaded, in µs.
    active_since: Counter,
    /// When the last reload ended, in µs; 0 without one.
    last: Counter,
}

impl ReloadCounters {
    /// The counters of a daemon that loaded a valid configuration at this time.
    pub(super) fn new(started: Timestamp) -> Self {
        let counters = ReloadCounters {
            accepted: Counter::default(),
            rejected: Counter::default(),
            is_last_accepted: Counter::default(),
            active_since: Counter::default(),
            last: Counter::default(),
        };
        counters.is_last_accepted.set(1);
        counters.active_since.set(started.as_micros());
        counters
    }

    /// Counts a reload.
    pub fn count(&self, is_accepted: bool, now: Timestamp) {
        self.is_last_accepted.set(u64::from(is_accepted));
        self.last.set(now.as_micros());
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

    /// When the last reload ended, if there was one.
    #[must_use]
    pub fn last(&self) -> Option<Timestamp> {
        Some(self.last.get()).filter(|last| *last > 0).map(Timestamp::from_micros)
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
