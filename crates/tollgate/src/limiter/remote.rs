//! The limiter on a store that others keep: within a deadline, whatever that store does.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::timeout;
use tollgate_core::{Inspection, NotationError, Policy, Request, RequestError, fall_back};
use tollgate_redis::RedisStore;
use tollgate_store::{Answer, Clock, Failure, FailureKind, Key, Store, StoreError};

use super::stats::LimiterStats;
use super::times::Times;
use crate::lists::{self, Screened};
use crate::policies::Interned;

/// A limiter on Redis. Clones share it.
#[derive(Clone, Debug)]
pub(super) struct Remote(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    store: RedisStore,
    /// How long a decision may take.
    deadline: Duration,
    /// Whose time stands in decisions that the store did not make.
    clock: Clock,
    interned: Interned,
    stats: Mutex<LimiterStats>,
    times: Times,
}

/// How long verbs may take that nobody puts in a store's place, unless decisions may take longer.
const PATIENCE: Duration = Duration::from_secs(1);

impl Remote {
    pub(super) fn new(store: RedisStore, deadline: Duration, clock: Clock) -> Self {
        let (interned, stats, times) = (Interned::default(), Mutex::default(), Times::default());
        Remote(Arc::new(Inner { store, deadline, clock, interned, stats, times }))
    }

    pub(super) fn store(&self) -> &RedisStore {
        &self.0.store
    }

    pub(super) fn limit(&self, limits: &str) -> Result<Policy, NotationError> {
        self.0.interned.get(limits)
    }

    pub(super) fn stats(&self) -> LimiterStats {
        let times = &self.0.times;
        LimiterStats {
            latency_buckets: times.classes(),
            latency_sum_us: times.sum(),
            ..self.lock().clone()
        }
    }

    pub(super) async fn decide(&self, request: &Request<'_>) -> Result<Answer, StoreError> {
        let listings = match lists::screen(request)? {
            Screened::Unlisted(request) => return self.ask(&request).await,
            Screened::Listed(listed) => listed,
        };
        let rest = match listings.rest() {
            Some(request) => self.ask(&request).await?.decisions,
            None => Vec::new(),
        };
        Ok(listings.join(rest, self.0.clock.now()))
    }

    pub(super) async fn decide_batch(
        &self,
        requests: &[Request<'_>],
        patience: Duration,
    ) -> Vec<Result<Answer, StoreError>> {
        let screened: Vec<_> = requests.iter().map(lists::screen).collect();
        let asked: Vec<_> = screened
            .iter()
            .map(|screened| screened.as_ref().ok().and_then(Screened::asked))
            .collect();
        let rest: Vec<_> = asked.iter().flatten().copied().collect();
        let mut answers = self.ask_each(&rest, patience).await.into_iter();
        let mut answer_of = |asked: &Option<Request<'_>>| match asked {
            Some(_) => answers.next().unwrap_or_else(|| Err(no_answer())),
            None => Ok(Answer { decisions: Vec::new() }),
        };
        let join = |(screened, asked): (&Result<Screened<'_>, RequestError>, _)| match screened {
            Ok(Screened::Unlisted(_)) => answer_of(asked),
            Ok(Screened::Listed(listed)) => {
                answer_of(asked).map(|rest| listed.join(rest.decisions, self.0.clock.now()))
            }
            Err(error) => Err(StoreError::Request(*error)),
        };
        screened.iter().zip(&asked).map(join).collect()
    }

    /// What the store says, or what the policies put in its place.
    async fn ask(&self, request: &Request<'_>) -> Result<Answer, StoreError> {
        let mut answers = self.ask_each(std::slice::from_ref(request), Duration::MAX).await;
        answers.pop().unwrap_or_else(|| Err(no_answer()))
    }

    async fn ask_each(
        &self,
        requests: &[Request<'_>],
        patience: Duration,
    ) -> Vec<Result<Answer, StoreError>> {
        if requests.is_empty() {
            return Vec::new();
        }
        let decide = requests.iter().any(|request| request.verb.decides());
        let of_store = if decide { self.0.deadline } else { self.patience() };
        let patience = patience.min(of_store);
        let since = self.0.clock.now();
        let answered = timeout(patience, self.0.store.decide(requests)).await;
        self.0.times.count(self.0.clock.now().since(since));
        let answers = match answered {
            Ok(answers) => answers,
            Err(_) => requests.iter().map(|_| Err(late(patience))).collect(),
        };
        let mut answers = answers.into_iter();
        let answer = |request| match answers.next().unwrap_or_else(|| Err(no_answer())) {
            Err(StoreError::Unavailable(failure)) => self.fall_back(request, failure),
            answer => answer,
        };
        requests.iter().map(answer).collect()
    }

    fn fall_back(&self, request: &Request<'_>, failure: Failure) -> Result<Answer, StoreError> {
        let decisions = fall_back(request, self.0.clock.now());
        let mut stats = self.lock();
        stats.count(&failure);
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

    pub(super) async fn inspect(
        &self,
        policy: &Policy,
        key: Key<'_>,
    ) -> Result<Inspection, StoreError> {
        let patience = self.patience();
        let inspected = timeout(patience, self.0.store.inspect(policy, key)).await;
        let inspected = inspected.unwrap_or_else(|_| Err(late(patience)));
        if let Err(StoreError::Unavailable(failure)) = &inspected {
            self.lock().count(failure);
        }
        inspected
    }

    fn patience(&self) -> Duration {
        self.0.deadline.max(PATIENCE)
    }

    fn lock(&self) -> MutexGuard<'_, LimiterStats> {
        // Counts are never half done.
        self.0.stats.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn no_answer() -> StoreError {
    StoreError::unavailable(FailureKind::Protocol, "no answer")
}

fn late(patience: Duration) -> StoreError {
    StoreError::unavailable(FailureKind::Deadline, format!("{patience:?}"))
}

impl LimiterStats {
    fn count(&mut self, failure: &Failure) {
        *self.errors.entry(failure.kind).or_default() += 1;
        self.last_failure = Some(failure.clone());
    }
}
