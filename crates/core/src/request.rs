//! What a store is asked: operations, checks, and the ids that make a retry safe.

use crate::error::RequestError;
use crate::id::Id;
use crate::policy::Policy;
use crate::time::{Micros, Timestamp};

/// A cost: what a request spends. An integer from 0 to 2^53 − 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cost(u64);

impl Cost {
    /// Nothing: a check of cost 0 is a peek.
    pub const ZERO: Cost = Cost(0);
    /// One request.
    pub const ONE: Cost = Cost(1);
    /// The greatest cost, 2^53 − 1: what every surface can carry exactly.
    pub const MAX: Cost = Cost((1 << 53) - 1);

    /// A cost of `units`, unless that is more than [`Cost::MAX`].
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

impl From<u32> for Cost {
    fn from(units: u32) -> Self {
        Cost(u64::from(units))
    }
}

/// What is asked of the checks of a [`Request`]. The cost of a check is the operation's number: what
/// is charged, the most that is taken, what is refunded, what is penalized.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Operation {
    /// Decide and charge. On a policy with a concurrent limit it acquires, so it needs a lease.
    Check {
        /// The id of the lease that is taken on concurrent limits.
        lease: Option<Id>,
    },
    /// What a check would answer; nothing changes.
    Peek,
    /// Grant the lesser of the cost and what remains.
    Take,
    /// Charge now, act after the decision's delay; refused whole if that is longer than `max_wait`.
    Reserve {
        /// The id under which it can be cancelled.
        id: Id,
        /// The longest delay that is accepted.
        max_wait: Micros,
    },
    /// Give back a reservation, once, before its time.
    Cancel {
        /// The reservation's id.
        id: Id,
    },
    /// Give back the cost, never past the capacity.
    Refund {
        /// The time of the decision that charged it; the newest charges go first without.
        time: Option<Timestamp>,
    },
    /// Charge whatever the level, into a debt of at most one more capacity.
    Penalize,
    /// As if the key were unknown, blocks aside.
    Reset,
    /// Deny every check of the key.
    Block {
        /// For how long; for ever without.
        span: Option<Micros>,
    },
    /// Lift a block.
    Unblock,
    /// Take a lease of the cost on every concurrent limit of the policy, with its other limits.
    Acquire {
        /// The lease's id.
        lease: Id,
    },
    /// Let a lease that is still held last its whole length from now.
    Renew {
        /// The lease's id.
        lease: Id,
    },
    /// Give a lease's place back, once.
    Release {
        /// The lease's id.
        lease: Id,
    },
}

/// One (policy, key, cost).
#[derive(Clone, Copy, Debug)]
pub struct Check<'a> {
    /// Under which limits.
    pub policy: &'a Policy,
    /// Who is limited: any bytes.
    pub key: &'a [u8],
    /// What is spent.
    pub cost: Cost,
}

/// One or several checks decided together: all are charged, or none is.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// What is asked.
    pub operation: Operation,
    /// Of whom. All operations but check, peek and acquire take one.
    pub checks: &'a [Check<'a>],
    /// Names the whole request: a repeat within the horizon is answered from memory.
    pub request_id: Option<&'a [u8]>,
}

/// The most checks of one request.
pub const MAX_CHECKS: usize = 32;
/// The longest key, in bytes.
pub const MAX_KEY_LEN: usize = 65_536;
/// The longest request id, in bytes.
pub const MAX_REQUEST_ID_LEN: usize = 256;

impl Operation {
    /// Its name on every surface.
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
            Operation::Reset => "reset",
            Operation::Block { .. } => "block",
            Operation::Unblock => "unblock",
            Operation::Acquire { .. } => "acquire",
            Operation::Renew { .. } => "renew",
            Operation::Release { .. } => "release",
        }
    }

    /// Whether its answer is that of limits, which may deny.
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

    /// Whether several checks can be decided together.
    const fn takes_several(&self) -> bool {
        matches!(self, Operation::Check { .. } | Operation::Peek | Operation::Acquire { .. })
    }
}

impl Request<'_> {
    /// Holds the request to what its operation takes.
    ///
    /// # Errors
    /// No check or too many; a key that is empty or too long; an amount of 0 where something is
    /// taken, refunded or penalized; an operation that the policy's limits do not know.
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
        if self
            .request_id
            .is_some_and(|request_id| !(1..=MAX_REQUEST_ID_LEN).contains(&request_id.len()))
        {
            return Err(RequestError::RequestId);
        }
        self.checks.iter().try_for_each(|check| self.validate_check(check))
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
            Operation::Take | Operation::Refund { .. } | Operation::Penalize
                if check.cost == Cost::ZERO =>
            {
                Err(RequestError::ZeroAmount(operation))
            }
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
            Operation::Check { lease: None } if concurrent && check.cost > Cost::ZERO => {
                Err(RequestError::NeedsLease)
            }
            _ => Ok(()),
        }
    }
}
