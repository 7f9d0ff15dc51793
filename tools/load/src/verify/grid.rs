//! Whole units of time, and the excess of a span over a bound.

/// Rounds times down to whole units, which start `shift` before the epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Grid {
    pub(super) unit: u64,
    pub(super) shift: u64,
}

impl Grid {
    pub(super) const MICROS: Grid = Grid { unit: 1, shift: 0 };

    pub(super) fn number(self, time: u64) -> u64 {
        time.saturating_add(self.shift) / self.unit
    }

    /// The start of the unit with this number.
    pub(super) fn start(self, number: u64) -> u64 {
        number.saturating_mul(self.unit).saturating_sub(self.shift)
    }
}

/// A span that exceeds a bound, in whole units of cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Excess {
    pub(super) from: u64,
    pub(super) to: u64,
    pub(super) admitted: u128,
    pub(super) bound: u128,
}
