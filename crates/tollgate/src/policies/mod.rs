//! Named policies, and the variant of each that applies to a key.

mod cache;
mod changes;
#[cfg(feature = "serde")]
mod serialize;
mod variants;

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt;

use foldhash::fast::RandomState;
use tollgate_algorithms::{Policy, PolicyError};

use crate::overrides::Overrides;
use crate::tiers::Tiers;
pub(crate) use cache::PolicyCache;
pub use changes::UnusedLimit;
use variants::PolicyVariants;
pub use variants::UnknownTier;

/// Named policies.
///
/// # Examples
/// ```
/// use tollgate::Policies;
/// let mut policies = Policies::new();
/// policies.define("api", "10/s burst 20; 1000/h sliding by 1m")?;
/// assert_eq!(policies.get("api")?.limits().len(), 2);
/// let unknown = policies.get("apj").unwrap_err();
/// assert_eq!(unknown.to_string(), r#"there is no policy "apj"; did you mean "api"?"#);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Policies(HashMap<Box<str>, NamedPolicy, RandomState>);

/// A policy, and its variants if it has overrides or tiers.
#[derive(Clone, Debug)]
struct NamedPolicy {
    policy: Policy,
    variants: Option<Box<PolicyVariants>>,
}

impl Policies {
    /// Returns an empty set of policies.
    #[must_use]
    pub fn new() -> Self {
        Policies::default()
    }

    /// Defines a policy by its name and limits.
    ///
    /// # Errors
    /// Returns an error if the name is taken or invalid, or if the limits cannot be parsed.
    pub fn define(&mut self, name: &str, limits: &str) -> Result<&Policy, DefineError> {
        self.add(Policy::named(name, limits).map_err(DefineError::Policy)?)
    }

    /// Adds a policy under its name.
    ///
    /// # Errors
    /// Returns an error if the name is taken.
    pub fn add(&mut self, policy: Policy) -> Result<&Policy, DefineError> {
        let name: Box<str> = policy.name().into();
        match self.0.entry(name) {
            Entry::Occupied(occupied) => Err(DefineError::Duplicate(occupied.key().clone())),
            Entry::Vacant(vacant) => {
                Ok(&vacant.insert(NamedPolicy { policy, variants: None }).policy)
            }
        }
    }

    /// Replaces the overrides of a policy.
    ///
    /// # Errors
    /// Returns an error if the policy is unknown.
    pub fn set_overrides(&mut self, name: &str, rows: &Overrides) -> Result<(), UnknownPolicy> {
        self.change(name, |variants, policy| variants.set_overrides(policy, rows))
    }

    /// Replaces a second set of overrides of a policy, such as the rows of a file that is reloaded on
    /// its own. A lookup searches both sets: the more specific row decides, and of two rows with the
    /// same pattern the one from [`Policies::set_overrides`].
    ///
    /// # Errors
    /// Returns an error if the policy is unknown.
    pub fn set_additional_overrides(
        &mut self,
        name: &str,
        rows: &Overrides,
    ) -> Result<(), UnknownPolicy> {
        self.change(name, |variants, policy| variants.set_additional_overrides(policy, rows))
    }

    /// Replaces the tiers of a policy.
    ///
    /// # Errors
    /// Returns an error if the policy is unknown.
    pub fn set_tiers(&mut self, name: &str, tiers: &Tiers) -> Result<(), UnknownPolicy> {
        self.change(name, |variants, policy| variants.set_tiers(policy, tiers))
    }

    fn change(
        &mut self,
        name: &str,
        change: impl FnOnce(&mut PolicyVariants, &Policy),
    ) -> Result<(), UnknownPolicy> {
        let Some(named) = self.0.get_mut(name) else { return Err(self.unknown(name)) };
        let variants = named.variants.get_or_insert_default();
        change(variants, &named.policy);
        if variants.is_empty() {
            named.variants = None;
        }
        Ok(())
    }

    /// Returns the policy with this name, as it applies to keys without an override and a tier.
    ///
    /// # Errors
    /// Returns an error that suggests the most similar name if the policy is unknown.
    pub fn get(&self, name: &str) -> Result<&Policy, UnknownPolicy> {
        self.0.get(name).map(|x| &x.policy).ok_or_else(|| self.unknown(name))
    }

    /// Returns the variant of a policy that applies to a key: the limits of the key's override, else
    /// of the tier, else of the policy itself. All variants share the policy's name, lists and bounds,
    /// so the usage of a key carries over when another variant applies. Use the same variant for every
    /// operation on a key.
    ///
    /// Without overrides and tiers this equals [`Policies::get`]. It allocates only on errors.
    ///
    /// # Errors
    /// Returns an error if the policy is unknown, or if it does not have the tier, whatever the key.
    #[inline]
    pub fn resolve(
        &self,
        name: &str,
        key: &[u8],
        tier: Option<&str>,
    ) -> Result<&Policy, ResolveError> {
        let Some(NamedPolicy { policy, variants }) = self.0.get(name) else {
            return Err(self.unknown(name).into());
        };
        match (variants, tier) {
            (None, None) => Ok(policy),
            (Some(variants), _) => variants.resolve(policy, key, tier),
            (None, Some(tier)) => Err(PolicyVariants::default().unknown_tier(policy, tier)),
        }
    }

    /// Returns all variants of a policy: the policy itself, then those of its tiers and overrides.
    ///
    /// # Errors
    /// Returns an error if the policy is unknown.
    pub fn variants(&self, name: &str) -> Result<impl Iterator<Item = &Policy>, UnknownPolicy> {
        let named = self.0.get(name).ok_or_else(|| self.unknown(name))?;
        let variants = named.variants.iter().flat_map(|variants| variants.iter());
        Ok([&named.policy].into_iter().chain(variants))
    }

    #[cold]
    fn unknown(&self, name: &str) -> UnknownPolicy {
        UnknownPolicy { name: name.into(), nearest: self.nearest(name).map(Into::into) }
    }

    /// Returns all policies, sorted by name.
    pub fn iter(&self) -> impl Iterator<Item = &Policy> {
        let mut policies: Vec<_> = self.0.values().map(|named| &named.policy).collect();
        policies.sort_unstable_by_key(|policy| policy.name());
        policies.into_iter()
    }

    fn nearest(&self, name: &str) -> Option<&str> {
        let ranked = self.0.keys().map(|known| (strsim::levenshtein(known, name), &**known));
        ranked.filter(|(distance, _)| *distance <= 2).min().map(|(_, known)| known)
    }
}

/// Why a policy was not defined.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DefineError {
    /// The name is taken.
    Duplicate(Box<str>),
    /// The name is invalid, or the limits do not form a policy.
    Policy(PolicyError),
}

impl fmt::Display for DefineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DefineError::Duplicate(name) => {
                write!(f, "policy {name:?} already exists; choose another name")
            }
            DefineError::Policy(policy) => policy.fmt(f),
        }
    }
}

impl std::error::Error for DefineError {}

/// The name of an unknown policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownPolicy {
    name: Box<str>,
    nearest: Option<Box<str>>,
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
