//! `envoy`.

use std::path::PathBuf;

use super::super::fields::{Broken, Fields, Meaning, resolve};
use super::super::schema::Value;
use crate::rls::NearLimit;

/// How Envoy's rate limit service is answered.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Envoy {
    /// Files of envoyproxy/ratelimit, or directories of them.
    pub config: Vec<PathBuf>,
    /// What is charged of a request's descriptors.
    pub charging: Charging,
    /// Whether Envoy is told headers for its client's response.
    pub response_headers: bool,
    /// Whether Envoy is told dynamic metadata.
    pub dynamic_metadata: bool,
    /// Whether every request passes.
    pub shadow: bool,
    /// Whether the page of metrics also has the reference's names.
    pub reference_metrics: bool,
    /// A server that the configuration is taken from.
    pub xds: Option<Xds>,
    /// What only the reference's own settings say.
    pub reference: Reference,
}

/// What only the settings of envoyproxy/ratelimit say; no field of ours does.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Reference {
    /// The headers that tell Envoy's client its limits.
    pub headers: Option<ReferenceHeaders>,
    /// Whether all rules are of quotas.
    pub quota_mode: bool,
    /// From which part of a limit on hits count as near it.
    pub near_limit: NearLimit,
}

/// The names of the headers that tell Envoy's client its limits.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs, reason = "the reference has these three")]
pub struct ReferenceHeaders {
    /// Of the limit itself.
    pub limit: String,
    /// Of what is left.
    pub remaining: String,
    /// Of the seconds until there is more.
    pub reset: String,
}

/// What is charged of a request's descriptors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Charging {
    /// All of them or none, and nothing for a denied request.
    #[default]
    Atomic,
    /// Each by itself, denied ones too, as envoyproxy/ratelimit does.
    Reference,
}

/// A server that the configuration is taken from.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Xds {
    /// `HOST:PORT`.
    pub server: String,
    /// What this daemon is called there.
    pub node_id: String,
    /// What its certificate must lead to; without it no TLS is spoken.
    pub ca: Option<PathBuf>,
    /// The certificate to show there.
    pub cert: Option<PathBuf>,
    /// Its private key.
    pub key: Option<PathBuf>,
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
    let path = |it: super::super::fields::Written| match resolve(
        Value::Path(it.text.into()),
        &it.origin,
        fields.base,
    ) {
        Value::Path(path) => path,
        _ => PathBuf::new(),
    };
    Ok(Envoy {
        config: fields.list("config")?.into_iter().map(path).collect(),
        charging: fields.get("charging")?,
        response_headers: fields.get("response_headers")?,
        dynamic_metadata: fields.get("dynamic_metadata")?,
        shadow: fields.get("shadow")?,
        reference_metrics: fields.get("reference_metrics")?,
        xds: xds(&fields.section("xds")?)?,
        reference: Reference::default(),
    })
}

fn xds(fields: &Fields<'_>) -> Result<Option<Xds>, Broken> {
    let xds = Xds {
        server: fields.get::<Option<_>>("server")?.unwrap_or_default(),
        node_id: fields.get("node_id")?,
        ca: fields.get("ca")?,
        cert: fields.get("cert")?,
        key: fields.get("key")?,
    };
    match (&xds.cert, &xds.key) {
        (Some(_), None) => return Err(fields.complain("cert", "write envoy.xds.key too")),
        (None, Some(_)) => return Err(fields.complain("key", "write envoy.xds.cert too")),
        (Some(_), Some(_)) if xds.ca.is_none() => {
            let message = "a certificate is shown with TLS only: write envoy.xds.ca too";
            return Err(fields.complain("cert", message));
        }
        _ => {}
    }
    Ok(Some(xds).filter(|it| !it.server.is_empty()))
}
