//! The forms that a policy has besides its own, and which of them decides for a key.

use std::collections::HashMap;
use std::sync::Arc;

use tollgate_core::Policy;

use super::error::{ResolveError, UnknownTier};
use crate::overrides::{Allowance, Found, Overrides};
use crate::tiers::Tiers;

/// The forms that a policy has besides its own. Cloning them is cheap.
#[derive(Clone, Debug, Default)]
pub(super) struct Choices {
    overrides: Forms,
    /// Those that can be replaced by themselves.
    more: Forms,
    tiers: Arc<HashMap<Box<str>, Policy>>,
}

/// Overrides, with the policy's form for each of what they give.
#[derive(Clone, Debug, Default)]
struct Forms {
    rows: Overrides,
    forms: Arc<[Policy]>,
}

impl Choices {
    pub(super) fn set_overrides(&mut self, policy: &Policy, rows: &Overrides) {
        self.overrides = Forms::of(policy, rows);
    }

    pub(super) fn set_additional_overrides(&mut self, policy: &Policy, rows: &Overrides) {
        self.more = Forms::of(policy, rows);
    }

    pub(super) fn set_tiers(&mut self, policy: &Policy, tiers: &Tiers) {
        let form = |(name, allowance): (&str, &Allowance)| (name.into(), allowance.form_of(policy));
        self.tiers = Arc::new(tiers.iter().map(form).collect());
    }

    pub(super) fn is_empty(&self) -> bool {
        self.overrides.rows.is_empty() && self.more.rows.is_empty() && self.tiers.is_empty()
    }

    /// Those of tiers and of overrides.
    pub(super) fn forms(&self) -> impl Iterator<Item = &Policy> {
        self.tiers.values().chain(&*self.overrides.forms).chain(&*self.more.forms)
    }

    /// The form that decides for a key.
    pub(super) fn form_of<'a>(
        &'a self,
        policy: &'a Policy,
        key: &[u8],
        tier: Option<&str>,
    ) -> Result<&'a Policy, ResolveError> {
        let tier = match tier {
            None => None,
            // Asked first: a name that is wrong is wrong for every key.
            Some(name) => {
                Some(self.tiers.get(name).ok_or_else(|| self.unknown_tier(policy, name))?)
            }
        };
        Ok(self.override_of(key).or(tier).unwrap_or(policy))
    }

    fn override_of(&self, key: &[u8]) -> Option<&Policy> {
        let (own, more) = (self.overrides.rows.find(key), self.more.rows.find(key));
        match (own, more) {
            (Some(own), Some(more)) if more.specificity > own.specificity => self.more.form(more),
            (Some(own), _) => self.overrides.form(own),
            (None, more) => self.more.form(more?),
        }
    }

    #[cold]
    pub(super) fn unknown_tier(&self, policy: &Policy, name: &str) -> ResolveError {
        let mut names: Box<[Box<str>]> = self.tiers.keys().cloned().collect();
        names.sort_unstable();
        ResolveError::Tier(UnknownTier { policy: policy.name().into(), name: name.into(), names })
    }
}

impl Forms {
    fn of(policy: &Policy, rows: &Overrides) -> Self {
        let forms = rows.allowances().iter().map(|allowance| allowance.form_of(policy)).collect();
        Forms { rows: rows.clone(), forms }
    }

    fn form(&self, found: Found) -> Option<&Policy> {
        self.forms.get(usize::try_from(found.allowance).ok()?)
    }
}
