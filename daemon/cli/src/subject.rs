//! The key and the policy that a command names.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;

use anyhow::{Result, bail};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::arguments::PolicyKey;

/// A key under a named policy or an inline limit, or a descriptor of a domain.
#[derive(Debug)]
pub(crate) struct Subject {
    pub(crate) kind: SubjectKind,
    /// The name of a policy, a limit or a domain.
    pub(crate) policy: String,
    pub(crate) tier: Option<String>,
    /// The key, or the entries of the descriptor.
    key: OsString,
}

/// What the key belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SubjectKind {
    Policy,
    Limit,
    Domain,
}

impl SubjectKind {
    /// The fields of a request with the policy, and with the key as text.
    fn fields(self) -> (&'static str, &'static str) {
        match self {
            SubjectKind::Policy => ("policy", "key"),
            SubjectKind::Limit => ("limit", "key"),
            SubjectKind::Domain => ("domain", "descriptor"),
        }
    }
}

impl Subject {
    pub(crate) fn new(arguments: &PolicyKey) -> Result<Self> {
        if let Some(domain) = &arguments.domain {
            let (kind, policy) = (SubjectKind::Domain, domain.clone());
            let key = descriptor(&arguments.descriptor)?.into();
            return Ok(Subject { kind, policy, tier: None, key });
        }
        let (Some(policy), Some(key)) = (&arguments.policy, &arguments.key) else {
            unreachable!("clap requires a policy and a key without --domain")
        };
        let policy = policy.trim();
        let kind = match policy.chars().next() {
            Some(c) if c.is_ascii_digit() => SubjectKind::Limit,
            Some(c) if c.is_ascii_alphabetic() => SubjectKind::Policy,
            _ => bail!(
                "{policy:?} is neither a policy's name, which starts with a letter, nor a limit, \
                 such as \"10/s burst 20\""
            ),
        };
        if let (Some(tier), SubjectKind::Limit) = (&arguments.tier, kind) {
            bail!("--tier {tier:?} needs a policy; a limit has no tiers");
        }
        if key.is_empty() {
            bail!("the key is empty; write a key such as user:42");
        }
        let (policy, tier) = (policy.to_owned(), arguments.tier.clone());
        Ok(Subject { kind, policy, tier, key: key.clone() })
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
        let (policy, key) = self.kind.fields();
        let (field, key) = match self.key.to_str() {
            Some(text) => (key, text.to_owned()),
            None => ("key_base64", STANDARD.encode(self.key())),
        };
        let tier = self.tier.as_ref().map(|tier| ("tier", json!(tier)));
        let subject = [(policy, json!(self.policy)), (field, json!(key))];
        let fields = subject.into_iter().chain(fields).chain(tier);
        Value::Object(fields.map(|(name, value)| (name.to_owned(), value)).collect()).to_string()
    }
}

/// The entries of a descriptor as one text, with `%25`, `%3B` and `%3D` for `%`, `;` and `=`.
fn descriptor(entries: &[String]) -> Result<String> {
    let escape = |text: &str| text.replace('%', "%25").replace(';', "%3B").replace('=', "%3D");
    let mut parts = Vec::new();
    for entry in entries {
        match entry.split_once('=') {
            Some((key, value)) if !key.is_empty() => {
                parts.push(format!("{}={}", escape(key), escape(value)));
            }
            _ => bail!("--descriptor {entry:?}: write an entry such as remote_address=10.0.0.1"),
        }
    }
    Ok(parts.join(";"))
}
