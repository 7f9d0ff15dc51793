//! The state of a limit between requests, in the numbers by which it was charged.

use tollgate_algorithms::Spec;

use super::number::{Int, first};
use super::shape::Shape;

/// How far ahead of now a state may be, beyond the time that it needs to recover.
const MAX_CLOCK_SKEW: Int = 10_000_000;

/// The stored state of a limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct StoredLimit {
    pub(super) shape: Shape,
    /// The numbers by which it was charged.
    pub(super) spec: Spec,
    /// Whether it has recovered at some earlier time, so that a store may have dropped it.
    pub(super) lapsed: bool,
    /// The latest time since the charge.
    pub(super) latest: Int,
}

impl StoredLimit {
    /// Records the time.
    pub(super) fn advance_to(&mut self, now: Int) {
        self.lapsed |= !self.is_used(now);
        self.latest = self.latest.max(now);
    }

    /// Whether it counts at `now` although it had recovered, or had moved to a later window.
    pub(super) fn is_undefined(&self, now: Int) -> bool {
        let rolled = match &self.shape {
            Shape::SlidingWindow(counter) => counter.starts_before(now, self.latest),
            _ => false,
        };
        self.is_used(now) && (self.lapsed || rolled)
    }

    /// Whether it counts at `now`.
    pub(super) fn is_used(&self, now: Int) -> bool {
        let time = now.max(self.shape.newest());
        is_plausible(&self.shape, now) && self.shape.used(time) > 0
    }

    /// The first time at which nothing is used.
    pub(super) fn recovers(&self, now: Int) -> Int {
        first(now, |time| !self.is_used(time))
    }

    /// Charges what another version of the limit was charged, up to twice the capacity.
    pub(super) fn charge(&mut self, units: Int, now: Int) {
        let time = now.max(self.shape.newest());
        self.shape.charge_within(time, units, 2 * Int::from(self.spec.capacity()));
        (self.lapsed, self.latest) = (false, now);
    }

    /// Charges what another version of the limit was charged for an earlier time.
    pub(super) fn backfill(&mut self, units: Int, admitted: Int, now: Int) {
        let most = 2 * Int::from(self.spec.capacity());
        if self.shape.backfill(now, units, admitted, most) > 0 {
            (self.lapsed, self.latest) = (false, now);
        }
    }
}

/// Whether a state is at most its recovery time plus 10 s ahead of now.
pub(super) fn is_plausible(shape: &Shape, now: Int) -> bool {
    let newest = shape.newest();
    let recovers = first(newest, |time| shape.used(time) == 0) - newest;
    newest - now <= recovers + MAX_CLOCK_SKEW
}
