//! The variants of a policy: its limits for tiers and overridden keys.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use tollgate_algorithms::Policy;

use super::ResolveError;
use crate::overrides::{Match, Overrides};
use crate::tiers::Tiers;

/// The variants of a policy besides the policy itself. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub(super) struct PolicyVariants {
    overrides: OverrideVariants,
    /// Replaced independently of `overrides`.
    additional: OverrideVariants,
    tiers: Arc<HashMap<Box<str>, Policy>>,
}

/// Overrides, and the policy's variant for each distinct override.
#[derive(Clone, Debug, Default)]
struct OverrideVariants {
    rows: Overrides,
    variants: Arc<[Policy]>,
}

impl PolicyVariants {
    pub(super) fn set_overrides(&mut self, policy: &Policy, rows: &Overrides) {
        self.overrides = OverrideVariants::new(policy, rows);
    }

    pub(super) fn set_additional_overrides(&mut self, policy: &Policy, rows: &Overrides) {
        self.additional = OverrideVariants::new(policy, rows);
    }

    pub(super) fn set_tiers(&mut self, policy: &Policy, tiers: &Tiers) {
        let tiers = tiers.iter().map(|(name, tier)| (name.into(), tier.apply(policy)));
        self.tiers = Arc::new(tiers.collect());
    }

    pub(super) fn is_empty(&self) -> bool {
        self.overrides.rows.is_empty() && self.additional.rows.is_empty() && self.tiers.is_empty()
    }

    /// Returns the variants of tiers, sorted by tier.
    pub(super) fn tiers(&self) -> impl Iterator<Item = (&str, &Policy)> {
        let mut tiers: Vec<_> = self.tiers.iter().map(|(tier, policy)| (&**tier, policy)).collect();
        tiers.sort_unstable_by_key(|(tier, _)| *tier);
        tiers.into_iter()
    }

    pub(super) fn tier(&self, tier: &str) -> Option<&Policy> {
        self.tiers.get(tier)
    }

    /// Returns the variants of tiers and of overrides.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Policy> {
        self.tiers.values().chain(&*self.overrides.variants).chain(&*self.additional.variants)
    }

    /// Returns the variant that decides for a key. An unknown tier is an error for every key.
    pub(super) fn resolve<'a>(
        &'a self,
        policy: &'a Policy,
        key: &[u8],
        tier: Option<&str>,
    ) -> Result<&'a Policy, ResolveError> {
        let tier = match tier {
            None => None,
            Some(name) => {
                Some(self.tiers.get(name).ok_or_else(|| self.unknown_tier(policy, name))?)
            }
        };
        Ok(self.resolve_override(key).or(tier).unwrap_or(policy))
    }

    fn resolve_override(&self, key: &[u8]) -> Option<&Policy> {
        let (own, additional) = (self.overrides.rows.find(key), self.additional.rows.find(key));
        match (own, additional) {
            (Some(own), Some(additional)) if additional.specificity > own.specificity => {
                Some(self.additional.variant(additional))
            }
            (Some(own), _) => Some(self.overrides.variant(own)),
            (None, additional) => Some(self.additional.variant(additional?)),
        }
    }

    #[cold]
    pub(super) fn unknown_tier(&self, policy: &Policy, name: &str) -> ResolveError {
        let mut names: Box<[Box<str>]> = self.tiers.keys().cloned().collect();
        names.sort_unstable();
        ResolveError::Tier(UnknownTier { policy: policy.name().into(), name: name.into(), names })
    }
}

impl OverrideVariants {
    fn new(policy: &Policy, rows: &Overrides) -> Self {
        let variants = rows.overrides().iter().map(|row| row.apply(policy)).collect();
        OverrideVariants { rows: rows.clone(), variants }
    }

    fn variant(&self, found: Match) -> &Policy {
        &self.variants[found.index]
    }
}

/// The name of an unknown tier.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownTier {
    policy: Box<str>,
    name: Box<str>,
    /// The tiers of the policy, sorted.
    names: Box<[Box<str>]>,
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
