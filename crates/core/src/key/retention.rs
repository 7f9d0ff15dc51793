//! How much a store loses when it forgets a key.

use super::KeyState;
use crate::algorithm::{Anomalies, LimitState};
use crate::limit::Limit;
use crate::policy::{BanState, Policy};
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
    /// Whether the key must not be forgotten: it holds leases, or it is banned.
    pub is_pinned: bool,
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
        self.is_pinned |= matches!(state, LimitState::Concurrency(_));
        if !limit.algorithm.fits(&usage, 1) {
            self.admits_at = self.admits_at.max(limit.algorithm.fits_at(state, &usage, 1));
        }
    }

    /// Adds the counted denials or the ban of the key.
    fn add_ban(&mut self, policy: &Policy, state: BanState) {
        let Some(end) = state.end() else { return };
        self.recovers_at = self.recovers_at.max(end.as_micros());
        if let BanState::Counting { denials, .. } = state {
            let max = policy.ban().map_or(denials, |ban| ban.denials());
            self.used_share = self.used_share.max(share(denials, max));
        } else {
            self.is_pinned = true;
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
        let Retention { admits_at, is_pinned, .. } = of_limits;
        let mut retention = Retention { admits_at, is_pinned, ..retention };
        retention.add_ban(policy, self.ban().at(now));
        retention
    }
}
