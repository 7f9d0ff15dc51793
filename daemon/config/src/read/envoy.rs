//! `envoy`.

use std::path::PathBuf;

use crate::fields::{FromValue, Invalid, SectionReader, resolve};
use crate::near_limit::NearLimit;
use crate::schema::Value;
use crate::xds::{XdsOptions, XdsTls};
use tollgate_descriptors::Charging;

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
    pub on_store_error: RuleOnStoreError,
    /// Whether responses contain headers for the client's response.
    pub response_headers: bool,
    /// Whether responses contain dynamic metadata.
    pub dynamic_metadata: bool,
    /// Whether every request is admitted.
    pub shadow: bool,
    /// Whether the metrics page also contains the names of envoyproxy/ratelimit.
    pub reference_metrics: bool,
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
    /// The path of the metrics page, if not `/metrics`.
    pub metrics_path: Option<String>,
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

/// The response for descriptor rules while the store is unavailable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RuleOnStoreError {
    /// Over the limit.
    #[default]
    Deny,
    /// Within the limit.
    Allow,
    /// An error, as in envoyproxy/ratelimit; Envoy decides.
    Error,
}

impl FromValue for RuleOnStoreError {
    fn from_value(value: Value) -> Option<Self> {
        match value {
            Value::Keyword("deny") => Some(RuleOnStoreError::Deny),
            Value::Keyword("allow") => Some(RuleOnStoreError::Allow),
            Value::Keyword("error") => Some(RuleOnStoreError::Error),
            _ => None,
        }
    }
}

impl FromValue for Charging {
    fn from_value(value: Value) -> Option<Self> {
        match value {
            Value::Keyword("atomic") => Some(Charging::Atomic),
            Value::Keyword("reference") => Some(Charging::Reference),
            _ => None,
        }
    }
}

pub(super) fn read(fields: &SectionReader<'_>) -> Result<Envoy, Invalid> {
    let path = |x: crate::fields::SourceText| match resolve(
        Value::Path(x.text.into()),
        &x.origin,
        fields.base,
    ) {
        Value::Path(path) => path,
        _ => PathBuf::new(),
    };
    Ok(Envoy {
        config: fields.list("config")?.into_iter().map(path).collect(),
        merge_domains: fields.get("merge_domains")?,
        charging: fields.get("charging")?,
        on_store_error: fields.get("on_store_error")?,
        response_headers: fields.get("response_headers")?,
        dynamic_metadata: fields.get("dynamic_metadata")?,
        shadow: fields.get("shadow")?,
        reference_metrics: fields.get("reference_metrics")?,
        xds: xds(&fields.section("xds")?)?,
        compat: CompatOptions::default(),
    })
}

fn xds(fields: &SectionReader<'_>) -> Result<Option<XdsOptions>, Invalid> {
    let Some(server) = fields.get::<Option<String>>("server")? else { return Ok(None) };
    let options = XdsOptions::new(&server);
    let mut options = options.map_err(|error| fields.report("server", error.to_string()))?;
    options.node_id = fields.get("node_id")?;
    let tls = XdsTls {
        ca: fields.get("ca")?,
        cert: fields.get("cert")?,
        key: fields.get("key")?,
        san: None,
    };
    match (&tls.cert, &tls.key) {
        (Some(_), None) => {
            return Err(fields.report(
                "cert",
                "requires \
                                                             envoy.xds.key; add it",
            ));
        }
        (None, Some(_)) => {
            return Err(fields.report(
                "key",
                "requires envoy.xds.cert; \
                                                            add it",
            ));
        }
        (Some(_), Some(_)) if tls.ca.is_none() => {
            let message = "a client certificate requires TLS; add envoy.xds.ca";
            return Err(fields.report("cert", message));
        }
        _ => {}
    }
    options.tls = Some(tls).filter(|x| x.ca.is_some());
    Ok(Some(options))
}
