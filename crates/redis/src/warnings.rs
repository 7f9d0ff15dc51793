//! Warnings about the configuration of servers.

use std::fmt;

use redis::Value;

use crate::connection::Connection;

/// A problem with the configuration of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Warning {
    /// The server evicts keys when its memory is full, which resets limits.
    DropsCounters {
        /// The server.
        server: Box<str>,
        /// Its `maxmemory-policy`.
        policy: Box<str>,
    },
    /// The version of the server is not supported.
    Old {
        /// The server.
        server: Box<str>,
        /// Its version.
        version: Box<str>,
    },
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Warning::DropsCounters { server, policy } => write!(
                f,
                "{server}: maxmemory-policy {policy} evicts counters when the memory is full; use \
                 noeviction or volatile-ttl"
            ),
            Warning::Old { server, version } => write!(
                f,
                "{server}: version {version} is not supported; update to Redis 7.0, Valkey 7.2 or later"
            ),
        }
    }
}

/// Policies that evict nothing, or only the keys that expire soonest.
const HARMLESS: [&str; 2] = ["noeviction", "volatile-ttl"];

/// Checks a server. Returns no warnings if the user lacks the permission for `INFO`.
pub(crate) async fn check(connection: &Connection, server: &str) -> Vec<Warning> {
    let info = match connection.command(&["INFO"]).await {
        Ok(Value::BulkString(bytes)) => String::from_utf8_lossy(&bytes).into_owned(),
        _ => return Vec::new(),
    };
    check_info(&info, server)
}

fn check_info(info: &str, server: &str) -> Vec<Warning> {
    let field = |name: &str| {
        info.lines().find_map(|line| line.trim().strip_prefix(name)?.strip_prefix(':'))
    };
    let mut warnings = Vec::new();
    if let Some(policy) = field("maxmemory_policy").filter(|policy| !HARMLESS.contains(policy)) {
        warnings.push(Warning::DropsCounters { server: server.into(), policy: policy.into() });
    }
    // On Valkey, this is the version of Redis that it is compatible with.
    let version = field("redis_version");
    let major = version.and_then(|version| version.split('.').next()?.parse::<u32>().ok());
    if let (Some(version), true) = (version, major.is_some_and(|major| major < 7)) {
        warnings.push(Warning::Old { server: server.into(), version: version.into() });
    }
    warnings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unsuitable_servers_are_reported() {
        let check = |info: &str, expected: &[&str]| {
            let found = check_info(info, "h:1");
            assert_eq!(found.len(), expected.len(), "{found:?}");
            for (found, expected) in found.iter().zip(expected) {
                assert!(found.to_string().contains(expected), "{found}");
            }
        };
        check("# Server\r\nredis_version:7.0.15\r\nmaxmemory_policy:noeviction\r\n", &[]);
        check("redis_version:7.2.4\r\nvalkey_version:8.1.0\r\nmaxmemory_policy:volatile-ttl", &[]);
        check("redis_version:6.2.1\r\nmaxmemory_policy:allkeys-lru\r\n", &["allkeys-lru", "6.2.1"]);
        check("", &[]);
    }
}
