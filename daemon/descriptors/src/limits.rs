//! Policies for the limits of a domain, and rules for limits that requests supply.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use tollgate::{Kind, Limit, Micros, Policy, Spec};

use super::rule::{Limits, Rule};
use super::unit::Unit;
use super::{Charging, ReadOptions};

/// The prefix of all policy names.
const PREFIX: &str = "@envoy.";
/// The maximum length of a policy's name in bytes.
const MAX_NAME_BYTES: usize = 128;
/// The offset from Monday, on which weekly windows begin, to Thursday, on which those of
/// envoyproxy/ratelimit begin.
const TO_THURSDAY: Micros = Micros::from_secs(3 * 86_400);

/// Builds the policies of a domain. All of them have the same name: state is stored by name and
/// key, so that a changed limit continues from the current usage.
#[derive(Debug)]
pub(super) struct PolicyFactory {
    name: String,
    options: ReadOptions,
}

impl PolicyFactory {
    pub(super) fn new(domain: &str, options: &ReadOptions) -> Self {
        PolicyFactory { name: policy_name(domain), options: options.clone() }
    }

    /// Whether the name of the policies identifies the domain.
    pub(super) fn identifies(&self, domain: &str) -> bool {
        self.name.strip_prefix(PREFIX) == Some(domain)
    }

    /// Whether the policy of a rule never denies. With atomic charging, a quota rule must not
    /// prevent the charge; the service evaluates its decision.
    pub(super) fn is_shadow(&self, shadow: bool, quota: bool) -> bool {
        shadow || (quota && self.options.charging == Charging::Atomic)
    }

    /// The limits for a number of requests per unit.
    pub(super) fn per_unit(&self, count: u32, unit: Unit, shadow: bool) -> Limits {
        if count == 0 {
            return Limits::DenyAll;
        }
        let limit = spec(count, unit, self.options.charging).build();
        let policy =
            limit.map_err(|error| error.to_string()).and_then(|limit| self.policy([limit], shadow));
        match policy {
            Ok(policy) => Limits::Policy(policy),
            Err(error) => {
                unreachable!(
                    "every count is valid with every unit, and every domain yields a valid policy \
                     name: {error}"
                )
            }
        }
    }

    /// The policy for limits in Tollgate's notation.
    ///
    /// # Errors
    /// There are too many limits, or one is concurrent.
    pub(super) fn combined(&self, limits: Vec<Limit>, shadow: bool) -> Result<Policy, String> {
        if let Some(limit) = limits.iter().find(|limit| limit.is_concurrent()) {
            return Err(format!(
                "{limit} is a concurrent limit, and Envoy does not report the end of a request; \
                 use another limit"
            ));
        }
        self.policy(limits, shadow)
    }

    fn policy(
        &self,
        limits: impl IntoIterator<Item = Limit>,
        shadow: bool,
    ) -> Result<Policy, String> {
        let policy = Policy::reserved(&self.name, limits).map_err(|error| error.to_string())?;
        let policy = policy.with_on_store_error(self.options.on_store_error);
        Ok(if shadow { policy.shadow() } else { policy })
    }
}

/// The window of a limit, which begins as in envoyproxy/ratelimit.
fn spec(count: u32, unit: Unit, charging: Charging) -> Spec {
    let is_thursday = unit == Unit::Week && charging == Charging::Reference;
    let offset = if is_thursday { TO_THURSDAY } else { Micros::ZERO };
    let spec = Spec::new(u64::from(count), unit.window(), Kind::Fixed { offset });
    match charging {
        Charging::Atomic => spec,
        Charging::Reference => spec.with_count_denied(),
    }
}

/// `@envoy.` and the domain, with `_` in place of invalid characters, truncated to the maximum
/// length.
fn policy_name(domain: &str) -> String {
    let is_valid = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    let domain = domain.chars().map(|c| if is_valid(c) { c } else { '_' });
    PREFIX.chars().chain(domain).take(MAX_NAME_BYTES).collect()
}

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
