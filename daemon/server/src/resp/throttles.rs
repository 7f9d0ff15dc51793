//! What `CL.THROTTLE` asks for, as policies: made once, and shared by all connections, for a check
//! is fastest under the very policy that its key was charged under before.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use tollgate::{Kind, Limit, LimitError, Micros, Policy, Spec};

/// The policy whose state `CL.THROTTLE` keeps.
pub(super) const NAME: &str = "@throttle";

/// The window, in seconds, of quotas whose period divides it: 210 days. State is kept for as long as
/// the window is the same, so a key keeps what was used when its period changes. Of the windows that
/// may be, this is the only one that every usual period divides, from a second to a week and to 30
/// days; 28, 60 and 90 days do not.
const WINDOW: u64 = 210 * 24 * 3_600;
/// How many quotas are kept as policies.
const MAX_SHARED: usize = 4_096;
/// How many of them a connection finds without a lock; a power of two.
const MAX_OWN: usize = 64;

/// The numbers that a policy is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Quota {
    /// The most that can be held.
    pub(super) capacity: u64,
    pub(super) count: u64,
    /// In seconds.
    pub(super) period: u64,
}

impl Quota {
    fn policy(self) -> Result<Policy, LimitError> {
        let limit = match self.widened() {
            Some(widened) => widened,
            None => self.limit_of(self.count, self.period)?,
        };
        match Policy::reserved(NAME, [limit]) {
            Ok(policy) => Ok(policy),
            Err(error) => unreachable!("the name is a protocol's, and the limit is one: {error}"),
        }
    }

    /// Its limit in the window that all periods share. Rates are reduced before they are used, so
    /// that every answer is as in its own window.
    fn widened(self) -> Option<Limit> {
        let factor = WINDOW.checked_div(self.period).filter(|x| x * self.period == WINDOW)?;
        self.limit_of(self.count.checked_mul(factor)?, WINDOW).ok()
    }

    fn limit_of(self, count: u64, window: u64) -> Result<Limit, LimitError> {
        Spec::new(count, Micros::from_secs(window), Kind::TokenBucket { burst: self.capacity })
            .build()
    }

    /// Its place among a connection's own.
    #[inline]
    fn place(self) -> usize {
        let mixed = self.capacity ^ self.count.rotate_left(21) ^ self.period.rotate_left(42);
        let mixed = mixed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 58;
        usize::try_from(mixed).unwrap_or(0) % MAX_OWN
    }
}

/// The policies that all connections share.
#[derive(Debug, Default)]
pub(crate) struct Throttles(Mutex<HashMap<Quota, Policy>>);

impl Throttles {
    fn get(&self, quota: Quota) -> Result<Policy, LimitError> {
        // Whole after each step.
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = all.get(&quota) {
            return Ok(known.clone());
        }
        let policy = quota.policy()?;
        if all.len() >= MAX_SHARED {
            // Rather make them again now and then than remember which was used last.
            all.clear();
        }
        all.insert(quota, policy.clone());
        Ok(policy)
    }

    /// A policy of that name, for what is asked of a key whatever its limits.
    pub(super) fn any(&self) -> Result<Policy, LimitError> {
        self.get(Quota { capacity: 1, count: 1, period: 1 })
    }
}

/// The policies that a connection has asked for; each quota has one place.
#[derive(Debug, Default)]
pub(super) struct OwnThrottles(Vec<Option<(Quota, Policy)>>);

impl OwnThrottles {
    #[inline]
    pub(super) fn get(&mut self, quota: Quota, shared: &Throttles) -> Result<&Policy, LimitError> {
        if self.0.is_empty() {
            self.0.resize(MAX_OWN, None);
        }
        let place = &mut self.0[quota.place()];
        if place.as_ref().is_none_or(|place| place.0 != quota) {
            *place = Some((quota, shared.get(quota)?));
        }
        match place {
            Some((_, policy)) => Ok(policy),
            None => unreachable!("it was just put there"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: u64 = 86_400;

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
            let found = window(Quota { capacity: 10, count: 3, period });
            assert_eq!(found, if is_shared { WINDOW } else { period }, "{period}");
        }
        // More than can be counted in it.
        assert_eq!(window(Quota { capacity: 10, count: 2_000_000_000_000, period: 1 }), 1);
    }

    /// Also where the tick of a limit is coarser than a microsecond, which no model covers.
    #[test]
    fn the_shared_window_computes_as_the_period_does() {
        let computed = |policy: &Policy| {
            let limit = policy.limits()[0];
            (limit.capacity(), limit.parameters())
        };
        let (mut widened, mut coarse) = (0, 0);
        for capacity in [1, 10, 1_001, 123_456, 10_000_019, 3_000_000_001] {
            for count in [1, 3, 7, 10, 999, 1_000, 1_024, 65_537, 1_000_003, 12_345_678_901] {
                for period in [1, 2, 7, 9, 30, 60, 100, 3_600, DAY, 7 * DAY, 30 * DAY, 210 * DAY] {
                    let quota = Quota { capacity, count, period };
                    let Ok(own) = quota.limit_of(count, period) else {
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
