//! `policies`.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use tollgate::{Ban, Micros, Overrides, Policies, Policy, Tiers};

use super::track::{self, Track};
use crate::fields::{Invalid, SectionReader};
use crate::schema::Value;
use crate::tree::{Content, Entry};
use crate::validate::join;

/// A file with more overrides.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OverridesFile {
    /// The policy.
    pub policy: String,
    /// The file.
    pub path: PathBuf,
}

/// A row of `overrides`, other than `unlimited`.
#[derive(Clone, Debug)]
pub(crate) struct Override {
    /// The name of the policy.
    pub(crate) policy: Box<str>,
    /// The key, prefix or network, as it is written.
    pub(crate) key: Box<str>,
    /// The limits, without a name.
    pub(crate) limits: Policy,
}

/// The policies, and what belongs to them by name.
#[derive(Debug, Default)]
pub(super) struct PolicyTable {
    pub(super) policies: Policies,
    pub(super) overrides: Vec<Override>,
    pub(super) overrides_files: Vec<OverridesFile>,
    pub(super) tracks: BTreeMap<String, Track>,
}

pub(super) fn read(fields: &SectionReader<'_>) -> Result<PolicyTable, Invalid> {
    let mut table = PolicyTable::default();
    let mut invalid = None;
    for fields in fields.sections("policies") {
        if let Err(error) = read_one(&fields, &mut table) {
            invalid = Some(error);
        }
    }
    invalid.map_or(Ok(table), Err)
}

/// Reads a policy with its overrides and tiers, its file with more overrides, and what it tracks.
fn read_one(fields: &SectionReader<'_>, table: &mut PolicyTable) -> Result<(), Invalid> {
    let track = track(fields);
    let overrides = overrides(fields, &mut table.overrides);
    let policies = &mut table.policies;
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
    let name = || fields.name().to_owned();
    if let Some(path) = fields.get("overrides_file")? {
        table.overrides_files.push(OverridesFile { policy: name(), path });
    }
    table.tracks.extend(track?.map(|track| (name(), track)));
    Ok(())
}

fn track(fields: &SectionReader<'_>) -> Result<Option<Track>, Invalid> {
    const BOUNDS: [&str; 3] = ["max_keys", "max_bytes", "keep"];
    if let Some(Content::Fields(found)) = fields.field_entry("track").map(|entry| &entry.content)
        && found.iter().all(|(name, _)| BOUNDS.contains(&&*name.text))
    {
        let message = "records nothing; set recent, usage or timeline, or remove it";
        return Err(fields.report("track", message));
    }
    track::read(&fields.section("track"))
}

fn policy(fields: &SectionReader<'_>) -> Result<Policy, Invalid> {
    // Each text may contain several limits.
    let texts: Vec<Policy> = fields.list("limits")?;
    if texts.is_empty() {
        // Missing limits have already been reported.
        return Err(Invalid);
    }
    let limits = texts.iter().flat_map(Policy::limits).copied();
    let policy = Policy::new(fields.name(), limits)
        .map_err(|error| fields.report_at(&fields.path, error.to_string(), &fields.origin))?;
    let ban = ban(&fields.section("ban"));
    let mut policy = policy
        .with_on_store_error(fields.get("on_store_error")?)
        .with_allow_list(fields.list::<String>("allow")?.into_iter().collect())
        .with_ban(ban?)
        .with_deny_list(fields.list::<String>("deny")?.into_iter().collect());
    if fields.get("shadow")? {
        policy = policy.shadow();
    }
    if let Some(max) = fields.get("max_keys")? {
        policy = policy.with_max_keys(max);
    }
    leased(fields, policy)
}

/// The policy in its mode.
fn leased(fields: &SectionReader<'_>, policy: Policy) -> Result<Policy, Invalid> {
    let hold: Option<Duration> = fields.get("hold")?;
    match fields.get::<&str>("mode")? {
        "leased" => policy.leased(hold.map(Micros::from)).map_err(|error| {
            let field = if error.is_about_hold() { "hold" } else { "mode" };
            fields.report(field, error.to_string())
        }),
        _ if hold.is_some() => {
            Err(fields
                .report("hold", "has no effect without mode: leased; remove it or set the mode"))
        }
        _ => Ok(policy),
    }
}

/// The ban, if one of its fields is present.
fn ban(fields: &SectionReader<'_>) -> Result<Option<Ban>, Invalid> {
    let denials: Option<u64> = fields.get("denials")?;
    let (within, span): (Option<Duration>, Option<Duration>) =
        (fields.get("within")?, fields.get("for")?);
    let (Some(denials), Some(within), Some(span)) = (denials, within, span) else {
        let values = [denials.is_some(), within.is_some(), span.is_some()];
        let missing = ["denials", "within", "for"].into_iter().zip(values);
        return match missing.clone().find(|(_, is_present)| !is_present) {
            Some((field, _)) if values.contains(&true) => {
                let example = "such as { denials: 10, within: 10min, for: 1h }";
                Err(fields.report(field, format!("a ban needs {field}, {example}")))
            }
            _ => Ok(None),
        };
    };
    let ban = Ban::new(denials, within, span);
    ban.map(Some).map_err(|error| fields.report(error.field(), error.to_string()))
}

fn overrides(fields: &SectionReader<'_>, rows: &mut Vec<Override>) -> Result<Overrides, Invalid> {
    let mut builder = Overrides::builder();
    each(fields, "overrides", |pattern, limits| {
        builder.add(pattern, limits).map_err(|error| error.to_string())?;
        // The only row without limits is `unlimited`, which counts nothing.
        let limits = limits.parse().ok();
        rows.extend(limits.map(|limits| Override {
            policy: fields.name().into(),
            key: pattern.into(),
            limits,
        }));
        Ok(())
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
    for (name, entry) in fields.named(field) {
        let message = match limits(&entry.content) {
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

/// Limits, or `unlimited`, as one text.
fn limits(content: &Content) -> Result<String, Invalid> {
    let text = |entry: &Entry| match &entry.content {
        Content::Scalar(text, Value::Limits(_)) => Ok(text.clone()),
        _ => Err(Invalid),
    };
    match content {
        Content::Nothing => Ok(String::new()),
        Content::Scalar(text, _) => Ok(text.clone()),
        Content::List(all) => Ok(all.iter().map(text).collect::<Result<Vec<_>, _>>()?.join("; ")),
        Content::Fields(_) | Content::Invalid => Err(Invalid),
    }
}
