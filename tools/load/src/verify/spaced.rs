//! A bound on the distance between departures from a queue.

use super::admission::Admission;
use super::grid::Excess;

/// A departure follows the previous one after window / count for each unit of its cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Spaced {
    pub(super) count: u64,
    pub(super) window: u64,
    pub(super) tick: u64,
}

impl Spaced {
    /// The largest excess. With a running sum of the departures, a span is worst from the departure
    /// where sum·W − time·L was lowest.
    pub(super) fn worst(&self, cost: u64, admissions: &[Admission]) -> Option<Excess> {
        let mut departures: Vec<u64> = admissions.iter().map(Admission::departure).collect();
        departures.sort_unstable();
        let (count, window) = (i128::from(self.count), i128::from(self.window));
        let charge = i128::from(cost).saturating_mul(window);
        let room = i128::from(self.tick) * count;
        let mut lowest = (i128::MAX, 0, 0);
        // All departures of a span except the last cost less than the bound: an excess of 0 is a
        // violation.
        let mut worst = (-1, None);
        for (number, &time) in (0_u64..).zip(&departures) {
            let before = i128::from(number).saturating_mul(charge);
            let level = before.saturating_sub(i128::from(time) * count);
            lowest = lowest.min((level, number, time));
            let over = level - lowest.0 - room;
            if over > worst.0 {
                worst = (over, Some((lowest, number, time)));
            }
        }
        let ((_, first, from), last, to) = worst.1?;
        let span = u128::from(to - from) + u128::from(self.tick);
        let admitted = u128::from(last - first) * u128::from(cost);
        let bound = (span * u128::from(self.count)).saturating_sub(1) / u128::from(self.window);
        Some(Excess { from, to, admitted, bound })
    }
}
