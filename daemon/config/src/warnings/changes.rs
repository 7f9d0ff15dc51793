//! What keys lose when one configuration replaces another.

use std::collections::HashMap;

use tollgate_descriptors::Domains;

use crate::Config;
use crate::read::policies::Override;

/// The most limits that a log lists.
const MAX_LOGGED: usize = 10;

impl Config {
    /// The limits of policies, tiers, overrides and descriptor rules that start unused for every key
    /// if this configuration replaces another: a message for each. The rows of `overrides_file` are not
    /// compared.
    #[must_use]
    pub fn unused_limits(&self, replaced: &Config) -> Vec<String> {
        let policies = self.policies.unused_limits(&replaced.policies);
        let mut messages: Vec<_> = policies.iter().map(ToString::to_string).collect();
        messages.extend(unused_limits_of_overrides(&self.overrides, &replaced.overrides));
        messages.extend(unused_limits_of_rules(&self.domains, &replaced.domains));
        messages
    }
}

fn unused_limits_of_overrides(overrides: &[Override], replaced: &[Override]) -> Vec<String> {
    let replaced: HashMap<_, _> =
        replaced.iter().map(|row| ((&row.policy, &row.key), &row.limits)).collect();
    let mut messages = Vec::new();
    for Override { policy, key, limits } in overrides {
        let Some(&before) = replaced.get(&(policy, key)) else { continue };
        messages.extend(limits.unused_limits(before).map(|limit| {
            format!(
                "policy {policy}, override {key}: the limit {limit} starts unused for every key, \
                 because {before} has none of its kind and window"
            )
        }));
    }
    messages
}

/// The limits of descriptor rules that start unused for every key if these domains replace others: a
/// message for each.
#[must_use]
pub fn unused_limits_of_rules(domains: &Domains, replaced: &Domains) -> Vec<String> {
    domains.unused_limits(replaced).iter().map(ToString::to_string).collect()
}

/// The messages for a log: the first ones, and the number of the others.
pub fn logged_limits(messages: Vec<String>) -> impl Iterator<Item = String> {
    let more = messages.len().saturating_sub(MAX_LOGGED);
    let rest = (more > 0).then(|| {
        format!("{more} more limits start unused; tollgate config check --replaces lists them")
    });
    messages.into_iter().take(MAX_LOGGED).chain(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_lists_ten_limits_and_counts_the_others() {
        let logged = |count: usize| {
            let messages = (0..count).map(|index| index.to_string()).collect();
            logged_limits(messages).collect::<Vec<_>>()
        };
        assert_eq!(logged(0), [""; 0]);
        assert_eq!(logged(10).len(), 10);
        let many = logged(12);
        assert_eq!(many.len(), 11);
        assert!(many[10].starts_with("2 more limits start unused"), "{many:?}");
    }
}
