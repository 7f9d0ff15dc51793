//! How much a store loses when it forgets a key.

use super::KeyState;
use crate::algorithm::{Anomalies, LimitState};
use crate::limit::Limit;
use crate::time::Timestamp;

/// What a full store considers when it selects a key to forget. Times are in µs since the epoch; a
/// time that is not after now has come already.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Retention {
    /// The greatest share of a limit that is used, in units of 1 / [`Retention::WHOLE`].
    pub used_share: u64,
    /// When the state equals that of an unknown key.
    pub recovers_at: u64,
    /// When a check of cost 1 is admitted.
    pub admits_at: u64,
    /// Whether a concurrency limit holds leases.
    pub has_leases: bool,
}

impl Retention {
    /// The share of a limit that is used up.
    pub const WHOLE: u64 = 1 << 20;

    fn add(&mut self, limit: &Limit, state: &LimitState, now: Timestamp) {
        if matches!(state, LimitState::Untouched) {
            return;
        }
        let usage = limit.algorithm.advance_to(state, now, &mut Anomalies::default());
        let share = share(limit.algorithm.used(&usage), limit.capacity());
        self.used_share = self.used_share.max(share);
        self.recovers_at = self.recovers_at.max(limit.algorithm.recovers_at(state, &usage));
        self.has_leases |= matches!(state, LimitState::Concurrency(_));
        if !limit.algorithm.fits(&usage, 1) {
            self.admits_at = self.admits_at.max(limit.algorithm.fits_at(state, &usage, 1));
        }
    }
}

fn share(used: u64, capacity: u64) -> u64 {
    let capacity = capacity.max(1);
    match used.checked_mul(Retention::WHOLE) {
        Some(units) => units / capacity,
        None => used / (capacity / Retention::WHOLE).max(1),
    }
}

impl KeyState {
    /// Returns what a store loses when it forgets the key.
    #[must_use]
    pub fn retention(&self, now: Timestamp) -> Retention {
        let mut retention = Retention::default();
        let Some(policy) = self.policy() else { return retention };
        for (limit, state) in policy.limits().iter().zip(self.limits()) {
            retention.add(limit, state, now);
        }
        let of_limits = retention;
        for detached in self.detached() {
            retention.add(&detached.limit, &detached.state, now);
        }
        // Only the limits of the policy deny.
        let Retention { admits_at, has_leases, .. } = of_limits;
        Retention { admits_at, has_leases, ..retention }
    }
}
