//! Runs scripts of other crates on the connections of a store, for data beside the keys of limits that
//! no decision depends on.
//!
//! An extension stores its keys in the partition of the key that they belong to, so that they have its
//! slot, and under names that no key of a limit has.

use redis::Value;
use sha1_smol::Sha1;
use tollgate_state::{Failure, FailureKind};

use crate::connection::{CommandChannel, CommandError};
use crate::context::TopologyEvent;
use crate::error;
use crate::handshake::ServerKind;
use crate::store::RedisStore;

/// A Lua script. Pass every key that it writes and that may exist, so that a node of a cluster without
/// one of them rejects the call before it runs.
#[derive(Clone, Debug)]
pub struct Script {
    text: &'static str,
    sha1: String,
}

impl Script {
    /// A script with this text.
    #[must_use]
    pub fn new(text: &'static str) -> Self {
        Script { text, sha1: Sha1::from(text).digest().to_string() }
    }

    /// Runs the script on a server, and sends its text if the server does not have it.
    pub(crate) async fn run(
        &self,
        commands: &CommandChannel,
        keys: &[Vec<u8>],
        arguments: &[&[u8]],
    ) -> Result<ScriptReply, CommandError> {
        let key_count = keys.len().to_string();
        let mut words = vec!["EVALSHA".as_bytes(), self.sha1.as_bytes(), key_count.as_bytes()];
        words.extend(keys.iter().map(Vec::as_slice).chain(arguments.iter().copied()));
        let mut reply = commands.command(&words).await;
        if let Err(CommandError::Server(server)) = &reply
            && error::is_script_missing(server)
        {
            (words[0], words[1]) = (b"EVAL", self.text.as_bytes());
            reply = commands.command(&words).await;
        }
        ScriptReply::from_value(reply?).ok_or_else(|| {
            let message = "a script returned a value of another type";
            CommandError::Lost(Failure::new(FailureKind::Protocol, message))
        })
    }
}

/// The reply of a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScriptReply {
    /// `false` or `nil`.
    Nil,
    /// A number.
    Integer(i64),
    /// A string.
    Bytes(Vec<u8>),
    /// A table.
    List(Vec<ScriptReply>),
}

impl ScriptReply {
    fn from_value(value: Value) -> Option<Self> {
        Some(match value {
            Value::Nil => ScriptReply::Nil,
            Value::Int(number) => ScriptReply::Integer(number),
            Value::BulkString(bytes) => ScriptReply::Bytes(bytes),
            Value::SimpleString(text) => ScriptReply::Bytes(text.into_bytes()),
            Value::Array(list) => {
                ScriptReply::List(list.into_iter().map(Self::from_value).collect::<Option<_>>()?)
            }
            _ => return None,
        })
    }
}

impl RedisStore {
    /// Returns the prefix of all keys.
    #[must_use]
    pub fn namespace(&self) -> &str {
        &self.context().options.namespace
    }

    /// Returns the number of partitions, each with a slot of its own on a cluster; 1 without hash tags.
    #[must_use]
    pub fn partition_count(&self) -> u16 {
        self.context().keyspace.partition_count()
    }

    /// Returns whether the servers are nodes of a cluster, which have different keys.
    #[must_use]
    pub fn is_cluster(&self) -> bool {
        self.context().server_kind == ServerKind::ClusterNode
    }

    /// Returns the partition of a key, which is the same for all policies.
    #[must_use]
    pub fn partition_of(&self, key: &[u8]) -> u16 {
        self.context().keyspace.partition_of(key)
    }

    /// Returns the name of an extension's key in a partition. `kind` is in lower case and distinguishes
    /// its keys; `policy` is empty if the key belongs to none.
    #[must_use]
    pub fn extension_name(&self, partition: u16, policy: &str, kind: &str, text: &[u8]) -> Vec<u8> {
        self.context().keyspace.extension(partition, policy, kind, text)
    }

    /// Runs a script on the server of a partition. If the outcome is unknown, the script may have been
    /// executed, so repeat a call only if it recognizes repetitions.
    ///
    /// # Errors
    /// Returns an error if the server is unavailable, has not all of the keys, or rejects the script.
    pub async fn run_script(
        &self,
        partition: u16,
        script: &Script,
        keys: &[Vec<u8>],
        arguments: &[&[u8]],
    ) -> Result<ScriptReply, Failure> {
        let commands = self.routes().node_of(partition).and_then(|node| node.commands());
        let Some(commands) = commands else {
            self.request_topology_refresh();
            let message = "no server of the partition is connected";
            return Err(Failure::new(FailureKind::Unreachable, message));
        };
        script.run(&commands, keys, arguments).await.map_err(|error| {
            let is_redirection = matches!(&error, CommandError::Server(server)
                if matches!(server.code(), "MOVED" | "ASK" | "READONLY"));
            if is_redirection {
                self.request_topology_refresh();
                let message = "the slot of the partition is on another server";
                return Failure::new(FailureKind::TryAgain, message);
            }
            error.failure()
        })
    }

    /// Makes the store query the topology soon, if it has one.
    fn request_topology_refresh(&self) {
        if let Some(topology) = &self.context().topology {
            // The receiver was dropped with the store; nothing to do.
            let _ = topology.send(TopologyEvent::NotPrimary(Vec::new()));
        }
    }
}
