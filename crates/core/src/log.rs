//! Sliding log, and sliding windows in buckets: a log whose times are floored to the precision.

use alloc::collections::VecDeque;

use crate::exact::Divisor;
use crate::state::{Effects, TRUST_AHEAD};
use crate::time::{Micros, Timestamp};

/// The arithmetic of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Log {
    capacity: u64,
    /// How long after its stamp an entry leaves.
    horizon: u64,
    /// What stamps are floored to.
    grain: Divisor,
}

/// One charge, or all charges of one stamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) stamp: u64,
    /// The sum of all costs ever charged, up to this one: a suffix's sum is one subtraction.
    pub(crate) sum: u64,
}

/// The charges of a key, oldest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Entries {
    pub(crate) entries: VecDeque<Entry>,
    /// The sum before the oldest entry.
    pub(crate) base: u64,
}

/// What of a log is in at a time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settled {
    t: u64,
    /// The index of the oldest entry that is in.
    first: usize,
    pub(crate) used: u64,
}

/// Sums are counted anew before they could overflow.
const REBASE: u64 = 1 << 62;

impl Entries {
    fn sum_before(&self, index: usize) -> u64 {
        match index.checked_sub(1).and_then(|x| self.entries.get(x)) {
            Some(entry) => entry.sum,
            None => self.base,
        }
    }

    fn total(&self) -> u64 {
        self.sum_before(self.entries.len())
    }

    fn newest(&self) -> Option<u64> {
        self.entries.back().map(|back| back.stamp)
    }

    fn drop_first(&mut self, count: usize) {
        self.base = self.sum_before(count);
        self.entries.drain(..count);
    }

    /// Keeps the newest entries that sum to `most`, cutting the oldest of them.
    fn keep_newest(&mut self, most: u64) {
        let base = self.total().saturating_sub(most).max(self.base);
        let gone = self.entries.partition_point(|entry| entry.sum <= base);
        self.entries.drain(..gone);
        self.base = base;
    }

    fn rebase(&mut self) {
        let base = core::mem::take(&mut self.base);
        self.entries.iter_mut().for_each(|entry| entry.sum -= base);
    }

    /// Takes up to `count` from the entry at `index`, and the entry with it if it is then empty.
    fn take_from(&mut self, index: usize, count: u64) -> u64 {
        let before = self.sum_before(index);
        let Some(entry) = self.entries.get(index) else { return 0 };
        let taken = count.min(entry.sum - before);
        self.entries.range_mut(index..).for_each(|x| x.sum -= taken);
        if self.sum_before(index + 1) == before {
            self.entries.remove(index);
        }
        taken
    }
}

impl Log {
    pub(crate) fn exact(capacity: u64, window: Micros) -> Self {
        Log { capacity, horizon: window.get(), grain: Divisor::new(1) }
    }

    pub(crate) fn bucketed(capacity: u64, window: Micros, precision: Micros, strict: bool) -> Self {
        let strictness = if strict { precision.get() } else { 0 };
        let horizon = window.get() + strictness;
        Log { capacity, horizon, grain: Divisor::new(precision.get()) }
    }

    /// What a script computes with: how long after its stamp an entry leaves, and the precision.
    pub(crate) const fn numbers(&self) -> [u64; 5] {
        [self.horizon, self.grain.get(), 0, 0, 0]
    }

    const fn is_exact(&self) -> bool {
        self.grain.get() == 1
    }

    /// What is in at the later of `now` and the newest stamp.
    pub(crate) fn settle(
        &self,
        log: Option<&Entries>,
        now: Timestamp,
        seen: &mut Effects,
    ) -> Settled {
        let now = now.as_micros();
        let newest = log.and_then(Entries::newest);
        let (Some(log), Some(newest)) = (log, newest) else {
            return Settled { t: now, first: 0, used: 0 };
        };
        if newest.saturating_sub(now) > self.horizon + TRUST_AHEAD {
            seen.disbelieved += 1;
            return Settled { t: now, first: log.entries.len(), used: 0 };
        }
        let t = now.max(newest);
        let first = log.entries.partition_point(|entry| entry.stamp + self.horizon <= t);
        Settled { t, first, used: log.total() - log.sum_before(first) }
    }

    /// Whether charges can have made it.
    pub(crate) fn can_be(&self, log: &Entries) -> bool {
        let (grain, debt) = (self.grain.get(), 2 * self.capacity);
        let (mut before, mut sum) = (None, log.base);
        let each = log.entries.iter().all(|entry| {
            let in_order =
                before.is_none_or(|before| before < entry.stamp) && entry.stamp % grain == 0;
            let cost = entry.sum - sum;
            (before, sum) = (Some(entry.stamp), entry.sum);
            in_order && (1..=debt).contains(&cost)
        });
        // A log holds at most a debt of one more capacity, a bucket that much by itself. The buckets
        // of a strict limit, one more, may have become those of one that is not.
        let all = if self.is_exact() {
            log.total() - log.base <= debt
        } else {
            usize::try_from(self.horizon / grain).is_ok_and(|x| log.entries.len() <= x + 1)
        };
        each && all && log.newest().is_none_or(|newest| newest <= Timestamp::MAX.as_micros())
    }

    pub(crate) fn fits(&self, it: &Settled, cost: u64) -> bool {
        it.used + cost <= self.capacity
    }

    pub(crate) fn remaining(&self, it: &Settled) -> u64 {
        self.capacity.saturating_sub(it.used)
    }

    pub(crate) fn debt_room(&self, it: &Settled) -> u64 {
        (2 * self.capacity).saturating_sub(it.used)
    }

    /// When `cost`, at most the capacity, fits: once enough of the oldest entries have left.
    pub(crate) fn fits_at(&self, log: Option<&Entries>, it: &Settled, cost: u64) -> u64 {
        let Some(log) = log.filter(|_| !self.fits(it, cost)) else { return it.t };
        let room = self.capacity - cost;
        let total = log.total();
        let last_to_leave = log.entries.partition_point(|entry| total - entry.sum > room);
        log.entries.get(last_to_leave).map_or(it.t, |entry| entry.stamp + self.horizon)
    }

    /// When the newest entry has left.
    pub(crate) fn recovers_at(&self, log: Option<&Entries>, it: &Settled) -> u64 {
        let newest = log.filter(|_| it.used > 0).and_then(Entries::newest);
        newest.map_or(it.t, |newest| newest + self.horizon)
    }

    /// Adds a cost now; `most` entries are kept, the two oldest merge beyond that.
    pub(crate) fn charge(
        &self,
        log: &mut Entries,
        it: &Settled,
        cost: u64,
        most: usize,
        seen: &mut Effects,
    ) {
        log.drop_first(it.first);
        if log.total() > REBASE {
            log.rebase();
        }
        let stamp = self.grain.floor(it.t) * self.grain.get();
        let sum = log.total() + cost;
        match log.entries.back_mut() {
            Some(newest) if newest.stamp == stamp => newest.sum = sum,
            _ => log.entries.push_back(Entry { stamp, sum }),
        }
        if self.is_exact() && log.entries.len() > most {
            // The sums are running ones: without the oldest entry its cost counts to the next.
            log.entries.pop_front();
            seen.merged += 1;
        }
    }

    /// Adds the cost of a denied request: a bucket's count stays within twice the capacity, a log
    /// keeps the newest entries that sum to the capacity.
    pub(crate) fn charge_denied(
        &self,
        log: &mut Entries,
        it: &Settled,
        cost: u64,
        most: usize,
        seen: &mut Effects,
    ) {
        if self.is_exact() {
            self.charge(log, it, cost, most, seen);
            log.keep_newest(self.capacity);
            return;
        }
        let stamp = self.grain.floor(it.t) * self.grain.get();
        let newest = log.entries.len().saturating_sub(1);
        let in_bucket = match log.newest() {
            Some(value) if value == stamp => log.total() - log.sum_before(newest),
            _ => 0,
        };
        let room = (2 * self.capacity).saturating_sub(in_bucket);
        self.charge(log, it, cost.min(room), most, seen);
    }

    /// Gives back from the entry of `time`; without one, from the newest entries.
    pub(crate) fn refund(
        &self,
        log: &mut Entries,
        it: &Settled,
        count: u64,
        time: Option<Timestamp>,
    ) -> u64 {
        let Some(time) = time else { return self.refund_newest(log, it, count) };
        let stamp = self.grain.floor(time.as_micros()) * self.grain.get();
        match log.entries.binary_search_by_key(&stamp, |entry| entry.stamp) {
            Ok(index) if index >= it.first => log.take_from(index, count),
            _ => 0,
        }
    }

    fn refund_newest(&self, log: &mut Entries, it: &Settled, count: u64) -> u64 {
        let mut back = 0;
        while back < count && log.entries.len() > it.first {
            back += log.take_from(log.entries.len() - 1, count - back);
        }
        back
    }

    pub(crate) fn adopt(&self, log: &Entries) -> Entries {
        let mut log = log.clone();
        log.keep_newest(self.capacity);
        log
    }
}
