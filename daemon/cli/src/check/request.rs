//! The check of the command line.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;

use anyhow::{Result, anyhow, bail};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tollgate::{Cost, Policy};
use tollgate_server::Config;

use crate::arguments::Check;

/// A check, for a daemon, a store or a data directory.
#[derive(Debug)]
pub(super) struct CheckRequest {
    /// The name of a policy, or a limit.
    pub(super) policy: String,
    pub(super) is_limit: bool,
    key: OsString,
    tier: Option<String>,
    pub(super) cost: Cost,
    pub(super) is_peek: bool,
}

impl CheckRequest {
    pub(super) fn new(arguments: &Check) -> Result<Self> {
        let policy = arguments.policy.trim();
        let is_limit = match policy.chars().next() {
            Some(c) if c.is_ascii_digit() => true,
            Some(c) if c.is_ascii_alphabetic() => false,
            _ => bail!(
                "{policy:?} is neither a policy's name, which starts with a letter, nor a limit, \
                 such as \"10/s burst 20\""
            ),
        };
        if let (Some(tier), true) = (&arguments.tier, is_limit) {
            bail!("--tier {tier:?} needs a policy; a limit has no tiers");
        }
        let cost = Cost::new(arguments.cost).ok_or_else(|| {
            anyhow!("a cost of {} is too large; at most {}", arguments.cost, Cost::MAX.get())
        })?;
        let key = arguments.key.clone();
        if key.is_empty() {
            bail!("the key is empty; write a key such as user:42");
        }
        Ok(CheckRequest {
            policy: policy.to_owned(),
            is_limit,
            key,
            tier: arguments.tier.clone(),
            cost,
            is_peek: arguments.peek,
        })
    }

    /// The named policy with the tier and the override of the key, or a policy of the limit.
    pub(super) fn policy_in(&self, config: &Config) -> Result<Policy> {
        if self.is_limit {
            Ok(self.policy.parse()?)
        } else {
            Ok(config.policies.resolve(&self.policy, self.key(), self.tier.as_deref())?.clone())
        }
    }

    pub(super) fn key(&self) -> &[u8] {
        self.key.as_bytes()
    }

    /// The path and query of the request to a daemon.
    pub(super) fn path(&self) -> &'static str {
        if self.is_peek { "/v1/peek?status=200" } else { "/v1/check?status=200" }
    }

    /// The body of the request to a daemon.
    pub(super) fn json(&self) -> String {
        let policy = if self.is_limit { "limit" } else { "policy" };
        let (field, key) = match self.key.to_str() {
            Some(key) => ("key", key.to_owned()),
            None => ("key_base64", STANDARD.encode(self.key())),
        };
        let tier = self.tier.as_ref().map(|tier| ("tier", json!(tier)));
        let fields =
            [(policy, json!(self.policy)), (field, json!(key)), ("cost", json!(self.cost.get()))];
        let fields = fields.into_iter().chain(tier).map(|(name, value)| (name.to_owned(), value));
        Value::Object(fields.collect()).to_string()
    }
}
