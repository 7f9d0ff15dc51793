//! The configurations that were read.

use tollgate::Timestamp;

use super::counter::Counter;

/// The configurations that were read.
#[derive(Debug)]
pub(super) struct Reloads {
    good: Counter,
    bad: Counter,
    /// Whether the last one was.
    is_good: Counter,
    /// When the last good one was read, in µs.
    held_since: Counter,
}

impl Reloads {
    /// Of a daemon that was started with a good one.
    pub(super) fn new(started: Timestamp) -> Self {
        let reloads = Reloads {
            good: Counter::default(),
            bad: Counter::default(),
            is_good: Counter::default(),
            held_since: Counter::default(),
        };
        reloads.is_good.set(1);
        reloads.held_since.set(started.as_micros());
        reloads
    }

    pub(super) fn count(&self, is_good: bool, now: Timestamp) {
        self.is_good.set(u64::from(is_good));
        if is_good {
            self.good.count();
            self.held_since.set(now.as_micros());
        } else {
            self.bad.count();
        }
    }

    pub(super) fn by_result(&self) -> [(&'static str, u64); 2] {
        [("success", self.good.get()), ("failure", self.bad.get())]
    }

    pub(super) fn is_good(&self) -> u64 {
        self.is_good.get()
    }

    /// In µs.
    pub(super) fn held_since(&self) -> u64 {
        self.held_since.get()
    }
}
