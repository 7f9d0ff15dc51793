//! The sliding window counter: the count of this window and a part of that of the previous one.

use super::number::{Int, tick, weighted_product};

/// A sliding window counter and its counts. Times are in ticks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SlidingWindowCounter {
    length: Int,
    tick: Int,
    start: Int,
    current: Int,
    previous: Int,
}

impl SlidingWindowCounter {
    pub(super) fn new(count: Int, window: Int) -> Option<Self> {
        let tick = tick(count, window, weighted_product(count))?;
        Some(SlidingWindowCounter {
            length: window / tick,
            tick,
            start: 0,
            current: 0,
            previous: 0,
        })
    }

    pub(super) fn newest(&self) -> Int {
        self.start * self.tick
    }

    /// The counts of the window at `time`.
    fn rolled(&self, time: Int) -> SlidingWindowCounter {
        let tick = time.div_euclid(self.tick);
        let start = tick - tick.rem_euclid(self.length);
        let (current, previous) = match (start - self.start) / self.length {
            0 => (self.current, self.previous),
            1 => (0, self.current),
            _ => (0, 0),
        };
        SlidingWindowCounter { start, current, previous, ..self.clone() }
    }

    /// Whether the window of one time begins before that of another.
    pub(super) fn starts_before(&self, time: Int, other: Int) -> bool {
        self.rolled(time.max(self.newest())).start < self.rolled(other.max(self.newest())).start
    }

    pub(super) fn used(&self, time: Int) -> Int {
        let rolled = self.rolled(time);
        let elapsed = time.div_euclid(self.tick) - rolled.start;
        rolled.previous * (self.length - elapsed) / self.length + rolled.current
    }

    pub(super) fn charge(&mut self, time: Int, units: Int) {
        *self = self.rolled(time);
        self.current += units;
    }

    /// Charges a denied cost. The count of this window rises to at most `most`.
    pub(super) fn charge_denied(&mut self, time: Int, units: Int, most: Int) {
        let there = self.rolled(time).current;
        self.charge(time, units.min(most - there).max(0));
    }

    /// Charges units that were admitted at another time to the count of that time's window, unless
    /// both counts still weigh nothing.
    pub(super) fn backfill(&mut self, time: Int, units: Int, admitted: Int, most: Int) -> Int {
        let mut rolled = self.rolled(time);
        let window = |tick: Int| tick.div_euclid(self.length);
        let ago = window(rolled.start) - window(admitted.div_euclid(self.tick));
        let count = match ago {
            0 => &mut rolled.current,
            1 => &mut rolled.previous,
            _ => return 0,
        };
        let charged = units.min(most - *count).max(0);
        *count += charged;
        if charged == 0 || rolled.used(time) == 0 {
            return 0;
        }
        *self = rolled;
        charged
    }

    pub(super) fn is_nothing(&self) -> bool {
        self.current == 0 && self.previous == 0
    }

    pub(super) fn refund(&mut self, time: Int, units: Int, charged: Option<Int>) -> Int {
        let rolled = self.rolled(time);
        let window = charged.map(|charged| charged.div_euclid(self.tick).div_euclid(self.length));
        let this = rolled.start / self.length;
        let from_current = match window {
            Some(window) if window != this => 0,
            _ => units.min(rolled.current),
        };
        let from_previous = match window {
            Some(window) if window != this - 1 => 0,
            _ => (units - from_current).min(rolled.previous),
        };
        let back = from_current + from_previous;
        if back > 0 {
            let (current, previous) =
                (rolled.current - from_current, rolled.previous - from_previous);
            *self = SlidingWindowCounter { current, previous, ..rolled };
        }
        back
    }

    /// The times are those of a window of the same length; the ticks may differ.
    pub(super) fn migrate(&mut self, other: &SlidingWindowCounter) {
        self.start = other.newest() / self.tick;
        (self.current, self.previous) = (other.current, other.previous);
    }

    pub(super) fn clip(&mut self, most: Int) {
        self.current = self.current.min(most);
        self.previous = self.previous.min(most);
    }
}
