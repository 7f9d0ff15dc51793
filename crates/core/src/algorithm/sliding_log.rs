//! Sliding log, and sliding windows in buckets, which are a log with time stamps rounded down to
//! the precision.

use super::exact::Divisor;
use super::state::{
    Anomalies, Charge, EntryUsage, LogEntry, MAX_CLOCK_SKEW, Parameters, SlidingLogState,
};
use crate::time::{Micros, Timestamp};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct SlidingLog {
    pub(super) capacity: u64,
    /// How long an entry counts.
    horizon: u64,
    /// What time stamps are rounded down to.
    grain: Divisor,
}

/// Running sums above this are counted from 0 again, so that they never overflow.
const MAX_SUM: u64 = 1 << 62;

impl SlidingLogState {
    fn sum_before(&self, index: usize) -> u64 {
        match index.checked_sub(1).and_then(|before| self.entries.get(before)) {
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

    /// Drops what no longer counts, before a charge.
    fn drop_expired(&mut self, usage: &EntryUsage) {
        self.drop_first(usage.first);
        if self.total() > MAX_SUM {
            self.rebase();
        }
    }

    /// Keeps the newest costs that sum to `max`, which may leave a part of an entry.
    fn keep_newest(&mut self, max: u64) {
        let base = self.total().saturating_sub(max).max(self.base);
        let dropped = self.entries.partition_point(|entry| entry.sum <= base);
        self.entries.drain(..dropped);
        self.base = base;
    }

    fn rebase(&mut self) {
        let base = core::mem::take(&mut self.base);
        self.entries.iter_mut().for_each(|entry| entry.sum -= base);
    }

    /// Removes up to `count` from the entry at `index`, and the entry if it is then empty. Returns
    /// how much was removed.
    fn take_from(&mut self, index: usize, count: u64) -> u64 {
        let before = self.sum_before(index);
        let entry = self.entries[index];
        let taken = count.min(entry.sum - before);
        self.entries.range_mut(index..).for_each(|entry| entry.sum -= taken);
        if self.sum_before(index + 1) == before {
            self.entries.remove(index);
        }
        taken
    }
}

impl SlidingLog {
    pub(crate) fn exact(capacity: u64, window: Micros) -> Self {
        SlidingLog { capacity, horizon: window.get(), grain: Divisor::new(1) }
    }

    pub(crate) fn bucketed(capacity: u64, window: Micros, precision: Micros, strict: bool) -> Self {
        let strictness = if strict { precision.get() } else { 0 };
        let horizon = window.get() + strictness;
        SlidingLog { capacity, horizon, grain: Divisor::new(precision.get()) }
    }

    pub(super) const fn parameters(&self) -> Parameters {
        Parameters::SlidingLog { retention: self.horizon, precision: self.grain.get() }
    }

    const fn is_exact(&self) -> bool {
        self.grain.get() == 1
    }

    /// The entries that count at the later of `now` and the newest time stamp.
    pub(crate) fn advance_to(
        &self,
        log: Option<&SlidingLogState>,
        now: Timestamp,
        anomalies: &mut Anomalies,
    ) -> EntryUsage {
        let now = now.as_micros();
        let newest = log.and_then(SlidingLogState::newest);
        let (Some(log), Some(newest)) = (log, newest) else {
            return EntryUsage { at: now, first: 0, used: 0 };
        };
        if newest.saturating_sub(now) > self.horizon + MAX_CLOCK_SKEW {
            anomalies.implausible += 1;
            return EntryUsage { at: now, first: log.entries.len(), used: 0 };
        }
        let t = now.max(newest);
        let first = log.entries.partition_point(|entry| entry.stamp + self.horizon <= t);
        EntryUsage { at: t, first, used: log.total() - log.sum_before(first) }
    }

    /// Whether charges can have produced the log.
    pub(crate) fn can_hold(&self, log: &SlidingLogState) -> bool {
        let (grain, debt) = (self.grain.get(), 2 * self.capacity);
        let (mut before, mut sum) = (None, log.base);
        let each = log.entries.iter().all(|entry| {
            let in_order =
                before.is_none_or(|before| before < entry.stamp) && entry.stamp % grain == 0;
            let cost = entry.sum - sum;
            (before, sum) = (Some(entry.stamp), entry.sum);
            in_order && (1..=debt).contains(&cost)
        });
        // A log holds at most twice the capacity, and so does each bucket. The log of a strict
        // limit, which has one bucket more, may have become that of a limit that is not strict.
        let all = if self.is_exact() {
            log.total() - log.base <= debt
        } else {
            usize::try_from(self.horizon / grain)
                .is_ok_and(|buckets| log.entries.len() <= buckets + 1)
        };
        each && all && log.newest().is_none_or(|newest| newest <= Timestamp::MAX.as_micros())
    }

    /// Whether charges can have produced a log of which entries between the oldest and the newest
    /// may be missing.
    pub(crate) fn can_hold_excerpt(&self, log: &SlidingLogState) -> bool {
        let Some(newest) = log.entries.back() else { return true };
        let mut before = LogEntry { stamp: 0, sum: log.base };
        let grows = log.entries.iter().all(|entry| {
            let is_later = entry.stamp > before.stamp || before.stamp == 0;
            let grows = is_later && entry.sum > before.sum;
            before = *entry;
            grows
        });
        let is_within_debt = || !self.is_exact() || newest.sum - log.base <= 2 * self.capacity;
        grows && newest.stamp <= Timestamp::MAX.as_micros() && is_within_debt()
    }

    /// When `cost`, at most the capacity, fits: once enough of the oldest entries have expired.
    pub(crate) fn fits_at(
        &self,
        log: Option<&SlidingLogState>,
        usage: &EntryUsage,
        cost: u64,
    ) -> u64 {
        let room = self.capacity - cost;
        let Some(log) = log.filter(|_| usage.used > room) else { return usage.at };
        let total = log.total();
        let last_to_expire = log.entries.partition_point(|entry| total - entry.sum > room);
        log.entries.get(last_to_expire).map_or(usage.at, |entry| entry.stamp + self.horizon)
    }

    /// When the newest entry has expired.
    pub(crate) fn recovers_at(&self, log: Option<&SlidingLogState>, usage: &EntryUsage) -> u64 {
        let newest = log.filter(|_| usage.used > 0).and_then(SlidingLogState::newest);
        newest.map_or(usage.at, |newest| newest + self.horizon)
    }

    /// Adds a charge. Beyond `max_entries` entries the two oldest are merged.
    pub(crate) fn charge(
        &self,
        log: &mut SlidingLogState,
        usage: &EntryUsage,
        cost: u64,
        max_entries: usize,
        anomalies: &mut Anomalies,
    ) {
        log.drop_expired(usage);
        let stamp = self.grain.floor(usage.at) * self.grain.get();
        let sum = log.total() + cost;
        match log.entries.back_mut() {
            Some(newest) if newest.stamp == stamp => newest.sum = sum,
            _ => log.entries.push_back(LogEntry { stamp, sum }),
        }
        self.merge_oldest(log, max_entries, anomalies);
    }

    fn merge_oldest(
        &self,
        log: &mut SlidingLogState,
        max_entries: usize,
        anomalies: &mut Anomalies,
    ) {
        if self.is_exact() && log.entries.len() > max_entries {
            // Sums are running sums: without the oldest entry its cost counts to the next one.
            log.entries.pop_front();
            anomalies.merged += 1;
        }
    }

    /// The time stamp for a cost that was admitted at `time`; `None` if it has expired. An exact log
    /// may have thousands of entries behind that time, so the stamp is at least that of the newest.
    pub(crate) fn backfill_stamp(
        &self,
        log: Option<&SlidingLogState>,
        usage: &EntryUsage,
        time: Timestamp,
        now: Timestamp,
    ) -> Option<u64> {
        let time = if time < now { time.as_micros() } else { usage.at };
        let stamp = self.grain.floor(time) * self.grain.get();
        if stamp + self.horizon <= usage.at {
            return None;
        }
        let counted = log.filter(|log| self.is_exact() && usage.first < log.entries.len());
        Some(stamp.max(counted.and_then(SlidingLogState::newest).unwrap_or(0)))
    }

    /// Adds a charge at a time stamp of [`SlidingLog::backfill_stamp`].
    pub(crate) fn charge_at(
        &self,
        log: &mut SlidingLogState,
        usage: &EntryUsage,
        stamp: u64,
        charge: &Charge,
        anomalies: &mut Anomalies,
    ) {
        log.drop_expired(usage);
        let index = log.entries.partition_point(|entry| entry.stamp < stamp);
        if log.entries.get(index).is_none_or(|entry| entry.stamp > stamp) {
            let sum = log.sum_before(index);
            log.entries.insert(index, LogEntry { stamp, sum });
        }
        log.entries.range_mut(index..).for_each(|entry| entry.sum += charge.cost);
        self.merge_oldest(log, charge.log_entries, anomalies);
    }

    /// Adds the cost of a denied request. A bucket's count stays within twice the capacity; a log
    /// keeps the newest costs that sum to the capacity.
    pub(crate) fn charge_denied(
        &self,
        log: &mut SlidingLogState,
        usage: &EntryUsage,
        cost: u64,
        max_entries: usize,
        anomalies: &mut Anomalies,
    ) {
        if self.is_exact() {
            self.charge(log, usage, cost, max_entries, anomalies);
            log.keep_newest(self.capacity);
            return;
        }
        let stamp = self.grain.floor(usage.at) * self.grain.get();
        let newest = log.entries.len().saturating_sub(1);
        let in_bucket = match log.newest() {
            Some(value) if value == stamp => log.total() - log.sum_before(newest),
            _ => 0,
        };
        let room = (2 * self.capacity).saturating_sub(in_bucket);
        self.charge(log, usage, cost.min(room), max_entries, anomalies);
    }

    /// Refunds from the entry of `time`; without a time from the newest entries.
    pub(crate) fn refund(
        &self,
        log: &mut SlidingLogState,
        usage: &EntryUsage,
        count: u64,
        time: Option<Timestamp>,
    ) -> u64 {
        let Some(time) = time else {
            let mut refunded = 0;
            while refunded < count && log.entries.len() > usage.first {
                refunded += log.take_from(log.entries.len() - 1, count - refunded);
            }
            return refunded;
        };
        let stamp = self.grain.floor(time.as_micros()) * self.grain.get();
        match log.entries.binary_search_by_key(&stamp, |entry| entry.stamp) {
            Ok(index) if index >= usage.first => log.take_from(index, count),
            _ => 0,
        }
    }

    pub(crate) fn migrate(&self, log: &SlidingLogState) -> SlidingLogState {
        let mut log = log.clone();
        log.keep_newest(self.capacity);
        log
    }
}
