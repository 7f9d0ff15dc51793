//! What a caller does after a decision.

use core::fmt;
use core::time::Duration;

use crate::decision::{Decision, Reason};

/// What a caller does after a decision: proceed, after a delay if there is one, or not.
///
/// A denial does not always have a time to retry, so that [`Decision::retry_after`] alone does not
/// show whether a request is admitted. This type has every case once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[must_use]
pub enum Outcome {
    /// The request is admitted.
    Allowed {
        /// How long it must wait in a queue before it proceeds; usually 0.
        delay: Duration,
    },
    /// The request is denied.
    Denied(Denied),
}

/// Why a request is denied, and what helps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Denied {
    /// A limit is used up, or the key is banned or blocked for a time: the same cost is admitted after this
    /// time if there is no other traffic.
    RetryAfter(Duration),
    /// The cost exceeds the capacity of a limit: waiting does not help.
    ExceedsCapacity,
    /// The key is blocked until an operator unblocks it.
    Blocked,
    /// The key is on the deny list.
    DenyListed,
    /// The store is unavailable, and the policy denies.
    StoreUnavailable,
    /// Another check of the same request is denied.
    OtherCheck,
}

impl Decision {
    /// What the caller does after this decision.
    ///
    /// # Example
    /// ```
    /// use tollgate_algorithms::{Decision, Denied, Micros, Outcome, Timestamp};
    ///
    /// let unavailable = Decision::from_store(false, None, Timestamp::EPOCH);
    /// match unavailable.outcome() {
    ///     Outcome::Allowed { delay } => println!("proceed in {delay:?}"),
    ///     Outcome::Denied(Denied::RetryAfter(time)) => println!("retry in {time:?}"),
    ///     Outcome::Denied(denied) => println!("{denied}"),
    /// }
    /// assert_eq!(unavailable.outcome(), Outcome::Denied(Denied::StoreUnavailable));
    /// ```
    pub fn outcome(&self) -> Outcome {
        if self.allowed {
            return Outcome::Allowed { delay: self.delay.into() };
        }
        Outcome::Denied(match (self.retry_after, self.reason) {
            (Some(time), _) => Denied::RetryAfter(time.into()),
            (None, _) if self.never => Denied::ExceedsCapacity,
            (None, Reason::Never) => Denied::ExceedsCapacity,
            (None, Reason::Blocked | Reason::Banned) => Denied::Blocked,
            (None, Reason::DenyList) => Denied::DenyListed,
            (None, Reason::Store) => Denied::StoreUnavailable,
            // Its own limits admit it.
            (None, Reason::Limit | Reason::AllowList) => Denied::OtherCheck,
        })
    }
}

impl Outcome {
    /// The delay of an admitted request, or the denial as an error.
    ///
    /// # Errors
    /// The request is denied.
    pub fn into_result(self) -> Result<Duration, Denied> {
        match self {
            Outcome::Allowed { delay } => Ok(delay),
            Outcome::Denied(denied) => Err(denied),
        }
    }
}

impl fmt::Display for Denied {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Denied::RetryAfter(time) => write!(f, "denied; retry in {time:?}"),
            Denied::ExceedsCapacity => f.write_str(
                "denied; the cost exceeds the capacity of a limit, so waiting does not help",
            ),
            Denied::Blocked => f.write_str("denied; the key is blocked until it is unblocked"),
            Denied::DenyListed => f.write_str("denied; the key is on the deny list"),
            Denied::StoreUnavailable => f.write_str("denied; the store is unavailable"),
            Denied::OtherCheck => f.write_str("denied; another check of the request is denied"),
        }
    }
}

impl core::error::Error for Denied {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::Listed;
    use crate::time::{Micros, Timestamp};

    #[test]
    fn every_denial_without_a_time_to_retry_is_a_denial() {
        let denied = |reason| Decision { reason, ..Decision::denied(Timestamp::EPOCH) };
        let wait = Some(Micros::from_millis(1_500));
        for (decision, expected) in [
            (
                Decision { retry_after: wait, ..denied(Reason::Limit) },
                Denied::RetryAfter(Duration::from_millis(1_500)),
            ),
            (
                Decision { retry_after: wait, ..denied(Reason::Blocked) },
                Denied::RetryAfter(Duration::from_millis(1_500)),
            ),
            (Decision { never: true, ..denied(Reason::Never) }, Denied::ExceedsCapacity),
            (Decision { never: true, ..denied(Reason::Blocked) }, Denied::ExceedsCapacity),
            (denied(Reason::Blocked), Denied::Blocked),
            (Decision::from_list(Listed::Deny, Timestamp::EPOCH), Denied::DenyListed),
            (Decision::from_store(false, None, Timestamp::EPOCH), Denied::StoreUnavailable),
            (denied(Reason::Limit), Denied::OtherCheck),
        ] {
            assert_eq!(decision.outcome(), Outcome::Denied(expected));
            assert_eq!(decision.outcome().into_result(), Err(expected));
        }
        let allowed =
            Decision { allowed: true, delay: Micros::from_secs(2), ..Decision::default() };
        let delay = Duration::from_secs(2);
        assert_eq!(allowed.outcome(), Outcome::Allowed { delay });
        assert_eq!(allowed.outcome().into_result(), Ok(delay));
    }
}
