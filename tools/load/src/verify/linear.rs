//! What grows evenly with the span: S·per ≤ room + rate·T.

use super::admission::{Admission, Times};
use super::bound::Grid;
use super::verdict::Excess;

/// A bound that grows evenly with the span.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Linear {
    pub(super) grid: Grid,
    pub(super) room: i128,
    pub(super) rate: i128,
    pub(super) per: i128,
}

/// By how many parts in so many a clock may run faster than another, and how far it may leap.
const CLOCK_PARTS: i128 = 1_000;
const CLOCK_LEAP: i128 = 1_000;

impl Linear {
    /// The same for spans that are told by this clock.
    pub(super) fn told_by(self, times: Times) -> Self {
        match times {
            Times::Store => self,
            Times::Caller => Linear {
                room: (self.room + self.rate * CLOCK_LEAP) * CLOCK_PARTS,
                rate: self.rate * (CLOCK_PARTS + 1),
                per: self.per * CLOCK_PARTS,
                ..self
            },
        }
    }

    /// What admissions do against it at most.
    ///
    /// The span that ends at b and begins at a is over by S·per + rate·a − rate·b − room. Going through
    /// the admissions in order of their ends, a tree over all beginnings knows the greatest S·per +
    /// rate·a: O(n log n).
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
            let at = starts.partition_point(|s| *s < start);
            tree.add(at, charge, self.rate.saturating_mul(i128::from(start)));
            let over = tree.best() - self.rate.saturating_mul(i128::from(end)) - self.room;
            worst = worst.max((over, end));
        }
        let (over, end) = worst;
        (over > 0).then(|| self.excess(cost, admissions, end))
    }

    /// The worst span that ends there.
    fn excess(&self, cost: u64, admissions: &[Admission], end: u64) -> Excess {
        let inside = admissions.iter().filter(|admission| self.grid.number(admission.to()) <= end);
        let mut starts: Vec<u64> = inside.map(|inside| self.grid.number(inside.from)).collect();
        starts.sort_unstable();
        let over = |at: usize, start: u64| {
            let held = i128::try_from(starts.len() - at).unwrap_or(i128::MAX);
            let admitted = held.saturating_mul(i128::from(cost));
            let span = self.rate.saturating_mul(i128::from(end) - i128::from(start));
            (admitted.saturating_mul(self.per) - span, admitted, start)
        };
        let each = starts.iter().enumerate().map(|(at, start)| over(at, *start));
        let (_, admitted, start) = each.max().unwrap_or_default();
        let span = i128::from(end.saturating_sub(start));
        let bound = (self.room + self.rate.saturating_mul(span)) / self.per;
        Excess {
            from: self.grid.start(start),
            to: self.grid.start(end.saturating_add(1)).saturating_sub(1),
            admitted: u128::try_from(admitted).unwrap_or(0),
            bound: u128::try_from(bound).unwrap_or(0),
        }
    }
}

/// Over beginnings a in order: Σ of what was added at a or later, plus a's own value, at its
/// greatest. A beginning counts once something was added there.
#[derive(Debug)]
struct Tree {
    /// Leaves stand from `leaves` on, the root at 1.
    nodes: Vec<Node>,
    leaves: usize,
}

#[derive(Clone, Copy, Debug)]
struct Node {
    sum: i128,
    best: i128,
}

/// What is less than anything that comes up, and far from the edge.
const NOTHING: i128 = i128::MIN / 4;

impl Tree {
    fn new(leaves: usize) -> Self {
        let leaves = leaves.next_power_of_two();
        Tree { nodes: vec![Node { sum: 0, best: NOTHING }; 2 * leaves], leaves }
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
        self.nodes.get(1).map_or(NOTHING, |node| node.best)
    }
}
