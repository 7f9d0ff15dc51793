//! The [`Store`] trait, and its results.

use std::fmt;
use std::future::Future;

use tollgate_algorithms::{
    Decision, Denied, Inspection, Micros, Outcome, Policy, Request, RequestError,
};

use crate::failure::{Failure, FailureKind};
use crate::key::Key;

/// A store of rate limit state, with its own clock.
///
/// A service can bring a store of its own: one that counts, filters or forwards requests to another
/// store, or one that keeps [`KeyState`](tollgate_algorithms::KeyState) elsewhere and decides with
/// [`decide`](tollgate_algorithms::decide).
pub trait Store {
    /// Decides each request as a whole: all of its checks are charged, or none. Returns one answer per
    /// request, in order.
    ///
    /// A denial is an answer. [`StoreError::Unavailable`] lets the policies decide, as their
    /// [`OnStoreError`](tollgate_algorithms::OnStoreError) says. Limiters send valid requests only, so a store
    /// returns [`StoreError::Request`] only for what it knows itself, such as an unknown charge.
    fn decide(
        &self,
        requests: &[Request<'_>],
    ) -> impl Future<Output = Vec<Result<Answer, StoreError>>> + Send;

    /// Returns the state of a key. The default implementation returns an error.
    fn inspect(
        &self,
        policy: &Policy,
        key: Key<'_>,
    ) -> impl Future<Output = Result<Inspection, StoreError>> + Send {
        let _ = (policy, key);
        let error =
            StoreError::unavailable(FailureKind::Rejected, "this store does not support inspect");
        std::future::ready(Err(error))
    }
}

/// The answer to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "a denied request must not proceed"]
pub struct Answer {
    /// One decision per check, in order.
    pub decisions: Vec<Decision>,
}

impl Answer {
    /// Returns the decision of a request with a single check.
    ///
    /// # Panics
    /// Panics if there is more than one decision, or none.
    pub fn into_decision(self) -> Decision {
        #[expect(clippy::expect_used, reason = "documented")]
        let [decision] = self.decisions.try_into().expect("the request has a single check");
        decision
    }

    /// Returns what the caller does after this answer: proceed if every check was admitted, after the
    /// longest of their delays, or not.
    pub fn outcome(&self) -> Outcome {
        let denials =
            self.decisions.iter().filter_map(|decision| decision.outcome().into_result().err());
        match (self.allowed(), self.retry_after()) {
            (true, _) => {
                let delay = self.decisions.iter().map(|decision| decision.delay).max();
                Outcome::Allowed { delay: delay.unwrap_or_default().into() }
            }
            (false, Some(time)) => Outcome::Denied(Denied::RetryAfter(time.into())),
            // One of the denials has no time to retry: that is the reason.
            (false, None) => {
                let reason = denials.reduce(|reason, denied| match reason {
                    Denied::RetryAfter(_) | Denied::OtherCheck => denied,
                    _ => reason,
                });
                Outcome::Denied(reason.unwrap_or(Denied::OtherCheck))
            }
        }
    }

    /// Returns whether every check was admitted.
    #[must_use]
    pub fn allowed(&self) -> bool {
        self.decisions.iter().all(|decision| decision.allowed)
    }

    /// Returns whether a cost exceeds a capacity, so that no retry can succeed.
    #[must_use]
    pub fn never(&self) -> bool {
        self.decisions.iter().any(|decision| decision.never)
    }

    /// Returns how long to wait until the same request is admitted; `None` if the request was
    /// admitted or if the time is unknown.
    #[must_use]
    pub fn retry_after(&self) -> Option<Micros> {
        let mut denied = self.decisions.iter().filter(|decision| !decision.allowed);
        let is_unknown = denied.any(|decision| decision.retry_after.is_none());
        let latest = self.decisions.iter().filter_map(|decision| decision.retry_after).max();
        latest.filter(|_| !is_unknown)
    }
}

/// Why a store did not answer.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StoreError {
    /// The request is invalid.
    Request(RequestError),
    /// The store failed.
    Unavailable(Failure),
}

impl StoreError {
    /// Creates a failure of the store; `message` is that of the server or the system.
    #[must_use]
    pub fn unavailable(kind: FailureKind, message: impl Into<Box<str>>) -> Self {
        StoreError::Unavailable(Failure::new(kind, message))
    }

    /// Returns the kind of failure; `None` if the request is invalid.
    #[must_use]
    pub const fn failure(&self) -> Option<FailureKind> {
        match self {
            StoreError::Request(_) => None,
            StoreError::Unavailable(failure) => Some(failure.kind),
        }
    }

    /// Returns whether the request may have been charged. Do not repeat such a request without a
    /// request id.
    #[must_use]
    pub fn is_outcome_unknown(&self) -> bool {
        self.failure().is_some_and(FailureKind::is_outcome_unknown)
    }

    /// Returns whether it is certain that nothing was charged.
    #[must_use]
    pub fn was_not_executed(&self) -> bool {
        !self.is_outcome_unknown()
    }
}

impl From<Failure> for StoreError {
    fn from(failure: Failure) -> Self {
        StoreError::Unavailable(failure)
    }
}

impl From<RequestError> for StoreError {
    fn from(error: RequestError) -> Self {
        StoreError::Request(error)
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StoreError::Request(request) => request.fmt(f),
            StoreError::Unavailable(failure) => failure.fmt(f),
        }
    }
}

impl std::error::Error for StoreError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            // The message is that of the cause.
            StoreError::Request(error) => error.source(),
            StoreError::Unavailable(failure) => failure.source(),
        }
    }
}
