//! `rules` and `jwt`, as they are written.

use std::path::PathBuf;
use std::time::Duration;

use super::super::fields::{Broken, Fields, Meaning};
use super::super::schema::Value;
use super::super::tree::{Body, Name, Origin};
use crate::nearest::did_you_mean;

/// Which policies limit a request.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RuleConfig {
    /// What a request must be.
    pub matching: MatchConfig,
    /// What is decided together; one at least.
    pub checks: Vec<RuleCheckConfig>,
    /// The line of the file that it begins in.
    pub line: Option<usize>,
}

/// What a request must be; what is not said may be anything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct MatchConfig {
    /// The pattern of its path.
    pub path: Option<String>,
    /// Its methods.
    pub methods: Vec<String>,
    /// The pattern of its host.
    pub host: Option<String>,
    /// Its headers: name and pattern.
    pub headers: Vec<(String, String)>,
}

/// A check of a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RuleCheckConfig {
    /// The policy, which there is.
    pub policy: String,
    /// The template of the key.
    pub key: String,
    /// The template of the tier.
    pub tier: Option<String>,
    /// What a request spends.
    pub cost: u64,
    /// What becomes of it where the key has no value.
    pub on_missing: OnMissing,
}

/// What becomes of a check whose key has no value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnMissing {
    /// It is left out.
    Skip,
    /// It denies.
    Deny,
    /// The answer is an error.
    Error,
}

/// How claims of a JSON Web Token are read.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct JwtConfig {
    /// The keys that sign.
    pub jwks_file: Option<PathBuf>,
    /// Whether signature and times are looked at.
    pub verify: bool,
    /// What `iss` must be.
    pub issuer: Option<String>,
    /// What `aud` must hold.
    pub audience: Option<String>,
    /// The header that brings the token.
    pub header: String,
    /// How far its issuer's clock may be off.
    pub leeway: Duration,
}

impl Meaning for OnMissing {
    fn of(value: Value) -> Option<Self> {
        match value {
            Value::Word("skip") => Some(OnMissing::Skip),
            Value::Word("deny") => Some(OnMissing::Deny),
            Value::Word("error") => Some(OnMissing::Error),
            _ => None,
        }
    }
}

pub(super) fn jwt(fields: &Fields<'_>) -> Result<JwtConfig, Broken> {
    Ok(JwtConfig {
        jwks_file: fields.get("jwks_file")?,
        verify: fields.get("verify")?,
        issuer: fields.get("issuer")?,
        audience: fields.get("audience")?,
        header: fields.get("header")?,
        leeway: fields.get("leeway")?,
    })
}

pub(super) fn read(root: &Fields<'_>) -> Result<Vec<RuleConfig>, Broken> {
    let policies: Vec<&Name> = root.named("policies").into_iter().map(|(name, _)| name).collect();
    let rules = root.sections("rules")?;
    // All are read before the first that is broken ends it.
    let rules: Vec<_> = rules.iter().map(|it| rule(it, &policies)).collect();
    rules.into_iter().collect()
}

fn rule(fields: &Fields<'_>, policies: &[&Name]) -> Result<RuleConfig, Broken> {
    let matching = fields.section("match").and_then(|it| matching(&it));
    let line = match &fields.origin {
        Origin::File(span) => Some(span.line),
        _ => None,
    };
    let short = ["policy", "key", "tier", "cost", "on_missing"];
    let short = short.into_iter().find(|it| fields.said(it).is_some());
    let checks = match (fields.sections("checks")?, short) {
        (checks, Some(name)) if !checks.is_empty() => {
            let message = "it is short for one check, and there are checks: write it there";
            return Err(fields.complain(name, message));
        }
        (checks, None) if !checks.is_empty() => checks,
        (_, Some(_)) => vec![fields.clone()],
        (_, None) => {
            let message = "a rule needs checks, or policy and key for one check";
            return Err(fields.complain("checks", message));
        }
    };
    let checks: Vec<_> = checks.iter().map(|it| check(it, policies)).collect();
    Ok(RuleConfig {
        matching: matching?,
        checks: checks.into_iter().collect::<Result<_, _>>()?,
        line,
    })
}

fn matching(fields: &Fields<'_>) -> Result<MatchConfig, Broken> {
    let headers = fields.named("headers").into_iter().map(|(name, node)| match &node.body {
        Body::Text(text) => Ok((name.text.clone(), text.clone())),
        _ => Err(Broken),
    });
    Ok(MatchConfig {
        path: fields.get("path")?,
        methods: fields.list("method")?.into_iter().map(|it| it.text).collect(),
        host: fields.get("host")?,
        headers: headers.collect::<Result<_, _>>()?,
    })
}

fn check(fields: &Fields<'_>, policies: &[&Name]) -> Result<RuleCheckConfig, Broken> {
    let policy = match fields.get::<Option<String>>("policy")? {
        Some(name) if policies.iter().any(|it| it.text == name) => Ok(name),
        Some(name) => {
            let known = policies.iter().map(|it| &*it.text);
            let hint = did_you_mean(&name, known).map(|it| format!("; {it}")).unwrap_or_default();
            Err(fields.complain("policy", format!("there is no policy {name:?}{hint}")))
        }
        None => Err(fields.complain("policy", "a check needs a policy, by its name")),
    };
    let key = match fields.get::<Option<String>>("key")? {
        Some(key) => Ok(key),
        None => Err(fields.complain("key", "a check needs a key, such as \"{ip}\"")),
    };
    Ok(RuleCheckConfig {
        policy: policy?,
        key: key?,
        tier: fields.get("tier")?,
        cost: fields.get("cost")?,
        on_missing: fields.get("on_missing")?,
    })
}
