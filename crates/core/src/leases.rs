//! Requests in flight: leases that are released, or that lapse when their holder is gone.

use alloc::vec::Vec;

use crate::request::Id;
use crate::state::{Effects, TRUST_AHEAD};
use crate::time::{Micros, Timestamp};

/// The most leases a key has.
pub(crate) const MAX_LEASES: u64 = 10_000;

/// The arithmetic of a concurrency limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Leases {
    capacity: u64,
    length: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lease {
    pub(crate) id: Id,
    pub(crate) cost: u64,
    pub(crate) end: u64,
}

/// The leases of a key, in the order in which they lapse.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Held {
    /// When the newest was taken or renewed.
    pub(crate) at: u64,
    pub(crate) leases: Vec<Lease>,
    /// The sum of their costs.
    pub(crate) total: u64,
}

/// What is held at a time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settled {
    t: u64,
    /// The index of the first lease that has not lapsed.
    pub(crate) first: usize,
    pub(crate) used: u64,
}

impl Held {
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

    /// Whether charges can have made it, under this limit or an earlier form of it.
    pub(crate) fn can_be(&self) -> bool {
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

impl Leases {
    pub(crate) const fn new(capacity: u64, length: Micros) -> Self {
        Leases { capacity, length: length.get() }
    }

    /// What a script computes with: how long a lease lasts.
    pub(crate) const fn numbers(&self) -> [u64; 5] {
        [self.length, 0, 0, 0, 0]
    }

    /// What is held at the later of `now` and the time of the newest lease.
    pub(crate) fn settle(
        &self,
        held: Option<&Held>,
        now: Timestamp,
        seen: &mut Effects,
    ) -> Settled {
        let now = now.as_micros();
        let Some(held) = held.filter(|x| !x.leases.is_empty()) else {
            return Settled { t: now, first: 0, used: 0 };
        };
        let longest = held.last_end().saturating_sub(held.at);
        if held.at.saturating_sub(now) > longest + TRUST_AHEAD {
            seen.disbelieved += 1;
            return Settled { t: now, first: held.leases.len(), used: 0 };
        }
        let t = now.max(held.at);
        let lapsed = held.leases.iter().take_while(|lease| lease.end <= t);
        let (first, gone) = lapsed.fold((0, 0), |(n, sum), x| (n + 1, sum + x.cost));
        Settled { t, first, used: held.total - gone }
    }

    pub(crate) fn fits(&self, it: &Settled, cost: u64) -> bool {
        it.used + cost <= self.capacity
    }

    pub(crate) fn remaining(&self, it: &Settled) -> u64 {
        self.capacity.saturating_sub(it.used)
    }

    /// When `cost`, at most the capacity, fits: once enough leases have lapsed.
    pub(crate) fn fits_at(&self, held: Option<&Held>, it: &Settled, cost: u64) -> u64 {
        let mut above = (it.used + cost).saturating_sub(self.capacity);
        let mut t = it.t;
        for lease in held.map_or(&[][..], |held| &held.leases[it.first..]) {
            if above == 0 {
                break;
            }
            above = above.saturating_sub(lease.cost);
            t = lease.end;
        }
        t
    }

    /// When the last lease has lapsed.
    pub(crate) fn recovers_at(&self, held: Option<&Held>, it: &Settled) -> u64 {
        held.filter(|_| it.used > 0).map_or(it.t, Held::last_end)
    }

    pub(crate) fn acquire(&self, held: &mut Held, it: &Settled, cost: u64, id: Id) {
        held.drop_first(it.first);
        held.at = it.t;
        held.insert(Lease { id, cost, end: it.t + self.length });
    }

    /// Lets a lease that is still held last its whole length from now.
    pub(crate) fn renew(&self, held: &mut Held, it: &Settled, id: Id) -> bool {
        let Some(index) = find(held, it, id) else { return false };
        let lease = held.remove(index);
        held.at = it.t;
        held.insert(Lease { end: it.t + self.length, ..lease });
        true
    }

    /// Gives the place of a lease that is still held back.
    pub(crate) fn release(&self, held: &mut Held, it: &Settled, id: Id) -> Option<u64> {
        find(held, it, id).map(|index| held.remove(index).cost)
    }
}

/// Where the lease is, if it is still held.
pub(crate) fn find(held: &Held, it: &Settled, id: Id) -> Option<usize> {
    let live = held.leases.get(it.first..)?;
    live.iter().position(|lease| lease.id == id).map(|index| index + it.first)
}
