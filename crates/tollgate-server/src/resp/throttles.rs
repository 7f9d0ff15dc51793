//! What `CL.THROTTLE` asks for, as policies: made once, and shared by all connections, for a check
//! is fastest under the very policy that its key was charged under before.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use tollgate::{Kind, LimitError, Micros, Policy, Spec};

/// The policy whose state `CL.THROTTLE` keeps.
pub(super) const NAME: &str = "@throttle";

/// How many quotas are kept as policies.
const MOST_SHARED: usize = 4_096;
/// How many of them a connection finds without a lock; a power of two.
const MOST_OWN: usize = 64;

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
        let kind = Kind::TokenBucket { burst: self.capacity };
        let limit = Spec::new(self.count, Micros::from_secs(self.period), kind).build()?;
        match Policy::of_protocol(NAME, [limit]) {
            Ok(policy) => Ok(policy),
            Err(it) => unreachable!("the name is a protocol's, and the limit is one: {it}"),
        }
    }

    /// Its place among a connection's own.
    #[inline]
    fn place(self) -> usize {
        let mixed = self.capacity ^ self.count.rotate_left(21) ^ self.period.rotate_left(42);
        let mixed = mixed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 58;
        usize::try_from(mixed).unwrap_or(0) % MOST_OWN
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
        if all.len() >= MOST_SHARED {
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
            self.0.resize(MOST_OWN, None);
        }
        let place = &mut self.0[quota.place()];
        if place.as_ref().is_none_or(|it| it.0 != quota) {
            *place = Some((quota, shared.get(quota)?));
        }
        match place {
            Some((_, policy)) => Ok(policy),
            None => unreachable!("it was just put there"),
        }
    }
}
