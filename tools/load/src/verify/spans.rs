//! Bounds on spans of time: a constant, the weighted previous window, the distance of departures.

use super::admission::{Admission, Excess, Grid, TimeSource};

/// Two admissions less than `span` units apart, and all between them, cost at most `max`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Within {
    pub(super) grid: Grid,
    pub(super) span: u64,
    pub(super) max: u128,
}

impl Within {
    /// The same bound for spans dated by this clock; `None` if the span is too short for it.
    pub(super) fn dated_by(self, source: TimeSource) -> Option<Self> {
        let span = match source {
            TimeSource::Store => self.span,
            TimeSource::Client => self.span.saturating_sub(1_000) / 1_001 * 1_000,
        };
        (span > 0).then_some(Within { span, ..self })
    }

    /// The largest excess. The ends are in order, and so are the earliest starts within the span:
    /// each admission enters once and leaves once.
    pub(super) fn worst(&self, cost: u64, admissions: &[Admission]) -> Option<Excess> {
        let start_of = |admission: &Admission| self.grid.number(admission.from);
        let mut leaving: Vec<(u64, usize)> = admissions
            .iter()
            .enumerate()
            .map(|(index, admission)| (start_of(admission), index))
            .collect();
        leaving.sort_unstable();
        let mut leaving = leaving.into_iter().peekable();
        let mut inside = 0_u128;
        let mut worst: Option<Excess> = None;
        for (index, admission) in admissions.iter().enumerate() {
            let end = self.grid.number(admission.to());
            let earliest = end.saturating_add(1).saturating_sub(self.span);
            while let Some((_, left)) = leaving.next_if(|leaving| leaving.0 < earliest) {
                // An admission that has not entered by now starts too early to enter later.
                inside -= u128::from(left < index);
            }
            inside += u128::from(start_of(admission) >= earliest);
            let admitted = inside * u128::from(cost);
            if admitted > worst.as_ref().map_or(self.max, |worst| worst.admitted) {
                let (from, after) = (self.grid.start(earliest), self.grid.start(end + 1));
                worst = Some(Excess { from, to: after - 1, admitted, bound: self.max });
            }
        }
        worst
    }
}

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
        let tolerance = i128::from(self.tick) * count;
        let mut lowest = (i128::MAX, 0, 0);
        // All departures of a span except the last cost less than the bound: an excess of 0 is a
        // violation.
        let mut worst = (-1, None);
        for (number, &time) in (0_u64..).zip(&departures) {
            let before = i128::from(number).saturating_mul(charge);
            let level = before.saturating_sub(i128::from(time) * count);
            lowest = lowest.min((level, number, time));
            let over = level - lowest.0 - tolerance;
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
