//! `policies`.

use std::path::PathBuf;

use tollgate::{KeyList, Limit, OnStoreError, Overrides, Policies, Policy, Tiers};

use crate::fields::{FromValue, Invalid, SectionReader, SourceText};
use crate::schema::Value;
use crate::validate::join;
use tollgate_document::{Body, Node};

/// A file with more overrides.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OverridesFile {
    /// The policy.
    pub policy: String,
    /// The file.
    pub path: PathBuf,
}

impl FromValue for OnStoreError {
    fn from_value(value: Value) -> Option<Self> {
        match value {
            Value::Keyword("deny") => Some(OnStoreError::Deny),
            Value::Keyword("allow") => Some(OnStoreError::Allow),
            _ => None,
        }
    }
}

pub(super) fn read(fields: &SectionReader<'_>) -> Result<(Policies, Vec<OverridesFile>), Invalid> {
    let (mut policies, mut files) = (Policies::new(), Vec::new());
    let mut invalid = None;
    for fields in fields.sections("policies")? {
        match read_one(&fields, &mut policies) {
            Ok(path) => files
                .extend(path.map(|path| OverridesFile { policy: fields.name().to_owned(), path })),
            Err(error) => invalid = Some(error),
        }
    }
    invalid.map_or(Ok((policies, files)), Err)
}

/// Reads a policy with its overrides and tiers, and returns its file with more overrides.
fn read_one(
    fields: &SectionReader<'_>,
    policies: &mut Policies,
) -> Result<Option<PathBuf>, Invalid> {
    let overrides = overrides(fields);
    let tiers = tiers(fields);
    let policy = policy(fields)?;
    let whole = |display: &dyn std::fmt::Display| {
        fields.report_at(&fields.path, display.to_string(), &fields.origin)
    };
    let (overrides, tiers) = (overrides?, tiers?);
    // The parser has already removed duplicate names.
    policies.add(policy).map_err(|error| whole(&error))?;
    if !overrides.is_empty() {
        policies.set_overrides(fields.name(), &overrides).map_err(|error| whole(&error))?;
    }
    if !tiers.is_empty() {
        policies.set_tiers(fields.name(), &tiers).map_err(|error| whole(&error))?;
    }
    fields.get("overrides_file")
}

fn policy(fields: &SectionReader<'_>) -> Result<Policy, Invalid> {
    let limits = limits(&fields.list("limits")?)?;
    if limits.is_empty() {
        // Missing limits have already been reported.
        return Err(Invalid);
    }
    let policy = Policy::new(fields.name(), limits)
        .map_err(|error| fields.report_at(&fields.path, error.to_string(), &fields.origin))?;
    fields.get::<&str>("mode")?;
    let mut policy = policy
        .with_on_store_error(fields.get("on_store_error")?)
        .with_allow_list(keys(&fields.list("allow")?))
        .with_deny_list(keys(&fields.list("deny")?));
    if fields.get("shadow")? {
        policy = policy.shadow();
    }
    if let Some(max) = fields.get("max_keys")? {
        policy = policy.with_max_keys(max);
    }
    Ok(policy)
}

fn overrides(fields: &SectionReader<'_>) -> Result<Overrides, Invalid> {
    let mut builder = Overrides::builder();
    each(fields, "overrides", |pattern, limits| {
        builder.add(pattern, limits).map_err(|error| error.to_string())
    })?;
    Ok(builder.build())
}

fn tiers(fields: &SectionReader<'_>) -> Result<Tiers, Invalid> {
    let mut tiers = Tiers::new();
    each(fields, "tiers", |name, limits| {
        tiers.add(name, limits).map_err(|error| error.to_string())
    })?;
    Ok(tiers)
}

/// Adds each name of a mapping with its limits, as one text.
fn each(
    fields: &SectionReader<'_>,
    field: &str,
    mut add: impl FnMut(&str, &str) -> Result<(), String>,
) -> Result<(), Invalid> {
    let mut invalid = None;
    for (name, node) in fields.named(field) {
        let limits = match &node.body {
            Body::Text(text) => Ok(text.clone()),
            Body::List(all) => joined(all),
            Body::Nothing => Ok(String::new()),
            Body::Fields(_) => Err(Invalid),
        };
        let message = match limits {
            Ok(limits) if limits.is_empty() => {
                "expected limits, such as [100/s], or unlimited".to_owned()
            }
            Ok(limits) => match add(&name.text, &limits) {
                Ok(()) => continue,
                Err(error) => error,
            },
            Err(error) => {
                invalid = Some(error);
                continue;
            }
        };
        let path = join(&join(&fields.path, field), &name.text);
        invalid = Some(fields.report_at(&path, message, &name.origin));
    }
    invalid.map_or(Ok(()), Err)
}

/// The limits of a list as one text. Invalid limits have already been reported.
fn joined(all: &[Node]) -> Result<String, Invalid> {
    let texts = all.iter().map(|x| match &x.body {
        Body::Text(text) if text.parse::<Policy>().is_ok() => Ok(text.as_str()),
        _ => Err(Invalid),
    });
    Ok(texts.collect::<Result<Vec<_>, _>>()?.join("; "))
}

/// Parses limits; each text may contain several.
fn limits(texts: &[SourceText]) -> Result<Vec<Limit>, Invalid> {
    let mut limits = Vec::new();
    for text in texts {
        let policy: Policy = text.text.parse().map_err(|_| Invalid)?;
        limits.extend_from_slice(policy.limits());
    }
    Ok(limits)
}

fn keys(list: &[SourceText]) -> KeyList {
    list.iter().map(|list| list.text.as_bytes()).collect()
}
