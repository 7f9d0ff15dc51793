//! The fixed window: a count and the end of the open window.

use super::number::Int;

const DAY: Int = 86_400_000_000;
const WEEK: Int = 7 * DAY;
/// The first Monday after the epoch, which was a Thursday. It matters for windows of several weeks.
const MONDAY: Int = 4 * DAY;

/// A fixed window and its count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FixedWindow {
    length: Int,
    /// How much later than the alignment a window begins; `None` if a charge opens it.
    offset: Option<Int>,
    end: Int,
    count: Int,
}

impl FixedWindow {
    pub(super) fn new(length: Int, offset: Option<Int>) -> Self {
        FixedWindow { length, offset, end: 0, count: 0 }
    }

    pub(super) fn newest(&self) -> Int {
        self.end - self.length
    }

    pub(super) fn used(&self, time: Int) -> Int {
        if time < self.end { self.count } else { 0 }
    }

    /// The end of the window that a charge at `time` opens.
    fn end_if_opened(&self, time: Int) -> Int {
        let Some(offset) = self.offset else {
            return time + self.length;
        };
        let anchor = if self.length % WEEK == 0 { MONDAY + offset } else { offset };
        let start = time - (time - anchor).rem_euclid(self.length);
        start + self.length
    }

    pub(super) fn charge(&mut self, time: Int, units: Int) {
        if self.used(time) == 0 {
            self.end = self.end_if_opened(time);
            self.count = 0;
        }
        self.count += units;
    }

    /// Charges a denied cost. The count rises to at most `most`.
    pub(super) fn charge_denied(&mut self, time: Int, units: Int, most: Int) {
        let there = self.used(time);
        self.charge(time, units.min(most - there).max(0));
    }

    /// Charges units that were admitted at another time, if the window of that time has not ended.
    pub(super) fn backfill(&mut self, time: Int, units: Int, admitted: Int) -> Int {
        let is_open = self.used(time) > 0;
        let is_counted = match self.offset {
            None => time - admitted < self.length,
            Some(_) if is_open => admitted >= self.newest(),
            Some(_) => self.end_if_opened(admitted) == self.end_if_opened(time),
        };
        if !is_counted || units == 0 {
            return 0;
        }
        self.charge(if is_open { time } else { admitted }, units);
        units
    }

    pub(super) fn refund(&mut self, time: Int, units: Int, charged: Option<Int>) -> Int {
        let open = self.newest()..self.end;
        if charged.is_some_and(|charged| !open.contains(&charged)) {
            return 0;
        }
        let back = units.min(self.used(time));
        self.count -= back;
        back
    }

    pub(super) fn migrate(&mut self, other: &FixedWindow) {
        (self.end, self.count) = (other.end, other.count);
    }

    pub(super) fn clip(&mut self, most: Int) {
        self.count = self.count.min(most);
    }
}
