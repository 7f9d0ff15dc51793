//! Leases: quota that this process has charged to the store in advance, and spends by itself.
//!
//! A policy with a [hold time](Policy::leased) has limits that are tight enough for this, so that all
//! processes together admit no more than declared, also if some crash, pause or lose their connection:
//! what they hold was charged, and is not spent after the hold time.

mod key;
#[cfg(test)]
mod simulation;

use std::collections::HashMap;
use std::hash::{BuildHasher, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use foldhash::quality::RandomState;
use tollgate_core::{Check, Cost, Decision, Micros, Operation, Policy, Request, Timestamp};
use tollgate_redis::RedisStore;
use tollgate_store::{Store, monotonic_micros, wall_micros};

use key::{Charge, KeyLease, Now, Unspent};

/// How often expired leases are removed.
const SWEEP_INTERVAL: Duration = Duration::from_secs(1);
const SHARDS: usize = 16;
/// The most keys of a shard.
const MAX_KEYS: usize = 4_096;
/// The longest key that is leased.
const MAX_KEY_LEN: usize = 256;

/// The leases of this process.
#[derive(Debug)]
pub(super) struct Leases {
    shards: [Mutex<HashMap<u64, KeyLease>>; SHARDS],
    hasher: RandomState,
    /// The next number of a lease, which begins differently in each process.
    next_id: AtomicU64,
    spent: AtomicU64,
    denied: AtomicU64,
    charges: AtomicU64,
}

/// A charge in advance, for the store.
#[derive(Clone, Debug)]
pub(super) struct LeaseCharge {
    policy: Policy,
    key: Box<[u8]>,
    charge: Charge,
    hash: u64,
}

impl LeaseCharge {
    pub(super) fn check(&self) -> Check<'_> {
        Check::new(&self.policy, &self.key).with_cost(self.charge.cost)
    }

    /// How long its answer is of use.
    pub(super) fn hold(&self) -> Duration {
        self.policy.hold().map(Duration::from).unwrap_or_default()
    }
}

/// Quota of a key that was not spent.
#[derive(Clone, Debug)]
pub(super) struct Refund {
    policy: Policy,
    key: Box<[u8]>,
    unspent: Vec<Unspent>,
}

/// Refunds to the store, as one call to each node. What cannot be refunded stays charged.
pub(super) async fn refund(store: &RedisStore, refunds: &[Refund]) {
    let parts = refunds.iter().flat_map(|refund| refund.unspent.iter().map(move |x| (refund, x)));
    let checks: Vec<_> = parts
        .map(|(refund, unspent)| {
            let check = Check::new(&refund.policy, &refund.key).with_cost(unspent.cost);
            ([check], Operation::Refund { time: Some(unspent.charged) })
        })
        .collect();
    let requests: Vec<_> = checks
        .iter()
        .map(|(checks, operation)| Request { operation: *operation, checks, request_id: None })
        .collect();
    drop(store.decide(&requests).await);
}

/// What follows from a check.
#[derive(Debug, Default)]
pub(super) struct LeaseResult {
    /// The decision, unless the store has to make it.
    pub(super) decision: Option<Decision>,
    pub(super) charge: Option<LeaseCharge>,
    pub(super) refund: Option<Refund>,
}

impl Default for Leases {
    fn default() -> Self {
        Leases {
            shards: std::array::from_fn(|_| Mutex::default()),
            hasher: RandomState::default(),
            next_id: AtomicU64::new(fastrand::u64(..)),
            spent: AtomicU64::new(0),
            denied: AtomicU64::new(0),
            charges: AtomicU64::new(0),
        }
    }
}

impl Leases {
    /// Removes expired leases, forever.
    pub(super) async fn run(&self, store: &RedisStore) {
        let mut ticks = tokio::time::interval(SWEEP_INTERVAL);
        loop {
            ticks.tick().await;
            let refunds = self.sweep(now());
            if !refunds.is_empty() {
                refund(store, &refunds).await;
            }
        }
    }

    /// The decisions that were made from leases: admissions, and denials; and the charges.
    pub(super) fn counts(&self) -> (u64, u64, u64) {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        (count(&self.spent), count(&self.denied), count(&self.charges))
    }

    /// Decides a check of a leased policy.
    pub(super) fn decide(&self, check: &Check<'_>, hold: Micros, now: Now) -> LeaseResult {
        let hash = self.hash(check);
        let mut shard = self.lock(hash);
        if shard.len() >= MAX_KEYS && !shard.contains_key(&hash) {
            return LeaseResult::default();
        }
        let new = || {
            let id = self.next_id.fetch_add(1, Ordering::Relaxed);
            KeyLease::new(check.policy, hold, check.key, now, id)
        };
        let lease = shard.entry(hash).or_insert_with(new);
        if !lease.is_of(check) {
            // Another version of the policy, whose limits differ.
            *lease = new();
        }
        let result = lease.decide(check.cost, now);
        drop(shard);
        let of_key = || (check.policy.clone(), Box::from(check.key));
        if let Some(decision) = &result.decision {
            let counter = if decision.allowed { &self.spent } else { &self.denied };
            counter.fetch_add(1, Ordering::Relaxed);
        }
        let charge = result.charge.map(|charge| {
            self.charges.fetch_add(1, Ordering::Relaxed);
            let (policy, key) = of_key();
            LeaseCharge { policy, key, charge, hash }
        });
        let unspent = Some(result.unspent).filter(|unspent| !unspent.is_empty());
        let refund = unspent.map(|unspent| {
            let (policy, key) = of_key();
            Refund { policy, key, unspent }
        });
        LeaseResult { decision: result.decision, charge, refund }
    }

    /// Adds the decision of the store about a charge; `None` if it did not answer.
    pub(super) fn answer(&self, charge: &LeaseCharge, granted: Option<Decision>, now: Now) {
        let mut shard = self.lock(charge.hash);
        let Some(lease) = shard.get_mut(&charge.hash) else { return };
        match granted {
            Some(granted) => lease.grant(&charge.charge, granted, now),
            None => lease.fail(&charge.charge, now),
        }
    }

    /// Follows an operation on keys, also under another version of their policies: ends their leases if
    /// it has reset or blocked them.
    pub(super) fn follow(&self, request: &Request<'_>) {
        let ends = match request.operation {
            Operation::Reset | Operation::Block { .. } => true,
            Operation::Refund { .. }
            | Operation::Settle
            | Operation::Cancel { .. }
            | Operation::Unblock => false,
            _ => return,
        };
        for check in request.checks {
            let hash = self.hash(check);
            let mut shard = self.lock(hash);
            let Some(lease) = shard.get_mut(&hash).filter(|lease| lease.shares_state(check)) else {
                continue;
            };
            if ends {
                shard.remove(&hash);
            } else {
                lease.renew();
            }
        }
    }

    /// Removes what has expired, and keys that are not used any more; returns what can be refunded.
    fn sweep(&self, now: Now) -> Vec<Refund> {
        self.remove(|lease| lease.expire(now), |lease| !lease.is_idle(now))
    }

    /// Removes everything; returns what can be refunded.
    pub(super) fn end(&self) -> Vec<Refund> {
        self.remove(KeyLease::end, |_| false)
    }

    fn remove(
        &self,
        unspent: impl Fn(&mut KeyLease) -> Vec<Unspent>,
        is_kept: impl Fn(&KeyLease) -> bool,
    ) -> Vec<Refund> {
        let mut refunds = Vec::new();
        for shard in &self.shards {
            shard.lock().unwrap_or_else(PoisonError::into_inner).retain(|_, lease| {
                let unspent = unspent(lease);
                if !unspent.is_empty() {
                    let (policy, key) = (lease.policy.clone(), lease.key.clone());
                    refunds.push(Refund { policy, key, unspent });
                }
                is_kept(lease)
            });
        }
        refunds
    }

    fn hash(&self, check: &Check<'_>) -> u64 {
        let mut hasher = self.hasher.build_hasher();
        hasher.write_u64(check.policy.name_hash());
        hasher.write(check.key);
        hasher.finish()
    }

    fn lock(&self, hash: u64) -> MutexGuard<'_, HashMap<u64, KeyLease>> {
        #[expect(clippy::expect_used, reason = "a remainder of a small number fits usize")]
        let index = usize::try_from(hash >> 60).expect("four bits fit usize") % SHARDS;
        self.shards[index].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl KeyLease {
    fn is_of(&self, check: &Check<'_>) -> bool {
        self.key[..] == *check.key
            && (self.policy.ptr_eq(check.policy) || self.policy == *check.policy)
    }

    fn shares_state(&self, check: &Check<'_>) -> bool {
        self.key[..] == *check.key && self.policy.shares_name(check.policy)
    }
}

/// The time on both clocks of this process.
pub(super) fn now() -> Now {
    let timestamp = Timestamp::from_micros;
    Now { monotonic: timestamp(monotonic_micros()), wall: timestamp(wall_micros()) }
}

/// The check of a request that a lease can decide, with the hold time. A repeated request needs its first
/// answer, and several checks are decided together by the store.
pub(super) fn leased_check<'a>(request: &Request<'a>) -> Option<(&'a Check<'a>, Micros)> {
    let Operation::Check { lease: None } = request.operation else { return None };
    let [check] = request.checks else { return None };
    let hold = check.policy.hold()?;
    let is_leased = request.request_id.is_none()
        && check.cost > Cost::ZERO
        && check.key.len() <= MAX_KEY_LEN
        && !check.policy.is_shadow()
        && check.policy.enforced_ban().is_none();
    is_leased.then_some((check, hold))
}
