//! Warnings about the configuration of servers.

use std::fmt;

use redis::Value;

use crate::connection::CommandChannel;
use crate::node_stats::ScriptTime;

/// A problem with the configuration or the state of a server.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Warning {
    /// The server evicts keys when its memory is full, which resets limits.
    DropsCounters {
        /// The server.
        server: Box<str>,
        /// Its `maxmemory-policy`.
        policy: Box<str>,
    },
    /// The server has neither a replica nor an append-only file: after a restart, the charges since its
    /// last snapshot are missing.
    NotDurable {
        /// The server.
        server: Box<str>,
    },
    /// The server cannot write its append-only file or its snapshot.
    NotPersisting {
        /// The server.
        server: Box<str>,
        /// The field of `INFO` that reports it.
        field: &'static str,
    },
    /// The server has replicas and accepts writes without them: a primary that a partition separates
    /// from its replicas continues to admit requests that the promoted replica does not know.
    WritesWithoutReplicas {
        /// The server.
        server: Box<str>,
    },
    /// The server has no functions, or the user may not call them: each call creates all functions of the
    /// script, which costs CPU time.
    NoFunctions {
        /// The server.
        server: Box<str>,
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
            Warning::NotDurable { server } => write!(
                f,
                "{server}: a restart loses counters, because the server has neither a replica nor an \
                 append-only file; set appendonly yes or add a replica"
            ),
            Warning::NotPersisting { server, field } => write!(
                f,
                "{server}: the server cannot save its data ({field} is err); check its disk and its log"
            ),
            Warning::WritesWithoutReplicas { server } => write!(
                f,
                "{server}: a failover during a partition loses charges, because the primary accepts \
                 writes that no replica has; set min-replicas-to-write 1"
            ),
            Warning::NoFunctions { server } => write!(
                f,
                "{server}: a decision costs more CPU time than necessary, because functions cannot be \
                 called; grant the user +fcall +function|load"
            ),
        }
    }
}

/// Policies that evict nothing, or only the keys that expire soonest.
const HARMLESS: [&str; 2] = ["noeviction", "volatile-ttl"];

/// The reply of a server to `INFO`.
pub(crate) struct ServerInfo(String);

impl ServerInfo {
    /// Reads the sections that are needed; `None` if the server is unreachable or the user lacks the
    /// permission.
    pub(crate) async fn read(commands: &CommandChannel) -> Option<Self> {
        let words = ["INFO", "memory", "persistence", "replication", "commandstats"];
        match commands.command(&words).await {
            Ok(Value::BulkString(bytes)) => {
                Some(ServerInfo(String::from_utf8_lossy(&bytes).into_owned()))
            }
            _ => None,
        }
    }

    fn field(&self, name: &str) -> Option<&str> {
        self.0.lines().find_map(|line| line.trim().strip_prefix(name)?.strip_prefix(':'))
    }

    /// Returns the problems of a server.
    pub(crate) fn warnings(&self, server: &str) -> Vec<Warning> {
        let mut warnings = Vec::new();
        let policy = self.field("maxmemory_policy").filter(|policy| !HARMLESS.contains(policy));
        if let Some(policy) = policy {
            warnings.push(Warning::DropsCounters { server: server.into(), policy: policy.into() });
        }
        let has_replicas = self.field("connected_slaves").map(|count| count != "0");
        if self.field("aof_enabled") == Some("0") && has_replicas == Some(false) {
            warnings.push(Warning::NotDurable { server: server.into() });
        }
        for field in ["aof_last_write_status", "rdb_last_bgsave_status"] {
            if self.field(field) == Some("err") {
                warnings.push(Warning::NotPersisting { server: server.into(), field });
            }
        }
        // The server reports this field only if it requires replicas.
        if has_replicas == Some(true) && self.field("min_slaves_good_slaves").is_none() {
            warnings.push(Warning::WritesWithoutReplicas { server: server.into() });
        }
        warnings
    }

    /// Returns the calls of functions and scripts: `cmdstat_fcall:calls=2,usec=9,…`.
    pub(crate) fn script_time(&self) -> ScriptTime {
        let commands = ["cmdstat_fcall", "cmdstat_evalsha"];
        let number = |name: &str| {
            let statistics = commands.iter().filter_map(|command| self.field(command));
            let parts = statistics.flat_map(|statistics| statistics.split(','));
            let value =
                |part: &str| part.strip_prefix(name)?.strip_prefix('=')?.parse::<u64>().ok();
            parts.filter_map(value).sum()
        };
        ScriptTime { calls: number("calls"), sum_us: number("usec") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unsuitable_servers_are_reported() {
        let check = |info: &str, expected: &[&str]| {
            let found = ServerInfo(info.to_owned()).warnings("h:1");
            assert_eq!(found.len(), expected.len(), "{found:?}");
            for (found, expected) in found.iter().zip(expected) {
                assert!(found.to_string().contains(expected), "{found}");
            }
        };
        check("# Memory\r\nmaxmemory_policy:noeviction\r\n", &[]);
        check("maxmemory_policy:volatile-ttl", &[]);
        check("maxmemory_policy:allkeys-lru\r\n", &["allkeys-lru"]);
        check("aof_enabled:0\r\nconnected_slaves:0\r\n", &["appendonly yes"]);
        check("aof_enabled:1\r\nconnected_slaves:0\r\n", &[]);
        check("aof_enabled:0\r\nconnected_slaves:1\r\n", &["min-replicas-to-write"]);
        check("connected_slaves:2\r\nmin_slaves_good_slaves:2\r\n", &[]);
        check(
            "rdb_last_bgsave_status:err\r\naof_last_write_status:ok",
            &["rdb_last_bgsave_status"],
        );
        check("", &[]);
    }

    #[test]
    fn the_time_of_scripts_is_read() {
        let time = |info: &str| ServerInfo(info.to_owned()).script_time();
        let info = "# Commandstats\r\ncmdstat_get:calls=1,usec=2\r\n\
                    cmdstat_evalsha:calls=3,usec=42,usec_per_call=14.00,rejected_calls=0\r\n\
                    cmdstat_fcall:calls=2,usec=8,usec_per_call=4.00,rejected_calls=0\r\n";
        assert_eq!(time(info), ScriptTime { calls: 5, sum_us: 50 });
        assert_eq!(time(""), ScriptTime::default());
    }
}
