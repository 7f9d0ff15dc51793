//! Leases: quota that this process has charged to the store in advance, and spends by itself.
//!
//! A policy with a [hold time](Policy::leased) has limits that are tight enough for this, so that all
//! processes together admit no more than declared, also if some crash, pause or lose their connection:
//! what they hold was charged, and nobody spends it after the hold time.

mod key;
#[cfg(test)]
mod simulation;

use std::collections::HashMap;
use std::hash::{BuildHasher, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use foldhash::quality::RandomState;
use tokio::time::Instant;
use tollgate_core::{Check, Cost, Decision, Micros, Operation, Policy, Request, Timestamp};
use tollgate_redis::RedisStore;
use tollgate_store::{Clock, Store};

use key::{Ask, KeyLease, Now, Unspent};

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
    start: Instant,
    /// For the times between requests of quota, which differ between processes.
    seed: u64,
    spent: AtomicU64,
    denied: AtomicU64,
    asked: AtomicU64,
}

/// A request for quota, for the store.
#[derive(Clone, Debug)]
pub(super) struct LeaseRequest {
    pub(super) policy: Policy,
    pub(super) key: Box<[u8]>,
    ask: Ask,
    hash: u64,
}

impl LeaseRequest {
    pub(super) fn cost(&self) -> Cost {
        self.ask.cost
    }
}

/// Quota that was not spent, for the store.
#[derive(Clone, Debug)]
pub(super) struct Return {
    policy: Policy,
    key: Box<[u8]>,
    unspent: Vec<Unspent>,
}

impl Return {
    /// Gives it back to the store. If that fails, it stays charged.
    pub(super) async fn give_back(self, store: &RedisStore) {
        for part in &self.unspent {
            let check = Check::new(&self.policy, &self.key).with_cost(part.cost);
            let operation = Operation::Refund { time: Some(part.charged) };
            let request = Request { operation, checks: &[check], request_id: None };
            drop(store.decide(&[request]).await);
        }
    }
}

/// What follows from a check.
#[derive(Debug, Default)]
pub(super) struct LeaseStep {
    /// The decision, unless the store has to make it.
    pub(super) decision: Option<Decision>,
    pub(super) request: Option<LeaseRequest>,
    pub(super) unspent: Option<Return>,
}

impl Default for Leases {
    fn default() -> Self {
        Leases {
            shards: std::array::from_fn(|_| Mutex::default()),
            hasher: RandomState::default(),
            start: Instant::now(),
            seed: fastrand::u64(..),
            spent: AtomicU64::new(0),
            denied: AtomicU64::new(0),
            asked: AtomicU64::new(0),
        }
    }
}

impl Leases {
    /// Removes expired leases, forever.
    pub(super) async fn run(&self, store: &RedisStore, clock: &Clock) {
        let mut ticks = tokio::time::interval(SWEEP_INTERVAL);
        loop {
            ticks.tick().await;
            for unspent in self.sweep(self.now(clock.now())) {
                unspent.give_back(store).await;
            }
        }
    }

    /// The time on both clocks of this process.
    pub(super) fn now(&self, wall: Timestamp) -> Now {
        Now { monotonic: Timestamp::EPOCH.saturating_add(self.start.elapsed().into()), wall }
    }

    /// The decisions that were made from leases: admissions, and denials; and the requests for quota.
    pub(super) fn counts(&self) -> (u64, u64, u64) {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        (count(&self.spent), count(&self.denied), count(&self.asked))
    }

    /// Decides a check of a leased policy.
    pub(super) fn decide(&self, check: &Check<'_>, hold: Micros, now: Now) -> LeaseStep {
        let hash = self.hash(check);
        let mut shard = self.lock(hash);
        if shard.len() >= MAX_KEYS && !shard.contains_key(&hash) {
            return LeaseStep::default();
        }
        let new = || KeyLease::new(check.policy, hold, check.key, now, self.seed);
        let lease = shard.entry(hash).or_insert_with(new);
        if !lease.is_of(check) {
            // Another version of the policy, whose limits differ.
            *lease = new();
        }
        let step = lease.decide(check.cost, now);
        drop(shard);
        let of_key = || (check.policy.clone(), Box::from(check.key));
        if let Some(decision) = &step.decision {
            let counter = if decision.allowed { &self.spent } else { &self.denied };
            counter.fetch_add(1, Ordering::Relaxed);
        }
        let request = step.ask.map(|ask| {
            self.asked.fetch_add(1, Ordering::Relaxed);
            let (policy, key) = of_key();
            LeaseRequest { policy, key, ask, hash }
        });
        let unspent = Some(step.unspent).filter(|unspent| !unspent.is_empty()).map(|unspent| {
            let (policy, key) = of_key();
            Return { policy, key, unspent }
        });
        LeaseStep { decision: step.decision, request, unspent }
    }

    /// Takes over the decision of the store about a request for quota; `None` if it did not answer.
    pub(super) fn answer(&self, request: &LeaseRequest, granted: Option<Decision>, now: Now) {
        let mut shard = self.lock(request.hash);
        let check = Check::new(&request.policy, &request.key);
        let Some(lease) = shard.get_mut(&request.hash).filter(|lease| lease.is_of(&check)) else {
            return;
        };
        match granted {
            Some(granted) => lease.grant(&request.ask, granted, now),
            None => lease.fail(now),
        }
    }

    /// Forgets the leases of a key whose state an operation has changed, also under another version of
    /// the policy.
    pub(super) fn forget(&self, request: &Request<'_>) {
        if matches!(request.operation, Operation::Check { .. } | Operation::Peek) {
            return;
        }
        for check in request.checks {
            let hash = self.hash(check);
            let mut shard = self.lock(hash);
            if shard.get(&hash).is_some_and(|lease| lease.shares_state(check)) {
                shard.remove(&hash);
            }
        }
    }

    /// Removes what has expired, and keys that are not used any more; returns what the store can be
    /// given back.
    pub(super) fn sweep(&self, now: Now) -> Vec<Return> {
        self.remove(|lease| lease.expire(now), |lease| !lease.is_idle(now))
    }

    /// Removes everything; returns what the store can be given back.
    pub(super) fn give_back(&self) -> Vec<Return> {
        self.remove(KeyLease::give_back, |_| false)
    }

    fn remove(
        &self,
        unspent: impl Fn(&mut KeyLease) -> Vec<Unspent>,
        is_kept: impl Fn(&KeyLease) -> bool,
    ) -> Vec<Return> {
        let mut returns = Vec::new();
        for shard in &self.shards {
            shard.lock().unwrap_or_else(PoisonError::into_inner).retain(|_, lease| {
                let unspent = unspent(lease);
                if !unspent.is_empty() {
                    let (policy, key) = (lease.policy.clone(), lease.key.clone());
                    returns.push(Return { policy, key, unspent });
                }
                is_kept(lease)
            });
        }
        returns
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
