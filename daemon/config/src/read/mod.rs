//! Reads the sections into typed values.

pub(super) mod envoy;
pub(super) mod operation;
pub(super) mod policies;
mod rules;
pub(super) mod tokens;
pub(super) mod track;
mod values;

use super::fields::{Invalid, SectionReader};
use super::restart::RestartFields;
use super::{Config, StoreConfig};
use policies::PolicyTable;
use tollgate_rules::Networks;

/// Reads the whole configuration. Every section is read, so that all mistakes are found.
pub(super) fn config(fields: &SectionReader<'_>, is_complete: bool) -> Result<Config, Invalid> {
    let namespace = fields.get("namespace");
    let store = StoreConfig::read(&fields.section("store"), is_complete);
    let listen = operation::listen(&fields.section("listen"));
    let tokens = tokens::read(fields, listen.as_ref().ok());
    let admin = match (&listen, &tokens) {
        (Ok(listen), Ok(tokens)) => {
            operation::check_admin(&fields.section("listen"), listen, tokens)
        }
        // That mistake is reported.
        _ => Ok(()),
    };
    let policies = policies::read(fields);
    let rules = rules::read(fields, policies.as_ref().ok());
    let jwt = rules::jwt(&fields.section("jwt"), rules.as_ref().ok());
    let headers = operation::headers(fields);
    let envoy = envoy::read(&fields.section("envoy"));
    let PolicyTable { policies, overrides, overrides_files, tracks } = policies?;
    let (jwt, jwks_file) = jwt?;
    let (envoy, domains) = envoy?;
    admin?;
    Ok(Config {
        namespace: namespace?,
        store: store?,
        listen: listen?,
        tokens: tokens?,
        operators: fields.get("operators")?,
        policies,
        overrides: overrides.into(),
        overrides_files,
        tracks,
        rules: rules?,
        trusted_proxies: fields.list::<Networks>("trusted_proxies")?.into_iter().collect(),
        ipv6_prefix: fields.get("ipv6_prefix")?,
        jwt,
        jwks_file,
        envoy,
        domains,
        throttle_on_store_error: fields.section("resp").get("throttle_on_store_error")?,
        headers: headers?,
        privacy: fields.get("privacy")?,
        log: operation::log(&fields.section("log"))?,
        drain: operation::drain(&fields.section("drain"))?,
        limits: operation::bounds(&fields.section("limits"))?,
        effective_yaml: None,
        restart_fields: RestartFields::new(fields.entry),
    })
}
