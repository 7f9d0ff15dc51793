//! Requests to a store: operations, checks and costs.

use core::fmt;

use crate::error::RequestError;
use crate::id::Id;
use crate::policy::Policy;
use crate::time::{Micros, Timestamp};

/// The cost of a check: an integer from 0 to 2^53 − 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cost(u64);

impl Cost {
    /// A cost of zero. A check of cost 0 charges nothing.
    pub const ZERO: Cost = Cost(0);
    /// A cost of one, the default.
    pub const ONE: Cost = Cost(1);
    /// The greatest cost, 2^53 − 1, which every protocol represents exactly.
    pub const MAX: Cost = Cost((1 << 53) - 1);

    /// Creates a cost of `units`, or `None` if that exceeds [`Cost::MAX`].
    #[must_use]
    pub const fn new(units: u64) -> Option<Self> {
        if units > Self::MAX.0 { None } else { Some(Cost(units)) }
    }

    /// The number of units.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }
}

impl Default for Cost {
    fn default() -> Self {
        Cost::ONE
    }
}

/// An error for a number that exceeds [`Cost::MAX`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CostError(u64);

impl fmt::Display for CostError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a cost of {} is too large; it is at most {}", self.0, Cost::MAX.get())
    }
}

impl core::error::Error for CostError {}

impl TryFrom<u64> for Cost {
    type Error = CostError;

    fn try_from(units: u64) -> Result<Self, CostError> {
        Cost::new(units).ok_or(CostError(units))
    }
}

impl From<u32> for Cost {
    fn from(units: u32) -> Self {
        Cost(u64::from(units))
    }
}

/// The operation of a [`Request`]. It works with the cost of each check: the cost to charge, the
/// most to take, or the amount to refund, to penalize or to backfill.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Operation {
    /// Decides and charges. On a policy with a concurrency limit it acquires a lease.
    Check {
        /// The id of the lease to acquire. Without it, a limiter draws one; a store needs it.
        lease: Option<Id>,
    },
    /// Decides as a check would, without a charge.
    Peek,
    /// Grants the cost or what remains, whichever is less.
    Take,
    /// Charges now for a request that proceeds after the decision's delay. It is denied if the
    /// delay would be longer than `max_wait`.
    Reserve {
        /// The id of the reservation.
        id: Id,
        /// The longest acceptable delay.
        max_wait: Micros,
    },
    /// Cancels a reservation, once, before its time.
    Cancel {
        /// The id of the reservation.
        id: Id,
    },
    /// Refunds the cost, never beyond the capacity.
    Refund {
        /// The time of the decision that charged the cost; without it the newest charges are
        /// refunded.
        time: Option<Timestamp>,
    },
    /// Charges at any level, into a debt of at most one more capacity.
    Penalize,
    /// Charges one limit at any level, into a debt of at most one more capacity, for requests that
    /// were admitted elsewhere at an earlier time. The charge lands in the window of that time; if
    /// that no longer counts, nothing is charged. A store that decides again after an outage is
    /// charged in this way for what was admitted without it.
    ///
    /// A token bucket or a queue is charged now, whatever the time: the cost is what has not drained
    /// since. The entries of a sliding log stay in order, so the charge is no older than its newest
    /// entry. A window from its first charge is the one that is open, or one that opens at the time.
    /// A sliding window counter weights the cost like any other of that window, so the cost is what was
    /// admitted, not what its use weighs now.
    Backfill {
        /// The index of the limit in [`Policy::limits`].
        limit: u8,
        /// When the requests were admitted. A time after now is now.
        time: Timestamp,
    },
    /// Replaces the cost that a check charged by the actual one, once. The request has the id and the
    /// checks of that check, with the actual costs.
    Settle,
    /// Removes the state of the key, except a block.
    Reset,
    /// Denies every check of the key.
    Block {
        /// The duration of the block; without it the key is blocked for ever.
        span: Option<Micros>,
    },
    /// Lifts a block or a ban.
    Unblock,
    /// Checks and acquires a lease of the cost on every concurrency limit of the policy.
    Acquire {
        /// The id of the lease.
        lease: Id,
    },
    /// Extends a lease that is still held to its whole length from now.
    Renew {
        /// The id of the lease.
        lease: Id,
    },
    /// Releases a lease, once.
    Release {
        /// The id of the lease.
        lease: Id,
    },
}

/// A check of a key under a policy.
#[derive(Clone, Copy, Debug)]
pub struct Check<'a> {
    /// The policy.
    pub policy: &'a Policy,
    /// The key: any bytes that name the client to limit.
    pub key: &'a [u8],
    /// The cost.
    pub cost: Cost,
}

impl<'a> Check<'a> {
    /// Creates a check with a cost of 1.
    #[must_use]
    pub fn new<K: AsRef<[u8]> + ?Sized>(policy: &'a Policy, key: &'a K) -> Self {
        Check { policy, key: key.as_ref(), cost: Cost::ONE }
    }

    /// The same check with another cost.
    #[must_use]
    pub const fn with_cost(self, cost: Cost) -> Self {
        Check { cost, ..self }
    }
}

/// One or several checks that are decided together: all are charged, or none.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The operation.
    pub operation: Operation,
    /// The checks. Only check, peek, acquire and settle take several.
    pub checks: &'a [Check<'a>],
    /// The id of the request. A repeated request with the same id gets the first decision again. That
    /// of a settlement is the id of the check.
    pub request_id: Option<&'a [u8]>,
}

/// The most checks of one request.
pub const MAX_CHECKS: usize = 32;
/// The longest key, in bytes.
pub const MAX_KEY_LEN: usize = 65_536;
/// The longest request id, in bytes.
pub const MAX_REQUEST_ID_LEN: usize = 256;

impl Operation {
    /// The name in every protocol.
    #[must_use]
    pub const fn as_str(&self) -> &'static str {
        match self {
            Operation::Check { .. } => "check",
            Operation::Peek => "peek",
            Operation::Take => "take",
            Operation::Reserve { .. } => "reserve",
            Operation::Cancel { .. } => "cancel",
            Operation::Refund { .. } => "refund",
            Operation::Penalize => "penalize",
            Operation::Backfill { .. } => "backfill",
            Operation::Settle => "settle",
            Operation::Reset => "reset",
            Operation::Block { .. } => "block",
            Operation::Unblock => "unblock",
            Operation::Acquire { .. } => "acquire",
            Operation::Renew { .. } => "renew",
            Operation::Release { .. } => "release",
        }
    }

    /// Whether the limits decide, so that the operation may be denied.
    #[must_use]
    pub const fn decides(&self) -> bool {
        matches!(
            self,
            Operation::Check { .. }
                | Operation::Peek
                | Operation::Take
                | Operation::Reserve { .. }
                | Operation::Acquire { .. }
        )
    }

    /// Whether the operation takes several checks.
    const fn takes_several(&self) -> bool {
        matches!(
            self,
            Operation::Check { .. }
                | Operation::Peek
                | Operation::Acquire { .. }
                | Operation::Settle
        )
    }
}

impl Request<'_> {
    /// Checks the request against the requirements of its operation, as a limiter does. A limiter
    /// draws the id of a lease if a check needs one; a store requires it, see
    /// [`validate_for_store`](Self::validate_for_store).
    ///
    /// # Errors
    /// There is no check, or there are too many; a key is empty or too long; the amount to take,
    /// refund, penalize or backfill is 0; a settlement has no id; or the operation does not apply to
    /// the policy's limits.
    pub fn validate(&self) -> Result<(), RequestError> {
        match self.checks.len() {
            0 => return Err(RequestError::NoCheck),
            1 => {}
            many if many > MAX_CHECKS => return Err(RequestError::TooManyChecks(many)),
            _ if !self.operation.takes_several() => {
                return Err(RequestError::OneCheck(self.operation.as_str()));
            }
            _ => {}
        }
        if self.request_id.is_some_and(|id| !(1..=MAX_REQUEST_ID_LEN).contains(&id.len())) {
            return Err(RequestError::RequestId);
        }
        if self.operation == Operation::Settle && self.request_id.is_none() {
            return Err(RequestError::NoRequestId);
        }
        self.checks.iter().try_for_each(|check| self.validate_check(check))
    }

    /// As [`validate`](Self::validate), and a check that acquires a lease has the id of it.
    ///
    /// # Errors
    /// As [`validate`](Self::validate), or the id of a lease is missing.
    pub fn validate_for_store(&self) -> Result<(), RequestError> {
        self.validate()?;
        let acquires = |check: &Check<'_>| check.policy.has_concurrent() && check.cost > Cost::ZERO;
        match self.operation {
            Operation::Check { lease: None } if self.checks.iter().any(acquires) => {
                Err(RequestError::NeedsLease)
            }
            _ => Ok(()),
        }
    }

    fn validate_check(&self, check: &Check<'_>) -> Result<(), RequestError> {
        let operation = self.operation.as_str();
        match check.key.len() {
            0 => return Err(RequestError::EmptyKey),
            len if len > MAX_KEY_LEN => return Err(RequestError::LongKey(len)),
            _ => {}
        }
        let limits = check.policy.limits();
        let concurrent = check.policy.has_concurrent();
        match self.operation {
            Operation::Take
            | Operation::Refund { .. }
            | Operation::Penalize
            | Operation::Backfill { .. }
                if check.cost == Cost::ZERO =>
            {
                Err(RequestError::ZeroAmount(operation))
            }
            Operation::Backfill { limit, .. } => match limits.get(usize::from(limit)) {
                None => Err(RequestError::NoSuchLimit { limit, count: limits.len() }),
                Some(limit) if limit.is_concurrent() => Err(RequestError::Concurrent(operation)),
                Some(_) => Ok(()),
            },
            Operation::Take if concurrent => Err(RequestError::Concurrent(operation)),
            Operation::Refund { .. } | Operation::Penalize
                if limits.iter().all(|limit| limit.is_concurrent()) =>
            {
                Err(RequestError::Concurrent(operation))
            }
            Operation::Reserve { .. } | Operation::Cancel { .. }
                if !limits.iter().all(|limit| limit.can_reserve()) =>
            {
                Err(RequestError::NotReservable(operation))
            }
            Operation::Acquire { .. } | Operation::Renew { .. } | Operation::Release { .. }
                if !concurrent =>
            {
                Err(RequestError::NotConcurrent(operation))
            }
            _ => Ok(()),
        }
    }
}
