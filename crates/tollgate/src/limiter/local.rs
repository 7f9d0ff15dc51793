//! Decisions of this process while the store is unavailable, and the charge for them afterwards.
//!
//! A memory limiter decides with this process's share of each limit. A key that was charged in this way
//! is *pending*: this process decides its checks until a background task has charged the store for what
//! was used. The task first peeks at the key, so that it sends no charge to a server that does not
//! answer. Each charge has a request id, so that one whose reply is lost is repeated without effect.
//!
//! The memory limiter also knows, from the answers of the store, which keys are blocked and which
//! leases this process holds.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, sleep, timeout_at};
use tollgate_core::{
    Check, Cost, Decision, Id, Inspection, OnStoreError, Operation, Policy, Reason, Request,
    Source, Timestamp, fall_back,
};
use tollgate_redis::{RedisStore, Reply, TimedRequest};
use tollgate_store::{Answer, Clock, Key, StoreError};

use super::membership::Membership;
use super::shares::{Share, Shares};
use crate::memory::MemoryLimiter;

/// The maximum number of pending keys, and of keys that the memory limiter knows.
const MAX_KEYS: usize = 100_000;
/// The maximum size of the memory limiter.
const MAX_BYTES: usize = 64 << 20;
/// The number of keys that are charged at once.
const BATCH: usize = 64;
/// The time between attempts to charge while the store does not answer; a random part is added, so
/// that the processes do not charge at the same time.
const RETRY_INTERVAL: Duration = Duration::from_millis(50);
/// How long a charge may take.
const CHARGE_TIMEOUT: Duration = Duration::from_millis(500);
/// How long a charge with an unknown outcome is repeated. The store knows request ids for longer.
const REPEATED_FOR: Duration = Duration::from_secs(20);

/// The fallback of a limiter.
#[derive(Debug)]
pub(super) struct LocalFallback {
    memory: MemoryLimiter,
    pub(super) membership: Membership,
    shares: Shares,
    keys: Mutex<Keys>,
    /// The number of pending keys.
    pending: AtomicUsize,
    /// The number of keys that are blocked in the memory limiter.
    blocked: AtomicUsize,
    /// Wakes the background task.
    wake: Notify,
    /// Wakes requests whose key was being charged.
    charged: Notify,
}

type KeyName = (Box<str>, Box<[u8]>);

#[derive(Debug, Default)]
struct Keys {
    pending: HashMap<KeyName, PendingKey>,
    /// The pending keys in the order in which they are charged.
    order: VecDeque<KeyName>,
    blocked: HashSet<KeyName>,
    stats: LocalStats,
    /// The number of the last charge.
    sequence: u64,
}

/// Counters of the fallback.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LocalStats {
    /// The cost that the store was charged afterwards.
    pub(super) charged_back: u64,
    /// The cost that it was not charged: too many keys were pending, or the charge was rejected.
    pub(super) not_charged_back: u64,
}

/// A key that was charged in this process.
#[derive(Debug)]
struct PendingKey {
    policy: Policy,
    /// The share by which the key was charged last.
    share: Share,
    /// The cost for which the store was not charged.
    uncharged: u64,
    /// The leases that the store does not know.
    leases: HashSet<Id>,
    /// The charges that were sent and whose outcome is unknown.
    attempt: Option<Attempt>,
    /// Whether charges are in flight.
    is_charging: bool,
}

#[derive(Clone, Debug)]
struct Attempt {
    started_at: Instant,
    /// The part of the uncharged cost that the charges are for.
    uncharged: u64,
    charges: Vec<Charge>,
}

/// A charge of one limit or of a lease.
#[derive(Clone, Debug)]
struct Charge {
    id: Box<[u8]>,
    operation: Operation,
    cost: Cost,
    /// The index of the limit; `None` for a lease.
    limit: Option<usize>,
    outcome: ChargeOutcome,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ChargeOutcome {
    Unknown,
    NotExecuted,
    Charged,
    Rejected,
}

impl LocalFallback {
    pub(super) fn new(clock: &Clock) -> Self {
        let mut memory = MemoryLimiter::builder().max_keys(MAX_KEYS).max_bytes(MAX_BYTES);
        if let Clock::Manual(clock) = clock {
            memory = memory.clock(clock.clone());
        }
        LocalFallback {
            memory: memory.build(),
            membership: Membership::new(),
            shares: Shares::default(),
            keys: Mutex::default(),
            pending: AtomicUsize::new(0),
            blocked: AtomicUsize::new(0),
            wake: Notify::new(),
            charged: Notify::new(),
        }
    }

    /// Returns the number of pending keys.
    pub(super) fn pending(&self) -> usize {
        self.pending.load(Ordering::Acquire)
    }

    pub(super) fn stats(&self) -> LocalStats {
        self.lock().stats
    }

    /// Returns whether this process decides a request although the store may be available: one of its
    /// keys is pending. Waits until `deadline` for charges in flight.
    pub(super) async fn is_local(&self, request: &Request<'_>, deadline: Instant) -> bool {
        let enforced = || request.checks.iter().filter(|check| !check.policy.is_shadow());
        let is_local = |check: &Check<'_>| is_local_policy(check.policy);
        if self.pending() == 0 || !request.operation.decides() || !enforced().all(is_local) {
            return false;
        }
        loop {
            let mut charged = std::pin::pin!(self.charged.notified());
            charged.as_mut().enable();
            let is_charging = {
                let keys = self.lock();
                let mut pending =
                    request.checks.iter().filter_map(|check| keys.pending.get(&name(check)));
                match pending.next() {
                    None => return false,
                    Some(first) => first.is_charging || pending.any(|key| key.is_charging),
                }
            };
            if !is_charging || timeout_at(deadline, charged).await.is_err() {
                return true;
            }
        }
    }

    /// Decides a request with this process's shares; `None` if one of the policies has another
    /// answer while the store is unavailable, or if this process has no share of one of the limits.
    pub(super) fn decide(&self, request: &Request<'_>) -> Option<Result<Answer, StoreError>> {
        if !request.operation.decides() {
            return None;
        }
        let answers = request.checks.iter().map(|check| check.policy.on_store_error());
        if !answers.clone().any(|answer| answer == OnStoreError::Local) {
            return None;
        }
        let members = self.membership.members()?;
        let mut shares = Vec::with_capacity(request.checks.len());
        for check in request.checks {
            let policy = check.policy;
            let share = match policy.on_store_error() {
                OnStoreError::Local => self.shares.get(policy, check.key, &members),
                _ => None,
            };
            let is_admitted = policy.on_store_error() == OnStoreError::Allow || policy.is_shadow();
            if share.is_none() && !is_admitted {
                return None;
            }
            shares.push(share);
        }
        let pairs = || request.checks.iter().zip(&shares);
        let checks: Vec<_> = pairs()
            .filter_map(|(check, share)| Some(Check { policy: &share.as_ref()?.policy, ..*check }))
            .collect();
        let mut keys = self.lock();
        let answer = match self.memory.decide(&Request { checks: &checks, ..*request }) {
            Ok(answer) => answer,
            Err(error) => return Some(Err(error.into())),
        };
        let is_allowed = answer.allowed();
        let mut decided = answer.decisions.into_iter();
        let mut decisions = Vec::with_capacity(request.checks.len());
        for (check, share) in pairs() {
            decisions.push(match share {
                Some(share) => {
                    #[expect(clippy::expect_used, reason = "the limiter decides every check")]
                    let mut decision = decided.next().expect("one decision per check");
                    if decision.changed {
                        self.add_pending(&mut keys, check, share, &decision);
                    }
                    mark_degraded(&mut decision, check);
                    decision
                }
                None => without_share(request, check, is_allowed, self.memory.now()),
            });
        }
        Some(Ok(Answer { decisions }))
    }

    fn add_pending(&self, keys: &mut Keys, check: &Check<'_>, share: &Share, decision: &Decision) {
        let name = name(check);
        let Keys { pending, order, stats, .. } = keys;
        if pending.len() >= MAX_KEYS && !pending.contains_key(&name) {
            stats.not_charged_back = stats.not_charged_back.saturating_add(decision.granted);
            return;
        }
        let key = pending.entry(name.clone()).or_insert_with(|| {
            order.push_back(name);
            PendingKey {
                policy: check.policy.clone(),
                share: share.clone(),
                uncharged: 0,
                leases: HashSet::new(),
                attempt: None,
                is_charging: false,
            }
        });
        (key.policy, key.share) = (check.policy.clone(), share.clone());
        // A denial that is counted was charged, too.
        let cost = if decision.allowed { decision.granted } else { check.cost.get() };
        key.uncharged = key.uncharged.saturating_add(cost);
        key.leases.extend(decision.lease);
        self.pending.store(pending.len(), Ordering::Release);
        self.wake.notify_one();
    }

    /// Executes an operation on a lease that only this process knows; `None` if it does not.
    pub(super) fn change_lease(&self, request: &Request<'_>) -> Option<Answer> {
        let (Operation::Release { lease } | Operation::Renew { lease }) = request.operation else {
            return None;
        };
        let [check] = request.checks else { return None };
        if self.pending() == 0 {
            return None;
        }
        let mut keys = self.lock();
        let key = keys.pending.get_mut(&name(check)).filter(|key| key.leases.contains(&lease))?;
        let checks = [Check { policy: &key.share.policy, ..*check }];
        let mut answer = self.memory.decide(&Request { checks: &checks, ..*request }).ok()?;
        if matches!(request.operation, Operation::Release { .. }) {
            key.leases.remove(&lease);
        }
        answer.decisions.iter_mut().for_each(|decision| mark_degraded(decision, check));
        Some(answer)
    }

    /// Notes what an answer of the store shows about blocks and leases.
    pub(super) fn observe(&self, request: &Request<'_>, answer: &Answer) {
        for (check, decision) in request.checks.iter().zip(&answer.decisions) {
            if is_local_policy(check.policy) {
                self.observe_decision(request.operation, check, decision);
            }
        }
    }

    fn observe_decision(&self, operation: Operation, check: &Check<'_>, decision: &Decision) {
        let Check { policy, key, .. } = *check;
        let has_block = match operation {
            Operation::Block { .. } => Some(true),
            Operation::Unblock => Some(false),
            _ if decision.reason == Reason::Blocked => Some(true),
            _ if decision.allowed && operation.decides() => Some(false),
            _ => None,
        };
        match has_block {
            Some(true) => {
                let span = match operation {
                    Operation::Block { span } => span,
                    _ => decision.retry_after,
                };
                self.set_block(check, Operation::Block { span });
            }
            Some(false) if self.blocked.load(Ordering::Acquire) > 0 => {
                self.set_block(check, Operation::Unblock);
            }
            _ => {}
        }
        if operation == Operation::Reset {
            let mut keys = self.lock();
            self.execute(Operation::Reset, policy, key, Cost::ZERO);
            if keys.pending.remove(&name(check)).is_some() {
                self.pending.store(keys.pending.len(), Ordering::Release);
            }
        }
        if policy.has_concurrent() {
            self.observe_lease(operation, check, decision);
        }
    }

    /// Gives the memory limiter the leases that this process holds in the store.
    fn observe_lease(&self, operation: Operation, check: &Check<'_>, decision: &Decision) {
        let Some(lease) = decision.lease else { return };
        let operation = match operation {
            Operation::Check { .. } | Operation::Acquire { .. } if decision.allowed => {
                Operation::Acquire { lease }
            }
            Operation::Renew { .. } | Operation::Release { .. } => operation,
            _ => return,
        };
        let Some(members) = self.membership.members() else { return };
        if let Some(share) = self.shares.get(check.policy, check.key, &members) {
            self.execute(operation, &share.policy, check.key, check.cost);
        }
    }

    fn set_block(&self, check: &Check<'_>, operation: Operation) {
        let mut keys = self.lock();
        let name = name(check);
        match operation {
            Operation::Unblock if !keys.blocked.remove(&name) => return,
            Operation::Unblock => {}
            _ if keys.blocked.len() >= MAX_KEYS => return,
            _ => {
                keys.blocked.insert(name);
            }
        }
        self.blocked.store(keys.blocked.len(), Ordering::Release);
        self.execute(operation, check.policy, check.key, Cost::ZERO);
    }

    fn execute(&self, operation: Operation, policy: &Policy, key: &[u8], cost: Cost) {
        let checks = [Check { policy, key, cost }];
        // An operation that does not apply changes nothing: the policy was changed meanwhile.
        let _ = self.memory.decide(&Request { operation, checks: &checks, request_id: None });
    }

    /// Charges the store for pending keys, for as long as the task runs.
    pub(super) async fn run(&self, store: &RedisStore) {
        loop {
            if self.pending() == 0 {
                self.wake.notified().await;
            }
            let jitter = Duration::from_millis(fastrand::u64(..50));
            sleep(RETRY_INTERVAL + jitter).await;
            while self.charge_some(store).await {}
        }
    }

    /// Charges the store for all pending keys, until it fails to answer; returns whether none is left.
    pub(super) async fn charge_all(&self, store: &RedisStore) -> bool {
        while self.charge_some(store).await {}
        self.pending() == 0
    }

    /// Charges the store for some pending keys; returns whether there are more, and it answers.
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
        let answers = charges.len();
        self.charge(store, charges).await;
        self.put_back(keys.into_iter().map(|(_, name)| name));
        answers > 0 && self.pending() > 0
    }

    /// Takes pending keys that have used something; the others are no longer pending.
    fn next_keys(&self) -> Vec<(Policy, KeyName)> {
        let mut keys = self.lock();
        let mut taken = Vec::new();
        while taken.len() < BATCH {
            let Some(name) = keys.order.pop_front() else { break };
            let Some(key) = keys.pending.get(&name) else { continue };
            if key.attempt.is_none() && !is_used(&self.inspect(key, &name)) {
                keys.pending.remove(&name);
                continue;
            }
            taken.push((key.policy.clone(), name));
        }
        self.pending.store(keys.pending.len(), Ordering::Release);
        taken
    }

    fn put_back(&self, names: impl Iterator<Item = KeyName>) {
        let mut keys = self.lock();
        for name in names {
            if keys.pending.contains_key(&name) {
                keys.order.push_back(name);
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

    async fn charge(&self, store: &RedisStore, attempts: Vec<(KeyName, Policy, Attempt)>) {
        let mut requests = Vec::new();
        for (name, policy, attempt) in &attempts {
            for charge in attempt.charges.iter().filter(|charge| charge.is_open()) {
                let id = Some(charge.id.clone());
                requests.push((charge.operation, policy.clone(), name.1.clone(), charge.cost, id));
            }
        }
        let mut replies = send(store, &requests).await.into_iter();
        for (name, _, mut attempt) in attempts {
            for charge in attempt.charges.iter_mut().filter(|charge| charge.is_open()) {
                #[expect(clippy::expect_used, reason = "the store replies to every request")]
                let reply = replies.next().expect("one reply per request");
                charge.outcome = outcome(&reply, charge);
            }
            self.end(&name, attempt);
        }
        self.charged.notify_waiters();
    }

    /// Processes the outcomes of the charges of a key.
    fn end(&self, name: &KeyName, attempt: Attempt) {
        let mut keys = self.lock();
        let Keys { pending, stats, .. } = &mut *keys;
        let Some(key) = pending.get_mut(name) else { return };
        key.is_charging = false;
        let is_expired = attempt.started_at.elapsed() >= REPEATED_FOR;
        if !is_expired
            && attempt.charges.iter().all(|charge| charge.outcome == ChargeOutcome::NotExecuted)
        {
            key.attempt = None;
            return;
        }
        if !is_expired && attempt.charges.iter().any(Charge::is_open) {
            key.attempt = Some(attempt);
            return;
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

    fn lock(&self) -> MutexGuard<'_, Keys> {
        self.keys.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Charge {
    /// Returns whether the store has not confirmed the charge.
    fn is_open(&self) -> bool {
        matches!(self.outcome, ChargeOutcome::Unknown | ChargeOutcome::NotExecuted)
    }

    fn is_lease(&self, id: Id) -> bool {
        self.operation == Operation::Acquire { lease: id }
    }
}

fn is_local_policy(policy: &Policy) -> bool {
    policy.on_store_error() == OnStoreError::Local
}

fn name(check: &Check<'_>) -> KeyName {
    (check.policy.name().into(), check.key.into())
}

fn is_used(inspection: &Inspection) -> bool {
    inspection.limits.iter().any(|limit| limit.used > 0)
}

fn mark_degraded(decision: &mut Decision, check: &Check<'_>) {
    decision.degraded = true;
    decision.source = Source::Fallback;
    let capacity = check.policy.limits().iter().map(tollgate_core::Limit::capacity).min();
    if decision.never && capacity.is_some_and(|capacity| check.cost.get() <= capacity) {
        // Only the share is too small.
        decision.never = false;
        decision.reason = Reason::Store;
    }
}

/// The decision of a check that this process admits without a limit.
fn without_share(
    request: &Request<'_>,
    check: &Check<'_>,
    is_allowed: bool,
    now: Timestamp,
) -> Decision {
    let operation = if is_allowed { request.operation } else { Operation::Peek };
    let checks = [*check];
    let decisions = fall_back(&Request { operation, checks: &checks, request_id: None }, now);
    #[expect(clippy::expect_used, reason = "the operation decides")]
    decisions.and_then(|mut decisions| decisions.pop()).expect("one decision per check")
}

/// Returns the charges for what a key has used of its shares.
fn charges(
    key: &PendingKey,
    inspection: &Inspection,
    time: Timestamp,
    prefix: &str,
) -> Vec<Charge> {
    let mut charges = Vec::new();
    let mut add = |operation, cost, limit| {
        let Some(cost) = Cost::new(cost).filter(|cost| *cost > Cost::ZERO) else { return };
        let id = format!("{prefix}:{}", charges.len()).into_bytes().into();
        charges.push(Charge { id, operation, cost, limit, outcome: ChargeOutcome::NotExecuted });
    };
    for (index, limit) in key.policy.limits().iter().enumerate() {
        let inspected = key.share.index(index).and_then(|share| inspection.limits.get(share));
        if let Some(inspected) = inspected.filter(|_| !limit.is_concurrent()) {
            // What was charged before is still used, and what was used before may have recovered.
            add(backfill(index, time), inspected.used.min(key.uncharged), Some(index));
        }
    }
    let leases = inspection.limits.iter().find(|limit| !limit.leases.is_empty());
    for lease in leases.iter().flat_map(|limit| &limit.leases) {
        if key.leases.contains(&lease.id) {
            add(Operation::Acquire { lease: lease.id }, lease.cost, None);
        }
    }
    charges
}

/// The operation that charges one limit for requests that this process has admitted.
fn backfill(limit: usize, time: Timestamp) -> Operation {
    #[expect(clippy::expect_used, reason = "a policy has at most 16 limits")]
    let limit = u8::try_from(limit).expect("the index of a limit fits u8");
    Operation::Backfill { limit, time }
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

fn outcome(reply: &Reply, charge: &Charge) -> ChargeOutcome {
    match reply {
        Reply::Answer(Ok(answer)) if charge.limit.is_none() && !answer.allowed() => {
            ChargeOutcome::Rejected
        }
        Reply::Answer(Ok(_)) => ChargeOutcome::Charged,
        Reply::Answer(Err(StoreError::Request(_))) => ChargeOutcome::Rejected,
        Reply::Answer(Err(error)) if error.was_not_executed() => ChargeOutcome::NotExecuted,
        _ => ChargeOutcome::Unknown,
    }
}
