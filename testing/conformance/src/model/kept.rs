//! What stays of a limit between requests: its shape as it was charged, by the numbers of then.

use tollgate_core::Spec;

use super::number::{Int, first};
use super::shape::Shape;

/// How far ahead of now a state may be, beyond its own time to recover.
const BELIEF: Int = 10_000_000;

/// What is kept of a limit: its shape as it was charged, and the capacity it then had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Kept {
    pub(super) shape: Shape,
    /// The numbers by which it was charged.
    pub(super) spec: Spec,
    /// Whether there was a time since when nothing of it was used: then it may have been dropped.
    pub(super) lapsed: bool,
    /// The latest time since.
    pub(super) latest: Int,
}

impl Kept {
    /// Notes that the time has come to `now`.
    pub(super) fn see(&mut self, now: Int) {
        self.lapsed |= !self.is_used(now);
        self.latest = self.latest.max(now);
    }

    /// Whether it counts at `now` though it had lapsed, or had rolled on into a later window.
    pub(super) fn is_unsure(&self, now: Int) -> bool {
        let rolled = match &self.shape {
            Shape::Weighted(weighted) => weighted.starts_before(now, self.latest),
            _ => false,
        };
        self.is_used(now) && (self.lapsed || rolled)
    }

    /// Whether it would count at `now`.
    pub(super) fn is_used(&self, now: Int) -> bool {
        let time = now.max(self.shape.newest());
        believed(&self.shape, now) && self.shape.used(time) > 0
    }

    /// The first time at which nothing of it is used.
    pub(super) fn recovers(&self, now: Int) -> Int {
        first(now, |x| !self.is_used(x))
    }

    /// Whether everything was given back.
    pub(super) fn is_nothing(&self) -> bool {
        self.shape.is_nothing()
    }

    /// Whether it was charged by exactly these numbers.
    pub(super) fn is_by(&self, spec: &Spec) -> bool {
        self.spec == *spec
    }

    pub(super) fn counts_denied(&self) -> bool {
        self.spec.count_denied
    }

    /// Charges what another form of the limit was charged, up to twice the capacity.
    pub(super) fn charge(&mut self, units: Int, now: Int) {
        let time = now.max(self.shape.newest());
        self.shape.charge_within(time, units, 2 * Int::from(self.spec.capacity()));
        (self.lapsed, self.latest) = (false, now);
    }
}

/// Whether a state is near enough to now: not ahead of it by more than it takes to recover,
/// and 10 s.
pub(super) fn believed(shape: &Shape, now: Int) -> bool {
    let newest = shape.newest();
    let recovers = first(newest, |x| shape.used(x) == 0) - newest;
    newest - now <= recovers + BELIEF
}
