//! Why a policy cannot be defined, or is not found.

use std::fmt;

use tollgate_core::{NotationError, PolicyError};

/// Why a policy was not defined.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DefineError {
    /// A policy of this name is there already.
    Duplicate(Box<str>),
    /// The text is not limits.
    Notation(NotationError),
    /// The limits, or the name, do not make a policy.
    Policy(PolicyError),
}

impl fmt::Display for DefineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DefineError::Duplicate(name) => {
                write!(f, "there is a policy {name:?} already; give this one another name")
            }
            DefineError::Notation(notation) => notation.fmt(f),
            DefineError::Policy(policy) => policy.fmt(f),
        }
    }
}

impl std::error::Error for DefineError {}

/// A name that no policy has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownPolicy {
    pub(super) name: Box<str>,
    pub(super) nearest: Option<Box<str>>,
}

impl fmt::Display for UnknownPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "there is no policy {:?}", self.name)?;
        match &self.nearest {
            Some(nearest) => write!(f, "; did you mean {nearest:?}?"),
            None => f.write_str("; define it, or give a limit in its place"),
        }
    }
}

impl std::error::Error for UnknownPolicy {}

/// A name that no tier of the policy has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownTier {
    pub(super) policy: Box<str>,
    pub(super) name: Box<str>,
    /// The tiers that there are.
    pub(super) names: Box<[Box<str>]>,
}

/// How many tiers an error names.
const MAX_NAMES_LISTED: usize = 8;

impl fmt::Display for UnknownTier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "policy {:?} has no tier {:?}; ", self.policy, self.name)?;
        let Some((first, others)) = self.names.split_first() else {
            return f.write_str("it has none: leave the tier out, or define it");
        };
        write!(f, "it has {first}")?;
        for name in others.iter().take(MAX_NAMES_LISTED - 1) {
            write!(f, ", {name}")?;
        }
        f.write_str(if self.names.len() > MAX_NAMES_LISTED { ", …" } else { "" })
    }
}

impl std::error::Error for UnknownTier {}

/// Why there is no policy for a check.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ResolveError {
    /// No policy has the name.
    Policy(UnknownPolicy),
    /// The policy has no such tier.
    Tier(UnknownTier),
}

impl fmt::Display for ResolveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ResolveError::Policy(policy) => policy.fmt(f),
            ResolveError::Tier(tier) => tier.fmt(f),
        }
    }
}

impl std::error::Error for ResolveError {}

impl From<UnknownPolicy> for ResolveError {
    fn from(it: UnknownPolicy) -> Self {
        ResolveError::Policy(it)
    }
}
