//! The sliding window in buckets: the cost that was charged in each interval. A sliding log has
//! buckets of 1 µs.

use std::collections::BTreeMap;

use super::number::Int;

/// A window in buckets with their counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Buckets {
    length: Int,
    /// How long after its start a bucket counts.
    counts_for: Int,
    /// The most buckets; beyond that the oldest are merged.
    most_buckets: usize,
    /// Start of the bucket and its count.
    buckets: BTreeMap<Int, Int>,
}

impl Buckets {
    pub(super) fn new(window: Int, length: Int, strict: bool) -> Self {
        let counts_for = if strict { window + length } else { window };
        Buckets { length, counts_for, most_buckets: usize::MAX, buckets: BTreeMap::new() }
    }

    pub(super) fn log(window: Int, most_entries: usize) -> Self {
        Buckets { most_buckets: most_entries, ..Buckets::new(window, 1, false) }
    }

    pub(super) fn newest(&self) -> Int {
        self.buckets.last_key_value().map_or(0, |last_key_value| *last_key_value.0)
    }

    fn counts(&self, start: Int, time: Int) -> bool {
        start + self.counts_for > time
    }

    fn start(&self, time: Int) -> Int {
        time - time.rem_euclid(self.length)
    }

    pub(super) fn used(&self, time: Int) -> Int {
        self.buckets
            .iter()
            .filter(|bucket| self.counts(*bucket.0, time))
            .map(|bucket| bucket.1)
            .sum()
    }

    pub(super) fn charge(&mut self, time: Int, units: Int) {
        self.charge_at(time, units, time);
    }

    /// Charges the bucket of a time that still counts at `time`.
    fn charge_at(&mut self, charged: Int, units: Int, time: Int) {
        *self.buckets.entry(self.start(charged)).or_default() += units;
        let gone = time - self.counts_for;
        self.buckets.retain(|start, _| *start > gone);
        while self.buckets.len() > self.most_buckets
            && let Some((_, oldest)) = self.buckets.pop_first()
            && let Some(mut next) = self.buckets.first_entry()
        {
            *next.get_mut() += oldest;
        }
    }

    /// Charges units that were admitted at another time, if its bucket still counts.
    pub(super) fn backfill(&mut self, time: Int, units: Int, admitted: Int) -> Int {
        if units == 0 || !self.counts(self.start(admitted), time) {
            return 0;
        }
        self.charge_at(admitted, units, time);
        units
    }

    /// Does the same, but no earlier than the newest charge.
    pub(super) fn backfill_newest(&mut self, time: Int, units: Int, admitted: Int) -> Int {
        if !self.counts(self.start(admitted), time) {
            return 0;
        }
        self.backfill(time, units, admitted.max(self.newest()))
    }

    /// Charges a denied cost: the bucket's count goes up to `most`.
    pub(super) fn charge_denied(&mut self, time: Int, units: Int, most: Int) {
        let there = self.buckets.get(&self.start(time)).copied().unwrap_or_default();
        self.charge(time, units.min(most - there).max(0));
    }

    pub(super) fn refund(&mut self, time: Int, units: Int, charged: Option<Int>) -> Int {
        let from = charged.map(|charged| self.start(charged));
        let counting = time - self.counts_for;
        let mut left = units;
        for (start, count) in self.buckets.iter_mut().rev().filter(|bucket| *bucket.0 > counting) {
            if from.is_none_or(|from| from == *start) {
                let back = left.min(*count);
                *count -= back;
                left -= back;
            }
        }
        self.buckets.retain(|_, count| *count > 0);
        units - left
    }

    pub(super) fn migrate(&mut self, other: &Buckets) {
        self.buckets.clone_from(&other.buckets);
    }

    /// Keeps the newest counts that sum to `most`.
    pub(super) fn clip(&mut self, most: Int) {
        let mut room = most;
        for count in self.buckets.values_mut().rev() {
            *count = (*count).min(room);
            room -= *count;
        }
        self.buckets.retain(|_, count| *count > 0);
    }
}
