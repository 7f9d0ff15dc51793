//! `policies`.

use std::path::PathBuf;

use tollgate::{KeyList, Limit, OnStoreError, Overrides, Policies, Policy, Tiers};

use crate::fields::{Broken, Fields, Meaning, Written};
use crate::schema::Value;
use crate::shape::join;
use tollgate_document::{Body, Node};

/// A file of more overrides.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OverridesFile {
    /// The policy that they are of.
    pub policy: String,
    /// The file.
    pub path: PathBuf,
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

pub(super) fn read(fields: &Fields<'_>) -> Result<(Policies, Vec<OverridesFile>), Broken> {
    let (mut policies, mut files) = (Policies::new(), Vec::new());
    let mut broken = None;
    for fields in fields.sections("policies")? {
        match read_one(&fields, &mut policies) {
            Ok(path) => files
                .extend(path.map(|path| OverridesFile { policy: fields.name().to_owned(), path })),
            Err(error) => broken = Some(error),
        }
    }
    broken.map_or(Ok((policies, files)), Err)
}

/// Reads a policy with its overrides and tiers, and gives back its file of more of them.
fn read_one(fields: &Fields<'_>, policies: &mut Policies) -> Result<Option<PathBuf>, Broken> {
    let overrides = overrides(fields);
    let tiers = tiers(fields);
    let policy = policy(fields)?;
    let whole = |display: &dyn std::fmt::Display| {
        fields.complain_at(&fields.path, display.to_string(), &fields.origin)
    };
    let (overrides, tiers) = (overrides?, tiers?);
    // Names that are there twice do not come this far.
    policies.add(policy).map_err(|error| whole(&error))?;
    if !overrides.is_empty() {
        policies.set_overrides(fields.name(), &overrides).map_err(|error| whole(&error))?;
    }
    if !tiers.is_empty() {
        policies.set_tiers(fields.name(), &tiers).map_err(|error| whole(&error))?;
    }
    fields.get("overrides_file")
}

fn policy(fields: &Fields<'_>) -> Result<Policy, Broken> {
    let limits = limits(&fields.list("limits")?)?;
    if limits.is_empty() {
        // That they are missing was said.
        return Err(Broken);
    }
    let policy = Policy::new(fields.name(), limits)
        .map_err(|error| fields.complain_at(&fields.path, error.to_string(), &fields.origin))?;
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
    Ok(policy)
}

fn overrides(fields: &Fields<'_>) -> Result<Overrides, Broken> {
    let mut builder = Overrides::builder();
    each(fields, "overrides", |pattern, limits| {
        builder.add(pattern, limits).map_err(|error| error.to_string())
    })?;
    Ok(builder.build())
}

fn tiers(fields: &Fields<'_>) -> Result<Tiers, Broken> {
    let mut tiers = Tiers::new();
    each(fields, "tiers", |name, limits| {
        tiers.add(name, limits).map_err(|error| error.to_string())
    })?;
    Ok(tiers)
}

/// Adds each name of a field with its limits, as one text.
fn each(
    fields: &Fields<'_>,
    field: &str,
    mut add: impl FnMut(&str, &str) -> Result<(), String>,
) -> Result<(), Broken> {
    let mut broken = None;
    for (name, node) in fields.named(field) {
        let limits = match &node.body {
            Body::Text(text) => Ok(text.clone()),
            Body::List(all) => joined(all),
            Body::Nothing => Ok(String::new()),
            Body::Fields(_) => Err(Broken),
        };
        let message = match limits {
            Ok(limits) if limits.is_empty() => {
                "write limits, such as [100/s], or unlimited".to_owned()
            }
            Ok(limits) => match add(&name.text, &limits) {
                Ok(()) => continue,
                Err(error) => error,
            },
            Err(error) => {
                broken = Some(error);
                continue;
            }
        };
        let path = join(&join(&fields.path, field), &name.text);
        broken = Some(fields.complain_at(&path, message, &name.origin));
    }
    broken.map_or(Ok(()), Err)
}

/// The limits of a list as one text. What is wrong with one was said.
fn joined(all: &[Node]) -> Result<String, Broken> {
    let texts = all.iter().map(|x| match &x.body {
        Body::Text(text) if text.parse::<Policy>().is_ok() => Ok(text.as_str()),
        _ => Err(Broken),
    });
    Ok(texts.collect::<Result<Vec<_>, _>>()?.join("; "))
}

/// Limits, each text of which may hold several.
fn limits(texts: &[Written]) -> Result<Vec<Limit>, Broken> {
    let mut limits = Vec::new();
    for text in texts {
        let policy: Policy = text.text.parse().map_err(|_| Broken)?;
        limits.extend_from_slice(policy.limits());
    }
    Ok(limits)
}

fn keys(list: &[Written]) -> KeyList {
    list.iter().map(|list| list.text.as_bytes()).collect()
}
