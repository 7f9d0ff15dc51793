//! From the file to what the daemon runs with.

use std::fs;
use std::path::Path;

use serde_saphyr::Error as YamlError;
use tollgate::{KeyList, OnStoreError, Policies, Policy};
use tollgate_core::{LONGEST_KEY, MOST_CHECKS};

use super::error::ConfigError;
use super::value::{MILLISECOND, address, bytes, count, duration, set, truth};
use super::{Config, file};
use crate::nearest::did_you_mean;

/// The longest file that is read, in bytes.
const MOST_BYTES: u64 = 16 * 1024 * 1024;

impl Config {
    /// Reads a file.
    ///
    /// # Errors
    /// It cannot be read, or what it says cannot be used; the error names file, line, field and
    /// value, and what to write instead.
    pub fn load(path: &Path) -> Result<Config, ConfigError> {
        let name = path.display().to_string();
        let read = || {
            let bytes = fs::metadata(path).map_err(|it| unreadable(&it))?.len();
            if bytes > MOST_BYTES {
                return Err(ConfigError::new(format!("{bytes} bytes are more than are read")));
            }
            let text = fs::read_to_string(path).map_err(|it| unreadable(&it))?;
            Config::from_yaml(&text)
        };
        read().map_err(|it: ConfigError| it.in_file(&name))
    }

    /// Reads the text of a file.
    ///
    /// # Errors
    /// What it says cannot be used.
    pub fn from_yaml(text: &str) -> Result<Config, ConfigError> {
        // An empty file says nothing, which is no error.
        let file = serde_saphyr::from_str::<Option<file::File>>(text).map_err(|it| of_yaml(&it))?;
        let file = file.unwrap_or_default();
        let mut config = Config::default();
        set(&mut config.namespace, file.namespace.as_ref(), "namespace", namespace)?;
        config.store.read(&file.store.unwrap_or_default())?;
        let listen = file.listen.unwrap_or_default();
        set(&mut config.listen.http, listen.http.as_ref(), "listen.http", address)?;
        for (name, policy) in file.policies.map(|it| it.0).unwrap_or_default() {
            let field = format!("policies.{}", name.value);
            let read = read_policy(&name.value, &policy, &field);
            add(&mut config.policies, read.map_err(|it| it.at(name.referenced))?)
                .map_err(|it| it.of(field).at(name.referenced))?;
        }
        config.read_limits(&file.limits.unwrap_or_default())?;
        let drain = file.drain.unwrap_or_default();
        let timeout = duration(MILLISECOND);
        set(&mut config.drain.timeout, drain.timeout.as_ref(), "drain.timeout", timeout)?;
        Ok(config)
    }

    /// A configuration of one policy, named `default`.
    ///
    /// # Errors
    /// The text is not limits.
    pub fn of_limits(limits: &str) -> Result<Config, ConfigError> {
        let mut config = Config::default();
        let defined = config.policies.define("default", limits).map(|_| ());
        defined.map_err(|it| ConfigError::new(it.to_string()))?;
        Ok(config)
    }

    fn read_limits(&mut self, file: &file::Limits) -> Result<(), ConfigError> {
        let limits = &mut self.limits;
        let keys = bytes(1, LONGEST_KEY);
        set(&mut limits.key_bytes, file.key_bytes.as_ref(), "limits.key_bytes", keys)?;
        let body = bytes(64, 64 * 1024 * 1024);
        set(&mut limits.body, file.body.as_ref(), "limits.body", body)?;
        set(&mut limits.checks, file.checks.as_ref(), "limits.checks", count(1, MOST_CHECKS))?;
        let connections = count(1, 1_000_000);
        set(&mut limits.connections, file.connections.as_ref(), "limits.connections", connections)?;
        let (timeout, field) = (file.header_timeout.as_ref(), "limits.header_timeout");
        set(&mut limits.header_timeout, timeout, field, duration(MILLISECOND))?;
        set(&mut limits.idle, file.idle.as_ref(), "limits.idle", duration(MILLISECOND))
    }
}

pub(super) fn namespace(text: &str) -> Result<String, String> {
    let inner = |it: char| it.is_ascii_alphanumeric() || matches!(it, '_' | '-' | '.');
    if (1..=64).contains(&text.len()) && text.chars().all(inner) {
        return Ok(text.to_owned());
    }
    Err("write 1 to 64 letters, digits, '_', '-' and '.'".to_owned())
}

fn read_policy(name: &str, file: &file::Policy, field: &str) -> Result<Policy, ConfigError> {
    let mut limits = Vec::new();
    for (index, text) in file.limits.0.iter().enumerate() {
        let mut read = Vec::new();
        set(&mut read, Some(text), &format!("{field}.limits[{index}]"), |text| {
            let policy: Policy =
                text.parse().map_err(|it: tollgate::NotationError| it.to_string())?;
            Ok(policy.limits().to_vec())
        })?;
        limits.extend(read);
    }
    let policy = Policy::new(name, limits);
    let mut policy = policy.map_err(|it| ConfigError::new(it.to_string()).of(field))?;
    let mut mode = ();
    set(&mut mode, file.mode.as_ref(), &format!("{field}.mode"), |text| match text {
        "exact" => Ok(()),
        _ => Err("this version has one mode: exact".to_owned()),
    })?;
    let mut on_store_error = policy.on_store_error();
    let on_field = format!("{field}.on_store_error");
    set(&mut on_store_error, file.on_store_error.as_ref(), &on_field, |text| match text {
        "deny" => Ok(OnStoreError::Deny),
        "allow" => Ok(OnStoreError::Allow),
        "local" => Err("a local answer comes with a later version; write deny or allow".to_owned()),
        _ => Err("write deny or allow".to_owned()),
    })?;
    let mut shadow = false;
    set(&mut shadow, file.shadow.as_ref(), &format!("{field}.shadow"), truth)?;
    let mut max_keys = None;
    set(&mut max_keys, file.max_keys.as_ref(), &format!("{field}.max_keys"), |text| {
        count(1, usize::MAX)(text).map(Some)
    })?;
    policy = policy.with_on_store_error(on_store_error);
    policy = policy.with_allow_list(keys(&file.allow)).with_deny_list(keys(&file.deny));
    policy = if shadow { policy.shadow() } else { policy };
    Ok(max_keys.map_or(policy.clone(), |it| policy.with_max_keys(it)))
}

fn keys(list: &file::List) -> KeyList {
    list.0.iter().map(|it| it.value.as_bytes()).collect()
}

fn add(policies: &mut Policies, policy: Policy) -> Result<(), ConfigError> {
    policies.add(policy).map(|_| ()).map_err(|it| ConfigError::new(it.to_string()))
}

fn unreadable(error: &std::io::Error) -> ConfigError {
    ConfigError::new(format!("it cannot be read: {error}"))
}

/// What the parser says, in our words where it names a field.
fn of_yaml(error: &YamlError) -> ConfigError {
    let error = error.without_snippet();
    let said = match error {
        YamlError::SerdeUnknownField { field, expected, .. } => {
            let hint = did_you_mean(field, expected.iter().copied())
                .unwrap_or_else(|| format!("known here are {}", expected.join(", ")));
            ConfigError::new(format!("unknown field {field:?}; {hint}"))
        }
        YamlError::DuplicateMappingKey { key, .. } => {
            let name = key.as_deref().unwrap_or("a name");
            ConfigError::new(format!("{name} is there twice; leave one of them out"))
        }
        YamlError::SerdeInvalidType { unexpected, expected, .. } => {
            ConfigError::new(format!("write {expected}; this is {unexpected}"))
        }
        YamlError::Unexpected { expected: "mapping start", .. } => {
            ConfigError::new("write fields here, as in name: value")
        }
        YamlError::Unexpected { expected: "string scalar", .. } => {
            ConfigError::new("write one value here, not a list or fields")
        }
        other => {
            let mut text = other.to_string();
            // The place stands in front already.
            if let Some(at) = text.find(" at line ").or_else(|| text.find("\n")) {
                text.truncate(at);
            }
            ConfigError::new(text)
        }
    };
    match error.location() {
        Some(location) => said.at(location),
        None => said,
    }
}
