//! The limiter over a choice of stores.

#[cfg(feature = "redis")]
mod builder;
mod open_error;
#[cfg(feature = "redis")]
mod remote;
mod stats;
#[cfg(feature = "redis")]
mod times;
mod url;
mod verbs;

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
pub use open_error::OpenError;
#[cfg(feature = "redis")]
use remote::Remote;
pub use stats::LimiterStats;
pub use url::masked_url;

/// A rate limiter over one of the stores. Clones share it.
///
/// On memory its futures are ready at once. On Redis or Valkey, with the feature `redis`, they must
/// be awaited in a tokio runtime; each that decides is ready within the deadline, 15 ms unless the
/// builder says otherwise, whatever becomes of the server. Where the store gives no answer by then,
/// the policy's [`OnStoreError`](crate::OnStoreError) decides, and the decision says that it is
/// `degraded`. A future may be dropped at any time: what was not sent yet is not charged.
///
/// # Example
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
#[derive(Clone, Debug)]
pub struct Limiter(Choice);

/// The stores there are.
#[derive(Clone, Debug)]
enum Choice {
    Memory(MemoryLimiter),
    #[cfg(feature = "redis")]
    Redis(Remote),
}

impl Limiter {
    /// Opens the store of a URL: `memory`, or with the feature `redis` one server at
    /// `redis://HOST`, a cluster at `redis+cluster://HOST,HOST`, or what sentinels watch at
    /// `redis+sentinel://HOST,HOST/MASTER`, each with `rediss` in place of `redis` for TLS. The
    /// rest has its defaults; with the feature there is a `Limiter::builder` to choose.
    ///
    /// A server that is away is no error: it is tried for a second, and then in the background.
    ///
    /// # Errors
    /// There is no store of that kind, or the URL is not one.
    pub async fn open(url: &str) -> Result<Self, OpenError> {
        #[cfg(feature = "redis")]
        return Limiter::builder().open(url).await;
        #[cfg(not(feature = "redis"))]
        Limiter::check_scheme(url).map(|()| MemoryLimiter::new().into())
    }

    /// Whether a URL is of a kind of store that there is; the rest of it is looked at when it is
    /// opened.
    ///
    /// # Errors
    /// There is no store of that kind.
    pub fn check_scheme(url: &str) -> Result<(), OpenError> {
        open_error::check_kind(url)
    }

    /// A limiter to be configured and then [opened](LimiterBuilder::open).
    #[cfg(feature = "redis")]
    pub fn builder() -> LimiterBuilder {
        LimiterBuilder::default()
    }

    /// Decides and charges one request. On a policy with a concurrent limit it acquires: the
    /// decision then carries the lease to release.
    ///
    /// # Errors
    /// The request cannot be decided. That the store gives no answer is no error: the policy says
    /// what holds then.
    pub async fn check(&self, policy: &Policy, key: Key<'_>) -> Result<Decision, StoreError> {
        self.check_cost(policy, key, Cost::ONE).await
    }

    /// Decides and charges a cost; a cost of 0 is a peek.
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
            Choice::Memory(memory) => Ok(memory.check_cost(policy, key, cost)),
            #[cfg(feature = "redis")]
            Choice::Redis(_) => {
                self.execute(Operation::Check { lease: None }, policy, key, cost).await
            }
        }
    }

    /// Decides one check with any verb.
    ///
    /// # Errors
    /// The verb does not go with the policy or the cost; or it is one that does not
    /// [decide](Operation::decides), and the store gave no answer.
    pub async fn execute(
        &self,
        verb: Operation,
        policy: &Policy,
        key: Key<'_>,
        cost: Cost,
    ) -> Result<Decision, StoreError> {
        match &self.0 {
            Choice::Memory(memory) => {
                memory.execute(verb, policy, key, cost).map_err(StoreError::from)
            }
            #[cfg(feature = "redis")]
            Choice::Redis(redis) => {
                let checks = [Check { policy, key: key.as_bytes(), cost }];
                let request = Request { verb, checks: &checks, request_id: None };
                let answer = Box::pin(redis.decide(&request)).await?;
                Ok(answer.decisions.into_iter().next().unwrap_or_default())
            }
        }
    }

    /// Decides a request of any verb, of several checks together, with or without an id. Where the
    /// store gives no answer the strictest of the policies' answers holds.
    ///
    /// # Errors
    /// As [`execute`](Self::execute).
    pub async fn decide(&self, request: &Request<'_>) -> Result<Answer, StoreError> {
        match &self.0 {
            Choice::Memory(memory) => memory.decide(request).map_err(StoreError::from),
            // Boxed, so that the future on memory does not carry its weight.
            #[cfg(feature = "redis")]
            Choice::Redis(redis) => Box::pin(redis.decide(request)).await,
        }
    }

    /// Decides requests that have nothing to do with each other, in order, each as a whole; one
    /// answer for each. On Redis they are asked at once, as one call where one connection takes
    /// them; in order are there those on one key, of which a request's first counts.
    pub async fn decide_batch(&self, requests: &[Request<'_>]) -> Vec<Result<Answer, StoreError>> {
        self.decide_batch_within(requests, Duration::MAX).await
    }

    /// As [`Limiter::decide_batch`] for a caller that waits at most this long: what the store has not
    /// answered by then is as if it was away. No answer takes longer than the store's own deadline.
    pub async fn decide_batch_within(
        &self,
        requests: &[Request<'_>],
        patience: Duration,
    ) -> Vec<Result<Answer, StoreError>> {
        match &self.0 {
            // It never waits.
            Choice::Memory(memory) => {
                let _ = patience;
                let decide = |request| memory.decide(request).map_err(StoreError::from);
                requests.iter().map(decide).collect()
            }
            #[cfg(feature = "redis")]
            Choice::Redis(redis) => Box::pin(redis.decide_batch(requests, patience)).await,
        }
    }

    /// Looks at a key: what each limit holds of it, its block, leases and reservations, and how
    /// long they last.
    ///
    /// # Errors
    /// The store gave no answer.
    pub async fn inspect(&self, policy: &Policy, key: Key<'_>) -> Result<Inspection, StoreError> {
        match &self.0 {
            Choice::Memory(memory) => Ok(memory.inspect(policy, key)),
            #[cfg(feature = "redis")]
            Choice::Redis(redis) => Box::pin(redis.inspect(policy, key)).await,
        }
    }

    /// The policy of limits given as text, parsed once.
    ///
    /// # Errors
    /// The text is not limits; the error points at the word that is wrong.
    pub fn limit(&self, limits: &str) -> Result<Policy, NotationError> {
        match &self.0 {
            Choice::Memory(memory) => memory.limit(limits),
            #[cfg(feature = "redis")]
            Choice::Redis(redis) => redis.limit(limits),
        }
    }

    /// How often the store gave no answer, and what came of it. Memory always answers.
    #[must_use]
    pub fn stats(&self) -> LimiterStats {
        match &self.0 {
            Choice::Memory(_) => LimiterStats::default(),
            #[cfg(feature = "redis")]
            Choice::Redis(redis) => redis.stats(),
        }
    }

    /// The limiter on memory, if that is the store.
    #[must_use]
    pub fn as_memory(&self) -> Option<&MemoryLimiter> {
        match &self.0 {
            Choice::Memory(memory) => Some(memory),
            #[cfg(feature = "redis")]
            Choice::Redis(_) => None,
        }
    }

    /// The store on Redis or Valkey, if that is where state lives: to wait until it is there, to
    /// read its figures, to [erase](RedisStore::flush_namespace) what a limiter with a clock of its own has
    /// left there. What is on memory goes with the limiter.
    #[cfg(feature = "redis")]
    #[must_use]
    pub fn as_redis(&self) -> Option<&RedisStore> {
        match &self.0 {
            Choice::Memory(_) => None,
            Choice::Redis(redis) => Some(redis.store()),
        }
    }
}

impl From<MemoryLimiter> for Limiter {
    fn from(it: MemoryLimiter) -> Self {
        Limiter(Choice::Memory(it))
    }
}

/// With the default deadline; [`LimiterBuilder::with_store`] chooses another.
#[cfg(feature = "redis")]
impl From<RedisStore> for Limiter {
    fn from(it: RedisStore) -> Self {
        Limiter::builder().with_store(it)
    }
}
