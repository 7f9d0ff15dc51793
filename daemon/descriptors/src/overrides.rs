//! Limits that requests supply.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use super::limits::PolicyFactory;
use super::rule::Rule;
use super::unit::Unit;

/// The maximum number of cached rules of a domain: requests choose the numbers.
pub(super) const MAX_CACHED: usize = 1_024;

/// A cache of the rules for limits that requests of a domain supply.
#[derive(Debug)]
pub(super) struct OverrideRules {
    policies: PolicyFactory,
    rules: RwLock<HashMap<(u32, Unit), Arc<Rule>>>,
}

impl OverrideRules {
    pub(super) fn new(policies: PolicyFactory) -> Self {
        OverrideRules { policies, rules: RwLock::default() }
    }

    /// The rule for a limit. It has no name and is neither shadow nor quota.
    pub(super) fn rule(&self, count: u32, unit: Unit) -> Arc<Rule> {
        let cached =
            self.rules.read().unwrap_or_else(PoisonError::into_inner).get(&(count, unit)).cloned();
        cached.unwrap_or_else(|| self.insert(count, unit))
    }

    fn insert(&self, count: u32, unit: Unit) -> Arc<Rule> {
        let rule = Arc::new(Rule::per_unit(&self.policies, count, unit));
        let mut rules = self.rules.write().unwrap_or_else(PoisonError::into_inner);
        // The cache is cleared when it is full: tracking the least recently used rule would slow
        // down every request.
        if rules.len() >= MAX_CACHED {
            rules.clear();
        }
        rules.insert((count, unit), Arc::clone(&rule));
        rule
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.rules.read().unwrap_or_else(PoisonError::into_inner).len()
    }
}
