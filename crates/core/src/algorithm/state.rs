//! The state that a limit keeps of a key, and that state at a given time.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;

use crate::id::Id;
use crate::time::Timestamp;

/// How far ahead of now a state may be, in µs (10 s), beyond the time that it needs to recover.
///
/// State that is further ahead comes from a clock that was wrong; it counts as untouched.
pub(crate) const MAX_CLOCK_SKEW: u64 = 10_000_000;

/// The most leases of a key.
pub const MAX_LEASES: u64 = 10_000;

/// The state of one limit of one key. Times are in µs since the Unix epoch.
///
/// State of constant size is stored inline, the rest behind a pointer. Stores that keep state
/// outside the process build it from its numbers, check it with
/// [`Limit::can_hold`](crate::Limit::can_hold) and hand it to
/// [`KeyState::from_parts`](crate::KeyState::from_parts).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum LimitState {
    /// The state of an unknown key.
    #[default]
    Untouched,
    /// The state of a token bucket or a queue.
    TokenBucket(TokenBucketState),
    /// The state of a fixed window.
    FixedWindow(FixedWindowState),
    /// The state of a sliding window counter.
    SlidingWindow(Box<SlidingWindowState>),
    /// The state of a sliding log, or of a sliding window in buckets.
    SlidingLog(Box<SlidingLogState>),
    /// The state of a concurrency limit.
    Concurrency(Box<LeaseSet>),
}

/// The level of a token bucket or a queue at the start of a tick.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TokenBucketState {
    /// The time of the level.
    pub at: u64,
    /// The used units; a token is several of them, see [`Parameters::TokenBucket`].
    pub used: u64,
}

/// A fixed window that a charge has opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FixedWindowState {
    /// The end of the window, which is not part of it.
    pub end: u64,
    /// The cost charged in the window.
    pub used: u64,
}

/// The counts of a window and of the one before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlidingWindowState {
    /// The start of the window.
    pub start: u64,
    /// The cost charged in this window.
    pub current: u64,
    /// The cost charged in the previous window.
    pub previous: u64,
}

/// The charges of a key, oldest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SlidingLogState {
    /// The charges, one entry for each time stamp.
    pub entries: VecDeque<LogEntry>,
    /// The running sum before the oldest entry.
    pub base: u64,
}

/// All charges of one time stamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogEntry {
    /// The time of the charges, rounded down to the limit's precision.
    pub stamp: u64,
    /// The sum of all costs up to and including this entry, so that the sum of a suffix is one
    /// subtraction.
    pub sum: u64,
}

/// The leases of a key, in the order in which they expire.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LeaseSet {
    /// When the newest lease was acquired or renewed.
    pub at: u64,
    /// The leases.
    pub leases: Vec<Lease>,
    /// The sum of their costs.
    pub total: u64,
}

/// A lease on slots of a concurrency limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lease {
    /// The id of the lease.
    pub id: Id,
    /// The number of slots it holds.
    pub cost: u64,
    /// When it expires.
    pub end: u64,
}

/// The numbers that a limit computes with, for stores that compute elsewhere. Times are in µs; all
/// numbers are below 2^53.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Parameters {
    /// A token bucket or a queue.
    TokenBucket {
        /// The units that make one token.
        units_per_token: u64,
        /// The units that drain in a tick.
        units_per_tick: u64,
        /// The length of a tick.
        tick: u64,
        /// The capacity in units.
        capacity_units: u64,
        /// The ticks after which any level has drained.
        ticks_to_drain: u64,
    },
    /// A fixed window.
    FixedWindow {
        /// The length of the window.
        window: u64,
        /// The start of the first aligned window; `None` if the first charge opens the window.
        origin: Option<u64>,
    },
    /// A sliding window counter.
    SlidingWindow {
        /// The length of the window.
        window: u64,
        /// The length of a tick.
        tick: u64,
        /// The length of the window in ticks.
        ticks: u64,
    },
    /// A sliding log, or a sliding window in buckets.
    SlidingLog {
        /// How long an entry counts.
        retention: u64,
        /// What time stamps are rounded down to.
        precision: u64,
    },
    /// A concurrency limit.
    Concurrency {
        /// How long a lease lasts.
        lease: u64,
    },
}

/// How many of the entries of a sliding log a store has at hand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogCoverage {
    /// All entries.
    Complete,
    /// The oldest and the newest entry; those between them may be missing.
    Excerpt,
}

/// The state of a limit at a given time, with whatever has recovered by then removed.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Usage {
    TokenBucket(TokenBucketState),
    FixedWindow(FixedWindowState),
    SlidingWindow(SlidingWindowUsage),
    SlidingLog(EntryUsage),
    Concurrency(EntryUsage),
}

/// The counts of a sliding window at a time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SlidingWindowUsage {
    pub(crate) counts: SlidingWindowState,
    /// The ticks since the window began.
    pub(crate) elapsed: u64,
}

/// The log entries or leases that still count at a time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EntryUsage {
    pub(crate) at: u64,
    /// The index of the first entry that still counts.
    pub(crate) first: usize,
    pub(crate) used: u64,
}

/// Irregularities that a decision came across, for a store to count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Anomalies {
    /// States too far in the future to be plausible, which counted as untouched.
    pub implausible: u64,
    /// Log entries that were merged because the log of a key was full.
    pub merged: u64,
}

impl Anomalies {
    /// Adds two counts.
    #[must_use]
    pub const fn plus(self, other: Anomalies) -> Anomalies {
        Anomalies {
            implausible: self.implausible + other.implausible,
            merged: self.merged + other.merged,
        }
    }
}

/// A charge to a limit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Charge {
    pub(crate) cost: u64,
    /// The id of the lease to acquire from a concurrency limit.
    pub(crate) lease: Option<Id>,
    /// The most entries of a sliding log.
    pub(crate) log_entries: usize,
}

/// A refund to a limit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Refund {
    pub(crate) count: u64,
    /// The time of the charge; without it the newest charges are refunded.
    pub(crate) time: Option<Timestamp>,
    /// When the limit would have recovered after the charge, in µs since the epoch: of a token bucket or
    /// a queue, no more is refunded than would still be used without later charges.
    pub(crate) recovers_at: Option<u64>,
}

impl LimitState {
    /// Whether nothing is used.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        match self {
            LimitState::Untouched => true,
            LimitState::TokenBucket(level) => level.used == 0,
            LimitState::FixedWindow(window) => window.used == 0,
            LimitState::SlidingWindow(counts) => counts.current == 0 && counts.previous == 0,
            LimitState::SlidingLog(log) => log.entries.is_empty(),
            LimitState::Concurrency(set) => set.leases.is_empty(),
        }
    }

    /// Replaces state without any use by [`LimitState::Untouched`].
    pub(crate) fn clear_if_empty(&mut self) {
        if self.is_empty() {
            *self = LimitState::Untouched;
        }
    }

    pub(super) fn log(&self) -> Option<&SlidingLogState> {
        if let LimitState::SlidingLog(log) = self { Some(log) } else { None }
    }

    pub(crate) fn leases(&self) -> Option<&LeaseSet> {
        if let LimitState::Concurrency(set) = self { Some(set) } else { None }
    }

    pub(super) fn log_mut(&mut self) -> &mut SlidingLogState {
        if !matches!(self, LimitState::SlidingLog(_)) {
            *self = LimitState::SlidingLog(Box::default());
        }
        let LimitState::SlidingLog(log) = self else { unreachable!("it was just made a log") };
        log
    }

    pub(super) fn leases_mut(&mut self) -> &mut LeaseSet {
        if !matches!(self, LimitState::Concurrency(_)) {
            *self = LimitState::Concurrency(Box::default());
        }
        let LimitState::Concurrency(set) = self else { unreachable!("it was just made leases") };
        set
    }

    pub(super) fn set_counts(&mut self, counts: SlidingWindowState) {
        match self {
            LimitState::SlidingWindow(state) => **state = counts,
            _ => *self = LimitState::SlidingWindow(Box::new(counts)),
        }
    }
}
