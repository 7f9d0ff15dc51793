//! Reads the sections into typed values.

mod domains;
pub(super) mod envoy;
mod jwt;
mod listen;
pub(super) mod operation;
pub(super) mod policies;
mod rules;
pub(super) mod tokens;

use super::fields::{Invalid, SectionReader};
use super::restart::RestartFields;
use super::{Bounds, Config, StoreConfig};

/// Reads the whole configuration. Every section is read, so that all mistakes are found.
pub(super) fn config(fields: &SectionReader<'_>, is_complete: bool) -> Result<Config, Invalid> {
    let namespace = fields.get("namespace");
    let store =
        fields.section("store").and_then(|section| StoreConfig::read(&section, is_complete));
    let listen = fields.section("listen").and_then(|section| listen::read(&section));
    let tokens = tokens::read(fields);
    let policies = policies::read(fields);
    let rules = rules::read(fields, policies.as_ref().ok().map(|(x, _)| x));
    let jwt = fields.section("jwt").and_then(|section| jwt::read(&section, rules.as_ref().ok()));
    let headers = operation::headers(fields);
    let envoy = fields.section("envoy").and_then(|section| {
        let envoy = envoy::read(&section)?;
        let domains = domains::read(&section, &envoy)?;
        Ok((envoy, domains))
    });
    let (policies, overrides_files) = policies?;
    let (jwt, jwks_file) = jwt?;
    let (envoy, domains) = envoy?;
    let Some(root) = fields.node else { unreachable!("the top level has a node") };
    Ok(Config {
        namespace: namespace?,
        store: store?,
        listen: listen?,
        tokens: tokens?,
        policies,
        overrides_files,
        rules: rules?,
        trusted_proxies: rules::trusted_proxies(fields)?,
        ipv6_prefix: fields.get("ipv6_prefix")?,
        jwt,
        jwks_file,
        envoy,
        domains,
        headers: headers?,
        privacy: fields.get("privacy")?,
        log: operation::log(&fields.section("log")?)?,
        drain: operation::drain(&fields.section("drain")?)?,
        limits: bounds(&fields.section("limits")?)?,
        restart_fields: RestartFields::new(root, fields.base),
    })
}

fn bounds(fields: &SectionReader<'_>) -> Result<Bounds, Invalid> {
    Ok(Bounds {
        key_bytes: fields.get("key_bytes")?,
        body: fields.get("body")?,
        checks: fields.get("checks")?,
        connections: fields.get("connections")?,
        header_timeout: fields.get("header_timeout")?,
        idle: fields.get("idle")?,
        pipeline: fields.get("pipeline")?,
        connection_age: fields.get("connection_age")?,
    })
}
