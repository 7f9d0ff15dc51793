//! The rule of a weighted window, computed again from what is certain.

use super::admission::Admission;
use super::bound::Grid;
use super::verdict::Excess;

/// ⌊previous·(W − e) / W⌋ + current ≤ most, wherever something is admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Weighted {
    pub(super) most: u64,
    pub(super) window: u64,
    pub(super) tick: u64,
}

/// A window, and what it is known to have held by now.
#[derive(Clone, Copy, Debug)]
struct Held {
    window: u64,
    cost: u128,
}

impl Weighted {
    /// What admissions do against it at most. Those that may lie in either of two windows count in
    /// none.
    pub(super) fn worst(&self, cost: u64, admissions: &[Admission]) -> Option<Excess> {
        let grid = Grid { unit: self.window, shift: 0 };
        let (mut previous, mut current) =
            (Held { window: 0, cost: 0 }, Held { window: 0, cost: 0 });
        let mut worst: Option<Excess> = None;
        for admission in admissions {
            let (window, end) = (grid.number(admission.from), admission.to());
            if grid.number(end) != window {
                continue;
            }
            if window != current.window {
                previous = current;
                current = Held { window, cost: 0 };
            }
            current.cost += u128::from(cost);
            let weighted = self.weighted(previous, window, end - grid.start(window));
            let admitted = weighted + current.cost;
            if admitted > worst.as_ref().map_or(u128::from(self.most), |worst| worst.admitted) {
                let first = if weighted > 0 { window - 1 } else { window };
                let bound = u128::from(self.most);
                worst = Some(Excess { from: grid.start(first), to: end, admitted, bound });
            }
        }
        worst
    }

    /// What the window before still counts, so many µs into the next.
    fn weighted(&self, previous: Held, window: u64, elapsed: u64) -> u128 {
        if previous.window.checked_add(1) != Some(window) {
            return 0;
        }
        let ticks = self.window / self.tick;
        let left = ticks.saturating_sub(elapsed / self.tick);
        previous.cost.saturating_mul(u128::from(left)) / u128::from(ticks)
    }
}
