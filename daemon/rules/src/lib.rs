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

mod facts;
mod jwks;
mod jwt;
mod key_form;
mod matchers;
mod path;
mod pattern;
pub mod query;
mod readings;
mod source;
mod template;
#[cfg(test)]
mod tests;

use std::fmt;

use tollgate::{Cost, Policies, Policy};

pub use facts::{Client, Facts, KeyError};
pub use jwks::KeySet;
pub use jwt::Jwt;
pub use key_form::KeyForms;
pub use matchers::{HeaderMatcher, HostPattern, MethodName};
pub use path::{Path, PathCase};
pub use pattern::PathPattern;
pub use readings::{Readings, TooManyReadings};
pub use source::Source;
pub use template::Template;
pub use tollgate_headers::{
    AddressFormat, AddressHeader, ClientAddressError, Ipv6Prefix, Networks, Peer, client_address,
};

/// The maximum number of checks of a rule.
const MAX_CHECKS_PER_RULE: usize = 16;
/// The maximum number of checks of a request, which may match several rules.
const MAX_CHECKS: usize = 32;

/// The rules in order; the first that matches a request applies.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rules {
    /// The rules, in order.
    pub rules: Vec<Rule>,
    /// What happens to a request that no rule matches.
    pub on_no_rule: OnNoRule,
    /// Whether the case of letters in paths matters.
    pub path_case: PathCase,
    /// What happens to a request whose path servers may read in different ways.
    pub ambiguous_paths: AmbiguousPaths,
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
    fn matches(&self, facts: &Facts<'_>, path: &Path<'_>) -> Result<bool, KeyError> {
        let fits = (self.paths.is_empty() || self.paths.iter().any(|p| p.matches(path)))
            && (self.methods.is_empty()
                || self.methods.iter().any(|method| method.matches(facts.method)));
        if !fits {
            return Ok(false);
        }
        for header in &self.headers {
            facts.check_joined(header.name())?;
        }
        if !self.headers.iter().all(|header| header.matches(facts.headers)) {
            return Ok(false);
        }
        if self.hosts.is_empty() {
            return Ok(true);
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
    /// The template of the note, which the policy records and which decides nothing.
    pub note: Option<Template>,
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

/// What happens to a request whose path servers may read in different ways.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AmbiguousPaths {
    /// The checks of all readings apply.
    #[default]
    Strictest,
    /// The request is denied.
    Deny,
}

/// The result of evaluating rules for a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RuleOutcome<'a> {
    /// These checks are decided together. Empty if all checks were skipped.
    Checks(Vec<MatchedCheck<'a>>),
    /// The request is denied: a value for a key is missing, and the check has `on_missing: deny`;
    /// or the path is ambiguous.
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
    /// The note, if it has a value.
    pub note: Option<Vec<u8>>,
}

impl MatchedCheck<'_> {
    /// Whether both charge the same.
    fn charges_like(&self, other: &Self) -> bool {
        let charge = |check: &Self| (check.policy, check.cost);
        charge(self) == charge(other) && self.key == other.key && self.tier == other.tier
    }
}

impl Rules {
    /// Returns the checks for a request. Keys have at most `key_bytes`.
    ///
    /// If servers may read the path in different ways, the checks for all [`Readings`] are made, so
    /// that no spelling selects the milder rule. Equal checks are made once.
    ///
    /// # Errors
    /// A key cannot be formed. [`KeyError::Missing`] is returned only for checks with `on_missing:
    /// error`, and only for paths that all servers read alike.
    pub fn evaluate(
        &self,
        facts: &Facts<'_>,
        key_bytes: usize,
    ) -> Result<RuleOutcome<'_>, KeyError> {
        let Ok(readings) = Readings::new(facts.target, self.path_case) else {
            return Ok(RuleOutcome::Deny(KeyError::AmbiguousPath));
        };
        if readings.is_ambiguous() && self.ambiguous_paths == AmbiguousPaths::Deny {
            return Ok(RuleOutcome::Deny(KeyError::AmbiguousPath));
        }
        let mut checks: Vec<MatchedCheck<'_>> = Vec::new();
        let (mut is_matched, mut is_unmatched) = (false, false);
        let mut missing = None;
        for path in readings.iter() {
            let Some(rule) = self.rule_for(facts, path)? else {
                is_unmatched = true;
                continue;
            };
            is_matched = true;
            if let Err(outcome) = rule.add_checks(&mut checks, facts, path, key_bytes)? {
                // All readings must match a rule before a value can be missing.
                missing = missing.or(Some(outcome));
            }
        }
        if is_unmatched && (self.on_no_rule == OnNoRule::Deny || !is_matched) {
            return Ok(RuleOutcome::NoRule(self.on_no_rule));
        }
        match missing {
            // Without a decision a request may pass, which no spelling may achieve.
            Some((error, OnMissing::Error)) if !readings.is_ambiguous() => Err(error),
            Some((error, _)) => Ok(RuleOutcome::Deny(error)),
            None if checks.len() > MAX_CHECKS => Ok(RuleOutcome::Deny(KeyError::AmbiguousPath)),
            None => Ok(RuleOutcome::Checks(checks)),
        }
    }

    /// The indices of the rules that apply to a request: one, or with an ambiguous path that of each
    /// reading.
    ///
    /// # Errors
    /// The host or a header that a rule reads is unknown or ambiguous.
    pub fn matching(&self, facts: &Facts<'_>) -> Result<Vec<usize>, KeyError> {
        let Ok(readings) = Readings::new(facts.target, self.path_case) else {
            return Ok(Vec::new());
        };
        let mut indices = Vec::new();
        for path in readings.iter() {
            let rule = self.rule_for(facts, path)?;
            let index = self.rules.iter().position(|x| rule.is_some_and(|y| std::ptr::eq(x, y)));
            indices.extend(index.filter(|index| !indices.contains(index)));
        }
        Ok(indices)
    }

    fn rule_for(&self, facts: &Facts<'_>, path: &Path<'_>) -> Result<Option<&Rule>, KeyError> {
        for rule in &self.rules {
            if rule.matches.matches(facts, path)? {
                return Ok(Some(rule));
            }
        }
        Ok(None)
    }

    /// Whether a key, tier or note uses claims of a token, so that token validation must be configured.
    #[must_use]
    pub fn uses_jwt(&self) -> bool {
        let checks = self.rules.iter().flat_map(|rule| &rule.checks);
        let mut templates = checks
            .flat_map(|check| [Some(&check.key), check.tier.as_ref(), check.note.as_ref()])
            .flatten();
        templates.any(|template| template.sources().any(|source| matches!(source, Source::Jwt(_))))
    }

    /// Checks that the rules can be used with these policies.
    ///
    /// # Errors
    /// A rule has no check or too many, or uses a policy that is unknown or has a concurrent limit,
    /// or a tier that the policy does not have.
    pub fn check(&self, policies: &Policies) -> Result<(), RuleError> {
        for (rule, value) in self.rules.iter().enumerate() {
            if !(1..=MAX_CHECKS_PER_RULE).contains(&value.checks.len()) {
                let found = value.checks.len();
                let message = format!("expected 1 to {MAX_CHECKS_PER_RULE} checks, found {found}");
                return Err(RuleError { rule, check: None, field: "checks", message });
            }
            for (index, check) in value.checks.iter().enumerate() {
                let error =
                    |message| RuleError { rule, check: Some(index), field: "policy", message };
                let variants = policies.variants(&check.policy);
                let mut variants = variants.map_err(|e| error(e.to_string()))?;
                if variants.any(Policy::has_concurrent) {
                    return Err(error(format!(
                        "policy {:?} has a concurrent limit, and a rule cannot release a lease; \
                         use a policy without one",
                        check.policy
                    )));
                }
                // The value of a placeholder is known only at run time.
                let tier = check.tier.as_ref().and_then(Template::literal);
                if let Some(tier) = tier
                    && let Err(unknown) = policies.resolve(&check.policy, b"", Some(tier))
                {
                    return Err(RuleError { field: "tier", ..error(unknown.to_string()) });
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
    /// The index of the check at fault; `None` if the list of checks is.
    pub check: Option<usize>,
    /// The field at fault: of the check, or else of the rule.
    pub field: &'static str,
    /// The problem and its remedy.
    pub message: String,
}

impl fmt::Display for RuleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let RuleError { rule, check, field, message } = self;
        match check {
            Some(check) => write!(f, "rules[{rule}].checks[{check}].{field}: {message}"),
            None => write!(f, "rules[{rule}].{field}: {message}"),
        }
    }
}

impl std::error::Error for RuleError {}

impl Rule {
    /// Adds the checks under one reading of the path. The inner error is the missing value that
    /// does not skip its check.
    fn add_checks<'a>(
        &'a self,
        checks: &mut Vec<MatchedCheck<'a>>,
        facts: &Facts<'_>,
        path: &Path<'_>,
        key_bytes: usize,
    ) -> Result<Result<(), (KeyError, OnMissing)>, KeyError> {
        for check in &self.checks {
            match check.resolve(facts, path, key_bytes) {
                Ok(matched) if checks.iter().any(|check| check.charges_like(&matched)) => {}
                Ok(matched) => checks.push(matched),
                Err(KeyError::Missing(_)) if check.on_missing == OnMissing::Skip => {}
                Err(error @ KeyError::Missing(_)) => return Ok(Err((error, check.on_missing))),
                Err(other) => return Err(other),
            }
        }
        Ok(Ok(()))
    }
}

impl RuleCheck {
    /// A check of cost 1 that denies requests without a value for the key.
    #[must_use]
    pub fn new(policy: &str, key: Template) -> Self {
        let (tier, on_missing, note) = (None, OnMissing::default(), None);
        RuleCheck { policy: policy.into(), key, tier, cost: Cost::ONE, on_missing, note }
    }

    fn resolve(
        &self,
        facts: &Facts<'_>,
        path: &Path<'_>,
        key_bytes: usize,
    ) -> Result<MatchedCheck<'_>, KeyError> {
        let key = self.key.key(facts, path, key_bytes)?;
        let tier = match self.tier.as_ref().map(|tier| tier.key(facts, path, key_bytes)) {
            // Without a value the default tier applies.
            None | Some(Err(KeyError::Missing(_))) => None,
            Some(tier) => Some(tier?),
        };
        // A note decides nothing, so a request without one is decided like others.
        let note = self.note.as_ref().and_then(|note| note.key(facts, path, usize::MAX).ok());
        Ok(MatchedCheck { policy: &self.policy, key, tier, cost: self.cost, note })
    }
}
