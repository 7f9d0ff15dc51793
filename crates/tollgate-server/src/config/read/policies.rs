//! `policies`.

use std::path::PathBuf;

use tollgate::{KeyList, Limit, OnStoreError, Policies, Policy};

use super::super::fields::{Broken, Fields, Meaning, Written};
use super::super::schema::Value;
use super::super::shape::join;
use super::super::tree::{Body, Node};

/// What is said of a policy beyond [`Policy`] itself.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PolicyConfig {
    /// The policy's name.
    pub name: String,
    /// Other limits for some keys.
    pub overrides: Vec<OverrideConfig>,
    /// The file of more of them.
    pub overrides_file: Option<PathBuf>,
    /// Other limits that a request chooses by name.
    pub tiers: Vec<OverrideConfig>,
}

/// Other limits, for a key or by the name of a tier.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OverrideConfig {
    /// A key, the beginning of keys and a star, a network; or the name of a tier.
    pub pattern: String,
    /// What holds in place of the policy's limits.
    pub limits: OverrideLimits,
}

/// What holds in place of a policy's limits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OverrideLimits {
    /// These limits, of which there is one at least.
    Limits(Vec<Limit>),
    /// No limit.
    Unlimited,
}

impl Meaning for OnStoreError {
    fn of(value: Value) -> Option<Self> {
        match value {
            Value::Word("deny") => Some(OnStoreError::Deny),
            Value::Word("allow") => Some(OnStoreError::Allow),
            _ => None,
        }
    }
}

pub(super) fn read(fields: &Fields<'_>) -> Result<(Policies, Vec<PolicyConfig>), Broken> {
    let (mut policies, mut configs) = (Policies::new(), Vec::new());
    let mut broken = None;
    for fields in fields.sections("policies")? {
        let read = policy(&fields).and_then(|(policy, config)| {
            // Names that are there twice do not come this far.
            let added = policies.add(policy).map(|_| config);
            added.map_err(|it| fields.complain_at(&fields.path, it.to_string(), &fields.origin))
        });
        match read {
            Ok(config) => configs.push(config),
            Err(it) => broken = Some(it),
        }
    }
    broken.map_or(Ok((policies, configs)), Err)
}

fn policy(fields: &Fields<'_>) -> Result<(Policy, PolicyConfig), Broken> {
    let overrides = instead_of(fields, "overrides");
    let tiers = instead_of(fields, "tiers");
    let name = fields.name();
    let limits = fields.list("limits").and_then(|it| limits(&it))?;
    if limits.is_empty() {
        // That they are missing was said.
        return Err(Broken);
    }
    let policy = Policy::new(name, limits)
        .map_err(|it| fields.complain_at(&fields.path, it.to_string(), &fields.origin))?;
    fields.get::<&str>("mode")?;
    let mut policy = policy
        .with_on_store_error(fields.get("on_store_error")?)
        .with_allow_list(keys(&fields.list("allow")?))
        .with_deny_list(keys(&fields.list("deny")?));
    if fields.get("shadow")? {
        policy = policy.shadow();
    }
    if let Some(most) = fields.get("max_keys")? {
        policy = policy.with_max_keys(most);
    }
    let config = PolicyConfig {
        name: name.to_owned(),
        overrides: overrides?,
        overrides_file: fields.get("overrides_file")?,
        tiers: tiers?,
    };
    Ok((policy, config))
}

fn instead_of(fields: &Fields<'_>, field: &str) -> Result<Vec<OverrideConfig>, Broken> {
    let mut all = Vec::new();
    let mut broken = None;
    for (name, node) in fields.named(field) {
        match instead(node) {
            Ok(OverrideLimits::Limits(limits)) if limits.is_empty() => {
                let path = join(&join(&fields.path, field), &name.text);
                let message = "write limits, such as [100/s], or unlimited";
                broken = Some(fields.complain_at(&path, message, &name.origin));
            }
            Ok(limits) => all.push(OverrideConfig { pattern: name.text.clone(), limits }),
            Err(it) => broken = Some(it),
        }
    }
    broken.map_or(Ok(all), Err)
}

fn instead(node: &Node) -> Result<OverrideLimits, Broken> {
    match &node.body {
        Body::Text(text) if text == "unlimited" => Ok(OverrideLimits::Unlimited),
        Body::Nothing => Ok(OverrideLimits::Limits(Vec::new())),
        Body::List(all) => {
            let texts = all.iter().map(|it| match &it.body {
                Body::Text(text) => Ok(text.as_str()),
                _ => Err(Broken),
            });
            parse(texts).map(OverrideLimits::Limits)
        }
        Body::Text(_) | Body::Fields(_) => Err(Broken),
    }
}

fn limits(texts: &[Written]) -> Result<Vec<Limit>, Broken> {
    parse(texts.iter().map(|it| Ok(it.text.as_str())))
}

/// Limits, each text of which may hold several. What is wrong with one was said.
fn parse<'a>(texts: impl Iterator<Item = Result<&'a str, Broken>>) -> Result<Vec<Limit>, Broken> {
    let mut limits = Vec::new();
    for text in texts {
        let policy: Policy = text?.parse().map_err(|_| Broken)?;
        limits.extend_from_slice(policy.limits());
    }
    Ok(limits)
}

fn keys(list: &[Written]) -> KeyList {
    list.iter().map(|it| it.text.as_bytes()).collect()
}
