//! What limits do with events: by the key where keys are independent, else one after the other.

mod by_key;
mod keys;
mod partition;
mod suggest;
mod summary;
mod tally;
mod together;

use std::fmt;

use tollgate::Policy;

pub(crate) use by_key::ByKey;
pub(crate) use partition::Partition;
pub(crate) use summary::Summary;
pub use together::{Answered, Store};
pub(crate) use together::{Requested, decide as decide_together};

/// The most alternatives that are tried side by side.
pub const MAX_ALTERNATIVES: usize = 16;

/// In which form a policy, by its number, holds for a key.
pub type Choose = Box<dyn Fn(u32, &[u8]) -> Option<Policy> + Send + Sync>;

/// Limits that are tried on their own, beside others.
#[derive(Debug)]
pub struct Alternative {
    /// What it is called in the report.
    pub name: String,
    /// Which limits hold.
    pub holds: Holds,
    /// What its policies are called by their numbers, where a line may be under one of several.
    pub policies: Vec<String>,
}

/// Which limits hold for a key.
pub enum Holds {
    /// The same for every key.
    One(Policy),
    /// Those that somebody chooses.
    Chosen(Choose),
}

impl fmt::Debug for Holds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Holds::One(one) => f.debug_tuple("One").field(one).finish(),
            Holds::Chosen(_) => f.write_str("Chosen"),
        }
    }
}

impl Alternative {
    /// The same limits for every key.
    #[must_use]
    pub fn one(name: impl Into<String>, policy: Policy) -> Self {
        Alternative { name: name.into(), holds: Holds::One(policy), policies: Vec::new() }
    }

    /// What a policy is called, if there are several.
    pub(crate) fn policy_name(&self, policy: u32) -> Option<&str> {
        Some(self.policies.get(usize::try_from(policy).ok()?)?)
    }

    /// The only policy, if it holds for every key.
    pub(crate) fn only(&self) -> Option<&Policy> {
        match &self.holds {
            Holds::One(one) => Some(one),
            Holds::Chosen(_) => None,
        }
    }

    /// The policy for a key.
    pub(crate) fn policy(&self, policy: u32, key: &[u8]) -> Option<Policy> {
        match &self.holds {
            Holds::One(one) => Some(one.clone()),
            Holds::Chosen(chosen) => chosen(policy, key),
        }
    }
}
