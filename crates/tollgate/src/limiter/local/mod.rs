//! Decisions of this process while the store is unavailable, and the charge for them afterwards.
//!
//! A memory limiter decides with this process's share of each limit. A key that was charged in this way
//! is *pending*: this process decides its checks until a background task has charged the store for what
//! was used. The task first peeks at the key, so that it sends no charge to a server that does not
//! answer. Each charge has a request id, so that one whose reply is lost is repeated without effect.
//!
//! The memory limiter also knows, from the answers of the store, which keys are blocked or banned, and
//! which leases this process holds. It counts no denials towards a ban.

mod charging;
mod pending;

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};
use tollgate_algorithms::{
    Check, Cost, Decision, OnStoreError, Operation, Policy, Reason, Request, Source, Timestamp,
    fall_back,
};
use tollgate_state::{Answer, Clock, StoreError};

use super::membership::Membership;
use super::shares::{Share, Shares};
use crate::memory::MemoryLimiter;
use pending::{KeyName, PendingKey};

/// The maximum number of pending keys, and of keys that the memory limiter knows.
const MAX_KEYS: usize = 100_000;
/// The maximum size of the memory limiter.
const MAX_BYTES: usize = 64 << 20;

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

impl LocalFallback {
    pub(super) fn new(clock: &Clock, deadline: Duration) -> Self {
        let memory = MemoryLimiter::builder().max_keys(MAX_KEYS).max_bytes(MAX_BYTES);
        let memory = memory.clock(clock.clone());
        LocalFallback {
            memory: memory.build(),
            membership: Membership::new(deadline),
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
        let request_of_shares = Request { checks: &checks, ..*request };
        let answer = match self.memory.decide_unrecorded(&request_of_shares) {
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
                is_taken: false,
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
        let request_of_share = Request { checks: &checks, ..*request };
        let mut answer = self.memory.decide_unrecorded(&request_of_share).ok()?;
        if matches!(request.operation, Operation::Release { .. }) {
            key.leases.remove(&lease);
        }
        answer.decisions.iter_mut().for_each(|decision| mark_degraded(decision, check));
        Some(answer)
    }

    /// Notes what an answer of the store shows about blocks, bans and leases.
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
            // A cost above the capacity has no retry, and a ban that the limits outlast has theirs.
            _ if !decision.never
                && (matches!(decision.reason, Reason::Blocked | Reason::Banned)
                    || decision.banned_for().is_some()) =>
            {
                Some(true)
            }
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
        let request = Request { operation, checks: &checks, request_id: None };
        // An operation that does not apply changes nothing: the policy was changed meanwhile.
        let _ = self.memory.decide_unrecorded(&request);
    }

    fn lock(&self) -> MutexGuard<'_, Keys> {
        self.keys.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn is_local_policy(policy: &Policy) -> bool {
    policy.on_store_error() == OnStoreError::Local
}

fn name(check: &Check<'_>) -> KeyName {
    (check.policy.name().into(), check.key.into())
}

fn mark_degraded(decision: &mut Decision, check: &Check<'_>) {
    decision.degraded = true;
    decision.source = Source::Fallback;
    let capacity = check.policy.limits().iter().map(tollgate_algorithms::Limit::capacity).min();
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
