//! Limits given per call.

use std::collections::HashMap;
use std::sync::RwLock;

use tollgate_core::{NotationError, Policy};

/// How many limits given as text are kept parsed.
const MAX_INTERNED: usize = 1_024;

/// Policies made from text, parsed once: a bounded memory of limits given per call.
#[derive(Debug, Default)]
pub(crate) struct Interned(RwLock<HashMap<Box<str>, Policy>>);

impl Interned {
    /// The policy of these limits, called `=` and their canonical text.
    pub(crate) fn get(&self, limits: &str) -> Result<Policy, NotationError> {
        let known = self.0.read().unwrap_or_else(|error| error.into_inner()).get(limits).cloned();
        if let Some(known) = known {
            return Ok(known);
        }
        let policy: Policy = limits.parse()?;
        let mut all = self.0.write().unwrap_or_else(|error| error.into_inner());
        if all.len() >= MAX_INTERNED {
            // Rather parse again now and then than remember which text was used last.
            all.clear();
        }
        all.insert(limits.into(), policy.clone());
        Ok(policy)
    }
}
