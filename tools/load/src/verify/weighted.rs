//! The rule of a sliding window counter, recomputed from the certain admissions.

use super::admission::Admission;
use super::grid::{Excess, Grid};

/// ⌊previous·(W − e) / W⌋ + current ≤ max at every admission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Weighted {
    pub(super) max: u64,
    pub(super) window: u64,
    pub(super) tick: u64,
}

/// A window and the cost that it has certainly admitted so far.
#[derive(Clone, Copy, Debug)]
struct WindowCost {
    window: u64,
    cost: u128,
}

impl Weighted {
    /// The largest excess. An admission that may lie in either of two windows counts in neither.
    pub(super) fn worst(&self, cost: u64, admissions: &[Admission]) -> Option<Excess> {
        let grid = Grid { unit: self.window, shift: 0 };
        let (mut previous, mut current) =
            (WindowCost { window: 0, cost: 0 }, WindowCost { window: 0, cost: 0 });
        let mut worst: Option<Excess> = None;
        for admission in admissions {
            let (window, end) = (grid.number(admission.from), admission.to());
            if grid.number(end) != window {
                continue;
            }
            if window != current.window {
                previous = current;
                current = WindowCost { window, cost: 0 };
            }
            current.cost += u128::from(cost);
            let weighted = self.weighted(previous, window, end - grid.start(window));
            let admitted = weighted + current.cost;
            if admitted > worst.as_ref().map_or(u128::from(self.max), |worst| worst.admitted) {
                let first = if weighted > 0 { window - 1 } else { window };
                let bound = u128::from(self.max);
                worst = Some(Excess { from: grid.start(first), to: end, admitted, bound });
            }
        }
        worst
    }

    /// The weight of the previous window `elapsed` µs into the current one.
    fn weighted(&self, previous: WindowCost, window: u64, elapsed: u64) -> u128 {
        if previous.window.checked_add(1) != Some(window) {
            return 0;
        }
        let ticks = self.window / self.tick;
        let left = ticks.saturating_sub(elapsed / self.tick);
        previous.cost.saturating_mul(u128::from(left)) / u128::from(ticks)
    }
}
