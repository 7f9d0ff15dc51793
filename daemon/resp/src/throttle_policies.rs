//! The policies of `CL.THROTTLE`. Connections share them: a check is fastest with the same policy
//! value that charged the key before.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use tollgate::{Kind, Limit, LimitError, Micros, OnStoreError, Policy, Spec};

/// The name of the policies of `CL.THROTTLE`.
pub(super) const NAME: &str = "@throttle";

/// The window of quotas whose period divides it, in seconds: 210 days. State survives a change of
/// the limit while the window is the same, so that a key keeps its usage when its period changes.
/// This is the only valid window that all usual periods divide, from a second to a week and 30
/// days; 28, 60 and 90 days do not.
const WINDOW: u64 = 210 * 24 * 3_600;
/// The most policies that are shared.
const MAX_SHARED: usize = 4_096;
/// The policies that a connection finds without a lock; a power of two.
const CACHE_LEN: usize = 64;

/// The limit of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Quota {
    /// The capacity of the token bucket.
    pub(super) capacity: u64,
    pub(super) count: u64,
    /// In seconds.
    pub(super) period: u64,
    /// The decision while the store is unavailable.
    pub(super) on_store_error: OnStoreError,
}

impl Quota {
    fn policy(self) -> Result<Policy, LimitError> {
        let limit = match self.widened() {
            Some(widened) => widened,
            None => self.limit(self.count, self.period)?,
        };
        match Policy::reserved(NAME, [limit]) {
            Ok(policy) => Ok(policy.with_on_store_error(self.on_store_error)),
            Err(error) => unreachable!("the name is reserved and the limit is valid: {error}"),
        }
    }

    /// The limit in the shared window. Rates are reduced to lowest terms, so that all decisions are
    /// the same as in the window of the period.
    fn widened(self) -> Option<Limit> {
        let factor =
            WINDOW.checked_div(self.period).filter(|factor| factor * self.period == WINDOW)?;
        self.limit(self.count.checked_mul(factor)?, WINDOW).ok()
    }

    fn limit(self, count: u64, window: u64) -> Result<Limit, LimitError> {
        Spec::new(count, Micros::from_secs(window), Kind::TokenBucket { burst: self.capacity })
            .build()
    }

    /// Its slot in the cache of a connection.
    #[inline]
    fn slot(self) -> usize {
        let mixed = self.capacity ^ self.count.rotate_left(21) ^ self.period.rotate_left(42);
        let mixed = mixed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 58;
        usize::from(mixed.to_le_bytes()[0])
    }
}

/// The policies of all connections.
#[derive(Debug, Default)]
pub(crate) struct ThrottlePolicies(Mutex<HashMap<Quota, Policy>>);

impl ThrottlePolicies {
    fn get(&self, quota: Quota) -> Result<Policy, LimitError> {
        // The map is valid after every single update.
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = all.get(&quota) {
            return Ok(known.clone());
        }
        let policy = quota.policy()?;
        if all.len() >= MAX_SHARED {
            // Building policies again is cheaper than tracking which was used last.
            all.clear();
        }
        all.insert(quota, policy.clone());
        Ok(policy)
    }

    /// A policy for operations that do not depend on the limit.
    pub(super) fn any(&self) -> Result<Policy, LimitError> {
        let on_store_error = OnStoreError::default();
        self.get(Quota { capacity: 1, count: 1, period: 1, on_store_error })
    }
}

/// The policies that a connection has used; each quota has one slot.
#[derive(Debug, Default)]
pub(super) struct ThrottlePolicyCache(Vec<Option<(Quota, Policy)>>);

impl ThrottlePolicyCache {
    #[inline]
    pub(super) fn get(
        &mut self,
        quota: Quota,
        shared: &ThrottlePolicies,
    ) -> Result<&Policy, LimitError> {
        if self.0.is_empty() {
            self.0.resize(CACHE_LEN, None);
        }
        let slot = &mut self.0[quota.slot()];
        if slot.as_ref().is_none_or(|(cached, _)| *cached != quota) {
            *slot = Some((quota, shared.get(quota)?));
        }
        match slot {
            Some((_, policy)) => Ok(policy),
            None => unreachable!("the slot was just filled"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: u64 = 86_400;

    fn quota(capacity: u64, count: u64, period: u64) -> Quota {
        Quota { capacity, count, period, on_store_error: OnStoreError::default() }
    }

    fn window(quota: Quota) -> u64 {
        quota.policy().unwrap().limits()[0].spec().window.secs_rounded_up()
    }

    #[test]
    fn usual_periods_share_a_window() {
        for (period, is_shared) in [
            (1, true),
            (7, true),
            (10, true),
            (60, true),
            (90, true),
            (900, true),
            (3_600, true),
            (8 * 3_600, true),
            (DAY, true),
            (7 * DAY, true),
            (14 * DAY, true),
            (30 * DAY, true),
            (11, false),
            (1_024, false),
            (28 * DAY, false),
            (90 * DAY, false),
            (365 * DAY, false),
        ] {
            let found = window(quota(10, 3, period));
            assert_eq!(found, if is_shared { WINDOW } else { period }, "{period}");
        }
        // More than can be counted in it.
        assert_eq!(window(quota(10, 2_000_000_000_000, 1)), 1);
    }

    /// Including limits whose tick is coarser than a microsecond, which no model covers.
    #[test]
    fn the_shared_window_decides_as_the_period_does() {
        let computed = |policy: &Policy| {
            let limit = policy.limits()[0];
            (limit.capacity(), limit.parameters())
        };
        let (mut widened, mut coarse) = (0, 0);
        for capacity in [1, 10, 1_001, 123_456, 10_000_019, 3_000_000_001] {
            for count in [1, 3, 7, 10, 999, 1_000, 1_024, 65_537, 1_000_003, 12_345_678_901] {
                for period in [1, 2, 7, 9, 30, 60, 100, 3_600, DAY, 7 * DAY, 30 * DAY, 210 * DAY] {
                    let quota = quota(capacity, count, period);
                    let Ok(own) = quota.limit(count, period) else {
                        assert!(quota.policy().is_err(), "{quota:?}");
                        continue;
                    };
                    let own = Policy::reserved(NAME, [own]).unwrap();
                    let policy = quota.policy().unwrap();
                    assert_eq!(computed(&policy), computed(&own), "{quota:?}");
                    widened += u32::from(policy.to_string() != own.to_string());
                    coarse += u32::from(policy.limits()[0].tick() != Micros::new(1));
                }
            }
        }
        assert!(widened > 400 && coarse > 20, "{widened} {coarse}");
    }
}
