//! The rules that requests bring.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use super::limits::Maker;
use super::rule::Rule;
use super::unit::Unit;

/// The most of them that are kept for a domain; requests choose the numbers.
pub(super) const MAX_RETAINED: usize = 1_024;

/// The rules that the requests of a domain have brought, by their numbers.
#[derive(Debug)]
pub(super) struct Brought {
    maker: Maker,
    rules: RwLock<HashMap<(u32, Unit), Arc<Rule>>>,
}

impl Brought {
    pub(super) fn new(maker: Maker) -> Self {
        Brought { maker, rules: RwLock::default() }
    }

    /// The rule of these numbers, which has no name and is neither shadow nor quota.
    pub(super) fn rule(&self, count: u32, unit: Unit) -> Arc<Rule> {
        let kept =
            self.rules.read().unwrap_or_else(PoisonError::into_inner).get(&(count, unit)).cloned();
        kept.unwrap_or_else(|| self.make(count, unit))
    }

    fn make(&self, count: u32, unit: Unit) -> Arc<Rule> {
        let rule = Arc::new(Rule::per_unit(&self.maker, count, unit));
        let mut rules = self.rules.write().unwrap_or_else(PoisonError::into_inner);
        // All of them are forgotten at once: to know which is used least would cost every request.
        if rules.len() >= MAX_RETAINED {
            rules.clear();
        }
        rules.insert((count, unit), Arc::clone(&rule));
        rule
    }

    #[cfg(test)]
    pub(super) fn kept(&self) -> usize {
        self.rules.read().unwrap_or_else(PoisonError::into_inner).len()
    }
}
