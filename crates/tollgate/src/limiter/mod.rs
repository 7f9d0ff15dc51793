//! The asynchronous limiter on any store.

#[cfg(feature = "redis")]
mod builder;
#[cfg(feature = "redis")]
mod denials;
#[cfg(feature = "redis")]
mod histogram;
mod identity;
#[cfg(feature = "redis")]
mod key_table;
#[cfg(feature = "redis")]
mod leases;
#[cfg(feature = "redis")]
mod local;
#[cfg(feature = "redis")]
mod membership;
mod operations;
mod other;
#[cfg(feature = "redis")]
mod remote;
#[cfg(feature = "redis")]
mod shares;
mod stats;
mod url;

use std::sync::Arc;
use std::time::Duration;

use tollgate_algorithms::{
    Check, Cost, Decision, Inspection, NotationError, Operation, Policy, Request,
};
#[cfg(feature = "redis")]
use tollgate_redis::RedisStore;
use tollgate_state::{Answer, AsKey, KeyBuffer, OpenError, Store, StoreError};

#[cfg(feature = "tokio")]
use crate::guard::Waiters;
use crate::memory::MemoryLimiter;

#[cfg(feature = "redis")]
pub use builder::LimiterBuilder;
use other::OtherStore;
#[cfg(feature = "redis")]
use remote::Remote;
pub use stats::LimiterStats;
pub use url::masked_url;

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
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// use tollgate::{Limiter, Outcome, Policy};
///
/// let limiter = Limiter::memory(); // or Limiter::redis("redis://127.0.0.1").await?
/// let api = Policy::named("api", "10/s burst 20")?;
/// match limiter.check(&api, "user:42").await.outcome() {
///     Outcome::Allowed { delay } => println!("admitted after {delay:?}"), // waits in queues only
///     Outcome::Denied(denied) => println!("{denied}"),
/// }
/// # Ok::<(), tollgate::PolicyError>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Limiter(Backend);

#[derive(Clone)]
enum Backend {
    Memory(MemoryLimiter),
    #[cfg(feature = "redis")]
    Redis(Remote),
    Other(Arc<OtherStore>),
}

impl Limiter {
    /// Creates a limiter in memory, for up to a million keys. [`MemoryLimiter::builder`] has options.
    #[must_use]
    pub fn memory() -> Self {
        MemoryLimiter::new().into()
    }

    /// Opens a store on Redis or Valkey with the default options; see [`Limiter::open`].
    ///
    /// # Errors
    /// Returns an error if the URL is invalid or names another kind of store.
    #[cfg(feature = "redis")]
    pub async fn redis(url: &str) -> Result<Self, OpenError> {
        Limiter::builder().redis(url).await
    }

    /// Creates a limiter on a store of another kind. It decides when its store does; if the store is
    /// unavailable, the policy's [`OnStoreError`](crate::OnStoreError) decides.
    ///
    /// # Examples
    /// A store that counts the requests to another one:
    /// ```
    /// use std::sync::atomic::{AtomicUsize, Ordering};
    /// use tollgate::{Answer, Limiter, MemoryStore, Policy, Request, Store, StoreError};
    ///
    /// #[derive(Default)]
    /// struct Counted {
    ///     inner: MemoryStore,
    ///     requests: AtomicUsize,
    /// }
    ///
    /// impl Store for Counted {
    ///     async fn decide(&self, requests: &[Request<'_>]) -> Vec<Result<Answer, StoreError>> {
    ///         self.requests.fetch_add(requests.len(), Ordering::Relaxed);
    ///         self.inner.decide(requests).await
    ///     }
    /// }
    ///
    /// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
    /// let limiter = Limiter::with_store(Counted::default());
    /// let api = Policy::named("api", "10/s")?;
    /// assert!(limiter.check(&api, "user:42").await.allowed);
    /// # Ok::<(), tollgate::PolicyError>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn with_store(store: impl Store + Send + Sync + 'static) -> Self {
        Limiter(Backend::Other(Arc::new(OtherStore::new(store))))
    }

    /// Opens the store at a URL with the default options, so that the configuration of a program
    /// chooses the store.
    ///
    /// The URL is `memory`, or with the feature `redis` one of `redis://HOST` (a single server),
    /// `redis+cluster://HOST,HOST` (a cluster) and `redis+sentinel://HOST,HOST/MASTER` (a master
    /// discovered through Sentinel), with `rediss` in place of `redis` for TLS, which needs the feature
    /// `tls-rustls`.
    ///
    /// An unreachable server is no error: this waits up to 1 s for a connection, which the store then
    /// keeps trying to make in the background. Until it is made for the first time, a policy with
    /// [`OnStoreError::Local`](crate::OnStoreError::Local), the default, denies every check, because
    /// this process does not know its share. With the feature `redis`, `as_redis` gives the store,
    /// whose `ready` returns the cause.
    ///
    /// # Errors
    /// Returns an error if the URL is invalid or names an unknown kind of store.
    pub async fn open(url: &str) -> Result<Self, OpenError> {
        #[cfg(feature = "redis")]
        return Limiter::builder().open(url).await;
        #[cfg(not(feature = "redis"))]
        Limiter::check_url(url).map(|()| Limiter::memory())
    }

    /// Checks a URL without opening the store.
    ///
    /// # Errors
    /// Returns the error that [`Limiter::open`] returns for the URL.
    pub fn check_url(url: &str) -> Result<(), OpenError> {
        url::check(url)
    }

    /// Returns a builder with the default options.
    #[cfg(feature = "redis")]
    pub fn builder() -> LimiterBuilder {
        LimiterBuilder::default()
    }

    /// Checks and charges a cost of 1. With a concurrent limit it acquires a lease: the decision
    /// carries the lease to release; [`acquire`](Self::acquire) does so by itself.
    ///
    /// A failed store is no error: the policy decides instead.
    pub async fn check(&self, policy: &Policy, key: impl AsKey) -> Decision {
        self.check_cost(policy, key, Cost::ONE).await
    }

    /// Checks and charges a cost; a cost of 0 is a peek.
    pub async fn check_cost(&self, policy: &Policy, key: impl AsKey, cost: Cost) -> Decision {
        let mut buffer = KeyBuffer::new();
        let key = key.as_key(&mut buffer);
        match self.check_now(policy, key, cost) {
            Some(decision) => decision,
            None => self.decide_valid(Operation::Check { lease: None }, policy, key, cost).await,
        }
    }

    /// As [`check_cost`](Self::check_cost), if that needs no answer of the store: always in memory, and
    /// on Redis with the quota of a [leased](Policy::leased) policy that this process has. With `None`,
    /// nothing was charged or counted.
    #[inline]
    #[must_use]
    pub fn check_now(&self, policy: &Policy, key: impl AsKey, cost: Cost) -> Option<Decision> {
        match &self.0 {
            Backend::Memory(memory) => Some(memory.check_cost(policy, key, cost)),
            #[cfg(feature = "redis")]
            Backend::Redis(redis) => {
                policy.hold()?;
                let mut buffer = KeyBuffer::new();
                let key = key.as_key(&mut buffer);
                redis.check_now(&Check::new(policy, &key).with_cost(cost))
            }
            Backend::Other(_) => None,
        }
    }

    /// Returns what a check of this cost would decide; changes nothing.
    pub async fn peek(&self, policy: &Policy, key: impl AsKey, cost: Cost) -> Decision {
        self.decide_valid(Operation::Peek, policy, key, cost).await
    }

    /// Executes an operation that decides, and that is valid for every policy, key and cost.
    async fn decide_valid(
        &self,
        operation: Operation,
        policy: &Policy,
        key: impl AsKey,
        cost: Cost,
    ) -> Decision {
        #[expect(clippy::expect_used, reason = "a store that fails lets the policy decide")]
        self.execute(operation, policy, key, cost).await.expect("the request is valid")
    }

    /// Decides several checks together: all are charged if all are admitted, or none is. Each check has
    /// its own cost, so that requests, tokens and requests in flight can be limited at once. If the
    /// store fails, the strictest [`OnStoreError`](crate::OnStoreError) of the policies decides.
    ///
    /// # Errors
    /// Returns an error if there is no check or more than 32, or if a key is empty or too long.
    pub async fn check_all(&self, checks: &[Check<'_>]) -> Result<Answer, StoreError> {
        let operation = Operation::Check { lease: None };
        self.decide(&Request { operation, checks, request_id: None }).await
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
        key: impl AsKey,
        cost: Cost,
    ) -> Result<Decision, StoreError> {
        let mut buffer = KeyBuffer::new();
        let key = key.as_key(&mut buffer);
        let checks = [Check::new(policy, &key).with_cost(cost)];
        let request = Request { operation, checks: &checks, request_id: None };
        self.decide(&request).await.map(Answer::into_decision)
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
            Backend::Other(store) => Box::pin(store.decide(request)).await,
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
                let answers = memory.decide_batch(requests).into_iter();
                answers.map(|answer| answer.map_err(StoreError::from)).collect()
            }
            #[cfg(feature = "redis")]
            Backend::Redis(redis) => Box::pin(redis.decide_batch(requests, deadline)).await,
            Backend::Other(store) => Box::pin(store.decide_batch(requests)).await,
        }
    }

    /// Returns the state of a key: the usage of each limit, the block, leases and reservations, and
    /// when they expire.
    ///
    /// # Errors
    /// Returns an error if the store failed.
    pub async fn inspect(
        &self,
        policy: &Policy,
        key: impl AsKey,
    ) -> Result<Inspection, StoreError> {
        let mut buffer = KeyBuffer::new();
        let key = key.as_key(&mut buffer);
        match &self.0 {
            Backend::Memory(memory) => Ok(memory.inspect(policy, key)),
            #[cfg(feature = "redis")]
            Backend::Redis(redis) => Box::pin(redis.inspect(policy, key)).await,
            Backend::Other(store) => Box::pin(store.inspect(policy, key)).await,
        }
    }

    /// Ends this process's part in the shared limits, before it exits: charges the store for what was
    /// admitted while it was unavailable, within `timeout`, and gives the process's shares to the others.
    /// The in-memory store has nothing to do.
    ///
    /// # Errors
    /// Returns an error if the store could not be charged for all of it, or if it is unavailable, so that
    /// the others get the shares only after the lifetime of the membership.
    pub async fn leave(&self, timeout: Duration) -> Result<(), StoreError> {
        match &self.0 {
            Backend::Memory(_) | Backend::Other(_) => {
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

    /// The callers of this process that wait.
    #[cfg(feature = "tokio")]
    pub(crate) fn waiters(&self) -> &Waiters {
        match &self.0 {
            Backend::Memory(memory) => memory.waiters(),
            #[cfg(feature = "redis")]
            Backend::Redis(redis) => redis.waiters(),
            Backend::Other(store) => &store.waiters,
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
            Backend::Other(store) => store.limit(limits),
        }
    }

    /// Returns statistics about the store's failures and latency. The in-memory store has none.
    #[must_use]
    pub fn stats(&self) -> LimiterStats {
        match &self.0 {
            Backend::Memory(_) | Backend::Other(_) => LimiterStats::default(),
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
            Backend::Other(_) => None,
        }
    }

    /// Returns the store on Redis or Valkey, if that is the store: to wait for a connection, to read
    /// its statistics, or to [delete](RedisStore::flush_namespace) the keys of a test.
    #[cfg(feature = "redis")]
    #[must_use]
    pub fn as_redis(&self) -> Option<&RedisStore> {
        match &self.0 {
            Backend::Memory(_) | Backend::Other(_) => None,
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
