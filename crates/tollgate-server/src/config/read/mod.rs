//! From fields to what the daemon runs with: a file for each section.

mod listen;
pub(super) mod operation;
pub(super) mod policies;
pub(super) mod rules;
pub(super) mod tokens;

use super::fields::{Broken, Fields};
use super::restart::Fixed;
use super::{Bounds, Config, StoreConfig};

/// All of it. Every section is read, so that the mistakes of all are found.
pub(super) fn config(fields: &Fields<'_>, is_whole: bool) -> Result<Config, Broken> {
    let namespace = fields.get("namespace");
    let store = fields.section("store").and_then(|it| StoreConfig::read(&it, is_whole));
    let listen = fields.section("listen").and_then(|it| listen::read(&it));
    let tokens = tokens::read(fields);
    let policies = policies::read(fields);
    let rules = rules::read(fields);
    let jwt = fields.section("jwt").and_then(|it| rules::jwt(&it));
    let headers = operation::headers(fields);
    let (policies, policy_configs) = policies?;
    Ok(Config {
        namespace: namespace?,
        store: store?,
        listen: listen?,
        tokens: tokens?,
        policies,
        policy_configs,
        rules: rules?,
        passes_by_default: fields.get::<&str>("default")? == "pass",
        trusted_proxies: fields.list("trusted_proxies")?.into_iter().map(|it| it.text).collect(),
        ipv6_prefix: fields.get("ipv6_prefix")?,
        jwt: jwt?,
        headers: headers?,
        privacy: fields.get("privacy")?,
        log: operation::log(&fields.section("log")?)?,
        drain: operation::drain(&fields.section("drain")?)?,
        limits: bounds(&fields.section("limits")?)?,
        fixed: fields.node.map(|it| Fixed::of(it, fields.base)).unwrap_or_default(),
    })
}

fn bounds(fields: &Fields<'_>) -> Result<Bounds, Broken> {
    Ok(Bounds {
        key_bytes: fields.get("key_bytes")?,
        body: fields.get("body")?,
        checks: fields.get("checks")?,
        connections: fields.get("connections")?,
        header_timeout: fields.get("header_timeout")?,
        idle: fields.get("idle")?,
    })
}
