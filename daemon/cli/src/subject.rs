//! The key and the policy that a command names.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;

use anyhow::{Result, bail};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::arguments::PolicyKey;

/// A key under a named policy or an inline limit.
#[derive(Debug)]
pub(crate) struct Subject {
    /// The name of a policy, or a limit.
    pub(crate) policy: String,
    pub(crate) is_limit: bool,
    pub(crate) tier: Option<String>,
    key: OsString,
}

impl Subject {
    pub(crate) fn new(arguments: &PolicyKey) -> Result<Self> {
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
        let key = arguments.key.clone();
        if key.is_empty() {
            bail!("the key is empty; write a key such as user:42");
        }
        Ok(Subject { policy: policy.to_owned(), is_limit, tier: arguments.tier.clone(), key })
    }

    pub(crate) fn key(&self) -> &[u8] {
        self.key.as_bytes()
    }

    /// The key without control characters, which must not reach the terminal.
    pub(crate) fn printable_key(&self) -> String {
        String::from_utf8_lossy(self.key()).escape_debug().to_string()
    }

    /// The body of a request to a daemon, with the fields of the operation.
    pub(crate) fn json(&self, fields: impl IntoIterator<Item = (&'static str, Value)>) -> String {
        let policy = if self.is_limit { "limit" } else { "policy" };
        let (field, key) = match self.key.to_str() {
            Some(key) => ("key", key.to_owned()),
            None => ("key_base64", STANDARD.encode(self.key())),
        };
        let tier = self.tier.as_ref().map(|tier| ("tier", json!(tier)));
        let subject = [(policy, json!(self.policy)), (field, json!(key))];
        let fields = subject.into_iter().chain(fields).chain(tier);
        Value::Object(fields.map(|(name, value)| (name.to_owned(), value)).collect()).to_string()
    }
}
