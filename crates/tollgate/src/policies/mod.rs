//! Policies by name, and the form that each has for a key.

mod choices;
mod error;
mod interned;

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use tollgate_core::{Policy, parse_limits};

use crate::overrides::Overrides;
use crate::tiers::Tiers;
use choices::Choices;
pub use error::{DefineError, ResolveError, UnknownPolicy, UnknownTier};
pub(crate) use interned::Interned;

/// Policies by name.
///
/// # Example
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
pub struct Policies(HashMap<Box<str>, Defined>);

/// A policy, and its other forms where it has any.
#[derive(Clone, Debug)]
struct Defined {
    policy: Policy,
    choices: Option<Box<Choices>>,
}

impl Policies {
    /// No policy yet.
    #[must_use]
    pub fn new() -> Self {
        Policies::default()
    }

    /// Gives limits, as text, a name.
    ///
    /// # Errors
    /// The name is taken or not a name; the text is not limits.
    pub fn define(&mut self, name: &str, limits: &str) -> Result<&Policy, DefineError> {
        let limits = parse_limits(limits).map_err(DefineError::Notation)?;
        self.add(Policy::new(name, limits).map_err(DefineError::Policy)?)
    }

    /// Adds a policy under its name.
    ///
    /// # Errors
    /// The name is taken.
    pub fn add(&mut self, policy: Policy) -> Result<&Policy, DefineError> {
        let name: Box<str> = policy.name().into();
        match self.0.entry(name) {
            Entry::Occupied(occupied) => Err(DefineError::Duplicate(occupied.key().clone())),
            Entry::Vacant(vacant) => Ok(&vacant.insert(Defined { policy, choices: None }).policy),
        }
    }

    /// Gives keys of a policy other limits, in place of the overrides that it has.
    ///
    /// # Errors
    /// There is no such policy.
    pub fn set_overrides(&mut self, name: &str, rows: &Overrides) -> Result<(), UnknownPolicy> {
        self.change(name, |choices, policy| choices.set_overrides(policy, rows))
    }

    /// Gives more keys of a policy other limits, in place of those given so before. These rows and
    /// those of [`Policies::set_overrides`] are one list to a lookup; where both have the same
    /// keys, those decide. So what comes from a file of its own can be loaded anew by itself.
    ///
    /// # Errors
    /// There is no such policy.
    pub fn set_additional_overrides(
        &mut self,
        name: &str,
        rows: &Overrides,
    ) -> Result<(), UnknownPolicy> {
        self.change(name, |choices, policy| choices.set_additional_overrides(policy, rows))
    }

    /// Gives a policy tiers, in place of those that it has.
    ///
    /// # Errors
    /// There is no such policy.
    pub fn set_tiers(&mut self, name: &str, tiers: &Tiers) -> Result<(), UnknownPolicy> {
        self.change(name, |choices, policy| choices.set_tiers(policy, tiers))
    }

    fn change(
        &mut self,
        name: &str,
        change: impl FnOnce(&mut Choices, &Policy),
    ) -> Result<(), UnknownPolicy> {
        let Some(defined) = self.0.get_mut(name) else { return Err(self.unknown(name)) };
        let mut choices = defined.choices.take().unwrap_or_default();
        change(&mut choices, &defined.policy);
        defined.choices = Some(choices).filter(|x| !x.is_empty());
        Ok(())
    }

    /// The policy of this name, as it is for keys that have no override and name no tier.
    ///
    /// # Errors
    /// There is none; the error suggests the name that comes nearest.
    pub fn get(&self, name: &str) -> Result<&Policy, UnknownPolicy> {
        self.0.get(name).map(|x| &x.policy).ok_or_else(|| self.unknown(name))
    }

    /// The policy of this name in the form that it has for a key: that of the key's override, else
    /// of the tier, else its own. All forms have the policy's name, lists and bounds, so what the
    /// key has used counts on whichever decides; every verb on a key wants the form that its
    /// checks have.
    ///
    /// Without overrides and tiers this is [`Policies::get`]. It never allocates.
    ///
    /// # Errors
    /// There is no such policy, or it has no such tier, whatever the key.
    #[inline]
    pub fn resolve(
        &self,
        name: &str,
        key: &[u8],
        tier: Option<&str>,
    ) -> Result<&Policy, ResolveError> {
        let Some(Defined { policy, choices }) = self.0.get(name) else {
            return Err(self.unknown(name).into());
        };
        match (choices, tier) {
            (None, None) => Ok(policy),
            (Some(choices), _) => choices.form_of(policy, key, tier),
            (None, Some(tier)) => Err(Choices::default().unknown_tier(policy, tier)),
        }
    }

    /// All forms that the policy of this name has: its own, and those of its tiers and overrides.
    ///
    /// # Errors
    /// There is no such policy.
    pub fn variants(&self, name: &str) -> Result<impl Iterator<Item = &Policy>, UnknownPolicy> {
        let defined = self.0.get(name).ok_or_else(|| self.unknown(name))?;
        let choices = defined.choices.iter().flat_map(|choice| choice.forms());
        Ok([&defined.policy].into_iter().chain(choices))
    }

    #[cold]
    fn unknown(&self, name: &str) -> UnknownPolicy {
        UnknownPolicy { name: name.into(), nearest: self.nearest(name).map(Into::into) }
    }

    /// All of them, by name.
    pub fn iter(&self) -> impl Iterator<Item = &Policy> {
        let mut all: Vec<_> = self.0.values().map(|value| &value.policy).collect();
        all.sort_unstable_by_key(|x| x.name());
        all.into_iter()
    }

    fn nearest(&self, name: &str) -> Option<&str> {
        let near = |text: &&str| distance(text, name) <= 2;
        let mut names: Vec<_> = self.0.keys().map(|key| &**key).filter(near).collect();
        names.sort_unstable_by_key(|n| (distance(n, name), *n));
        names.first().copied()
    }
}

/// Levenshtein's distance: the fewest letters to add, leave out or change.
fn distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.chars().count()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, y) in b.chars().enumerate() {
            let changed = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row.last().copied().unwrap_or(0)
}
