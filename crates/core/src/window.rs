//! Fixed windows, aligned to the calendar or opened by the first charge.

use crate::exact::Divisor;
use crate::state::{Effects, TRUST_AHEAD};
use crate::time::{Micros, Timestamp};

const WEEK: u64 = 7 * 86_400 * 1_000_000;
/// The first Monday after the epoch, which was a Thursday.
const MONDAY: u64 = 4 * 86_400 * 1_000_000;

/// The arithmetic of a fixed window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Window {
    capacity: u64,
    window: Divisor,
    /// Where the first aligned window begins; a from-first window has none.
    origin: Option<u64>,
}

/// A window that a charge has opened: when it ends, and what it holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Open {
    pub(crate) end: u64,
    pub(crate) used: u64,
}

impl Window {
    pub(crate) fn aligned(capacity: u64, window: Micros, offset: Micros) -> Self {
        let monday = if window.get().is_multiple_of(WEEK) { MONDAY } else { 0 };
        let origin = Some((monday + offset.get()) % window.get());
        Window { capacity, window: Divisor::new(window.get()), origin }
    }

    pub(crate) fn from_first(capacity: u64, window: Micros) -> Self {
        Window { capacity, window: Divisor::new(window.get()), origin: None }
    }

    /// What a script computes with: the window, and where the first aligned one begins.
    pub(crate) fn numbers(&self) -> [u64; 5] {
        [self.window.get(), self.origin.unwrap_or(0), 0, 0, 0]
    }

    /// The window that is open at the later of `now` and its own time; else the one that a charge
    /// would open, with nothing used.
    pub(crate) fn settle(&self, open: Option<&Open>, now: Timestamp, seen: &mut Effects) -> Open {
        let now = now.as_micros();
        let open = open.filter(|open| open.end > now);
        if let Some(open) = open {
            let start = open.end.saturating_sub(self.window.get());
            let astray = start.saturating_sub(now) > self.window.get() + TRUST_AHEAD;
            if !astray {
                return *open;
            }
            seen.disbelieved += 1;
        }
        Open { end: self.end_after(now), used: 0 }
    }

    /// Whether charges can have made it. Where it ends says nothing: an open window stays open to
    /// its end when the offset changes.
    pub(crate) fn can_be(&self, open: &Open) -> bool {
        let last = Timestamp::MAX.as_micros() + self.window.get();
        open.end <= last && open.used <= 2 * self.capacity
    }

    fn end_after(&self, t: u64) -> u64 {
        let window = self.window.get();
        match self.origin {
            Some(origin) => self.window.floor(t + window - origin) * window + origin,
            None => t + window,
        }
    }

    pub(crate) fn fits(&self, open: &Open, cost: u64) -> bool {
        open.used + cost <= self.capacity
    }

    pub(crate) fn remaining(&self, open: &Open) -> u64 {
        self.capacity.saturating_sub(open.used)
    }

    pub(crate) fn debt_room(&self, open: &Open) -> u64 {
        (2 * self.capacity).saturating_sub(open.used)
    }

    /// Adds a cost, or as much of it as stays within twice the capacity.
    pub(crate) fn charge(&self, open: Open, cost: u64) -> Open {
        Open { used: (open.used + cost).min(2 * self.capacity), ..open }
    }

    /// Gives back up to `count` of the open window; nothing of a window that is gone.
    pub(crate) fn refund(&self, open: Open, count: u64, time: Option<Timestamp>) -> (Open, u64) {
        let start = open.end.saturating_sub(self.window.get());
        let gone = time.is_some_and(|time| !(start..open.end).contains(&time.as_micros()));
        let back = if gone { 0 } else { count.min(open.used) };
        (Open { used: open.used - back, ..open }, back)
    }

    pub(crate) fn adopt(&self, open: &Open) -> Open {
        Open { used: open.used.min(self.capacity), ..*open }
    }
}
