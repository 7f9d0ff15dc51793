//! Failures of a remote store.

use std::fmt;

/// A failure of the store.
///
/// # Examples
/// ```
/// use tollgate_store::{Failure, FailureKind};
/// let failure = Failure::new(FailureKind::Loading, "LOADING Redis is loading the dataset in memory");
/// assert!(failure.kind.was_not_executed());
/// assert!(failure.to_string().starts_with("the server is loading its data"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The kind of failure.
    pub kind: FailureKind,
    /// The message of the server or the system; may be empty.
    pub message: Box<str>,
}

impl Failure {
    /// Creates a failure.
    #[must_use]
    pub fn new(kind: FailureKind, message: impl Into<Box<str>>) -> Self {
        Failure { kind, message: message.into() }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.kind.fmt(f)?;
        if self.message.is_empty() { Ok(()) } else { write!(f, " ({})", self.message) }
    }
}

impl std::error::Error for Failure {}

/// The kinds of failure. The `Display` text states what happened and what to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum FailureKind {
    /// There is no connection: the request was not sent.
    Unreachable,
    /// The request was sent and no reply arrived: the outcome is unknown.
    ConnectionLost,
    /// The caller's deadline passed: the outcome is unknown.
    Deadline,
    /// Too many requests are waiting.
    Overloaded,
    /// The server is loading its data.
    Loading,
    /// The server is a replica.
    ReadOnly,
    /// The server's memory is full.
    OutOfMemory,
    /// The server cannot save its data, so it rejects writes.
    Misconfigured,
    /// Another script blocks the server.
    Busy,
    /// The cluster is down.
    ClusterDown,
    /// A replica has lost its primary.
    MasterDown,
    /// The server has fewer replicas than it requires.
    NoReplicas,
    /// The user lacks a permission.
    NoPermission,
    /// The user or the password is wrong or missing.
    WrongPassword,
    /// The server does not know a required command.
    UnknownCommand,
    /// The keys of a call are in different slots.
    CrossSlot,
    /// A key was written by a newer version.
    Schema,
    /// The script and this library decided differently.
    VerificationFailed,
    /// The reply is invalid.
    Protocol,
    /// Keys are being migrated between nodes.
    TryAgain,
    /// The server is not of the kind that the URL names.
    WrongTopology,
    /// The namespace is divided into another number of partitions.
    PartitionMismatch,
    /// The server rejected the request for another reason.
    Rejected,
}

impl FailureKind {
    /// Returns the name in metrics and logs.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            FailureKind::Unreachable => "unreachable",
            FailureKind::ConnectionLost => "lost",
            FailureKind::Deadline => "deadline",
            FailureKind::Overloaded => "overloaded",
            FailureKind::Loading => "loading",
            FailureKind::ReadOnly => "read_only",
            FailureKind::OutOfMemory => "out_of_memory",
            FailureKind::Misconfigured => "misconfigured",
            FailureKind::Busy => "busy",
            FailureKind::ClusterDown => "cluster_down",
            FailureKind::MasterDown => "master_down",
            FailureKind::NoReplicas => "no_replicas",
            FailureKind::NoPermission => "no_permission",
            FailureKind::WrongPassword => "wrong_password",
            FailureKind::UnknownCommand => "unknown_command",
            FailureKind::CrossSlot => "cross_slot",
            FailureKind::Schema => "schema",
            FailureKind::VerificationFailed => "disagreement",
            FailureKind::Protocol => "protocol",
            FailureKind::TryAgain => "try_again",
            FailureKind::WrongTopology => "wrong_topology",
            FailureKind::PartitionMismatch => "groups",
            FailureKind::Rejected => "refused",
        }
    }

    /// Returns whether the request may have been charged.
    #[must_use]
    pub const fn is_outcome_unknown(self) -> bool {
        matches!(
            self,
            FailureKind::ConnectionLost
                | FailureKind::Deadline
                | FailureKind::VerificationFailed
                | FailureKind::Protocol
        )
    }

    /// Returns whether it is certain that nothing was charged, so that the request can be repeated.
    #[must_use]
    pub const fn was_not_executed(self) -> bool {
        !self.is_outcome_unknown()
    }

    const fn meaning(self) -> &'static str {
        match self {
            FailureKind::Unreachable => {
                "the server cannot be reached, so nothing was charged: check its address and that it is running"
            }
            FailureKind::ConnectionLost => {
                "the connection was lost or timed out after the request was sent: it may have been charged"
            }
            FailureKind::Deadline => {
                "the store did not answer within the deadline: the request may have been charged; raise the deadline if this happens often"
            }
            FailureKind::Overloaded => {
                "too many requests wait for the server, so this one was not sent: add servers or reduce the load"
            }
            FailureKind::Loading => {
                "the server is loading its data after a start: wait until it has finished"
            }
            FailureKind::ReadOnly => {
                "the server is a replica and rejects writes: point the URL at the primary or at the sentinels"
            }
            FailureKind::OutOfMemory => {
                "the server's memory is full: raise its maxmemory or use a dedicated server"
            }
            FailureKind::Misconfigured => {
                "the server cannot save its data and rejects writes: check its disk and its log"
            }
            FailureKind::Busy => {
                "another script blocks the server: stop it with SCRIPT KILL or FUNCTION KILL"
            }
            FailureKind::ClusterDown => {
                "the cluster is down: check CLUSTER INFO for slots without a node"
            }
            FailureKind::MasterDown => {
                "the server is a replica that has lost its primary: restore the primary or promote the replica"
            }
            FailureKind::NoReplicas => {
                "the server has fewer replicas than min-replicas-to-write requires: restore them or lower the setting"
            }
            FailureKind::NoPermission => {
                "the user lacks a permission: the documentation of tollgate-redis has the ACL rule to use"
            }
            FailureKind::WrongPassword => {
                "the user or the password is wrong or missing: set them in the URL or the options"
            }
            FailureKind::UnknownCommand => {
                "the server does not know a required command, or scripts are disabled: use Redis 7.0, Valkey 7.2 or later, with EVALSHA and SCRIPT LOAD"
            }
            FailureKind::CrossSlot => {
                "the keys of a call are in different slots of the cluster: this is a bug in Tollgate, please report it"
            }
            FailureKind::Schema => {
                "a newer version of Tollgate wrote the key, which is left unchanged: update this version"
            }
            FailureKind::VerificationFailed => {
                "the script and the library decided differently: this is a bug in Tollgate, please report it"
            }
            FailureKind::Protocol => {
                "invalid reply: a proxy changed it, or this is a bug in Tollgate"
            }
            FailureKind::TryAgain => {
                "the cluster is migrating the keys and did not finish in time: try again"
            }
            FailureKind::WrongTopology => "the server is not of the kind that the URL names",
            FailureKind::PartitionMismatch => {
                "the namespace is divided into another number of groups: set the option groups to the stored number or choose another namespace"
            }
            FailureKind::Rejected => "the server rejected the request",
        }
    }
}

impl fmt::Display for FailureKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.meaning())
    }
}
