//! Fixed windows, aligned to the epoch or opened by the first charge.

use super::exact::Divisor;
use super::state::{Anomalies, FixedWindowState, MAX_CLOCK_SKEW, Parameters};
use crate::time::{Micros, Timestamp};

const WEEK: u64 = 7 * 86_400 * 1_000_000;
/// The first Monday after the epoch, which was a Thursday.
const MONDAY: u64 = 4 * 86_400 * 1_000_000;

/// A fixed window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct FixedWindow {
    pub(super) capacity: u64,
    window: Divisor,
    /// The start of the first aligned window; `None` if the first charge opens the window.
    origin: Option<u64>,
}

impl FixedWindow {
    pub(crate) fn aligned(capacity: u64, window: Micros, offset: Micros) -> Self {
        let monday = if window.get().is_multiple_of(WEEK) { MONDAY } else { 0 };
        let origin = Some((monday + offset.get()) % window.get());
        FixedWindow { capacity, window: Divisor::new(window.get()), origin }
    }

    pub(crate) fn from_first(capacity: u64, window: Micros) -> Self {
        FixedWindow { capacity, window: Divisor::new(window.get()), origin: None }
    }

    pub(super) const fn parameters(&self) -> Parameters {
        Parameters::FixedWindow { window: self.window.get(), origin: self.origin }
    }

    /// The window that is open at the later of `now` and its own time, or the empty one that a
    /// charge would open.
    pub(crate) fn advance_to(
        &self,
        open: Option<&FixedWindowState>,
        now: Timestamp,
        anomalies: &mut Anomalies,
    ) -> FixedWindowState {
        let now = now.as_micros();
        let open = open.filter(|open| open.end > now);
        if let Some(open) = open {
            let start = open.end.saturating_sub(self.window.get());
            let implausible = start.saturating_sub(now) > self.window.get() + MAX_CLOCK_SKEW;
            if !implausible {
                return *open;
            }
            anomalies.implausible += 1;
        }
        FixedWindowState { end: self.end_after(now), used: 0 }
    }

    /// Whether charges can have produced the state. Its end need not be aligned: an open window
    /// keeps its end when the offset changes.
    pub(crate) fn can_hold(&self, open: &FixedWindowState) -> bool {
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

    /// Charges the cost, or as much of it as keeps the count within twice the capacity.
    pub(crate) fn charge(&self, open: FixedWindowState, cost: u64) -> FixedWindowState {
        FixedWindowState { used: (open.used + cost).min(2 * self.capacity), ..open }
    }

    /// Refunds up to `count` of the open window; nothing of a window that has ended.
    pub(crate) fn refund(
        &self,
        open: FixedWindowState,
        count: u64,
        time: Option<Timestamp>,
    ) -> (FixedWindowState, u64) {
        let start = open.end.saturating_sub(self.window.get());
        let ended = time.is_some_and(|time| !(start..open.end).contains(&time.as_micros()));
        let refunded = if ended { 0 } else { count.min(open.used) };
        (FixedWindowState { used: open.used - refunded, ..open }, refunded)
    }

    /// Charges a cost that was admitted at `time` to the window of that time; `None` if that has ended.
    /// A window from its first charge is the open one, or the one that the charge would have opened.
    pub(crate) fn backfill(
        &self,
        open: FixedWindowState,
        cost: u64,
        time: Timestamp,
        now: Timestamp,
    ) -> Option<FixedWindowState> {
        let window = self.window.get();
        let start = open.end.saturating_sub(window);
        let at = now.as_micros().max(start);
        let time = if time < now { time.as_micros() } else { at };
        let is_counted = if self.origin.is_some() { time >= start } else { time + window > at };
        let is_new = self.origin.is_none() && open.used == 0;
        let open = if is_new { FixedWindowState { end: time + window, used: 0 } } else { open };
        is_counted.then(|| self.charge(open, cost))
    }

    pub(crate) fn migrate(&self, open: &FixedWindowState) -> FixedWindowState {
        FixedWindowState { used: open.used.min(self.capacity), ..*open }
    }
}
