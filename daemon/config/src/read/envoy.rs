//! `envoy`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tollgate::OnStoreError;
use tollgate_descriptors::{Charging, Domains, ReadOptions};
use tollgate_document::{ConfigError, Origin};

use crate::compare::CompareOptions;
use crate::domain_files::{self, DomainFileError};
use crate::fields::{Invalid, SectionReader};
use crate::xds::{XdsOptions, XdsTls};

/// Envoy's rate limit service.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Envoy {
    /// Configuration files of envoyproxy/ratelimit, or directories of such files.
    pub config: Vec<PathBuf>,
    /// Whether several files may define the same domain.
    pub merge_domains: bool,
    /// Which descriptors of a request are charged.
    pub charging: Charging,
    /// The response for descriptor rules while the store is unavailable.
    pub on_store_error: FailureMode,
    /// Who may give hits back and send limits in descriptors.
    pub refunds_and_limits: RefundsAndLimits,
    /// Whether responses contain headers for the client's response.
    pub response_headers: bool,
    /// Whether responses contain dynamic metadata.
    pub dynamic_metadata: bool,
    /// The key of the entry that is the note of a descriptor of a policy, if any.
    pub note_entry: Option<String>,
    /// Whether every request is admitted.
    pub shadow: bool,
    /// Whether the metrics page also contains the names of envoyproxy/ratelimit.
    pub reference_metrics: bool,
    /// The rate limit service that answers, while Tollgate decides beside it, if any.
    pub compare: Option<CompareOptions>,
    /// The control plane that provides the configuration, if any.
    pub xds: Option<XdsOptions>,
    /// Settings of envoyproxy/ratelimit that have no configuration field.
    pub compat: CompatOptions,
}

/// Settings of envoyproxy/ratelimit that have no configuration field; `tollgate ratelimit` sets
/// them.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct CompatOptions {
    /// The names of the rate limit headers for the client's response.
    pub headers: Option<CompatHeaders>,
    /// Whether all rules are in quota mode.
    pub quota_mode: bool,
    /// The fraction of a limit from which hits count as near it.
    pub near_limit: NearLimit,
    /// The health conditions of envoyproxy/ratelimit; without them, the daemon is healthy once
    /// limits are loaded.
    pub health: Option<CompatHealth>,
    /// Whether the HTTP listener serves nothing that envoyproxy/ratelimit does not have.
    pub hides_api: bool,
    /// The path of the metrics page, if not `/metrics`.
    pub metrics_path: Option<String>,
}

/// The fraction of a limit from which hits count as near it; 0.8 by default.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NearLimit(f32);

impl NearLimit {
    /// A fraction such as 0.8.
    #[must_use]
    pub const fn from_ratio(ratio: f32) -> Self {
        NearLimit(ratio)
    }

    /// The number of hits from which they are near `limit`, rounded as in envoyproxy/ratelimit.
    #[must_use]
    #[allow(
        clippy::as_conversions,
        clippy::cast_possible_truncation,
        clippy::cast_precision_loss,
        clippy::cast_sign_loss,
        clippy::float_arithmetic,
        reason = "a statistic that is rounded as envoyproxy/ratelimit rounds it; the cast \
                  saturates, and no decision depends on it"
    )]
    pub fn threshold(self, limit: u64) -> u64 {
        (limit as f32 * self.0).floor() as u64
    }
}

impl Default for NearLimit {
    fn default() -> Self {
        NearLimit(0.8)
    }
}

/// The health conditions of a daemon that replaces envoyproxy/ratelimit. It becomes healthy once
/// the store has been reachable, and stays healthy until shutdown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CompatHealth {
    /// Healthy even before a control plane has sent limits.
    pub starts_without_limits: bool,
    /// Healthy only with at least one domain.
    pub needs_domains: bool,
    /// Healthy only while the store is available.
    pub needs_store: bool,
}

/// The names of the rate limit headers for the client's response.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs, reason = "envoyproxy/ratelimit has these three")]
pub struct CompatHeaders {
    /// The header of the limit.
    pub limit: String,
    /// The header of the remaining requests.
    pub remaining: String,
    /// The header of the seconds until the limit resets.
    pub reset: String,
}

/// What a client gets while the store is unavailable for a limit that no policy has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FailureMode {
    /// A decision with this process's share of the limit.
    Local,
    /// A denial.
    Deny,
    /// An admission.
    Allow,
    /// An error, so that the client decides.
    #[default]
    Error,
}

impl FailureMode {
    /// The decision of a policy; an error replaces its denial.
    #[must_use]
    pub const fn decision(self) -> OnStoreError {
        match self {
            FailureMode::Local => OnStoreError::Local,
            FailureMode::Allow => OnStoreError::Allow,
            FailureMode::Deny | FailureMode::Error => OnStoreError::Deny,
        }
    }
}

/// Who may give hits back and send limits in descriptors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RefundsAndLimits {
    /// Every client for descriptor rules, operators for policies.
    #[default]
    Rules,
    /// Every client.
    All,
    /// Operators only.
    Operators,
}

/// The section, and the domains that its files define.
pub(super) fn read(fields: &SectionReader<'_>) -> Result<(Envoy, Arc<Domains>), Invalid> {
    let paths: Vec<(PathBuf, Origin)> = fields.list_with_origins("config")?;
    let envoy = Envoy {
        config: paths.iter().map(|(path, _)| path.clone()).collect(),
        merge_domains: fields.get("merge_domains")?,
        charging: fields.get("charging")?,
        on_store_error: fields.get("on_store_error")?,
        refunds_and_limits: fields.get("refunds_and_limits")?,
        response_headers: fields.get("response_headers")?,
        dynamic_metadata: fields.get("dynamic_metadata")?,
        note_entry: note_entry(fields)?,
        shadow: fields.get("shadow")?,
        reference_metrics: fields.get("reference_metrics")?,
        compare: compare(&fields.section("compare"))?,
        xds: xds(&fields.section("xds"))?,
        compat: CompatOptions::default(),
    };
    let domains = match envoy.xds {
        Some(_) => Domains::default(),
        None => domains(fields, &paths, &envoy.read_options())?,
    };
    Ok((envoy, Arc::new(domains)))
}

fn note_entry(fields: &SectionReader<'_>) -> Result<Option<String>, Invalid> {
    let key: Option<String> = fields.get("note_entry")?;
    if key.as_deref() == Some("") {
        let message = "\"\" is the key of no entry; write one, such as user, or remove the field";
        return Err(fields.report("note_entry", message));
    }
    Ok(key)
}

fn compare(fields: &SectionReader<'_>) -> Result<Option<CompareOptions>, Invalid> {
    let Some(url) = fields.get::<Option<String>>("url")? else { return Ok(None) };
    let options = CompareOptions::new(&url);
    let options = options.map_err(|error| fields.report("url", error))?;
    Ok(Some(CompareOptions { timeout: fields.get("timeout")?, ..options }))
}

fn xds(fields: &SectionReader<'_>) -> Result<Option<XdsOptions>, Invalid> {
    let Some(server) = fields.get::<Option<String>>("server")? else { return Ok(None) };
    let options = XdsOptions::new(&server);
    let mut options = options.map_err(|error| fields.report("server", error))?;
    options.node_id = fields.get("node_id")?;
    let ca: Option<PathBuf> = fields.get("ca")?;
    let (cert, key) = fields.certificate()?.unzip();
    if cert.is_some() && ca.is_none() {
        let message = "a client certificate requires TLS; add envoy.xds.ca";
        return Err(fields.report("cert", message));
    }
    options.tls = ca.is_some().then_some(XdsTls { ca, cert, key, san: None });
    Ok(Some(options))
}

/// The domains of all files.
fn domains(
    fields: &SectionReader<'_>,
    paths: &[(PathBuf, Origin)],
    options: &ReadOptions,
) -> Result<Domains, Invalid> {
    let report = |at: usize, message: String, file: &Path, line: Option<u64>| {
        let origin = paths.get(at).map_or(&fields.origin, |(_, origin)| origin);
        let error = ConfigError::new(message).with_field(format!("{}.config[{at}]", fields.path));
        fields.add(error.with_origin(origin.clone()).with_location(file, line, None))
    };
    // The files, each with the index of the path that contains it.
    let (mut indices, mut sources) = (Vec::new(), Vec::new());
    let mut invalid = None;
    for (at, (path, _)) in paths.iter().enumerate() {
        match domain_files::read(path) {
            Ok(files) => {
                indices.resize(sources.len() + files.len(), at);
                sources.extend(files);
            }
            Err(DomainFileError { file, reason }) => {
                let message = format!("{}: {reason}", file.display());
                invalid = Some(report(at, message, &file, None));
            }
        }
    }
    if let Some(invalid) = invalid {
        return Err(invalid);
    }
    Domains::from_yaml(&sources, options).map_err(|error| {
        let (file, message) = (&*error.file, &error.message);
        let index = sources.iter().position(|source| source.name == file);
        // An error that names no file is reported at the first path.
        let at = index.and_then(|index| indices.get(index)).copied().unwrap_or(0);
        let line = error.line.and_then(|line| u64::try_from(line).ok());
        let message = match line {
            Some(line) => format!("{file}:{line}: {message}"),
            None => format!("{file}: {message}"),
        };
        report(at, message, Path::new(file), line)
    })
}

impl Envoy {
    /// The options for reading a configuration of envoyproxy/ratelimit.
    pub fn read_options(&self) -> ReadOptions {
        ReadOptions {
            merge_domains: self.merge_domains,
            charging: self.charging,
            on_store_error: self.on_store_error.decision(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threshold_is_rounded_as_the_reference_rounds_it() {
        for (ratio, limit, near) in [
            (0.8, 10, 8),
            (0.8, 15, 12),
            (0.8, 8, 6),
            (0.8, 1, 0),
            (0.8, 0, 0),
            (0.8, 4_294_967_295, 3_435_973_888),
            (0.5, 5, 2),
            (1.0, 7, 7),
        ] {
            assert_eq!(NearLimit::from_ratio(ratio).threshold(limit), near, "{ratio} of {limit}");
        }
    }
}
