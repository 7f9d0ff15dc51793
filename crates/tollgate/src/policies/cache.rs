//! A cache of policies parsed from limits that are given per call.

use std::collections::HashMap;
use std::sync::{PoisonError, RwLock};

use tollgate_algorithms::{NotationError, Policy};

/// The maximum number of policies kept.
const MAX_POLICIES: usize = 1_024;

/// A bounded cache of policies by the text of their limits.
#[derive(Debug, Default)]
pub(crate) struct PolicyCache(RwLock<HashMap<Box<str>, Policy>>);

impl PolicyCache {
    /// Returns the policy of these limits, named `=` and their canonical text.
    pub(crate) fn get(&self, limits: &str) -> Result<Policy, NotationError> {
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner).get(limits).cloned();
        if let Some(known) = known {
            return Ok(known);
        }
        let policy: Policy = limits.parse()?;
        let mut policies = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if policies.len() >= MAX_POLICIES {
            // Parsing again is cheaper than tracking the order of use on every lookup.
            policies.clear();
        }
        policies.insert(limits.into(), policy.clone());
        Ok(policy)
    }
}
