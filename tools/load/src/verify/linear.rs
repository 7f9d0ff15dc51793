//! A bound that grows linearly with the length of a span: S·per ≤ base + rate·T.

use super::admission::{Admission, Excess, Grid, TimeSource};

/// S·per ≤ base + rate·T.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Linear {
    pub(super) grid: Grid,
    pub(super) base: i128,
    pub(super) rate: i128,
    pub(super) per: i128,
}

/// A clock may run faster than another by one part in `CLOCK_DRIFT`, and jump by `CLOCK_JUMP` µs.
const CLOCK_DRIFT: i128 = 1_000;
const CLOCK_JUMP: i128 = 1_000;

impl Linear {
    /// The same bound for spans dated by this clock.
    pub(super) fn dated_by(self, source: TimeSource) -> Self {
        match source {
            TimeSource::Store => self,
            TimeSource::Client => Linear {
                base: (self.base + self.rate * CLOCK_JUMP) * CLOCK_DRIFT,
                rate: self.rate * (CLOCK_DRIFT + 1),
                per: self.per * CLOCK_DRIFT,
                ..self
            },
        }
    }

    /// The largest excess.
    ///
    /// A span from a to b exceeds the bound by S·per + rate·a − rate·b − base. The admissions are
    /// visited in the order of their ends; a tree over all starts keeps the maximum of S·per +
    /// rate·a. O(n log n).
    pub(super) fn worst(&self, cost: u64, admissions: &[Admission]) -> Option<Excess> {
        let mut starts: Vec<u64> =
            admissions.iter().map(|admission| self.grid.number(admission.from)).collect();
        starts.sort_unstable();
        starts.dedup();
        let mut tree = Tree::new(starts.len());
        let charge = i128::from(cost).saturating_mul(self.per);
        let mut worst = (0, 0);
        for admission in admissions {
            let (start, end) = (self.grid.number(admission.from), self.grid.number(admission.to()));
            let at = starts.partition_point(|other| *other < start);
            tree.add(at, charge, self.rate.saturating_mul(i128::from(start)));
            let over = tree.best() - self.rate.saturating_mul(i128::from(end)) - self.base;
            worst = worst.max((over, end));
        }
        let (over, end) = worst;
        (over > 0).then(|| self.excess(cost, admissions, end))
    }

    /// The excess of the worst span that ends at `end`.
    fn excess(&self, cost: u64, admissions: &[Admission], end: u64) -> Excess {
        let inside = admissions.iter().filter(|admission| self.grid.number(admission.to()) <= end);
        let mut starts: Vec<u64> = inside.map(|inside| self.grid.number(inside.from)).collect();
        starts.sort_unstable();
        let mut worst = (i128::MIN, 0, end);
        let mut admitted = 0_i128;
        for &start in starts.iter().rev() {
            admitted = admitted.saturating_add(i128::from(cost));
            let span = self.rate.saturating_mul(i128::from(end) - i128::from(start));
            let charge = admitted.saturating_mul(self.per);
            worst = worst.max((charge.saturating_sub(span), admitted, start));
        }
        let (_, admitted, start) = worst;
        let span = i128::from(end.saturating_sub(start));
        let bound = (self.base + self.rate.saturating_mul(span)) / self.per;
        Excess {
            from: self.grid.start(start),
            to: self.grid.start(end.saturating_add(1)).saturating_sub(1),
            admitted: admitted.unsigned_abs(),
            bound: bound.unsigned_abs(),
        }
    }
}

/// For starts a in order: the maximum of a's own value plus the sum of all charges at a or later. A
/// start counts once it has a charge.
#[derive(Debug)]
struct Tree {
    /// The root is at 1, the leaves begin at `leaves`.
    nodes: Vec<Node>,
    leaves: usize,
}

#[derive(Clone, Copy, Debug)]
struct Node {
    sum: i128,
    best: i128,
}

/// Less than every value that occurs, and far from an overflow.
const UNUSED: i128 = i128::MIN / 4;

impl Tree {
    fn new(leaves: usize) -> Self {
        let leaves = leaves.next_power_of_two();
        Tree { nodes: vec![Node { sum: 0, best: UNUSED }; 2 * leaves], leaves }
    }

    fn add(&mut self, leaf: usize, charge: i128, value: i128) {
        let mut at = self.leaves + leaf;
        let sum = self.nodes[at].sum.saturating_add(charge);
        self.nodes[at] = Node { sum, best: sum.saturating_add(value) };
        while at > 1 {
            at /= 2;
            let (left, right) = (self.nodes[2 * at], self.nodes[2 * at + 1]);
            self.nodes[at] = Node {
                sum: left.sum.saturating_add(right.sum),
                best: right.best.max(left.best.saturating_add(right.sum)),
            };
        }
    }

    fn best(&self) -> i128 {
        self.nodes[1].best
    }
}
