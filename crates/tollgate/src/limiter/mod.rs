//! The asynchronous limiter on any store.

#[cfg(feature = "redis")]
mod builder;
#[cfg(feature = "redis")]
mod denials;
#[cfg(feature = "redis")]
mod histogram;
mod identity;
#[cfg(feature = "redis")]
mod local;
#[cfg(feature = "redis")]
mod membership;
mod operations;
#[cfg(feature = "redis")]
mod remote;
#[cfg(feature = "redis")]
mod shares;
mod stats;
mod url;

use std::time::Duration;

#[cfg(feature = "redis")]
use tollgate_core::Check;
use tollgate_core::{Cost, Decision, Inspection, NotationError, Operation, Policy, Request};
#[cfg(feature = "redis")]
use tollgate_redis::RedisStore;
use tollgate_store::{Answer, Key, StoreError};

use crate::memory::MemoryLimiter;

#[cfg(feature = "redis")]
pub use builder::LimiterBuilder;
#[cfg(feature = "redis")]
use remote::Remote;
pub use stats::LimiterStats;
pub use url::{OpenError, masked_url};

/// A rate limiter on any store. Clones share it.
///
/// With the in-memory store, futures are ready at once. With Redis or Valkey (feature `redis`), they
/// need a tokio runtime, and every decision is ready within the deadline, 15 ms by default, whatever
/// happens to the server. If the store has not answered by then, the policy's
/// [`OnStoreError`](crate::OnStoreError) decides, and the decision is marked `degraded`. A future
/// can be dropped at any time: a request that was not sent yet is not charged.
///
/// # Examples
/// ```
/// # tokio_test(async {
/// use tollgate::{Key, Limiter, Policy};
///
/// let limiter = Limiter::open("memory").await?;
/// let api: Policy = "10/s burst 20".parse()?;
/// assert!(limiter.check(&api, Key::new("user:42")?).await?.allowed());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # });
/// # fn tokio_test(f: impl Future<Output = Result<(), Box<dyn std::error::Error>>>) {
/// #     let mut f = std::pin::pin!(f);
/// #     let mut context = std::task::Context::from_waker(std::task::Waker::noop());
/// #     assert!(matches!(f.as_mut().poll(&mut context), std::task::Poll::Ready(Ok(()))));
/// # }
/// ```
#[derive(Clone)]
pub struct Limiter(Backend);

#[derive(Clone)]
enum Backend {
    Memory(MemoryLimiter),
    #[cfg(feature = "redis")]
    Redis(Remote),
}

impl Limiter {
    /// Opens the store at a URL with the default options.
    ///
    /// The URL is `memory`, or with the feature `redis` one of `redis://HOST` (a single server),
    /// `redis+cluster://HOST,HOST` (a cluster) and `redis+sentinel://HOST,HOST/MASTER` (a master
    /// discovered through Sentinel), with `rediss` in place of `redis` for TLS.
    ///
    /// An unreachable server is no error: this waits up to 1 s for a connection, which the store then
    /// keeps trying to make in the background.
    ///
    /// # Errors
    /// Returns an error if the URL is invalid or names an unknown kind of store.
    pub async fn open(url: &str) -> Result<Self, OpenError> {
        #[cfg(feature = "redis")]
        return Limiter::builder().open(url).await;
        #[cfg(not(feature = "redis"))]
        Limiter::check_scheme(url).map(|()| MemoryLimiter::new().into())
    }

    /// Checks that a URL names a known kind of store. [`Limiter::open`] checks the rest of the URL.
    ///
    /// # Errors
    /// Returns an error if the kind of store is unknown.
    pub fn check_scheme(url: &str) -> Result<(), OpenError> {
        url::check_scheme(url)
    }

    /// Returns a builder with the default options.
    #[cfg(feature = "redis")]
    pub fn builder() -> LimiterBuilder {
        LimiterBuilder::default()
    }

    /// Checks and charges a cost of 1. With a concurrent limit it acquires a lease: the decision
    /// carries the lease to release.
    ///
    /// # Errors
    /// Returns an error if the request is invalid. A failed store is no error: the policy decides
    /// instead.
    pub async fn check(&self, policy: &Policy, key: Key<'_>) -> Result<Decision, StoreError> {
        self.check_cost(policy, key, Cost::ONE).await
    }

    /// Checks and charges a cost; a cost of 0 is a peek.
    ///
    /// # Errors
    /// As [`check`](Self::check).
    pub async fn check_cost(
        &self,
        policy: &Policy,
        key: Key<'_>,
        cost: Cost,
    ) -> Result<Decision, StoreError> {
        match &self.0 {
            Backend::Memory(memory) => Ok(memory.check_cost(policy, key, cost)),
            #[cfg(feature = "redis")]
            Backend::Redis(_) => {
                self.execute(Operation::Check { lease: None }, policy, key, cost).await
            }
        }
    }

    /// Executes any operation on one key.
    ///
    /// # Errors
    /// Returns an error if the operation does not apply to the policy or the cost, or if the store
    /// failed and the operation does not [decide](Operation::decides).
    pub async fn execute(
        &self,
        operation: Operation,
        policy: &Policy,
        key: Key<'_>,
        cost: Cost,
    ) -> Result<Decision, StoreError> {
        match &self.0 {
            Backend::Memory(memory) => {
                memory.execute(operation, policy, key, cost).map_err(StoreError::from)
            }
            #[cfg(feature = "redis")]
            Backend::Redis(redis) => {
                let checks = [Check { policy, key: key.as_bytes(), cost }];
                let request = Request { operation, checks: &checks, request_id: None };
                Box::pin(redis.decide(&request)).await.map(Answer::into_decision)
            }
        }
    }

    /// Executes a request: any operation, on one or several checks, with or without a request id. If
    /// the store fails, the strictest [`OnStoreError`](crate::OnStoreError) of its policies decides.
    ///
    /// # Errors
    /// As [`execute`](Self::execute).
    pub async fn decide(&self, request: &Request<'_>) -> Result<Answer, StoreError> {
        match &self.0 {
            Backend::Memory(memory) => memory.decide(request).map_err(StoreError::from),
            // Boxed, so that the future of the in-memory store stays small.
            #[cfg(feature = "redis")]
            Backend::Redis(redis) => Box::pin(redis.decide(request)).await,
        }
    }

    /// Executes independent requests; returns one answer for each. Each request is decided as a
    /// whole. The in-memory store decides them in order. Redis receives them at once, batched by
    /// connection, and decides those with the same first key in order.
    pub async fn decide_batch(&self, requests: &[Request<'_>]) -> Vec<Result<Answer, StoreError>> {
        self.decide_batch_within(requests, Duration::MAX).await
    }

    /// As [`Limiter::decide_batch`], with a deadline for this call. The limiter's own deadline applies
    /// if it is shorter; operations that do not [decide](Operation::decides) have a longer one.
    pub async fn decide_batch_within(
        &self,
        requests: &[Request<'_>],
        deadline: Duration,
    ) -> Vec<Result<Answer, StoreError>> {
        match &self.0 {
            // Decides at once, so no deadline applies.
            Backend::Memory(memory) => {
                let _ = deadline;
                let decide = |request| memory.decide(request).map_err(StoreError::from);
                requests.iter().map(decide).collect()
            }
            #[cfg(feature = "redis")]
            Backend::Redis(redis) => Box::pin(redis.decide_batch(requests, deadline)).await,
        }
    }

    /// Returns the state of a key: the usage of each limit, the block, leases and reservations, and
    /// when they expire.
    ///
    /// # Errors
    /// Returns an error if the store failed.
    pub async fn inspect(&self, policy: &Policy, key: Key<'_>) -> Result<Inspection, StoreError> {
        match &self.0 {
            Backend::Memory(memory) => Ok(memory.inspect(policy, key)),
            #[cfg(feature = "redis")]
            Backend::Redis(redis) => Box::pin(redis.inspect(policy, key)).await,
        }
    }

    /// Ends this process's part in the shared limits, before it exits: charges the store for what was
    /// admitted while it was unavailable, within `timeout`, and gives the process's shares to the others.
    /// The in-memory store has nothing to do.
    ///
    /// # Errors
    /// Returns an error if the store could not be charged for all of it.
    pub async fn leave(&self, timeout: Duration) -> Result<(), StoreError> {
        match &self.0 {
            Backend::Memory(_) => {
                let _ = timeout;
                Ok(())
            }
            #[cfg(feature = "redis")]
            Backend::Redis(redis) => {
                let deadline = tokio::time::Instant::now() + timeout;
                redis.leave(deadline).await.map_err(StoreError::from)
            }
        }
    }

    /// Parses limits into a policy; the most recent 1,024 texts are cached.
    ///
    /// # Errors
    /// Returns an error that points at the word that is wrong.
    pub fn limit(&self, limits: &str) -> Result<Policy, NotationError> {
        match &self.0 {
            Backend::Memory(memory) => memory.limit(limits),
            #[cfg(feature = "redis")]
            Backend::Redis(redis) => redis.limit(limits),
        }
    }

    /// Returns statistics about the store's failures and latency. The in-memory store has none.
    #[must_use]
    pub fn stats(&self) -> LimiterStats {
        match &self.0 {
            Backend::Memory(_) => LimiterStats::default(),
            #[cfg(feature = "redis")]
            Backend::Redis(redis) => redis.stats(),
        }
    }

    /// Returns the in-memory limiter, if that is the store.
    #[must_use]
    pub fn as_memory(&self) -> Option<&MemoryLimiter> {
        match &self.0 {
            Backend::Memory(memory) => Some(memory),
            #[cfg(feature = "redis")]
            Backend::Redis(_) => None,
        }
    }

    /// Returns the store on Redis or Valkey, if that is the store: to wait for a connection, to read
    /// its statistics, or to [delete](RedisStore::flush_namespace) the keys of a test.
    #[cfg(feature = "redis")]
    #[must_use]
    pub fn as_redis(&self) -> Option<&RedisStore> {
        match &self.0 {
            Backend::Memory(_) => None,
            Backend::Redis(redis) => Some(redis.store()),
        }
    }
}

impl From<MemoryLimiter> for Limiter {
    fn from(limiter: MemoryLimiter) -> Self {
        Limiter(Backend::Memory(limiter))
    }
}

/// Uses the default deadline; [`LimiterBuilder::with_store`] can set another.
#[cfg(feature = "redis")]
impl From<RedisStore> for Limiter {
    fn from(store: RedisStore) -> Self {
        Limiter::builder().with_store(store)
    }
}
