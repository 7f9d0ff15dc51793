//! What an observer has counted, and what it has missed.

use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// What an observer has counted, and what it can tell about what it has missed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ObserveReport {
    /// The increments that were counted.
    pub increments: u64,
    /// Of these, the ones without a notification of their own: by more than 1 at once, or made while
    /// there was no subscription.
    pub without_notification: u64,
    /// How often a server had no subscription.
    pub gaps: u64,
    /// For how long.
    pub gap_time: Duration,
    /// The counters that ended before their last increments were read.
    pub unread_counters: u64,
    /// The notifications about these increments. They are not counted.
    pub unread_increments: u64,
    /// How often a value was lower than before, although its counter had not ended.
    pub decreased: u64,
    /// The changes that were skipped, because too many counters or keys were active.
    pub skipped: u64,
    /// How often another observer had written a record in between. What had not been written was counted
    /// again from the counters.
    pub conflicts: u64,
    /// How often a record had been evicted because its policy had more than `max_keys`, or had expired. Its
    /// totals begin again.
    pub evicted: u64,
    /// The increments that could not be written.
    pub unwritten: u64,
}

impl fmt::Display for ObserveReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ObserveReport { increments, without_notification, gaps, gap_time, .. } = *self;
        let seconds = gap_time.as_secs_f64();
        writeln!(f, "counted: {increments} increments")?;
        writeln!(f, "  without a notification of their own: {without_notification}")?;
        writeln!(f, "without a subscription: {gaps} times, {seconds:.1}s in total")?;
        writeln!(
            f,
            "ended before they were read: {} counters, {} increments",
            self.unread_counters, self.unread_increments
        )?;
        writeln!(f, "decreased values: {}", self.decreased)?;
        writeln!(f, "skipped because of too many counters: {}", self.skipped)?;
        writeln!(f, "write conflicts with another observer: {}", self.conflicts)?;
        writeln!(f, "evicted records: {}", self.evicted)?;
        writeln!(f, "not written: {} increments", self.unwritten)
    }
}

/// The report that all tasks add to.
#[derive(Debug, Default)]
pub(super) struct SharedReport(Mutex<ObserveReport>);

impl SharedReport {
    pub(super) fn lock(&self) -> MutexGuard<'_, ObserveReport> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
