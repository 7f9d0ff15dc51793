//! Leases: quota that this process has charged to the store in advance, and spends by itself.
//!
//! A policy with a [hold time](Policy::leased) has limits that are tight enough for this, so that all
//! processes together admit no more than declared, also if some crash, pause or lose their connection:
//! what they hold was charged, and is not spent after the hold time.

mod demand;
mod key;
#[cfg(test)]
mod simulation;

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tollgate_algorithms::{
    Check, Cost, Decision, HeldQuota, Micros, Operation, Request, Timestamp,
};
use tollgate_redis::RedisStore;
use tollgate_state::{Store, monotonic_micros, wall_micros};

use super::key_table::{KeyTable, MAX_KEY_LEN, MAX_SHARD_LEN, PolicyKey};
use key::{Charge, Effects, KeyLease, Now, Unspent};

/// How often expired leases are removed.
const SWEEP_INTERVAL: Duration = Duration::from_secs(1);

/// The leases of this process.
#[derive(Debug)]
pub(super) struct Leases {
    table: KeyTable<KeyLease>,
    /// The next number of a lease, which begins differently in each process.
    next_id: AtomicU64,
    spent: AtomicU64,
    denied: AtomicU64,
    charges: AtomicU64,
}

/// A charge in advance, for the store.
#[derive(Clone, Debug)]
pub(super) struct LeaseCharge {
    subject: PolicyKey,
    charge: Charge,
    hash: u64,
}

impl LeaseCharge {
    pub(super) fn check(&self) -> Check<'_> {
        Check::new(&self.subject.policy, &self.subject.key).with_cost(self.charge.cost)
    }

    /// How long its answer is of use.
    pub(super) fn hold(&self) -> Duration {
        self.subject.policy.hold().map(Duration::from).unwrap_or_default()
    }
}

/// Quota of a key that was not spent.
#[derive(Clone, Debug)]
pub(super) struct Refund {
    subject: PolicyKey,
    unspent: Vec<Unspent>,
}

/// Refunds to the store, as one call to each node. What cannot be refunded stays charged.
pub(super) async fn refund(store: &RedisStore, refunds: &[Refund]) {
    let mut refunded = Vec::new();
    for Refund { subject, unspent } in refunds {
        refunded.extend(unspent.iter().map(|unspent| {
            let check = Check::new(&subject.policy, &subject.key).with_cost(unspent.cost);
            (Operation::Refund { time: Some(unspent.charged) }, [check])
        }));
    }
    let requests = refunded.iter().map(|(operation, checks)| Request {
        operation: *operation,
        checks,
        request_id: None,
    });
    drop(store.decide(&requests.collect::<Vec<_>>()).await);
}

/// What has to be sent to the store after a check.
#[derive(Debug, Default)]
pub(super) struct FollowUp {
    pub(super) charge: Option<LeaseCharge>,
    pub(super) refund: Option<Refund>,
}

impl Default for Leases {
    fn default() -> Self {
        Leases {
            table: KeyTable::default(),
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

    /// Decides a check of a leased policy; `None` if the store has to decide it.
    pub(super) fn decide(
        &self,
        check: &Check<'_>,
        hold: Micros,
        now: Now,
        follow_up: &mut FollowUp,
    ) -> Option<Decision> {
        let hash = self.table.hash(check);
        let mut shard = self.table.lock(hash);
        if shard.len() >= MAX_SHARD_LEN && !shard.contains_key(&hash) {
            return None;
        }
        let new = || {
            let id = self.next_id.fetch_add(1, Ordering::Relaxed);
            KeyLease::new(PolicyKey::new(check), hold, now, id)
        };
        let lease = shard.entry(hash).or_insert_with(new);
        if !lease.subject.matches(check) {
            // Another version of the policy, whose limits differ.
            *lease = new();
        }
        let mut effects = Effects::default();
        let decision = lease.decide(check.cost, now, &mut effects);
        drop(shard);
        self.process(check, hash, effects, follow_up);
        self.count(decision.as_ref());
        decision
    }

    /// As [`decide`](Self::decide), but leaves a check that the store has to decide uncounted, because
    /// it will be counted there.
    #[inline]
    pub(super) fn decide_now(
        &self,
        check: &Check<'_>,
        now: Now,
        follow_up: &mut FollowUp,
    ) -> Option<Decision> {
        let hash = self.table.hash(check);
        let mut shard = self.table.lock(hash);
        let lease = shard.get_mut(&hash).filter(|lease| lease.subject.matches(check));
        let lease = lease.filter(|lease| lease.can_decide(check.cost, now))?;
        let mut effects = Effects::default();
        let decision = lease.decide(check.cost, now, &mut effects);
        drop(shard);
        self.process(check, hash, effects, follow_up);
        self.count(decision.as_ref());
        decision
    }

    fn process(&self, check: &Check<'_>, hash: u64, effects: Effects, follow_up: &mut FollowUp) {
        let Effects { charge, unspent } = effects;
        if let Some(charge) = charge {
            self.charges.fetch_add(1, Ordering::Relaxed);
            let subject = PolicyKey::new(check);
            follow_up.charge = Some(LeaseCharge { subject, charge, hash });
        }
        if !unspent.is_empty() {
            follow_up.refund = Some(Refund { subject: PolicyKey::new(check), unspent });
        }
    }

    fn count(&self, decision: Option<&Decision>) {
        if let Some(decision) = decision {
            let counter = if decision.allowed { &self.spent } else { &self.denied };
            counter.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// What this process holds of the quota of a key.
    pub(super) fn held(&self, check: &Check<'_>, now: Now) -> Option<HeldQuota> {
        let hash = self.table.hash(check);
        let shard = self.table.lock(hash);
        let lease = shard.get(&hash).filter(|lease| lease.subject.matches(check))?;
        lease.held_quota(now)
    }

    /// Adds the decision of the store about a charge; `None` if it did not answer.
    pub(super) fn answer(&self, charge: &LeaseCharge, granted: Option<Decision>, now: Now) {
        let mut shard = self.table.lock(charge.hash);
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
            let hash = self.table.hash(check);
            let mut shard = self.table.lock(hash);
            let Some(lease) =
                shard.get_mut(&hash).filter(|lease| lease.subject.shares_state(check))
            else {
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
        for mut shard in self.table.lock_each() {
            shard.retain(|_, lease| {
                let unspent = unspent(lease);
                if !unspent.is_empty() {
                    refunds.push(Refund { subject: lease.subject.clone(), unspent });
                }
                is_kept(lease)
            });
        }
        refunds
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
