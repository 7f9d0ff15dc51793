//! The concurrency limit: leases that are released or expire.

use tollgate_algorithms::Id;

use super::number::Int;

/// A lease.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Lease {
    id: Id,
    cost: Int,
    end: Int,
}

/// A concurrency limit and its leases.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LeaseSet {
    length: Int,
    newest: Int,
    leases: Vec<Lease>,
}

impl LeaseSet {
    pub(super) fn new(length: Int) -> Self {
        LeaseSet { length, newest: 0, leases: Vec::new() }
    }

    pub(super) fn newest(&self) -> Int {
        self.newest
    }

    pub(super) fn used(&self, time: Int) -> Int {
        self.leases.iter().filter(|lease| lease.end > time).map(|lease| lease.cost).sum()
    }

    /// The cost of a lease that is held.
    pub(super) fn held(&self, id: Id, time: Int) -> Option<Int> {
        self.leases.iter().find(|lease| lease.id == id && lease.end > time).map(|lease| lease.cost)
    }

    pub(super) fn acquire(&mut self, id: Id, time: Int, cost: Int) {
        self.leases.retain(|lease| lease.end > time);
        self.leases.push(Lease { id, cost, end: time + self.length });
        self.newest = time;
    }

    pub(super) fn renew(&mut self, id: Id, time: Int) -> bool {
        let held = self.leases.iter_mut().find(|lease| lease.id == id && lease.end > time);
        let Some(lease) = held else { return false };
        lease.end = time + self.length;
        self.newest = time;
        true
    }

    pub(super) fn release(&mut self, id: Id, time: Int) -> bool {
        let before = self.leases.len();
        self.leases.retain(|lease| lease.end > time);
        let live = self.leases.len();
        self.leases.retain(|lease| lease.id != id);
        debug_assert!(live <= before, "leases only leave");
        self.leases.len() < live
    }

    pub(super) fn migrate(&mut self, other: &LeaseSet) {
        self.newest = other.newest;
        self.leases.clone_from(&other.leases);
    }
}
