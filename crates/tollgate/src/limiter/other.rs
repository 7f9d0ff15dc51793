//! The limiter on a store that the program brings.

use std::pin::Pin;

use tollgate_core::{Inspection, NotationError, Policy, Request, fall_back};
use tollgate_store::{Answer, Clock, Key, Store, StoreError};

use crate::lists::{self, Screening};
use crate::policies::PolicyCache;

/// A store, the clock for decisions that it does not make, and the cache of parsed policies.
pub(super) struct OtherStore {
    store: Box<dyn DynStore + Send + Sync>,
    clock: Clock,
    policies: PolicyCache,
    #[cfg(feature = "tokio")]
    pub(super) waiters: crate::guard::Waiters,
}

type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A [`Store`] of any type.
trait DynStore {
    fn decide<'a>(
        &'a self,
        requests: &'a [Request<'_>],
    ) -> BoxFuture<'a, Vec<Result<Answer, StoreError>>>;

    fn inspect<'a>(
        &'a self,
        policy: &'a Policy,
        key: Key<'a>,
    ) -> BoxFuture<'a, Result<Inspection, StoreError>>;
}

impl<S: Store> DynStore for S {
    fn decide<'a>(
        &'a self,
        requests: &'a [Request<'_>],
    ) -> BoxFuture<'a, Vec<Result<Answer, StoreError>>> {
        Box::pin(Store::decide(self, requests))
    }

    fn inspect<'a>(
        &'a self,
        policy: &'a Policy,
        key: Key<'a>,
    ) -> BoxFuture<'a, Result<Inspection, StoreError>> {
        Box::pin(Store::inspect(self, policy, key))
    }
}

impl OtherStore {
    pub(super) fn new(store: impl Store + Send + Sync + 'static) -> Self {
        OtherStore {
            store: Box::new(store),
            clock: Clock::system(),
            policies: PolicyCache::default(),
            #[cfg(feature = "tokio")]
            waiters: crate::guard::Waiters::default(),
        }
    }

    pub(super) fn limit(&self, limits: &str) -> Result<Policy, NotationError> {
        self.policies.get(limits)
    }

    pub(super) async fn decide(&self, request: &Request<'_>) -> Result<Answer, StoreError> {
        let screening = lists::screen(request)?;
        let stored = match screening.store_request() {
            Some(request) => self.execute(&request).await?,
            None => Answer { decisions: Vec::new() },
        };
        Ok(match screening {
            Screening::Unlisted(_) => stored,
            Screening::Listed(listed) => listed.merge(stored.decisions, self.clock.now()),
        })
    }

    /// Decides a request by the store, or if it is unavailable, as the policies answer.
    async fn execute(&self, request: &Request<'_>) -> Result<Answer, StoreError> {
        request.validate_for_store()?;
        let mut answers = self.store.decide(std::slice::from_ref(request)).await;
        #[expect(clippy::expect_used, reason = "the contract of `Store`")]
        let answer = answers.pop().expect("a store returns one answer for each request");
        let Err(StoreError::Unavailable(_)) = &answer else { return answer };
        match fall_back(request, self.clock.now()) {
            Some(decisions) => Ok(Answer { decisions }),
            None => answer,
        }
    }

    pub(super) async fn decide_batch(
        &self,
        requests: &[Request<'_>],
    ) -> Vec<Result<Answer, StoreError>> {
        let mut answers = Vec::with_capacity(requests.len());
        for request in requests {
            answers.push(self.decide(request).await);
        }
        answers
    }

    pub(super) async fn inspect(
        &self,
        policy: &Policy,
        key: Key<'_>,
    ) -> Result<Inspection, StoreError> {
        self.store.inspect(policy, key).await
    }
}
