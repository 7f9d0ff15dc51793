//! A rule: which requests it is for, and what it has checked.

use tollgate::Cost;

use super::facts::{Facts, KeyError};
use super::header::HeaderMatcher;
use super::host::HostPattern;
use super::method::MethodName;
use super::path::Path;
use super::pattern::PathPattern;
use super::template::Template;

/// A rule: which requests it is for, and what it has checked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rule {
    /// Which requests it is for.
    pub matches: Match,
    /// What is checked, all together; 1 to [`MAX_CHECKS_PER_RULE`](super::MAX_CHECKS_PER_RULE).
    pub checks: Vec<RuleCheck>,
}

/// Which requests a rule is for: those of which one of each list holds, and all of the headers. An
/// empty list holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Match {
    /// Their paths.
    pub paths: Vec<PathPattern>,
    /// Their methods.
    pub methods: Vec<MethodName>,
    /// Their hosts.
    pub hosts: Vec<HostPattern>,
    /// Their headers.
    pub headers: Vec<HeaderMatcher>,
}

impl Match {
    /// Whether it is for a request whose path is read as this.
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
    /// Who is limited.
    pub key: Template,
    /// Which tier of the policy holds, if it is not the usual.
    pub tier: Option<Template>,
    /// What a request costs.
    pub cost: Cost,
    /// What holds for a request without a value for the key.
    pub on_missing: OnMissing,
}

/// What holds for a request without a value for the key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnMissing {
    /// The check is left out.
    Skip,
    /// The request is denied.
    #[default]
    Deny,
    /// There is no decision: the gateway does what it does then. One that fails open lets pass
    /// whoever leaves the value out.
    Error,
}

impl OnMissing {
    /// Reads the word for it.
    ///
    /// # Errors
    /// It is none; the error says what to write.
    pub fn parse(text: &str) -> Result<Self, String> {
        match text {
            "skip" => Ok(OnMissing::Skip),
            "deny" => Ok(OnMissing::Deny),
            "error" => Ok(OnMissing::Error),
            _ => Err("write skip, deny or error".to_owned()),
        }
    }
}

/// What holds for a request that no rule is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnNoRule {
    /// It passes.
    #[default]
    Pass,
    /// It is denied.
    Deny,
}

impl OnNoRule {
    /// Reads the word for it.
    ///
    /// # Errors
    /// It is none; the error says what to write.
    pub fn parse(text: &str) -> Result<Self, String> {
        match text {
            "pass" => Ok(OnNoRule::Pass),
            "deny" => Ok(OnNoRule::Deny),
            _ => Err("write pass or deny".to_owned()),
        }
    }
}
