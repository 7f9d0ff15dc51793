//! `envoy`.

use std::path::PathBuf;

use crate::fields::{Broken, Fields, Meaning, resolve};
use crate::near_limit::NearLimit;
use crate::schema::Value;
use crate::xds::{XdsOptions, XdsTls};
use tollgate_descriptors::Charging;

/// How Envoy's rate limit service is answered.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Envoy {
    /// Files of envoyproxy/ratelimit, or directories of them.
    pub config: Vec<PathBuf>,
    /// Whether several of them may be of one domain.
    pub merge_domains: bool,
    /// What is charged of a request's descriptors.
    pub charging: Charging,
    /// What holds for rules while the store gives no answer.
    pub on_store_error: RuleOnStoreError,
    /// Whether Envoy is told headers for its client's response.
    pub response_headers: bool,
    /// Whether Envoy is told dynamic metadata.
    pub dynamic_metadata: bool,
    /// Whether every request passes.
    pub shadow: bool,
    /// Whether the page of metrics also has the reference's names.
    pub reference_metrics: bool,
    /// A control plane that the configuration is taken from.
    pub xds: Option<XdsOptions>,
    /// What only the reference's own settings say.
    pub compat: CompatOptions,
}

/// What only the settings of envoyproxy/ratelimit say; no field of ours does.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct CompatOptions {
    /// The headers that tell Envoy's client its limits.
    pub headers: Option<CompatHeaders>,
    /// Whether all rules are of quotas.
    pub quota_mode: bool,
    /// From which part of a limit on hits count as near it.
    pub near_limit: NearLimit,
    /// When it is healthy, in its place; otherwise from when the limits are known.
    pub health: Option<CompatHealth>,
    /// Where the page of metrics is on the listener that is for it, if not at `/metrics`.
    pub metrics_path: Option<String>,
}

/// When a daemon is healthy that stands in for envoyproxy/ratelimit: once the store was there, until
/// it is told to stop.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CompatHealth {
    /// Also before a control plane has said what the limits are.
    pub starts_without_limits: bool,
    /// Only while there is a domain.
    pub needs_domains: bool,
    /// Only while the store is there.
    pub needs_store: bool,
}

/// The names of the headers that tell Envoy's client its limits.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs, reason = "the reference has these three")]
pub struct CompatHeaders {
    /// Of the limit itself.
    pub limit: String,
    /// Of what is left.
    pub remaining: String,
    /// Of the seconds until there is more.
    pub reset: String,
}

/// What holds for the rules of domains while the store gives no answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RuleOnStoreError {
    /// What they limit is over.
    #[default]
    Deny,
    /// It passes.
    Allow,
    /// The call is an error, as with envoyproxy/ratelimit, and Envoy decides.
    Error,
}

impl Meaning for RuleOnStoreError {
    fn of(value: Value) -> Option<Self> {
        match value {
            Value::Word("deny") => Some(RuleOnStoreError::Deny),
            Value::Word("allow") => Some(RuleOnStoreError::Allow),
            Value::Word("error") => Some(RuleOnStoreError::Error),
            _ => None,
        }
    }
}

impl Meaning for Charging {
    fn of(value: Value) -> Option<Self> {
        match value {
            Value::Word("atomic") => Some(Charging::Atomic),
            Value::Word("reference") => Some(Charging::Reference),
            _ => None,
        }
    }
}

pub(super) fn read(fields: &Fields<'_>) -> Result<Envoy, Broken> {
    let path = |x: crate::fields::Written| match resolve(
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

fn xds(fields: &Fields<'_>) -> Result<Option<XdsOptions>, Broken> {
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
        (Some(_), None) => return Err(fields.report("cert", "write envoy.xds.key too")),
        (None, Some(_)) => return Err(fields.report("key", "write envoy.xds.cert too")),
        (Some(_), Some(_)) if tls.ca.is_none() => {
            let message = "a certificate is shown with TLS only: write envoy.xds.ca too";
            return Err(fields.report("cert", message));
        }
        _ => {}
    }
    options.tls = Some(tls).filter(|x| x.ca.is_some());
    Ok(Some(options))
}
