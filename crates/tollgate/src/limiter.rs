//! The limiter over a choice of stores.

use std::fmt;

use tollgate_core::{Check, Cost, Decision, Inspection, NotationError, Policy, Request, Verb};
use tollgate_store::{Answer, Key, StoreError};

use crate::memory::MemoryLimiter;

/// A rate limiter over one of the stores. Clones share it.
///
/// On memory its futures are ready at once.
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
}

impl Limiter {
    /// Opens the store of a URL: `memory`.
    ///
    /// # Errors
    /// There is no store of that kind.
    pub async fn open(url: &str) -> Result<Self, OpenError> {
        match url {
            "memory" => Ok(MemoryLimiter::new().into()),
            url => Err(OpenError::Unknown(url.into())),
        }
    }

    /// Decides and charges one request.
    ///
    /// # Errors
    /// The store gave no answer.
    pub async fn check(&self, policy: &Policy, key: Key<'_>) -> Result<Decision, StoreError> {
        self.check_cost(policy, key, Cost::ONE).await
    }

    /// Decides and charges a cost.
    ///
    /// # Errors
    /// The store gave no answer.
    pub async fn check_cost(
        &self,
        policy: &Policy,
        key: Key<'_>,
        cost: Cost,
    ) -> Result<Decision, StoreError> {
        match &self.0 {
            Choice::Memory(it) => Ok(it.check_cost(policy, key, cost)),
        }
    }

    /// Decides one check with any verb.
    ///
    /// # Errors
    /// The verb does not go with the policy or the cost, or the store gave no answer.
    pub async fn ask(
        &self,
        verb: Verb,
        policy: &Policy,
        key: Key<'_>,
        cost: Cost,
    ) -> Result<Decision, StoreError> {
        let checks = [Check { policy, key: key.as_bytes(), cost }];
        let request = Request { verb, checks: &checks, request_id: None };
        let answer = self.decide(&request).await?;
        Ok(answer.decisions.into_iter().next().unwrap_or_default())
    }

    /// Decides a request of any verb, of several checks together, with or without an id.
    ///
    /// # Errors
    /// The request is not one that can be decided, or the store gave no answer.
    pub async fn decide(&self, request: &Request<'_>) -> Result<Answer, StoreError> {
        match &self.0 {
            Choice::Memory(it) => it.decide(request).map_err(StoreError::from),
        }
    }

    /// Looks at a key: what each limit holds of it, its block, leases and reservations, and how
    /// long they last.
    ///
    /// # Errors
    /// The store gave no answer.
    pub async fn inspect(&self, policy: &Policy, key: Key<'_>) -> Result<Inspection, StoreError> {
        match &self.0 {
            Choice::Memory(it) => Ok(it.inspect(policy, key)),
        }
    }

    /// The policy of limits given as text, parsed once.
    ///
    /// # Errors
    /// The text is not limits; the error points at the word that is wrong.
    pub fn limit(&self, limits: &str) -> Result<Policy, NotationError> {
        match &self.0 {
            Choice::Memory(it) => it.limit(limits),
        }
    }

    /// The limiter on memory, if that is the store.
    #[must_use]
    pub fn as_memory(&self) -> Option<&MemoryLimiter> {
        match &self.0 {
            Choice::Memory(it) => Some(it),
        }
    }
}

impl From<MemoryLimiter> for Limiter {
    fn from(it: MemoryLimiter) -> Self {
        Limiter(Choice::Memory(it))
    }
}

/// Why a store could not be opened.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OpenError {
    /// There is no store of that kind.
    Unknown(Box<str>),
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OpenError::Unknown(url) => {
                write!(f, "there is no store {url:?}; this version has one: \"memory\"")
            }
        }
    }
}

impl std::error::Error for OpenError {}
