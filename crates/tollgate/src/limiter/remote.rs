//! The limiter on a store that others keep: within a deadline, whatever that store does.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::timeout;
use tollgate_core::{Inspection, NotationError, Policy, Request, fall_back};
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
        LimiterStats { times: times.classes(), waited_us: times.sum(), ..self.lock().clone() }
    }

    pub(super) async fn decide(&self, request: &Request<'_>) -> Result<Answer, StoreError> {
        let listings = match lists::screen(request)? {
            Screened::Unlisted(request) => return self.ask(&request).await,
            Screened::Listed(it) => it,
        };
        let rest = match listings.rest() {
            Some(request) => self.ask(&request).await?.decisions,
            None => Vec::new(),
        };
        Ok(listings.join(rest, self.0.clock.now()))
    }

    /// What the store says, or what the policies put in its place.
    async fn ask(&self, request: &Request<'_>) -> Result<Answer, StoreError> {
        let patience = if request.verb.decides() { self.0.deadline } else { self.patience() };
        let requests = [*request];
        let since = self.0.clock.now();
        let answered = timeout(patience, self.0.store.decide(&requests)).await;
        self.0.times.count(self.0.clock.now().since(since));
        let error = match answered {
            Ok(mut answers) => match answers.pop() {
                Some(Ok(answer)) => return Ok(answer),
                Some(Err(error)) => error,
                None => StoreError::unavailable(FailureKind::Protocol, "no answer"),
            },
            Err(_) => late(patience),
        };
        let StoreError::Unavailable(failure) = &error else { return Err(error) };
        let decisions = fall_back(request, self.0.clock.now());
        let mut stats = self.lock();
        stats.count(failure);
        let Some(decisions) = decisions else { return Err(error) };
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

fn late(patience: Duration) -> StoreError {
    StoreError::unavailable(FailureKind::Deadline, format!("{patience:?}"))
}

impl LimiterStats {
    fn count(&mut self, failure: &Failure) {
        *self.errors.entry(failure.kind).or_default() += 1;
        self.last_failure = Some(failure.clone());
    }
}
