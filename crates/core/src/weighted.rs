//! Sliding window from two counters: the previous one weighted by how much of it is still in.

use crate::exact::Divisor;
use crate::state::{Effects, TRUST_AHEAD};
use crate::time::{Micros, Timestamp};

/// The arithmetic of a weighted window.
///
/// With e the ticks since the window began and W its ticks, a cost c is admitted if
/// ⌊prev·(W − e) / W⌋ + cur + c ≤ L, which is prev·(W − e) + (cur + c)·W ≤ (L + 1)·W − 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Weighted {
    capacity: u64,
    window: Divisor,
    tick: u64,
    /// The window in ticks.
    ticks: Divisor,
}

/// The counts of a window and of the one before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) start: u64,
    pub(crate) current: u64,
    pub(crate) previous: u64,
}

/// The counts at a time, with the ticks since the window began.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settled {
    pub(crate) counts: Counts,
    elapsed: u64,
}

impl Weighted {
    pub(crate) fn new(capacity: u64, window: Micros, tick: u64) -> Self {
        let (window, ticks) = (Divisor::new(window.get()), Divisor::new(window.get() / tick));
        Weighted { capacity, window, tick, ticks }
    }

    pub(crate) const fn tick(&self) -> u64 {
        self.tick
    }

    /// What a script computes with: the window, the tick, and the window in ticks.
    pub(crate) const fn numbers(&self) -> [u64; 5] {
        [self.window.get(), self.tick, self.ticks.get(), 0, 0]
    }

    /// The counts at the later of `now` and the start of their window.
    pub(crate) fn settle(
        &self,
        counts: Option<&Counts>,
        now: Timestamp,
        seen: &mut Effects,
    ) -> Settled {
        let now = now.as_micros();
        let counts = counts.filter(|count| {
            let astray = count.start > now && self.is_astray(count, now);
            seen.disbelieved += u64::from(astray);
            !astray
        });
        let Some(counts) = counts else {
            return self.at(Counts { start: self.start(now), current: 0, previous: 0 }, now);
        };
        let window = self.window.get();
        let t = now.max(counts.start);
        let age = t - counts.start;
        let counts = if age < window {
            *counts
        } else {
            let previous = if age < 2 * window { counts.current } else { 0 };
            Counts { start: self.start(t), current: 0, previous }
        };
        self.at(counts, t)
    }

    /// Whether charges can have made it.
    pub(crate) fn can_be(&self, counts: &Counts) -> bool {
        let Counts { start, current, previous } = *counts;
        let in_time = start <= Timestamp::MAX.as_micros() && start == self.start(start);
        in_time && current.max(previous) <= 2 * self.capacity
    }

    fn start(&self, t: u64) -> u64 {
        self.window.floor(t) * self.window.get()
    }

    fn at(&self, mut counts: Counts, t: u64) -> Settled {
        let elapsed = (t - counts.start) / self.tick;
        let left = self.ticks.get() - elapsed;
        if counts.current == 0 && self.ticks.floor(counts.previous * left) == 0 {
            // It has recovered: there is nothing left to give back either.
            counts.previous = 0;
        }
        Settled { counts, elapsed }
    }

    #[cold]
    fn is_astray(&self, counts: &Counts, now: u64) -> bool {
        let fresh = self.at(*counts, counts.start);
        counts.start - now > self.recovers_at(&fresh) - counts.start + TRUST_AHEAD
    }

    /// What the two counts make together.
    pub(crate) fn used(&self, it: &Settled) -> u64 {
        let left = self.ticks.get() - it.elapsed;
        self.ticks.floor(it.counts.previous * left) + it.counts.current
    }

    pub(crate) fn fits(&self, it: &Settled, cost: u64) -> bool {
        self.used(it) + cost <= self.capacity
    }

    pub(crate) fn remaining(&self, it: &Settled) -> u64 {
        self.capacity.saturating_sub(self.used(it))
    }

    pub(crate) fn debt_room(&self, it: &Settled) -> u64 {
        (2 * self.capacity).saturating_sub(self.used(it))
    }

    /// When `cost`, at most the capacity, fits.
    pub(crate) fn fits_at(&self, it: &Settled, cost: u64) -> u64 {
        let Counts { start, current, previous } = it.counts;
        if self.fits(it, cost) {
            return start + it.elapsed * self.tick;
        }
        if current + cost <= self.capacity {
            return start + self.ticks_until(previous, self.capacity - current - cost) * self.tick;
        }
        let next = self.ticks_until(current, self.capacity - cost);
        start + self.window.get() + next * self.tick
    }

    /// When neither count adds anything any more.
    pub(crate) fn recovers_at(&self, it: &Settled) -> u64 {
        let Counts { start, current, previous } = it.counts;
        let now = start + it.elapsed * self.tick;
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

    /// Adds a cost, or as much of it as stays within twice the capacity.
    pub(crate) fn charge(&self, counts: Counts, cost: u64) -> Counts {
        Counts { current: (counts.current + cost).min(2 * self.capacity), ..counts }
    }

    /// Gives back from the window of `time`; without one, from this window, then the previous.
    pub(crate) fn refund(
        &self,
        mut counts: Counts,
        count: u64,
        time: Option<Timestamp>,
    ) -> (Counts, u64) {
        let (start, window) = (counts.start, self.window.get());
        let within =
            |from: u64, to: u64| time.is_none_or(|time| (from..to).contains(&time.as_micros()));
        let of_current = if within(start, start + window) { count.min(counts.current) } else { 0 };
        counts.current -= of_current;
        let of_previous = if within(start.saturating_sub(window), start) {
            (count - of_current).min(counts.previous)
        } else {
            0
        };
        counts.previous -= of_previous;
        (counts, of_current + of_previous)
    }

    pub(crate) fn adopt(&self, counts: &Counts) -> Counts {
        Counts {
            current: counts.current.min(self.capacity),
            previous: counts.previous.min(self.capacity),
            ..*counts
        }
    }
}
