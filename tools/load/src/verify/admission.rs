//! Admissions, the clocks that date them, and spans of time.

/// An admitted request, in microseconds of the store's or of the client's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Admission {
    /// The number of the key.
    pub key: u32,
    /// The request was admitted at most this much later than `from`.
    pub width: u32,
    /// The earliest time of the admission.
    pub from: u64,
    /// The delay in the reply: how long after `from` the request proceeds.
    pub delay: u64,
    /// The time until which the lease was certainly held; 0 if that is unknown.
    pub released: u64,
}

impl Admission {
    /// An admission at some time from `from` to `to`.
    #[must_use]
    pub fn between(key: u32, from: u64, to: u64) -> Self {
        // Timeouts are at most an hour; 32 bits hold 71 minutes.
        let width = u32::try_from(to.saturating_sub(from)).unwrap_or(u32::MAX);
        Admission { key, width, from, delay: 0, released: 0 }
    }

    /// The latest time of the admission.
    #[must_use]
    pub fn to(&self) -> u64 {
        self.from.saturating_add(u64::from(self.width))
    }

    /// The time at which the request proceeds.
    pub(super) fn departure(&self) -> u64 {
        self.from.saturating_add(self.delay)
    }
}

/// The clock that dates admissions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeSource {
    /// The clock by which the store decides.
    Store,
    /// The client's clock. A span by it differs from the store's by at most one part in 1,000 plus
    /// one millisecond.
    Client,
}

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
