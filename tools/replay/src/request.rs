//! What a log line requests of a rate limiter.

use tollgate::{Check, Cost, Operation, Policy, Request};

use crate::candidate::Candidate;
use crate::log::Line;

/// Turns log lines into requests: the key, the policy and the cost.
pub trait RequestExtractor: Sync {
    /// Extracts the only check of a line and appends its key to `key`.
    ///
    /// # Errors
    /// The line is skipped.
    fn check(&self, line: &Line<'_>, key: &mut Vec<u8>) -> Result<PlainCheck, Skip>;

    /// Extracts the whole request of line `number`.
    ///
    /// # Errors
    /// The line is skipped.
    fn request(&self, line: &Line<'_>, number: u64) -> Result<LogRequest, Skip>;
}

/// A check of one key, without an operation or a request id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlainCheck {
    /// The number of the policy; the same key under two policies has two states.
    pub policy: u32,
    /// The cost.
    pub cost: Cost,
}

/// Why a line makes no request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Skip {
    /// No rule matches the line.
    NoRule,
    /// The log does not contain the value that the key needs.
    NoKey,
    /// The line is invalid; the message contains the reason and a hint.
    Invalid(String),
}

/// The request of a line.
#[derive(Clone, Debug)]
pub struct LogRequest {
    /// The operation.
    pub operation: Operation,
    /// The checks.
    pub checks: Vec<LogCheck>,
    /// The idempotency key.
    pub request_id: Option<Vec<u8>>,
}

/// A check with an owned key.
#[derive(Clone, Debug)]
pub struct LogCheck {
    /// The number of the policy.
    pub policy: u32,
    /// The variant of the policy; by default that of the key.
    pub variant: Option<Policy>,
    /// The key.
    pub key: Vec<u8>,
    /// The cost.
    pub cost: Cost,
}

impl LogRequest {
    /// The policy of each check under a candidate; `None` where the candidate has none.
    pub(crate) fn policies(&self, candidate: &Candidate) -> Vec<Option<Policy>> {
        let policy = |check: &LogCheck| {
            check.variant.clone().or_else(|| candidate.policy(check.policy, &check.key))
        };
        self.checks.iter().map(policy).collect()
    }

    /// The checks that have a policy.
    pub(crate) fn checks<'a>(&'a self, policies: &'a [Option<Policy>]) -> Vec<Check<'a>> {
        let checks = self.checks.iter().zip(policies);
        checks
            .filter_map(|(check, policy)| {
                Some(Check { policy: policy.as_ref()?, key: &check.key, cost: check.cost })
            })
            .collect()
    }

    /// The request for a store.
    pub(crate) fn request<'a>(&'a self, checks: &'a [Check<'a>]) -> Request<'a> {
        Request { operation: self.operation, checks, request_id: self.request_id.as_deref() }
    }

    /// The highest cost of a check, for operations that spend.
    pub(crate) fn spends(&self) -> Option<u64> {
        match self.operation {
            Operation::Check { .. }
            | Operation::Take
            | Operation::Reserve { .. }
            | Operation::Acquire { .. } => self.checks.iter().map(|check| check.cost.get()).max(),
            _ => None,
        }
    }
}
