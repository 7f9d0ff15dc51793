//! What keys keep when policies change.

use std::fmt;

use tollgate_algorithms::{Limit, Policy};

use super::Policies;

/// A limit that starts unused for every key, because a policy or a tier of it has changed.
#[derive(Clone, Copy, Debug)]
pub struct UnusedLimit<'a> {
    limit: &'a Limit,
    policy: &'a Policy,
    tier: Option<&'a str>,
    replaced: &'a Policy,
}

impl fmt::Display for UnusedLimit<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "policy {}", self.policy.name())?;
        if let Some(tier) = self.tier {
            write!(f, ", tier {tier}")?;
        }
        write!(
            f,
            ": the limit {} starts unused for every key, because {} has none of its kind and window",
            self.limit, self.replaced
        )
    }
}

impl Policies {
    /// Returns the limits that start unused for every key if these policies replace others, sorted by
    /// policy. The other limits of these policies and of their tiers keep what each key has used.
    #[must_use]
    pub fn unused_limits<'a>(&'a self, replaced: &'a Policies) -> Vec<UnusedLimit<'a>> {
        let mut unused = Vec::new();
        for policy in self.iter() {
            let (Some(named), Some(before)) =
                (self.0.get(policy.name()), replaced.0.get(policy.name()))
            else {
                continue;
            };
            let mut compare = |policy: &'a Policy, tier, replaced: &'a Policy| {
                let limits = policy.unused_limits(replaced);
                unused.extend(limits.map(|limit| UnusedLimit { limit, policy, tier, replaced }));
            };
            compare(policy, None, &before.policy);
            for (tier, policy) in named.variants.iter().flat_map(|variants| variants.tiers()) {
                let known = before.variants.as_ref().and_then(|variants| variants.tier(tier));
                known.into_iter().for_each(|known| compare(policy, Some(tier), known));
            }
        }
        unused
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Cost, Key, MemoryLimiter, Tiers};

    fn policies(limits: &str) -> Policies {
        let mut policies = Policies::new();
        policies.define("api", limits).unwrap();
        policies
    }

    #[test]
    fn a_limit_starts_unused_if_and_only_if_keys_keep_nothing() {
        let limits = [
            "100/min",
            "100/min burst 200",
            "90/min",
            "100/h",
            "100/min fixed",
            "100/h fixed",
            "100/min fixed from-first",
            "100/min log",
            "90/min log",
            "100/min sliding",
            "100/min sliding by 1s",
            "100/min sliding by 5s",
            "100/min queue 100",
        ];
        for before in limits {
            for after in limits {
                let (replaced, changed) = (policies(before), policies(after));
                let (replaced, policy) =
                    (replaced.get("api").unwrap(), changed.get("api").unwrap());
                let limiter = MemoryLimiter::new();
                let key = Key::new("k").unwrap();
                assert!(limiter.check_cost(replaced, key, Cost::from(7_u32)).allowed);
                let remaining = limiter.peek(policy, key, Cost::ONE).remaining;
                let unused = limiter.peek(policy, Key::new("unused").unwrap(), Cost::ONE).remaining;
                let is_unused = policy.unused_limits(replaced).next().is_some();
                assert_eq!(remaining == unused, is_unused, "{before} to {after}: {remaining}");
            }
        }
    }

    #[test]
    fn unused_limits_of_policies_and_tiers_are_listed() {
        let with_tier = |limits: &str, tier: &str| {
            let mut policies = policies(limits);
            let mut tiers = Tiers::new();
            tiers.add("gold", tier).unwrap();
            policies.set_tiers("api", &tiers).unwrap();
            policies
        };
        let before = with_tier("100/min fixed; 10/s", "200/min fixed");
        let listed = |after: &Policies| -> Vec<String> {
            after.unused_limits(&before).iter().map(ToString::to_string).collect()
        };
        assert_eq!(listed(&with_tier("90/min fixed; 20/s burst 40", "100/min fixed")), [""; 0]);
        assert_eq!(
            listed(&with_tier("100/min sliding; 10/s", "200/h fixed")),
            [
                "policy api: the limit 100/min sliding starts unused for every key, because 10/s; \
                 100/min fixed has none of its kind and window",
                "policy api, tier gold: the limit 200/h fixed starts unused for every key, because \
                 200/min fixed has none of its kind and window",
            ]
        );
        assert_eq!(listed(&Policies::new()), [""; 0]);
    }
}
