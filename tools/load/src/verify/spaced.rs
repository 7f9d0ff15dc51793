//! What leaves a queue leaves it evenly.

use super::admission::Admission;
use super::verdict::Excess;

/// Departures that are window / count apart for each unit of the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Spaced {
    pub(super) count: u64,
    pub(super) window: u64,
    pub(super) tick: u64,
}

impl Spaced {
    /// What departures do against it at most. With what departs before each of them as a running
    /// sum, the span that ends at one is worst from where sum·W − time·L was least.
    pub(super) fn worst(&self, cost: u64, admissions: &[Admission]) -> Option<Excess> {
        let mut departures: Vec<u64> = admissions.iter().map(Admission::acts).collect();
        departures.sort_unstable();
        let (count, window) = (i128::from(self.count), i128::from(self.window));
        let charge = i128::from(cost).saturating_mul(window);
        let room = i128::from(self.tick) * count;
        let mut least = (i128::MAX, 0, 0);
        // What all but the last make is less than the room and the rate: 0 over is too much.
        let mut worst = (-1, None);
        for (index, &departs) in departures.iter().enumerate() {
            let before = i128::try_from(index).unwrap_or(i128::MAX).saturating_mul(charge);
            let level = before.saturating_sub(i128::from(departs) * count);
            least = least.min((level, index, departs));
            let over = level - least.0 - room;
            if over > worst.0 {
                worst = (over, Some((least, index, departs)));
            }
        }
        let ((_, first, from), last, to) = worst.1?;
        let span = u128::from(to - from) + u128::from(self.tick);
        let units = |index: usize| u128::try_from(index).unwrap_or(0) * u128::from(cost);
        let bound = (span * u128::from(self.count)).saturating_sub(1) / u128::from(self.window);
        Some(Excess { from, to, admitted: units(last - first), bound })
    }
}
