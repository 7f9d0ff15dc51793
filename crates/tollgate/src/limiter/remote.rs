//! The limiter on a shared store: decides within a deadline, whatever the store does.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout, timeout_at};
use tollgate_algorithms::{
    Check, Decision, Inspection, Micros, NotationError, Operation, Policy, Request, Timestamp,
    fall_back,
};
use tollgate_redis::{RedisStore, Reply, TimedRequest};
use tollgate_state::{Answer, Clock, Failure, FailureKind, Key, StoreError};

use super::denials::Denials;
use super::histogram::LatencyHistogram;
use super::leases::{self, FollowUp, LeaseCharge, Leases, leased_check};
use super::local::LocalFallback;
use super::stats::LimiterStats;
use crate::guard::Waiters;
use crate::lists::ScreenedBatch;
use crate::policies::PolicyCache;

/// A limiter on Redis or Valkey. Clones share it.
#[derive(Clone, Debug)]
pub(super) struct Remote(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    store: RedisStore,
    /// The deadline of operations that decide.
    deadline: Duration,
    /// The clock for decisions that the store did not make.
    clock: Clock,
    policies: PolicyCache,
    denials: Denials,
    leases: Arc<Leases>,
    local: Arc<LocalFallback>,
    stats: Mutex<LimiterStats>,
    latency: LatencyHistogram,
    waiters: Waiters,
    /// The runtime on which the limiter was opened: that of a caller may end.
    runtime: Handle,
    /// The tasks that end with the limiter.
    tasks: [JoinHandle<()>; 3],
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

/// The minimum deadline of operations that have no fallback, such as a reset.
const MIN_ADMIN_DEADLINE: Duration = Duration::from_secs(1);

impl Remote {
    /// Creates a limiter on a store, and starts its tasks.
    ///
    /// # Panics
    /// Panics if there is no tokio runtime.
    pub(super) fn new(store: RedisStore, deadline: Duration, clock: Clock) -> Self {
        let local = Arc::new(LocalFallback::new(&clock, deadline));
        let heartbeats = {
            let (local, store) = (Arc::clone(&local), store.clone());
            tokio::spawn(async move { local.membership.run(store).await })
        };
        let charges = {
            let (local, store) = (Arc::clone(&local), store.clone());
            tokio::spawn(async move { local.run(&store).await })
        };
        let leases = Arc::new(Leases::default());
        let sweeps = {
            let (leases, store) = (Arc::clone(&leases), store.clone());
            tokio::spawn(async move { leases.run(&store).await })
        };
        Remote(Arc::new(Inner {
            store,
            deadline,
            clock,
            policies: PolicyCache::default(),
            denials: Denials::default(),
            leases,
            local,
            stats: Mutex::default(),
            latency: LatencyHistogram::default(),
            waiters: Waiters::default(),
            runtime: Handle::current(),
            tasks: [heartbeats, charges, sweeps],
        }))
    }

    /// Charges the store for what this process has admitted without it,
    /// removes it from those that share the limits, and refunds what it holds.
    pub(super) async fn leave(&self, deadline: Instant) -> Result<(), Failure> {
        let local = &self.0.local;
        for task in &self.0.tasks {
            task.abort();
            while !task.is_finished() {
                tokio::task::yield_now().await;
            }
        }
        let charged = timeout_at(deadline, local.charge_all(&self.0.store)).await;
        let left = local.membership.leave(&self.0.store).await;
        let refunds = self.0.leases.end();
        // What is not refunded in time stays charged.
        let _ = timeout_at(deadline, leases::refund(&self.0.store, &refunds)).await;
        if charged.is_ok() {
            return left.map_err(|failure| {
                let message =
                    format!("the shares of this process are not passed on at once: {failure}");
                Failure::new(failure.kind, message)
            });
        }
        let mut message = format!("{} keys could not be charged", local.pending());
        if let Err(failure) = left {
            message = format!("{message}: {failure}");
        }
        Err(Failure::new(FailureKind::Deadline, message))
    }

    pub(super) fn waiters(&self) -> &Waiters {
        &self.0.waiters
    }

    pub(super) fn shares_state(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    pub(super) fn store(&self) -> &RedisStore {
        &self.0.store
    }

    pub(super) fn limit(&self, limits: &str) -> Result<Policy, NotationError> {
        self.0.policies.get(limits)
    }

    pub(super) fn stats(&self) -> LimiterStats {
        let latency = &self.0.latency;
        let (members, membership_failure) = self.0.local.membership.status();
        let local = self.0.local.stats();
        let (leased_allowed, leased_denied, lease_requests) = self.0.leases.counts();
        LimiterStats {
            latency_buckets: latency.buckets(),
            latency_sum_us: latency.sum_us(),
            denied_from_memory: self.0.denials.hits(),
            leased_allowed,
            leased_denied,
            lease_requests,
            members,
            membership_failure,
            pending_keys: self.0.local.pending(),
            charged_back: local.charged_back,
            not_charged_back: local.not_charged_back,
            ..self.lock().clone()
        }
    }

    pub(super) async fn decide(&self, request: &Request<'_>) -> Result<Answer, StoreError> {
        let mut answers = self.decide_batch(std::slice::from_ref(request), Duration::MAX).await;
        #[expect(clippy::expect_used, reason = "decide_batch answers every request")]
        answers.pop().expect("one answer per request")
    }

    pub(super) async fn decide_batch(
        &self,
        requests: &[Request<'_>],
        deadline: Duration,
    ) -> Vec<Result<Answer, StoreError>> {
        let batch = ScreenedBatch::new(requests);
        let stored = self.execute(&batch.store_requests(), deadline).await;
        batch.merge(stored, &self.0.clock)
    }

    /// Decides requests: from memory if the store is not needed, else by the store, and where it fails
    /// as the policies answer.
    async fn execute(
        &self,
        requests: &[Request<'_>],
        deadline: Duration,
    ) -> Vec<Result<Answer, StoreError>> {
        if requests.is_empty() {
            return Vec::new();
        }
        let now = Instant::now();
        let mut answers = Vec::with_capacity(requests.len());
        let mut timed = Vec::with_capacity(requests.len());
        for request in requests {
            let deadline = now + self.deadline_of(request).min(deadline);
            let answer = self.decide_without_store(request, deadline).await;
            if answer.is_none() {
                timed.push(TimedRequest { request: *request, deadline });
            }
            answers.push(answer);
            // The next requests are decided after it.
            self.0.leases.follow(request);
            self.0.denials.follow(request);
        }
        let sent_at = self.0.clock.now();
        let mut replies = self.0.store.decide_by(&timed).await.into_iter();
        let received_at = self.0.clock.now();
        if !timed.is_empty() {
            self.0.latency.record(received_at.duration_since(sent_at));
        }
        let answers = requests.iter().zip(answers).map(|(request, answer)| match answer {
            Some(answer) => answer,
            None => {
                #[expect(clippy::expect_used, reason = "the store replies to every request")]
                let reply = replies.next().expect("one reply per request");
                // A check in between may have begun a new lease.
                self.0.leases.follow(request);
                self.process(request, reply, (sent_at, received_at), deadline)
            }
        });
        answers.collect()
    }

    /// Decides a request that does not need the store.
    async fn decide_without_store(
        &self,
        request: &Request<'_>,
        deadline: Instant,
    ) -> Option<Result<Answer, StoreError>> {
        let local = &self.0.local;
        if let Some(decision) = self.decide_from_lease(request) {
            return Some(Ok(Answer { decisions: vec![decision] }));
        }
        if let Some(answer) = self.0.denials.get(request, self.0.clock.now()) {
            return Some(Ok(answer));
        }
        if local.pending() == 0 {
            return None;
        }
        if let Some(answer) = local.change_lease(request) {
            return Some(Ok(answer));
        }
        if !local.is_local(request, deadline).await {
            return None;
        }
        let decided = local.decide(request)?;
        self.count_degraded(&decided);
        Some(decided)
    }

    /// Decides a check of a leased policy from the quota that this process holds, if it has any.
    #[inline]
    pub(super) fn check_now(&self, check: &Check<'_>) -> Option<Decision> {
        if check.policy.listed(check.key).is_some() {
            return None;
        }
        let operation = Operation::Check { lease: None };
        let request = Request { operation, checks: std::slice::from_ref(check), request_id: None };
        self.leased_check(&request)?;
        let mut follow_up = FollowUp::default();
        let decision = self.0.leases.decide_now(check, leases::now(), &mut follow_up);
        self.send(follow_up);
        #[cfg(feature = "tracing")]
        if let Some(decision) = &decision {
            crate::events::record(check.policy, decision);
        }
        decision
    }

    /// Decides a check from the quota that this process holds, or counts it as demand for more.
    fn decide_from_lease(&self, request: &Request<'_>) -> Option<Decision> {
        let (check, hold) = self.leased_check(request)?;
        let mut follow_up = FollowUp::default();
        let decision = self.0.leases.decide(check, hold, leases::now(), &mut follow_up);
        self.send(follow_up);
        decision
    }

    fn leased_check<'a>(&self, request: &Request<'a>) -> Option<(&'a Check<'a>, Micros)> {
        // What was admitted without the store is charged before more is, and a replay needs each decision
        // of the store.
        if self.0.local.pending() > 0 || self.0.store.has_own_clock() {
            return None;
        }
        leased_check(request)
    }

    /// Charges and refunds in the background what follows from a check.
    fn send(&self, follow_up: FollowUp) {
        if let Some(charge) = follow_up.charge {
            let remote = self.clone();
            self.0.runtime.spawn(async move { remote.charge_lease(charge).await });
        }
        if let Some(refund) = follow_up.refund {
            let store = self.0.store.clone();
            self.0.runtime.spawn(async move { leases::refund(&store, &[refund]).await });
        }
    }

    async fn charge_lease(&self, charge: LeaseCharge) {
        let (operation, checks) = (Operation::Take, [charge.check()]);
        let request = Request { operation, checks: &checks, request_id: None };
        let deadline = Instant::now() + charge.hold();
        let mut replies = self.0.store.decide_by(&[TimedRequest { request, deadline }]).await;
        let granted = match replies.pop() {
            Some(Reply::Answer(Ok(answer))) => Some(answer.into_decision()),
            // The next checks meet the failure, and report it.
            Some(Reply::Answer(Err(_)) | Reply::Late(_)) | None => None,
        };
        self.0.leases.answer(&charge, granted, leases::now());
    }

    /// Processes a reply.
    fn process(
        &self,
        request: &Request<'_>,
        reply: Reply,
        (sent_at, received_at): (Timestamp, Timestamp),
        deadline: Duration,
    ) -> Result<Answer, StoreError> {
        match reply {
            Reply::Answer(Err(StoreError::Unavailable(failure))) => {
                self.fall_back(request, failure).0
            }
            Reply::Answer(answer) => {
                if let Ok(answer) = &answer {
                    // A replay needs every field as the store decides it.
                    if !self.0.store.has_own_clock() {
                        self.0.denials.record(request, answer, sent_at, received_at);
                    }
                    self.0.local.observe(request, answer);
                }
                answer
            }
            Reply::Late(late) => {
                let deadline = self.deadline_of(request).min(deadline);
                let (answer, is_local) = self.fall_back(request, deadline_exceeded(deadline));
                // What was decided in this process is charged later, so a charge is taken back.
                let is_admitted =
                    request.operation.decides() && answer.as_ref().is_ok_and(Answer::allowed);
                if is_admitted && !is_local {
                    late.admit();
                }
                answer
            }
        }
    }

    /// Decides a request as its policies answer while the store is unavailable; returns also whether
    /// this process decided it with its shares.
    fn fall_back(
        &self,
        request: &Request<'_>,
        failure: Failure,
    ) -> (Result<Answer, StoreError>, bool) {
        self.lock().record_failure(&failure);
        let known = self.0.denials.get_without_store(request, self.0.clock.now()).map(Ok);
        if let Some(decided) = known.or_else(|| self.0.local.decide(request)) {
            self.count_degraded(&decided);
            return (decided, true);
        }
        let answer = fall_back(request, self.0.clock.now()).map(|decisions| Answer { decisions });
        let answer = answer.ok_or_else(|| failure.into());
        self.count_degraded(&answer);
        (answer, false)
    }

    fn count_degraded(&self, answer: &Result<Answer, StoreError>) {
        let Ok(answer) = answer else { return };
        let mut stats = self.lock();
        for decision in &answer.decisions {
            let count = if decision.allowed {
                &mut stats.degraded_allowed
            } else {
                &mut stats.degraded_denied
            };
            *count += 1;
        }
    }

    /// Returns the limiter's deadline for an operation.
    fn deadline_of(&self, request: &Request<'_>) -> Duration {
        if request.operation.decides() { self.0.deadline } else { self.admin_deadline() }
    }

    pub(super) async fn inspect(
        &self,
        policy: &Policy,
        key: Key<'_>,
    ) -> Result<Inspection, StoreError> {
        let deadline = self.admin_deadline();
        let inspection = timeout(deadline, self.0.store.inspect(policy, key)).await;
        let mut inspection = inspection.unwrap_or_else(|_| Err(deadline_exceeded(deadline).into()));
        match &mut inspection {
            Ok(inspection) => {
                let check = Check::new(policy, &key);
                inspection.held = self.0.leases.held(&check, leases::now());
            }
            Err(StoreError::Unavailable(failure)) => self.lock().record_failure(failure),
            Err(_) => {}
        }
        inspection
    }

    fn admin_deadline(&self) -> Duration {
        self.0.deadline.max(MIN_ADMIN_DEADLINE)
    }

    fn lock(&self) -> MutexGuard<'_, LimiterStats> {
        // A panic cannot leave a counter half updated.
        self.0.stats.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn deadline_exceeded(deadline: Duration) -> Failure {
    Failure::new(FailureKind::Deadline, format!("{deadline:?}"))
}
