//! Errors of defining and resolving policies.

use std::fmt;

use tollgate_core::{NotationError, PolicyError};

/// Why a policy was not defined.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DefineError {
    /// The name is taken.
    Duplicate(Box<str>),
    /// The limits cannot be parsed.
    Notation(NotationError),
    /// The name is invalid, or the limits do not form a policy.
    Policy(PolicyError),
}

impl fmt::Display for DefineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DefineError::Duplicate(name) => {
                write!(f, "policy {name:?} already exists; choose another name")
            }
            DefineError::Notation(notation) => notation.fmt(f),
            DefineError::Policy(policy) => policy.fmt(f),
        }
    }
}

impl std::error::Error for DefineError {}

/// The name of an unknown policy.
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
            None => f.write_str("; define it or pass a limit instead"),
        }
    }
}

impl std::error::Error for UnknownPolicy {}

/// The name of an unknown tier.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownTier {
    pub(super) policy: Box<str>,
    pub(super) name: Box<str>,
    /// The tiers of the policy, sorted.
    pub(super) names: Box<[Box<str>]>,
}

/// The maximum number of tiers listed in a message.
const MAX_NAMES_LISTED: usize = 8;

impl fmt::Display for UnknownTier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "policy {:?} has no tier {:?}; ", self.policy, self.name)?;
        let Some((first, others)) = self.names.split_first() else {
            return f.write_str("it has no tiers: omit the tier or define it");
        };
        write!(f, "it has {first}")?;
        for name in others.iter().take(MAX_NAMES_LISTED - 1) {
            write!(f, ", {name}")?;
        }
        f.write_str(if self.names.len() > MAX_NAMES_LISTED { ", …" } else { "" })
    }
}

impl std::error::Error for UnknownTier {}

/// Why no policy was found for a check.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ResolveError {
    /// The policy is unknown.
    Policy(UnknownPolicy),
    /// The tier is unknown.
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
    fn from(unknown: UnknownPolicy) -> Self {
        ResolveError::Policy(unknown)
    }
}
