//! A rule: the requests that it matches, and the checks that it makes.

use tollgate::Cost;

use super::facts::{Facts, KeyError};
use super::header::HeaderMatcher;
use super::host::HostPattern;
use super::method::MethodName;
use super::path::Path;
use super::pattern::PathPattern;
use super::template::Template;

/// A rule: the requests that it matches, and the checks that it makes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rule {
    /// The requests that the rule matches.
    pub matches: Match,
    /// The checks, decided together; 1 to [`MAX_CHECKS_PER_RULE`](super::MAX_CHECKS_PER_RULE).
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
    pub(super) fn matches(&self, facts: &Facts<'_>, path: &Path) -> Result<bool, KeyError> {
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

impl OnNoRule {
    /// Parses the word in the configuration.
    ///
    /// # Errors
    /// The word is unknown.
    pub fn parse(text: &str) -> Result<Self, String> {
        match text {
            "pass" => Ok(OnNoRule::Pass),
            "deny" => Ok(OnNoRule::Deny),
            _ => Err("expected pass or deny".to_owned()),
        }
    }
}
