//! The limiter on a shared store: decides within a deadline, whatever the store does.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::{Instant, timeout};
use tollgate_core::{Inspection, NotationError, Policy, Request, fall_back};
use tollgate_redis::{RedisStore, Reply, TimedRequest};
use tollgate_store::{Answer, Clock, Failure, FailureKind, Key, StoreError};

use super::histogram::LatencyHistogram;
use super::stats::LimiterStats;
use crate::lists::{self, Screening};
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
    stats: Mutex<LimiterStats>,
    latency: LatencyHistogram,
}

/// The minimum deadline of operations that have no fallback, such as a reset.
const MIN_ADMIN_DEADLINE: Duration = Duration::from_secs(1);

impl Remote {
    pub(super) fn new(store: RedisStore, deadline: Duration, clock: Clock) -> Self {
        Remote(Arc::new(Inner {
            store,
            deadline,
            clock,
            policies: PolicyCache::default(),
            stats: Mutex::default(),
            latency: LatencyHistogram::default(),
        }))
    }

    pub(super) fn store(&self) -> &RedisStore {
        &self.0.store
    }

    pub(super) fn limit(&self, limits: &str) -> Result<Policy, NotationError> {
        self.0.policies.get(limits)
    }

    pub(super) fn stats(&self) -> LimiterStats {
        let latency = &self.0.latency;
        LimiterStats {
            latency_buckets: latency.buckets(),
            latency_sum_us: latency.sum_us(),
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
        let screenings: Vec<_> = requests.iter().map(lists::screen).collect();
        let for_store: Vec<_> =
            screenings.iter().flatten().filter_map(Screening::store_request).collect();
        let mut stored = self.execute(&for_store, deadline).await.into_iter();
        let mut next = || {
            #[expect(clippy::expect_used, reason = "execute answers every request")]
            stored.next().expect("one answer per request")
        };
        let mut answers = Vec::with_capacity(requests.len());
        for screening in &screenings {
            answers.push(match screening {
                Err(error) => Err(StoreError::Request(*error)),
                Ok(Screening::Unlisted(_)) => next(),
                Ok(Screening::Listed(listed)) => {
                    let stored = match listed.store_request() {
                        Some(_) => next().map(|answer| answer.decisions),
                        None => Ok(Vec::new()),
                    };
                    stored.map(|decisions| listed.merge(decisions, self.0.clock.now()))
                }
            });
        }
        answers
    }

    /// Sends requests to the store; where it fails, the policies decide instead.
    async fn execute(
        &self,
        requests: &[Request<'_>],
        deadline: Duration,
    ) -> Vec<Result<Answer, StoreError>> {
        if requests.is_empty() {
            return Vec::new();
        }
        let start = self.0.clock.now();
        let now = Instant::now();
        let timed: Vec<_> = requests
            .iter()
            .map(|request| {
                let own = self.deadline_of(request);
                TimedRequest { request: *request, deadline: now + own.min(deadline) }
            })
            .collect();
        let replies = self.0.store.decide_by(&timed).await;
        self.0.latency.record(self.0.clock.now().duration_since(start));
        let answers = requests.iter().zip(replies).map(|(request, reply)| match reply {
            Reply::Answer(Err(StoreError::Unavailable(failure))) => {
                self.fall_back(request, failure)
            }
            Reply::Answer(answer) => answer,
            Reply::Late(late) => {
                let deadline = self.deadline_of(request).min(deadline);
                let answer = self.fall_back(request, deadline_exceeded(deadline));
                if request.operation.decides() && answer.as_ref().is_ok_and(Answer::allowed) {
                    late.admit();
                }
                answer
            }
        });
        answers.collect()
    }

    fn fall_back(&self, request: &Request<'_>, failure: Failure) -> Result<Answer, StoreError> {
        let decisions = fall_back(request, self.0.clock.now());
        let mut stats = self.lock();
        stats.record_failure(&failure);
        let Some(decisions) = decisions else { return Err(failure.into()) };
        for decision in &decisions {
            let count = if decision.allowed {
                &mut stats.degraded_allowed
            } else {
                &mut stats.degraded_denied
            };
            *count += 1;
        }
        Ok(Answer { decisions })
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
        let inspection = inspection.unwrap_or_else(|_| Err(deadline_exceeded(deadline).into()));
        if let Err(StoreError::Unavailable(failure)) = &inspection {
            self.lock().record_failure(failure);
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
