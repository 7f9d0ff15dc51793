//! What a log line requests of a rate limiter, and the limits that a replay compares.

use std::fmt;

use tollgate::{Check, Cost, Operation, Policy};

use crate::convert::index;
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
    /// The policy of each check under a candidate.
    pub(crate) fn policies(&self, candidate: &Candidate) -> Vec<Policy> {
        let policy = |check: &LogCheck| {
            check.variant.clone().unwrap_or_else(|| candidate.policy(check.policy, &check.key))
        };
        self.checks.iter().map(policy).collect()
    }

    pub(crate) fn checks<'a>(&'a self, policies: &'a [Policy]) -> Vec<Check<'a>> {
        let checks = self.checks.iter().zip(policies);
        checks.map(|(check, policy)| Check { policy, key: &check.key, cost: check.cost }).collect()
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

/// How many candidates a replay can compare.
pub const MAX_CANDIDATES: usize = 16;

/// Returns the variant of a policy, given by its number, for a key.
pub type PolicyResolver = Box<dyn Fn(u32, &[u8]) -> Policy + Send + Sync>;

/// Limits that are evaluated independently of other candidates.
#[derive(Debug)]
pub struct Candidate {
    /// The name in the report.
    pub name: String,
    /// The limits.
    pub policy: CandidatePolicy,
    /// The names of the policies by number, if lines have different policies.
    pub policy_names: Vec<String>,
}

/// The limits of a candidate.
pub enum CandidatePolicy {
    /// The same policy for every key.
    Fixed(Policy),
    /// A policy for each key.
    PerKey(PolicyResolver),
}

impl fmt::Debug for CandidatePolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CandidatePolicy::Fixed(policy) => f.debug_tuple("Fixed").field(policy).finish(),
            CandidatePolicy::PerKey(_) => f.write_str("PerKey"),
        }
    }
}

impl Candidate {
    /// A candidate with the same limits for every key.
    pub fn new(name: impl Into<String>, policy: Policy) -> Self {
        let policy = CandidatePolicy::Fixed(policy);
        Candidate { name: name.into(), policy, policy_names: Vec::new() }
    }

    /// The name of a policy, if there are several.
    pub(crate) fn policy_name(&self, number: u32) -> Option<&str> {
        self.policy_names.get(index(number)).map(String::as_str)
    }

    /// The policy, if it is the same for every key.
    pub(crate) fn fixed_policy(&self) -> Option<&Policy> {
        match &self.policy {
            CandidatePolicy::Fixed(policy) => Some(policy),
            CandidatePolicy::PerKey(_) => None,
        }
    }

    /// The policy for a key.
    pub(crate) fn policy(&self, number: u32, key: &[u8]) -> Policy {
        match &self.policy {
            CandidatePolicy::Fixed(policy) => policy.clone(),
            CandidatePolicy::PerKey(resolve) => resolve(number, key),
        }
    }
}
