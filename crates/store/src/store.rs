//! The contract that every store keeps.

use std::fmt;
use std::future::Future;

use tollgate_core::{Decision, Micros, Request, RequestError};

use crate::failure::{Failure, FailureKind};

/// Where state lives and whose clock counts.
pub trait Store {
    /// Decides the requests in order, each as a whole; one answer for each.
    fn decide(
        &self,
        requests: &[Request<'_>],
    ) -> impl Future<Output = Vec<Result<Answer, StoreError>>> + Send;
}

/// The answer to a request: a decision for each of its checks, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// One for each check.
    pub decisions: Vec<Decision>,
}

impl Answer {
    /// Returns the decision of a request with a single check.
    ///
    /// # Panics
    /// Panics if there is more than one decision, or none.
    #[must_use]
    pub fn into_decision(self) -> Decision {
        #[expect(clippy::expect_used, reason = "documented")]
        let [decision] = self.decisions.try_into().expect("the request has a single check");
        decision
    }

    /// Whether the request may go on: whether every check was admitted.
    #[must_use]
    pub fn allowed(&self) -> bool {
        self.decisions.iter().all(|decision| decision.allowed)
    }

    /// Whether a cost is above a capacity, so that waiting does not help.
    #[must_use]
    pub fn never(&self) -> bool {
        self.decisions.iter().any(|decision| decision.never)
    }

    /// When the same request would be admitted; absent where there is no such time.
    #[must_use]
    pub fn retry_after(&self) -> Option<Micros> {
        let denied = || self.decisions.iter().filter(|decision| !decision.allowed);
        let endless = denied().any(|x| x.retry_after.is_none());
        self.decisions.iter().filter_map(|decision| decision.retry_after).max().filter(|_| !endless)
    }
}

/// Why a store gave no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StoreError {
    /// The request cannot be decided, here or anywhere.
    Request(RequestError),
    /// The store could not say.
    Unavailable(Failure),
}

impl StoreError {
    /// A failure of the store, in its words.
    #[must_use]
    pub fn unavailable(kind: FailureKind, message: impl Into<Box<str>>) -> Self {
        StoreError::Unavailable(Failure::new(kind, message))
    }

    /// The kind of failure, unless the request itself is at fault.
    #[must_use]
    pub const fn failure(&self) -> Option<FailureKind> {
        match self {
            StoreError::Request(_) => None,
            StoreError::Unavailable(unavailable) => Some(unavailable.kind),
        }
    }

    /// Whether the request may have been decided and charged all the same. It must not be blindly
    /// repeated then.
    #[must_use]
    pub fn is_outcome_unknown(&self) -> bool {
        self.failure().is_some_and(FailureKind::is_outcome_unknown)
    }

    /// Whether it is certain that nothing was charged.
    #[must_use]
    pub fn was_not_executed(&self) -> bool {
        !self.is_outcome_unknown()
    }
}

impl From<Failure> for StoreError {
    fn from(it: Failure) -> Self {
        StoreError::Unavailable(it)
    }
}

impl From<RequestError> for StoreError {
    fn from(it: RequestError) -> Self {
        StoreError::Request(it)
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StoreError::Request(request) => request.fmt(f),
            StoreError::Unavailable(unavailable) => unavailable.fmt(f),
        }
    }
}

impl std::error::Error for StoreError {}
