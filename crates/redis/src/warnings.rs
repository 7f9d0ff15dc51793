//! What about a server may surprise later.

use std::fmt;

use redis::Value;

use crate::link::Link;

/// What about a server may surprise later.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Warning {
    /// When its memory is full the server drops keys, and with them what was spent.
    DropsCounters {
        /// Which server.
        server: Box<str>,
        /// Its `maxmemory-policy`.
        policy: Box<str>,
    },
    /// The server is older than what Tollgate is tested with.
    Old {
        /// Which server.
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
                "{server}: with maxmemory-policy {policy} the server forgets what was spent when its \
                 memory is full; choose noeviction or volatile-ttl"
            ),
            Warning::Old { server, version } => write!(
                f,
                "{server}: version {version} is older than Redis 7.0 and Valkey 7.2; update it"
            ),
        }
    }
}

/// Policies that drop nothing, or what would have gone soonest anyway.
const HARMLESS: [&str; 2] = ["noeviction", "volatile-ttl"];

/// What the server says of itself, if it tells.
pub(crate) async fn of(link: &Link, server: &str) -> Vec<Warning> {
    let info = match link.command(&["INFO"]).await {
        Ok(Value::BulkString(bytes)) => String::from_utf8_lossy(&bytes).into_owned(),
        _ => return Vec::new(),
    };
    in_info(&info, server)
}

fn in_info(info: &str, server: &str) -> Vec<Warning> {
    let field = |name: &str| {
        info.lines().find_map(|line| line.trim().strip_prefix(name)?.strip_prefix(':'))
    };
    let mut warnings = Vec::new();
    if let Some(policy) = field("maxmemory_policy").filter(|x| !HARMLESS.contains(x)) {
        warnings.push(Warning::DropsCounters { server: server.into(), policy: policy.into() });
    }
    // Valkey says here of which Redis it has the commands.
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
    fn what_may_surprise_is_told() {
        let check = |info: &str, expected: &[&str]| {
            let found = in_info(info, "h:1");
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
