//! Rules: which policies hold for a request, and whose key it is. Pure: no socket, no clock.
//!
//! ```
//! use http::HeaderMap;
//! use tollgate_rules::{RuleOutcome, Facts, Match, PathPattern, Rule, RuleCheck, Rules, Template};
//!
//! let matches = Match { paths: vec![PathPattern::parse("/api/**")?], ..Match::default() };
//! let check = RuleCheck::new("api", Template::parse("{method}:{path.2}")?);
//! let rules = Rules { rules: vec![Rule { matches, checks: vec![check] }], ..Rules::default() };
//!
//! let headers = HeaderMap::new();
//! let facts = Facts::new("GET", b"//api/./users?page=2", &headers);
//! let RuleOutcome::Checks(checks) = rules.evaluate(&facts, 1_024)? else { panic!("a rule is for it") };
//! assert_eq!((checks[0].policy, &*checks[0].key), ("api", &b"GET:users"[..]));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod address;
mod facts;
mod header;
mod host;
mod jwks;
mod jwt;
mod method;
mod network;
mod path;
mod pattern;
pub mod query;
mod rule;
mod source;
mod template;
#[cfg(test)]
mod tests;

use std::fmt;

use tollgate::{Cost, Policies, Policy};

pub use address::{AddressHeader, ClientAddressError, client_address};
pub use facts::{Client, Facts, KeyError};
pub use header::HeaderMatcher;
pub use host::HostPattern;
pub use jwks::KeySet;
pub use jwt::Jwt;
pub use method::MethodName;
pub use network::{Ipv6Prefix, Network, Networks, Peer};
pub use path::Path;
pub use pattern::PathPattern;
pub use rule::{Match, OnMissing, OnNoRule, Rule, RuleCheck};
pub use source::Source;
pub use template::Template;

/// The most checks of a rule. A request may be of two rules, and has at most 32.
pub const MAX_CHECKS_PER_RULE: usize = 16;

/// The rules in their order; the first that is for a request holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rules {
    /// The rules.
    pub rules: Vec<Rule>,
    /// What holds for a request that none of them is for.
    pub on_no_rule: OnNoRule,
}

/// What rules ask for a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RuleOutcome<'a> {
    /// That these checks are decided together; if there is none, all were left out.
    Checks(Vec<MatchedCheck<'a>>),
    /// That it is denied: a value for the key of a check is missing, and its rule says so.
    Deny(KeyError),
    /// Nothing: no rule is for it, and this holds then.
    NoRule(OnNoRule),
}

/// A check with its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MatchedCheck<'a> {
    /// The name of its policy.
    pub policy: &'a str,
    /// Who is limited.
    pub key: Vec<u8>,
    /// Which tier of the policy holds, if the request says.
    pub tier: Option<Vec<u8>>,
    /// What the request costs.
    pub cost: Cost,
}

impl Rules {
    /// What is asked for a request. Keys have at most `key_bytes`.
    ///
    /// A path with an encoded slash is read in both ways that servers read it; if that makes it two
    /// rules', the checks of both are asked, so that no spelling chooses the milder.
    ///
    /// # Errors
    /// A key has no value, and it is not for the rule to say what holds then; [`KeyError::Missing`]
    /// where the rule says that it is an error.
    pub fn evaluate(
        &self,
        facts: &Facts<'_>,
        key_bytes: usize,
    ) -> Result<RuleOutcome<'_>, KeyError> {
        let path = Path::decoded(facts.target);
        let first = self.rule_for(facts, &path)?;
        let other_path = Path::with_encoded_slashes(facts.target);
        let second = match &other_path {
            Some(other_path) => self.rule_for(facts, other_path)?,
            None => first,
        };
        let is_unruled = first.is_none() || second.is_none();
        if is_unruled && (self.on_no_rule == OnNoRule::Deny || first.is_none() && second.is_none())
        {
            return Ok(RuleOutcome::NoRule(self.on_no_rule));
        }
        let mut found: Vec<_> = first.map(|first| (first, &path)).into_iter().collect();
        if let (Some(second), Some(path)) = (second, &other_path) {
            // The same rule charges once, under the path that it has when all is decoded.
            if !first.is_some_and(|first| std::ptr::eq(first, second)) {
                found.push((second, path));
            }
        }
        let mut checks: Vec<MatchedCheck<'_>> = Vec::new();
        for (rule, path) in found {
            for check in &rule.checks {
                let asked = match check.asked(facts, path, key_bytes) {
                    Ok(asked) => asked,
                    Err(error @ KeyError::Missing(_)) => match check.on_missing {
                        OnMissing::Skip => continue,
                        OnMissing::Deny => return Ok(RuleOutcome::Deny(error)),
                        OnMissing::Error => return Err(error),
                    },
                    Err(other) => return Err(other),
                };
                if !checks.contains(&asked) {
                    checks.push(asked);
                }
            }
        }
        Ok(RuleOutcome::Checks(checks))
    }

    fn rule_for(&self, facts: &Facts<'_>, path: &Path) -> Result<Option<&Rule>, KeyError> {
        for rule in &self.rules {
            if rule.matches.matches(facts, path)? {
                return Ok(Some(rule));
            }
        }
        Ok(None)
    }

    /// Whether a key is made of a token's claims, so that it must be said how tokens are read.
    #[must_use]
    pub fn uses_jwt(&self) -> bool {
        let checks = self.rules.iter().flat_map(|rule| &rule.checks);
        let mut templates =
            checks.flat_map(|check| [Some(&check.key), check.tier.as_ref()]).flatten();
        templates.any(|template| template.sources().any(|source| matches!(source, Source::Jwt(_))))
    }

    /// Whether the rules can be followed with these policies.
    ///
    /// # Errors
    /// A rule has no check or too many, or one under a policy that there is not, or that has a
    /// concurrent limit; the error says in which rule, which check, and what to write.
    pub fn check(&self, policies: &Policies) -> Result<(), RuleError> {
        for (rule, value) in self.rules.iter().enumerate() {
            if !(1..=MAX_CHECKS_PER_RULE).contains(&value.checks.len()) {
                let remedy = format!("write 1 to {MAX_CHECKS_PER_RULE} checks");
                return Err(RuleError { rule, check: None, remedy });
            }
            for (index, check) in value.checks.iter().enumerate() {
                let error = |remedy| RuleError { rule, check: Some(index), remedy };
                let forms = policies.variants(&check.policy);
                let mut forms = forms.map_err(|e| error(e.to_string()))?;
                if forms.any(Policy::has_concurrent) {
                    return Err(error(format!(
                        "write another policy; {:?} has a concurrent limit, and nobody would release \
                         what a rule acquires",
                        check.policy
                    )));
                }
            }
        }
        Ok(())
    }
}

/// Why rules cannot be followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleError {
    /// Which rule, from 0.
    pub rule: usize,
    /// The policy of which of its checks, from 0; if none, it is the checks as a whole.
    pub check: Option<usize>,
    /// What to write.
    pub remedy: String,
}

impl fmt::Display for RuleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.check {
            Some(check) => write!(f, "rules[{}].checks[{check}].policy: ", self.rule)?,
            None => write!(f, "rules[{}].checks: ", self.rule)?,
        }
        f.write_str(&self.remedy)
    }
}

impl std::error::Error for RuleError {}

impl RuleCheck {
    /// A check of cost 1, which denies without a value for its key.
    #[must_use]
    pub fn new(policy: &str, key: Template) -> Self {
        let (tier, on_missing) = (None, OnMissing::default());
        RuleCheck { policy: policy.into(), key, tier, cost: Cost::ONE, on_missing }
    }

    fn asked(
        &self,
        facts: &Facts<'_>,
        path: &Path,
        key_bytes: usize,
    ) -> Result<MatchedCheck<'_>, KeyError> {
        let key = self.key.key(facts, path, key_bytes)?;
        let tier = match self.tier.as_ref().map(|tier| tier.key(facts, path, key_bytes)) {
            // Without a value it is the usual tier, which is for everyone.
            None | Some(Err(KeyError::Missing(_))) => None,
            Some(tier) => Some(tier?),
        };
        Ok(MatchedCheck { policy: &self.policy, key, tier, cost: self.cost })
    }
}
