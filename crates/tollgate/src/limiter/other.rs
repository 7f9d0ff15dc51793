//! The limiter on a store that the program brings.

use std::pin::Pin;

use tollgate_algorithms::{Inspection, NotationError, Policy, Request, fall_back};
use tollgate_state::{Answer, Clock, Key, Store, StoreError};

use crate::lists::ScreenedBatch;
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
        let mut answers = self.decide_batch(std::slice::from_ref(request)).await;
        #[expect(clippy::expect_used, reason = "decide_batch answers every request")]
        answers.pop().expect("one answer per request")
    }

    pub(super) async fn decide_batch(
        &self,
        requests: &[Request<'_>],
    ) -> Vec<Result<Answer, StoreError>> {
        let batch = ScreenedBatch::new(requests);
        let stored = self.execute(&batch.store_requests()).await;
        batch.merge(stored, &self.clock)
    }

    /// Decides requests by the store, or if it is unavailable, as the policies answer.
    async fn execute(&self, requests: &[Request<'_>]) -> Vec<Result<Answer, StoreError>> {
        let errors: Vec<_> =
            requests.iter().map(|request| request.validate_for_store().err()).collect();
        let valid = requests.iter().zip(&errors).filter(|(_, error)| error.is_none());
        let valid: Vec<_> = valid.map(|(request, _)| *request).collect();
        let stored = if valid.is_empty() { Vec::new() } else { self.store.decide(&valid).await };
        assert_eq!(stored.len(), valid.len(), "a store returns one answer for each request");
        let mut stored = stored.into_iter();
        let answers = requests.iter().zip(errors).map(|(request, error)| {
            #[expect(clippy::expect_used, reason = "their number was asserted")]
            let answer = match error {
                Some(error) => return Err(StoreError::Request(error)),
                None => stored.next().expect("an answer to a valid request"),
            };
            let Err(StoreError::Unavailable(_)) = &answer else { return answer };
            match fall_back(request, self.clock.now()) {
                Some(decisions) => Ok(Answer { decisions }),
                None => answer,
            }
        });
        answers.collect()
    }

    pub(super) async fn inspect(
        &self,
        policy: &Policy,
        key: Key<'_>,
    ) -> Result<Inspection, StoreError> {
        self.store.inspect(policy, key).await
    }
}
