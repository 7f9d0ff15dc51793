//! The limits that a replay compares.

use std::fmt;

use tollgate::Policy;

use crate::convert::index;

/// How many candidates a replay can compare.
pub const MAX_CANDIDATES: usize = 16;

/// Returns the variant of a policy, given by its number, for a key.
pub type PolicyResolver = Box<dyn Fn(u32, &[u8]) -> Option<Policy> + Send + Sync>;

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
    #[must_use]
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
    pub(crate) fn policy(&self, number: u32, key: &[u8]) -> Option<Policy> {
        match &self.policy {
            CandidatePolicy::Fixed(policy) => Some(policy.clone()),
            CandidatePolicy::PerKey(resolve) => resolve(number, key),
        }
    }
}
