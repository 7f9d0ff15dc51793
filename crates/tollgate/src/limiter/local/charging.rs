//! The background task that charges the store for pending keys.

use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::time::{Instant, sleep};
use tollgate_algorithms::{Check, Cost, Inspection, Operation, Policy, Request, Timestamp};
use tollgate_redis::{RedisStore, Reply, TimedRequest};
use tollgate_state::{Key, StoreError};

use super::pending::{Attempt, Charge, ChargeOutcome, KeyName, PendingKey, charges, outcome};
use super::{Keys, LocalFallback};

/// The number of keys that are charged at once.
const BATCH: usize = 64;
/// The time between attempts to charge while the store does not answer; a random part is added, so
/// that the processes do not charge at the same time.
const RETRY_INTERVAL: Duration = Duration::from_millis(50);
/// How long a charge may take.
const CHARGE_TIMEOUT: Duration = Duration::from_millis(500);
/// How long a charge with an unknown outcome is repeated. The store knows request ids for longer.
const REPEATED_FOR: Duration = Duration::from_secs(20);

impl LocalFallback {
    /// Charges the store for pending keys, for as long as the task runs.
    pub(in crate::limiter) async fn run(&self, store: &RedisStore) {
        loop {
            if self.pending() == 0 {
                self.wake.notified().await;
            }
            let jitter = Duration::from_millis(fastrand::u64(..50));
            sleep(RETRY_INTERVAL + jitter).await;
            while self.charge_some(store).await {}
        }
    }

    /// Charges the store for all pending keys, after the task has ended; returns when none is left.
    pub(in crate::limiter) async fn charge_all(&self, store: &RedisStore) {
        self.put_back_all();
        while self.pending() > 0 {
            if !self.charge_some(store).await {
                sleep(RETRY_INTERVAL).await;
            }
        }
    }

    /// Charges the store for some pending keys; returns whether there are more, and it was charged for
    /// some.
    async fn charge_some(&self, store: &RedisStore) -> bool {
        let keys = self.next_keys();
        if keys.is_empty() {
            return false;
        }
        let peek = |(policy, key): &(Policy, KeyName)| {
            (Operation::Peek, policy.clone(), key.1.clone(), Cost::ONE, None)
        };
        let peeks: Vec<_> = keys.iter().map(peek).collect();
        let replies = send(store, &peeks).await;
        let mut charges = Vec::new();
        for ((_, name), reply) in keys.iter().zip(replies) {
            match reply {
                Reply::Answer(Ok(answer)) => {
                    let time = answer.decisions.first().map(|decision| decision.time);
                    charges.extend(time.and_then(|time| self.begin(name, time)));
                }
                Reply::Answer(Err(StoreError::Request(_))) => self.forget(name),
                _ => {}
            }
        }
        let is_charged = self.charge(store, charges).await;
        self.put_back(keys.into_iter().map(|(_, name)| name));
        is_charged && self.pending() > 0
    }

    /// Takes pending keys that have used something; the others are no longer pending.
    fn next_keys(&self) -> Vec<(Policy, KeyName)> {
        let mut keys = self.lock();
        let mut taken = Vec::new();
        while taken.len() < BATCH {
            let Some(name) = keys.order.pop_front() else { break };
            let Some(key) = keys.pending.get_mut(&name) else { continue };
            if key.attempt.is_none() && !is_used(&self.inspect(key, &name)) {
                keys.pending.remove(&name);
                continue;
            }
            key.is_taken = true;
            taken.push((key.policy.clone(), name));
        }
        self.pending.store(keys.pending.len(), Ordering::Release);
        taken
    }

    fn put_back(&self, names: impl Iterator<Item = KeyName>) {
        let mut keys = self.lock();
        for name in names {
            if let Some(key) = keys.pending.get_mut(&name).filter(|key| key.is_taken) {
                key.is_taken = false;
                keys.order.push_back(name);
            }
        }
    }

    /// Puts back the keys that the task had taken when it was ended.
    fn put_back_all(&self) {
        let mut keys = self.lock();
        let Keys { pending, order, .. } = &mut *keys;
        for (name, key) in pending {
            key.is_charging = false;
            if std::mem::take(&mut key.is_taken) {
                order.push_back(name.clone());
            }
        }
    }

    fn inspect(&self, key: &PendingKey, name: &KeyName) -> Inspection {
        match Key::new(&name.1) {
            Ok(name) => self.memory.inspect(&key.share.policy, name),
            Err(_) => Inspection::default(),
        }
    }

    /// Returns the charges of a key, which are then in flight.
    fn begin(&self, name: &KeyName, time: Timestamp) -> Option<(KeyName, Policy, Attempt)> {
        let mut keys = self.lock();
        let sequence = keys.sequence + 1;
        let inspection = self.inspect(keys.pending.get(name)?, name);
        let Keys { pending, sequence: last, .. } = &mut *keys;
        let key = pending.get_mut(name)?;
        let attempt = key.attempt.take().unwrap_or_else(|| {
            *last = sequence;
            let prefix = format!("fallback:{}:{sequence}", self.membership.process());
            let charges = charges(key, &inspection, time, &prefix);
            Attempt { started_at: Instant::now(), uncharged: key.uncharged, charges }
        });
        key.attempt = Some(attempt.clone());
        key.is_charging = true;
        Some((name.clone(), key.policy.clone(), attempt))
    }

    /// Sends the charges of keys; returns whether those of a key are complete.
    async fn charge(&self, store: &RedisStore, attempts: Vec<(KeyName, Policy, Attempt)>) -> bool {
        let mut requests = Vec::new();
        for (name, policy, attempt) in &attempts {
            for charge in attempt.charges.iter().filter(|charge| charge.is_open()) {
                let id = Some(charge.id.clone());
                requests.push((charge.operation, policy.clone(), name.1.clone(), charge.cost, id));
            }
        }
        let mut replies = send(store, &requests).await.into_iter();
        let mut is_charged = false;
        for (name, _, mut attempt) in attempts {
            for charge in attempt.charges.iter_mut().filter(|charge| charge.is_open()) {
                #[expect(clippy::expect_used, reason = "the store replies to every request")]
                let reply = replies.next().expect("one reply per request");
                charge.outcome = outcome(&reply, charge);
            }
            is_charged |= self.end(&name, attempt);
        }
        self.charged.notify_waiters();
        is_charged
    }

    /// Processes the outcomes of the charges of a key; returns whether they are complete.
    fn end(&self, name: &KeyName, attempt: Attempt) -> bool {
        let mut keys = self.lock();
        let Keys { pending, stats, .. } = &mut *keys;
        let Some(key) = pending.get_mut(name) else { return true };
        key.is_charging = false;
        let is_expired = attempt.started_at.elapsed() >= REPEATED_FOR;
        // Without charges, nothing is left to charge: every lease was released or has expired.
        let is_empty = attempt.charges.is_empty();
        if !is_expired
            && !is_empty
            && attempt.charges.iter().all(|charge| charge.outcome == ChargeOutcome::NotExecuted)
        {
            key.attempt = None;
            return false;
        }
        if !is_expired && attempt.charges.iter().any(Charge::is_open) {
            key.attempt = Some(attempt);
            return false;
        }
        for charge in &attempt.charges {
            let count = match charge.outcome {
                ChargeOutcome::Charged => &mut stats.charged_back,
                _ => &mut stats.not_charged_back,
            };
            *count = count.saturating_add(charge.cost.get());
        }
        // The memory limiter keeps what was used: a store that fails again and again grants no second
        // share.
        key.attempt = None;
        key.uncharged = key.uncharged.saturating_sub(attempt.uncharged);
        key.leases.retain(|id| !attempt.charges.iter().any(|charge| charge.is_lease(*id)));
        if key.uncharged == 0 && key.leases.is_empty() {
            pending.remove(name);
        }
        self.pending.store(pending.len(), Ordering::Release);
        true
    }

    /// Drops a key whose policy the store rejects.
    fn forget(&self, name: &KeyName) {
        let mut keys = self.lock();
        let Keys { pending, stats, .. } = &mut *keys;
        let Some(key) = pending.remove(name) else { return };
        let used = self.inspect(&key, name).limits.iter().map(|limit| limit.used).sum::<u64>();
        stats.not_charged_back = stats.not_charged_back.saturating_add(used);
        self.pending.store(pending.len(), Ordering::Release);
    }
}

fn is_used(inspection: &Inspection) -> bool {
    inspection.limits.iter().any(|limit| limit.used > 0)
}

/// A request that is sent: the operation, policy, key, cost and request id.
type OwnedRequest = (Operation, Policy, Box<[u8]>, Cost, Option<Box<[u8]>>);

async fn send(store: &RedisStore, requests: &[OwnedRequest]) -> Vec<Reply> {
    let checks: Vec<_> = requests
        .iter()
        .map(|(_, policy, key, cost, _)| [Check { policy, key, cost: *cost }])
        .collect();
    let deadline = Instant::now() + CHARGE_TIMEOUT;
    let timed: Vec<_> = requests
        .iter()
        .zip(&checks)
        .map(|((operation, .., id), checks)| {
            let request_id = id.as_deref();
            TimedRequest {
                request: Request { operation: *operation, checks, request_id },
                deadline,
            }
        })
        .collect();
    store.decide_by(&timed).await
}
