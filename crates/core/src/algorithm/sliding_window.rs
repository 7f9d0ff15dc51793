//! Sliding window counter: the count of this window plus the previous one's, weighted by how much
//! of the previous window the sliding window still covers.

use super::exact::Divisor;
use super::state::{Anomalies, MAX_CLOCK_SKEW, Parameters, SlidingWindowState, SlidingWindowUsage};
use crate::time::{Micros, Timestamp};

/// A sliding window counter.
///
/// With e the ticks since the window began and W its ticks, a cost c is admitted if
/// ⌊prev·(W − e) / W⌋ + cur + c ≤ L, which is prev·(W − e) + (cur + c)·W ≤ (L + 1)·W − 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct SlidingWindowCounter {
    pub(super) capacity: u64,
    window: Divisor,
    tick: u64,
    /// The length of the window in ticks.
    ticks: Divisor,
}

impl SlidingWindowCounter {
    pub(crate) fn new(capacity: u64, window: Micros, tick: u64) -> Self {
        let (window, ticks) = (Divisor::new(window.get()), Divisor::new(window.get() / tick));
        SlidingWindowCounter { capacity, window, tick, ticks }
    }

    pub(crate) const fn tick(&self) -> u64 {
        self.tick
    }

    pub(super) const fn parameters(&self) -> Parameters {
        Parameters::SlidingWindow {
            window: self.window.get(),
            tick: self.tick,
            ticks: self.ticks.get(),
        }
    }

    /// The counts at the later of `now` and the start of their window.
    pub(crate) fn advance_to(
        &self,
        counts: Option<&SlidingWindowState>,
        now: Timestamp,
        anomalies: &mut Anomalies,
    ) -> SlidingWindowUsage {
        let now = now.as_micros();
        let counts = counts.filter(|count| {
            let implausible = count.start > now && self.is_implausible(count, now);
            anomalies.implausible += u64::from(implausible);
            !implausible
        });
        let Some(counts) = counts else {
            let start = self.start(now);
            return self.at(SlidingWindowState { start, current: 0, previous: 0 }, now);
        };
        let window = self.window.get();
        let t = now.max(counts.start);
        let age = t - counts.start;
        let counts = if age < window {
            *counts
        } else {
            let previous = if age < 2 * window { counts.current } else { 0 };
            SlidingWindowState { start: self.start(t), current: 0, previous }
        };
        self.at(counts, t)
    }

    /// Whether charges can have produced the counts.
    pub(crate) fn can_hold(&self, counts: &SlidingWindowState) -> bool {
        let SlidingWindowState { start, current, previous } = *counts;
        let in_time = start <= Timestamp::MAX.as_micros() && start == self.start(start);
        in_time && current.max(previous) <= 2 * self.capacity
    }

    fn start(&self, t: u64) -> u64 {
        self.window.floor(t) * self.window.get()
    }

    fn at(&self, mut counts: SlidingWindowState, t: u64) -> SlidingWindowUsage {
        let elapsed = (t - counts.start) / self.tick;
        let left = self.ticks.get() - elapsed;
        if counts.current == 0 && self.ticks.floor(counts.previous * left) == 0 {
            // The previous window has recovered, so nothing of it can be refunded either.
            counts.previous = 0;
        }
        SlidingWindowUsage { counts, elapsed }
    }

    #[cold]
    fn is_implausible(&self, counts: &SlidingWindowState, now: u64) -> bool {
        let fresh = self.at(*counts, counts.start);
        counts.start - now > self.recovers_at(&fresh) - counts.start + MAX_CLOCK_SKEW
    }

    /// The weighted sum of the two counts, rounded down.
    pub(crate) fn used(&self, usage: &SlidingWindowUsage) -> u64 {
        let left = self.ticks.get() - usage.elapsed;
        self.ticks.floor(usage.counts.previous * left) + usage.counts.current
    }

    /// When `cost`, at most the capacity, fits.
    pub(crate) fn fits_at(&self, usage: &SlidingWindowUsage, cost: u64) -> u64 {
        let SlidingWindowState { start, current, previous } = usage.counts;
        if self.used(usage) + cost <= self.capacity {
            return start + usage.elapsed * self.tick;
        }
        if current + cost <= self.capacity {
            return start + self.ticks_until(previous, self.capacity - current - cost) * self.tick;
        }
        let next = self.ticks_until(current, self.capacity - cost);
        start + self.window.get() + next * self.tick
    }

    /// When both counts weigh nothing.
    pub(crate) fn recovers_at(&self, usage: &SlidingWindowUsage) -> u64 {
        let SlidingWindowState { start, current, previous } = usage.counts;
        let now = start + usage.elapsed * self.tick;
        if current > 0 {
            start + self.window.get() + self.ticks_until(current, 0) * self.tick
        } else if previous > 0 {
            now.max(start + self.ticks_until(previous, 0) * self.tick)
        } else {
            now
        }
    }

    /// The least e with ⌊count·(W − e) / W⌋ ≤ room.
    fn ticks_until(&self, count: u64, room: u64) -> u64 {
        let ticks = self.ticks.get();
        ticks.saturating_sub(((room + 1) * ticks - 1) / count.max(1))
    }

    /// Charges the cost, or as much of it as keeps the count within twice the capacity.
    pub(crate) fn charge(&self, counts: SlidingWindowState, cost: u64) -> SlidingWindowState {
        SlidingWindowState { current: (counts.current + cost).min(2 * self.capacity), ..counts }
    }

    /// Charges a cost that was admitted at `time` to the count of that time's window, or as much of it
    /// as keeps the count within twice the capacity. Returns how much: nothing if neither window has
    /// the time, or if the previous window would have recovered with the cost.
    pub(crate) fn backfill(
        &self,
        usage: &SlidingWindowUsage,
        cost: u64,
        time: Timestamp,
        now: Timestamp,
    ) -> (SlidingWindowState, u64) {
        let mut counts = usage.counts;
        let (start, time) = (counts.start, time.as_micros());
        // The counts may be ahead of now, and a time after now is now.
        let count = if time >= start.min(now.as_micros()) {
            &mut counts.current
        } else if time >= start.saturating_sub(self.window.get()) {
            &mut counts.previous
        } else {
            return (counts, 0);
        };
        let charged = cost.min((2 * self.capacity).saturating_sub(*count));
        *count += charged;
        let has_recovered = self.used(&SlidingWindowUsage { counts, ..*usage }) == 0;
        if has_recovered { (usage.counts, 0) } else { (counts, charged) }
    }

    /// Refunds from the window of `time`; without a time from this window, then the previous.
    pub(crate) fn refund(
        &self,
        mut counts: SlidingWindowState,
        count: u64,
        time: Option<Timestamp>,
    ) -> (SlidingWindowState, u64) {
        let (start, window) = (counts.start, self.window.get());
        let within =
            |from: u64, to: u64| time.is_none_or(|time| (from..to).contains(&time.as_micros()));
        let from_current =
            if within(start, start + window) { count.min(counts.current) } else { 0 };
        counts.current -= from_current;
        let from_previous = if within(start.saturating_sub(window), start) {
            (count - from_current).min(counts.previous)
        } else {
            0
        };
        counts.previous -= from_previous;
        (counts, from_current + from_previous)
    }

    pub(crate) fn migrate(&self, counts: &SlidingWindowState) -> SlidingWindowState {
        SlidingWindowState {
            current: counts.current.min(self.capacity),
            previous: counts.previous.min(self.capacity),
            ..*counts
        }
    }
}
