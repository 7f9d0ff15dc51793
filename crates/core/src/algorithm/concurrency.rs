//! Concurrency limit: leases that are released, or that expire when their holder is gone.

use super::state::{
    Anomalies, EntryUsage, Lease, LeaseSet, MAX_CLOCK_SKEW, MAX_LEASES, Parameters,
};
use crate::id::Id;
use crate::time::{Micros, Timestamp};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Concurrency {
    pub(super) capacity: u64,
    /// How long a lease lasts.
    length: u64,
}

impl LeaseSet {
    fn insert(&mut self, lease: Lease) {
        let index = self.leases.partition_point(|l| l.end <= lease.end);
        self.leases.insert(index, lease);
        self.total += lease.cost;
    }

    fn remove(&mut self, index: usize) -> Lease {
        let lease = self.leases.remove(index);
        self.total -= lease.cost;
        lease
    }

    fn drop_first(&mut self, count: usize) {
        self.total -= self.leases.drain(..count).map(|lease| lease.cost).sum::<u64>();
    }

    /// The index of a lease that is still held.
    pub(super) fn find(&self, usage: &EntryUsage, id: Id) -> Option<usize> {
        let live = self.leases.get(usage.first..)?;
        live.iter().position(|lease| lease.id == id).map(|index| index + usage.first)
    }

    /// Releases a lease. Returns its cost, or 0 if it was not held.
    pub(super) fn release(&mut self, usage: &EntryUsage, id: Id) -> u64 {
        self.find(usage, id).map_or(0, |index| self.remove(index).cost)
    }

    /// Whether charges can have produced the leases, under this limit or an earlier version of it.
    pub(super) fn is_valid(&self) -> bool {
        let latest = self.at.saturating_add(Micros::MAX_WINDOW.get());
        let in_time = self.at <= Timestamp::MAX.as_micros() && self.last_end() <= latest;
        let in_order = self.leases.is_sorted_by_key(|lease| lease.end);
        let paid = self.leases.iter().all(|lease| lease.cost > 0);
        in_time && in_order && paid && self.total <= MAX_LEASES
    }

    fn last_end(&self) -> u64 {
        self.leases.last().map_or(0, |lease| lease.end)
    }
}

impl Concurrency {
    pub(crate) const fn new(capacity: u64, length: Micros) -> Self {
        Concurrency { capacity, length: length.get() }
    }

    pub(super) const fn parameters(&self) -> Parameters {
        Parameters::Concurrency { lease: self.length }
    }

    /// The leases that are held at the later of `now` and the time of the newest lease.
    pub(crate) fn advance_to(
        &self,
        set: Option<&LeaseSet>,
        now: Timestamp,
        anomalies: &mut Anomalies,
    ) -> EntryUsage {
        let now = now.as_micros();
        let Some(set) = set.filter(|set| !set.leases.is_empty()) else {
            return EntryUsage { at: now, first: 0, used: 0 };
        };
        let longest = set.last_end().saturating_sub(set.at);
        if set.at.saturating_sub(now) > longest + MAX_CLOCK_SKEW {
            anomalies.implausible += 1;
            return EntryUsage { at: now, first: set.leases.len(), used: 0 };
        }
        let at = now.max(set.at);
        let expired = set.leases.iter().take_while(|lease| lease.end <= at);
        let (first, freed) = expired.fold((0, 0), |(n, sum), lease| (n + 1, sum + lease.cost));
        EntryUsage { at, first, used: set.total - freed }
    }

    /// When `cost`, at most the capacity, fits: once enough leases have expired.
    pub(crate) fn fits_at(&self, set: Option<&LeaseSet>, usage: &EntryUsage, cost: u64) -> u64 {
        let mut above = (usage.used + cost).saturating_sub(self.capacity);
        let mut at = usage.at;
        for lease in set.map_or(&[][..], |set| &set.leases[usage.first..]) {
            if above == 0 {
                break;
            }
            above = above.saturating_sub(lease.cost);
            at = lease.end;
        }
        at
    }

    /// When the last lease has expired.
    pub(crate) fn recovers_at(&self, set: Option<&LeaseSet>, usage: &EntryUsage) -> u64 {
        set.filter(|_| usage.used > 0).map_or(usage.at, LeaseSet::last_end)
    }

    pub(crate) fn acquire(&self, set: &mut LeaseSet, usage: &EntryUsage, cost: u64, id: Id) {
        set.drop_first(usage.first);
        set.at = usage.at;
        set.insert(Lease { id, cost, end: usage.at + self.length });
    }

    /// Extends a lease to its whole length from now. Returns whether it was still held.
    pub(crate) fn renew(&self, set: &mut LeaseSet, usage: &EntryUsage, id: Id) -> bool {
        let Some(index) = set.find(usage, id) else { return false };
        let lease = set.remove(index);
        set.at = usage.at;
        set.insert(Lease { end: usage.at + self.length, ..lease });
        true
    }
}
