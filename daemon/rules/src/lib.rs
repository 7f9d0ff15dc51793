//! Request rules: which policies and keys apply to an HTTP request. No I/O and no clock.
//!
//! ```
//! use http::HeaderMap;
//! use tollgate_rules::{Facts, Match, PathPattern, Rule, RuleCheck, RuleOutcome, Rules, Template};
//!
//! let matches = Match { paths: vec![PathPattern::parse("/api/**")?], ..Match::default() };
//! let check = RuleCheck::new("api", Template::parse("{method}:{path.2}")?);
//! let rules = Rules { rules: vec![Rule { matches, checks: vec![check] }], ..Rules::default() };
//!
//! let headers = HeaderMap::new();
//! let facts = Facts::new("GET", b"//api/./users?page=2", &headers);
//! let RuleOutcome::Checks(checks) = rules.evaluate(&facts, 1_024)? else { panic!("a rule matches") };
//! assert_eq!((checks[0].policy, &*checks[0].key), ("api", &b"GET:users"[..]));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod address;
mod facts;
mod jwks;
mod jwt;
mod matchers;
mod network;
mod path;
mod pattern;
pub mod query;
mod source;
mod template;
#[cfg(test)]
mod tests;

use std::fmt;

use tollgate::{Cost, Policies, Policy};

pub use address::{AddressHeader, ClientAddressError, client_address};
pub use facts::{Client, Facts, KeyError};
pub use jwks::KeySet;
pub use jwt::Jwt;
pub use matchers::{HeaderMatcher, HostPattern, MethodName};
pub use network::{Ipv6Prefix, Networks, Peer};
pub use path::Path;
pub use pattern::PathPattern;
pub use source::Source;
pub use template::Template;

/// The maximum number of checks of a rule. A request may match two rules, and has at most 32
/// checks.
const MAX_CHECKS_PER_RULE: usize = 16;

/// The rules in order; the first that matches a request applies.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rules {
    /// The rules, in order.
    pub rules: Vec<Rule>,
    /// What happens to a request that no rule matches.
    pub on_no_rule: OnNoRule,
}

/// A rule: the requests that it matches, and the checks that it makes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rule {
    /// The requests that the rule matches.
    pub matches: Match,
    /// The checks, decided together; 1 to 16.
    pub checks: Vec<RuleCheck>,
}

/// The requests that a rule matches: each list must be empty or contain a match, and all header
/// conditions must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Match {
    /// Path patterns.
    pub paths: Vec<PathPattern>,
    /// Methods.
    pub methods: Vec<MethodName>,
    /// Host patterns.
    pub hosts: Vec<HostPattern>,
    /// Conditions on headers.
    pub headers: Vec<HeaderMatcher>,
}

impl Match {
    /// Whether a request matches, under one reading of its path.
    fn matches(&self, facts: &Facts<'_>, path: &Path) -> Result<bool, KeyError> {
        let fits = (self.paths.is_empty() || self.paths.iter().any(|p| p.matches(path)))
            && (self.methods.is_empty()
                || self.methods.iter().any(|method| method.matches(facts.method)))
            && self.headers.iter().all(|header| header.matches(facts.headers));
        if !fits || self.hosts.is_empty() {
            return Ok(fits);
        }
        let host = facts.host()?;
        Ok(self.hosts.iter().any(|h| h.matches(&host)))
    }
}

/// One check of a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleCheck {
    /// The name of its policy.
    pub policy: Box<str>,
    /// The template of the key.
    pub key: Template,
    /// The template of the tier, if the request chooses one.
    pub tier: Option<Template>,
    /// The cost of a request.
    pub cost: Cost,
    /// What happens to a request without a value for the key.
    pub on_missing: OnMissing,
}

/// What happens to a request without a value for the key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnMissing {
    /// The check is skipped.
    Skip,
    /// The request is denied.
    #[default]
    Deny,
    /// The request gets an error instead of a decision. A fail-open gateway then admits any client
    /// that omits the value.
    Error,
}

impl OnMissing {
    /// Parses the word in the configuration.
    ///
    /// # Errors
    /// The word is unknown.
    pub fn parse(text: &str) -> Result<Self, String> {
        match text {
            "skip" => Ok(OnMissing::Skip),
            "deny" => Ok(OnMissing::Deny),
            "error" => Ok(OnMissing::Error),
            _ => Err("expected skip, deny or error".to_owned()),
        }
    }
}

/// What happens to a request that no rule matches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnNoRule {
    /// The request passes.
    #[default]
    Pass,
    /// The request is denied.
    Deny,
}

/// The result of evaluating rules for a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RuleOutcome<'a> {
    /// These checks are decided together. Empty if all checks were skipped.
    Checks(Vec<MatchedCheck<'a>>),
    /// The request is denied: a value for a key is missing, and the check has `on_missing: deny`.
    Deny(KeyError),
    /// No rule matches, so the default applies.
    NoRule(OnNoRule),
}

/// A check of a matching rule, with its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MatchedCheck<'a> {
    /// The name of the policy.
    pub policy: &'a str,
    /// The key.
    pub key: Vec<u8>,
    /// The tier of the policy, if the request chooses one.
    pub tier: Option<Vec<u8>>,
    /// The cost of the request.
    pub cost: Cost,
}

impl Rules {
    /// Returns the checks for a request. Keys have at most `key_bytes`.
    ///
    /// A path with an encoded slash is read in both ways that servers read it. If the readings
    /// match two different rules, the checks of both are made, so that no spelling selects the
    /// milder rule.
    ///
    /// # Errors
    /// A key cannot be formed. [`KeyError::Missing`] is returned only for checks with `on_missing:
    /// error`.
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
        let is_unmatched = first.is_none() || second.is_none();
        if is_unmatched
            && (self.on_no_rule == OnNoRule::Deny || first.is_none() && second.is_none())
        {
            return Ok(RuleOutcome::NoRule(self.on_no_rule));
        }
        // The same rule charges once, under the fully decoded path.
        let second = second
            .zip(other_path.as_ref())
            .filter(|(second, _)| !first.is_some_and(|first| std::ptr::eq(first, *second)));
        let found = first.map(|first| (first, &path)).into_iter().chain(second);
        let mut checks: Vec<MatchedCheck<'_>> = Vec::new();
        for (rule, path) in found {
            for check in &rule.checks {
                let matched = match check.resolve(facts, path, key_bytes) {
                    Ok(matched) => matched,
                    Err(error @ KeyError::Missing(_)) => match check.on_missing {
                        OnMissing::Skip => continue,
                        OnMissing::Deny => return Ok(RuleOutcome::Deny(error)),
                        OnMissing::Error => return Err(error),
                    },
                    Err(other) => return Err(other),
                };
                if !checks.contains(&matched) {
                    checks.push(matched);
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

    /// Whether a key or tier uses claims of a token, so that token validation must be configured.
    #[must_use]
    pub fn uses_jwt(&self) -> bool {
        let checks = self.rules.iter().flat_map(|rule| &rule.checks);
        let mut templates =
            checks.flat_map(|check| [Some(&check.key), check.tier.as_ref()]).flatten();
        templates.any(|template| template.sources().any(|source| matches!(source, Source::Jwt(_))))
    }

    /// Checks that the rules can be used with these policies.
    ///
    /// # Errors
    /// A rule has no check or too many, or uses a policy that is unknown or has a concurrent limit.
    pub fn check(&self, policies: &Policies) -> Result<(), RuleError> {
        for (rule, value) in self.rules.iter().enumerate() {
            if !(1..=MAX_CHECKS_PER_RULE).contains(&value.checks.len()) {
                let found = value.checks.len();
                let message = format!("expected 1 to {MAX_CHECKS_PER_RULE} checks, found {found}");
                return Err(RuleError { rule, check: None, message });
            }
            for (index, check) in value.checks.iter().enumerate() {
                let error = |message| RuleError { rule, check: Some(index), message };
                let variants = policies.variants(&check.policy);
                let mut variants = variants.map_err(|e| error(e.to_string()))?;
                if variants.any(Policy::has_concurrent) {
                    return Err(error(format!(
                        "policy {:?} has a concurrent limit, and a rule cannot release a lease; \
                         use a policy without one",
                        check.policy
                    )));
                }
            }
        }
        Ok(())
    }
}

/// A rule cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleError {
    /// The index of the rule.
    pub rule: usize,
    /// The index of the check whose policy is at fault; `None` if the list of checks is.
    pub check: Option<usize>,
    /// The problem and its remedy.
    pub message: String,
}

impl fmt::Display for RuleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let RuleError { rule, check, message } = self;
        match check {
            Some(check) => write!(f, "rules[{rule}].checks[{check}].policy: {message}"),
            None => write!(f, "rules[{rule}].checks: {message}"),
        }
    }
}

impl std::error::Error for RuleError {}

impl RuleCheck {
    /// A check of cost 1 that denies requests without a value for the key.
    #[must_use]
    pub fn new(policy: &str, key: Template) -> Self {
        let (tier, on_missing) = (None, OnMissing::default());
        RuleCheck { policy: policy.into(), key, tier, cost: Cost::ONE, on_missing }
    }

    fn resolve(
        &self,
        facts: &Facts<'_>,
        path: &Path,
        key_bytes: usize,
    ) -> Result<MatchedCheck<'_>, KeyError> {
        let key = self.key.key(facts, path, key_bytes)?;
        let tier = match self.tier.as_ref().map(|tier| tier.key(facts, path, key_bytes)) {
            // Without a value the default tier applies.
            None | Some(Err(KeyError::Missing(_))) => None,
            Some(tier) => Some(tier?),
        };
        Ok(MatchedCheck { policy: &self.policy, key, tier, cost: self.cost })
    }
}
