//! The sliding log: the time and cost of every charge.

use super::number::Int;

/// A log with its entries, oldest first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SlidingLog {
    window: Int,
    /// The most entries; beyond that the oldest are merged.
    most_entries: usize,
    entries: Vec<(Int, Int)>,
}

impl SlidingLog {
    pub(super) fn new(window: Int, most_entries: usize) -> Self {
        SlidingLog { window, most_entries, entries: Vec::new() }
    }

    pub(super) fn newest(&self) -> Int {
        self.entries.last().map_or(0, |entry| entry.0)
    }

    /// The entries that count at `time`.
    fn counting(&self, time: Int) -> Vec<(Int, Int)> {
        self.entries.iter().copied().filter(|entry| entry.0 > time - self.window).collect()
    }

    pub(super) fn used(&self, time: Int) -> Int {
        self.counting(time).iter().map(|counting| counting.1).sum()
    }

    pub(super) fn charge(&mut self, time: Int, units: Int) {
        self.entries = self.counting(time);
        match self.entries.last_mut() {
            Some(newest) if newest.0 == time => newest.1 += units,
            _ => self.entries.push((time, units)),
        }
        while self.entries.len() > self.most_entries {
            let oldest = self.entries.remove(0);
            self.entries[0].1 += oldest.1;
        }
    }

    /// Charges a denied cost, then keeps the newest entries that sum to `most`.
    pub(super) fn charge_denied(&mut self, time: Int, units: Int, most: Int) {
        self.charge(time, units);
        self.clip(most);
    }

    /// Keeps the newest costs that sum to `most`.
    pub(super) fn clip(&mut self, most: Int) {
        let mut room = most;
        for entry in self.entries.iter_mut().rev() {
            entry.1 = entry.1.min(room);
            room -= entry.1;
        }
        self.entries.retain(|entry| entry.1 > 0);
    }

    pub(super) fn refund(&mut self, time: Int, units: Int, charged: Option<Int>) -> Int {
        let since = time - self.window;
        let mut left = units;
        let counting = self.entries.iter_mut().rev().filter(|entry| entry.0 > since);
        for entry in counting.filter(|counting| charged.is_none_or(|at| at == counting.0)) {
            let back = left.min(entry.1);
            entry.1 -= back;
            left -= back;
        }
        self.entries.retain(|entry| entry.1 > 0);
        units - left
    }

    pub(super) fn migrate(&mut self, other: &SlidingLog) {
        self.entries.clone_from(&other.entries);
    }
}
