//! Denials that this process remembers, so that a key that is denied often costs the store little.
//!
//! A denial of a cost applies to that cost and to greater ones until its `retry_after`, because other
//! requests can only make it longer. The exceptions are refunds, resets, unblocks and other versions of
//! the policy. Those of this process end a remembered denial at once, and those of other processes
//! within a second: once a second, one request for the key is sent to the store.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use tollgate_algorithms::{
    Check, Cost, Decision, Micros, OnStoreError, Operation, Policy, Reason, Request, Timestamp,
};
use tollgate_state::Answer;

use super::key_table::{KeyTable, MAX_KEY_LEN, MAX_SHARD_LEN, PolicyKey};

/// How often a request for a denied key is sent to the store.
const REFRESH_INTERVAL: Micros = Micros::from_secs(1);

/// The denials that this process remembers.
#[derive(Debug, Default)]
pub(super) struct Denials {
    table: KeyTable<Denial>,
    /// The number of remembered denials.
    len: AtomicUsize,
    hits: AtomicU64,
}

#[derive(Debug)]
struct Denial {
    subject: PolicyKey,
    cost: Cost,
    decision: Decision,
    /// When the decision was received.
    received_at: Timestamp,
    /// When the cost may be admitted.
    until: Timestamp,
    /// When the next request is sent to the store.
    refresh_at: Timestamp,
}

impl Denials {
    /// Returns the number of requests that were denied without the store.
    pub(super) fn hits(&self) -> u64 {
        self.hits.load(Ordering::Relaxed)
    }

    /// Returns the remembered denial of a request.
    pub(super) fn get(&self, request: &Request<'_>, now: Timestamp) -> Option<Answer> {
        if self.len.load(Ordering::Relaxed) == 0 {
            return None;
        }
        self.find(request, now, |denial| {
            let is_due = now >= denial.refresh_at;
            if is_due {
                // This request is sent; the others are denied while it is in flight.
                denial.refresh_at = now.saturating_add(REFRESH_INTERVAL);
            }
            !is_due
        })
    }

    /// Returns the remembered denial of a request that the store has not answered. The shares of this
    /// process need not be spent on a key that is known to be exhausted. A policy that answers otherwise
    /// while the store is unavailable forgets the denial.
    pub(super) fn get_without_store(
        &self,
        request: &Request<'_>,
        now: Timestamp,
    ) -> Option<Answer> {
        if self.len.load(Ordering::Relaxed) == 0 {
            return None;
        }
        let check = check_to_remember(request)?;
        if check.policy.on_store_error() != OnStoreError::Local {
            self.forget(check);
            return None;
        }
        let mut answer = self.find(request, now, |_| true)?;
        answer.decisions.iter_mut().for_each(|decision| decision.degraded = true);
        Some(answer)
    }

    fn find(
        &self,
        request: &Request<'_>,
        now: Timestamp,
        is_usable: impl FnOnce(&mut Denial) -> bool,
    ) -> Option<Answer> {
        let check = check_to_remember(request)?;
        let hash = self.table.hash(check);
        let mut shard = self.table.lock(hash);
        let denial = shard.get_mut(&hash)?;
        let is_denied =
            denial.subject.matches(check) && check.cost >= denial.cost && now < denial.until;
        if !is_denied || !is_usable(denial) {
            return None;
        }
        let decision = denial.decision.repeated_after(now.duration_since(denial.received_at));
        drop(shard);
        self.hits.fetch_add(1, Ordering::Relaxed);
        Some(Answer { decisions: vec![decision] })
    }

    /// Forgets the denial of a key, also under another tier or override of the policy: they share the
    /// state of the key.
    fn forget(&self, check: &Check<'_>) {
        let hash = self.table.hash(check);
        let mut shard = self.table.lock(hash);
        if shard.get(&hash).is_some_and(|denial| denial.subject.shares_state(check)) {
            shard.remove(&hash);
            self.len.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Follows an operation that is sent to the store: forgets the denials that it may end.
    pub(super) fn follow(&self, request: &Request<'_>) {
        if self.len.load(Ordering::Relaxed) > 0 && may_end_denials(request.operation) {
            request.checks.iter().for_each(|check| self.forget(check));
        }
    }

    /// Notes the answer of the store to a request.
    pub(super) fn record(
        &self,
        request: &Request<'_>,
        answer: &Answer,
        sent_at: Timestamp,
        received_at: Timestamp,
    ) {
        if let Some(check) = check_to_remember(request)
            && let [decision] = &answer.decisions[..]
            && is_remembered(check.policy, decision)
        {
            self.insert(check, decision, sent_at, received_at);
        } else if self.len.load(Ordering::Relaxed) > 0 && ends_denials(request, answer) {
            request.checks.iter().for_each(|check| self.forget(check));
        }
    }

    fn insert(
        &self,
        check: &Check<'_>,
        decision: &Decision,
        sent_at: Timestamp,
        received_at: Timestamp,
    ) {
        let refresh_at = sent_at.saturating_add(REFRESH_INTERVAL);
        // The store decided after the request was sent, so the cost is not denied for too long.
        // Without a known end, the denial is refreshed until the cost is admitted.
        let until = sent_at.saturating_add(decision.retry_after.unwrap_or(Micros::MAX_WINDOW));
        let hash = self.table.hash(check);
        let mut shard = self.table.lock(hash);
        if shard.len() >= MAX_SHARD_LEN && !shard.contains_key(&hash) {
            let before = shard.len();
            shard.retain(|_, denial| denial.until > received_at);
            self.len.fetch_sub(before - shard.len(), Ordering::Relaxed);
            if shard.len() >= MAX_SHARD_LEN {
                return;
            }
        }
        let (subject, decision, cost) = (PolicyKey::new(check), decision.clone(), check.cost);
        let denial = Denial { subject, cost, decision, received_at, until, refresh_at };
        if shard.insert(hash, denial).is_none() {
            self.len.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Returns the check of a request whose denial can be remembered. A lease can be released at any time, a
/// repeated request gets its first answer, and a denial of several checks depends on all their keys.
fn check_to_remember<'a>(request: &Request<'a>) -> Option<&'a Check<'a>> {
    let Operation::Check { lease: None } = request.operation else { return None };
    let [check] = request.checks else { return None };
    let policy = check.policy;
    let is_remembered = request.request_id.is_none()
        && check.cost > Cost::ZERO
        && check.key.len() <= MAX_KEY_LEN
        && !policy.is_shadow()
        && !policy.limits().iter().any(|limit| limit.counts_denied() || limit.is_concurrent());
    is_remembered.then_some(check)
}

/// Whether the process remembers a decision of the store. The store counts the denials of a policy that
/// bans keys; those of a banned key do not count until the ban ends.
fn is_remembered(policy: &Policy, decision: &Decision) -> bool {
    let counts = policy.enforced_ban().is_some();
    let is_decided = match decision.reason {
        Reason::Never => true,
        Reason::Limit => !counts,
        // After a ban or a block that ends before the limits admit, denials count again.
        Reason::Blocked | Reason::Banned => !counts || decision.outlasts_limits(),
        _ => false,
    };
    !decision.allowed && !decision.degraded && is_decided
}

/// Returns whether a denial of the keys of a request may no longer apply.
fn ends_denials(request: &Request<'_>, answer: &Answer) -> bool {
    let decides = request.operation.decides() && request.operation != Operation::Peek;
    may_end_denials(request.operation) || (decides && answer.allowed())
}

/// Whether denials of keys may no longer apply after an operation other than a decision.
fn may_end_denials(operation: Operation) -> bool {
    !operation.decides() && !matches!(operation, Operation::Renew { .. })
}

#[cfg(test)]
mod tests {
    use tollgate_algorithms::Ban;
    use tollgate_state::{Key, ManualClock};

    use super::super::key_table::SHARDS;
    use super::*;
    use crate::MemoryLimiter;

    struct Fixture {
        store: MemoryLimiter,
        clock: ManualClock,
        denials: Denials,
        policy: Policy,
        asked: std::cell::Cell<u32>,
    }

    impl Fixture {
        fn new(limits: &str) -> Self {
            let clock = ManualClock::default();
            Fixture {
                store: MemoryLimiter::builder().clock(clock.clone()).build(),
                clock,
                denials: Denials::default(),
                policy: limits.parse().unwrap(),
                asked: std::cell::Cell::new(0),
            }
        }

        fn now(&self) -> Timestamp {
            self.clock.now()
        }

        /// Executes an operation; returns its decision.
        fn execute(&self, operation: Operation, policy: &Policy, cost: u32) -> Decision {
            let checks = [Check { policy, key: b"k", cost: Cost::from(cost) }];
            let request = Request { operation, checks: &checks, request_id: None };
            if let Some(answer) = self.denials.get(&request, self.now()) {
                return answer.into_decision();
            }
            self.asked.set(self.asked.get() + 1);
            let answer = self.store.decide(&request).unwrap();
            self.denials.record(&request, &answer, self.now(), self.now());
            answer.into_decision()
        }

        fn check(&self, cost: u32) -> Decision {
            self.execute(Operation::Check { lease: None }, &self.policy, cost)
        }

        fn advance(&self, millis: u64) {
            self.clock.advance(Micros::new(millis * 1_000));
        }
    }

    #[test]
    fn a_remembered_denial_equals_that_of_the_store_and_ends_when_the_cost_is_admitted() {
        let fixture = Fixture::new("10/min burst 5");
        assert!(fixture.check(5).allowed);
        let first = fixture.check(2);
        fixture.advance(400);
        let mut remembered = fixture.check(2);
        let exact =
            fixture.store.check_cost(&fixture.policy, Key::new(b"k").unwrap(), Cost::from(2));
        assert_eq!(remembered.source, tollgate_algorithms::Source::DenyCache);
        remembered.source = exact.source;
        assert_eq!(remembered, exact);
        assert_eq!(fixture.asked.get(), 2);
        // A greater cost is denied, too; a lower one is decided by the store.
        assert!(!fixture.check(3).allowed);
        assert_eq!(fixture.asked.get(), 2);
        let _ = fixture.check(1);
        assert_eq!(fixture.asked.get(), 3);
        let retry_after = first.retry_after.unwrap();
        fixture.clock.advance(Micros::new(retry_after.get() - 400_000 - 1));
        assert!(!fixture.check(2).allowed);
        fixture.clock.advance(Micros::new(1));
        assert!(fixture.check(2).allowed);
    }

    #[test]
    fn one_request_a_second_is_sent_to_the_store() {
        let fixture = Fixture::new("1/d fixed");
        assert!(fixture.check(1).allowed);
        for _ in 0..1_000 {
            fixture.advance(10);
            assert!(!fixture.check(1).allowed);
        }
        assert!((9..=12).contains(&fixture.asked.get()), "{}", fixture.asked.get());
    }

    #[test]
    fn what_may_end_a_denial_ends_it() {
        for operation in [
            Operation::Refund { time: None },
            Operation::Reset,
            Operation::Unblock,
            Operation::Penalize,
        ] {
            let fixture = Fixture::new("1/d fixed");
            let _ = fixture.check(1);
            let _ = fixture.check(1);
            let _ = fixture.execute(operation, &fixture.policy, 1);
            let asked = fixture.asked.get();
            let _ = fixture.check(1);
            assert_eq!(fixture.asked.get(), asked + 1, "{operation:?}");
        }
        let fixture = Fixture::new("1/d fixed");
        let _ = fixture.check(1);
        let _ = fixture.check(1);
        let more = fixture.policy.with_limits(vec!["2/d fixed".parse().unwrap()]).unwrap();
        assert!(fixture.execute(Operation::Check { lease: None }, &more, 1).allowed);
    }

    #[test]
    fn a_block_is_remembered_for_a_second() {
        let fixture = Fixture::new("9/d fixed");
        let key = Key::new(b"k").unwrap();
        let _ = fixture.store.block(&fixture.policy, key, None);
        assert!(!fixture.check(1).allowed);
        let _ = fixture.store.unblock(&fixture.policy, key);
        fixture.advance(999);
        assert_eq!(fixture.check(1).reason, Reason::Blocked);
        fixture.advance(1);
        assert!(fixture.check(1).allowed);
    }

    #[test]
    fn denials_that_another_request_can_end_are_not_remembered() {
        for limits in ["1/d log count-denied", "1 concurrent lease 60s"] {
            let fixture = Fixture::new(limits);
            for id in 1..4 {
                let lease =
                    limits.contains("lease").then(|| tollgate_algorithms::Id::from_u128(id));
                let _ = fixture.execute(Operation::Check { lease }, &fixture.policy, 1);
            }
            assert_eq!(fixture.asked.get(), 3, "{limits}");
        }
        let fixture = Fixture::new("1/d fixed");
        let shadow = fixture.policy.clone().shadow();
        (0..3).for_each(|_| drop(fixture.execute(Operation::Check { lease: None }, &shadow, 1)));
        assert_eq!(fixture.asked.get(), 3);
    }

    #[test]
    fn denials_that_count_towards_a_ban_are_sent_and_those_of_a_banned_key_remembered() {
        let ban = |denials, seconds| {
            Ban::new(denials, Micros::from_secs(60), Micros::from_secs(seconds)).unwrap()
        };
        let mut fixture = Fixture::new("1/s fixed");
        fixture.policy = fixture.policy.with_ban(ban(5, 600));
        assert!(fixture.check(1).allowed);
        for denied in 1..=5 {
            assert_eq!(fixture.check(1).reason, Reason::Limit);
            assert_eq!(fixture.asked.get(), 1 + denied);
        }
        (0..9).for_each(|_| assert_eq!(fixture.check(1).reason, Reason::Banned));
        assert_eq!(fixture.asked.get(), 7);
        let _ = fixture.execute(Operation::Unblock, &fixture.policy, 0);
        fixture.advance(1_000);
        assert!(fixture.check(1).allowed, "the ban is lifted at once");
        // The limit denies beyond this ban, and then its denials count again.
        let mut fixture = Fixture::new("1/d fixed");
        fixture.policy = fixture.policy.with_ban(ban(1, 1));
        (0..5).for_each(|_| drop(fixture.check(1)));
        assert_eq!(fixture.asked.get(), 5);
    }

    #[test]
    fn a_reset_under_the_limits_of_another_tier_ends_a_denial() {
        let mut fixture = Fixture::new("1/d fixed");
        fixture.policy = Policy::named("a", "1/d fixed").unwrap();
        assert!(fixture.check(1).allowed && !fixture.check(1).allowed);
        let _ = fixture.execute(Operation::Reset, &Policy::named("a", "9/d fixed").unwrap(), 0);
        assert!(fixture.check(1).allowed);
    }

    #[test]
    fn the_number_of_denials_is_bounded() {
        let fixture = Fixture::new("1/d fixed");
        for index in 0..200_000_u32 {
            let key = index.to_be_bytes();
            let checks = [Check { policy: &fixture.policy, key: &key, cost: Cost::ONE }];
            let operation = Operation::Check { lease: None };
            let request = Request { operation, checks: &checks, request_id: None };
            let mut decision =
                Decision::from_store(false, Some(Micros::from_secs(9)), fixture.clock.now());
            decision.reason = Reason::Limit;
            let answer = Answer { decisions: vec![decision] };
            fixture.denials.record(&request, &answer, fixture.now(), fixture.now());
        }
        assert_eq!(fixture.denials.len.load(Ordering::Relaxed), SHARDS * MAX_SHARD_LEN);
    }
}
