//! Why a store that others keep gave no answer.

use std::fmt;

/// A failure of the store, in its own words and in ours.
///
/// # Example
/// ```
/// use tollgate_store::{Failure, FailureKind};
/// let failure = Failure::new(FailureKind::Loading, "LOADING Redis is loading the dataset in memory");
/// assert!(failure.kind.was_not_executed());
/// assert!(failure.to_string().starts_with("the server is still reading its data"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// What it means.
    pub kind: FailureKind,
    /// What the server or the system said; may be empty.
    pub message: Box<str>,
}

impl Failure {
    /// A failure of this kind, in the server's or the system's words.
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

/// The conditions in which a store gives no answer. Each says what it means and what to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum FailureKind {
    /// Nothing could be sent.
    Unreachable,
    /// It was sent and no reply came: the outcome is unknown.
    ConnectionLost,
    /// The caller's deadline passed first: the outcome is unknown.
    Deadline,
    /// Too many requests wait.
    Overloaded,
    /// The server is still reading its data.
    Loading,
    /// The server is a replica.
    ReadOnly,
    /// The server's memory is full.
    OutOfMemory,
    /// The server cannot save its data, and takes no writes until it can.
    Misconfigured,
    /// A script of somebody else keeps the server busy.
    Busy,
    /// The cluster does not serve.
    ClusterDown,
    /// A replica has lost its primary.
    MasterDown,
    /// The server has fewer replicas than it demands.
    NoReplicas,
    /// The user may not do what is needed.
    NoPermission,
    /// The user or the password is wrong or missing.
    WrongPassword,
    /// The server does not know a command that is needed.
    UnknownCommand,
    /// Keys of one call were in different slots.
    CrossSlot,
    /// A key was written by a newer version.
    Schema,
    /// The script and the library decided differently.
    VerificationFailed,
    /// The reply is none that the script can give.
    Protocol,
    /// Keys are on the move between nodes.
    TryAgain,
    /// The server is set up in another way than the URL says.
    WrongTopology,
    /// Keys of this namespace are divided into another number of groups.
    PartitionMismatch,
    /// The server refused for a reason of its own.
    Rejected,
}

impl FailureKind {
    /// The word that stands for it in metrics and logs.
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

    /// Whether the request may have been decided and charged all the same.
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

    /// Whether it is certain that nothing was charged, so that the request may be repeated.
    #[must_use]
    pub const fn was_not_executed(self) -> bool {
        !self.is_outcome_unknown()
    }

    const fn meaning(self) -> &'static str {
        match self {
            FailureKind::Unreachable => {
                "the server cannot be reached, so nothing was charged: check its address, and that it runs"
            }
            FailureKind::ConnectionLost => {
                "the connection was lost, or no reply came in time, after the request was sent: whether it was charged is unknown"
            }
            FailureKind::Deadline => {
                "no answer came within the deadline: whether it was charged is unknown; raise the deadline if this is usual"
            }
            FailureKind::Overloaded => {
                "too many requests wait for the server, so this one was not sent: add servers, or lower the load"
            }
            FailureKind::Loading => {
                "the server is still reading its data after a start: wait until it has"
            }
            FailureKind::ReadOnly => {
                "the server is a replica and takes no writes: point the URL at the primary, or name the sentinels"
            }
            FailureKind::OutOfMemory => {
                "the server's memory is full: raise its maxmemory, or give Tollgate a server of its own"
            }
            FailureKind::Misconfigured => {
                "the server cannot save its data and takes no writes until it can: look at its disk and its log"
            }
            FailureKind::Busy => {
                "somebody else's script keeps the server busy: end it with SCRIPT KILL, or FUNCTION KILL"
            }
            FailureKind::ClusterDown => {
                "the cluster does not serve: look at CLUSTER INFO for slots without a node"
            }
            FailureKind::MasterDown => {
                "the server is a replica that has lost its primary: restore the primary or promote the replica"
            }
            FailureKind::NoReplicas => {
                "the server has fewer replicas than min-replicas-to-write demands: restore them, or lower that"
            }
            FailureKind::NoPermission => {
                "the user may not do what is needed: the rights are listed in the documentation of tollgate-redis, as a line to paste"
            }
            FailureKind::WrongPassword => {
                "the user or the password is wrong or missing: put them into the URL or the options"
            }
            FailureKind::UnknownCommand => {
                "the server does not know a command that is needed, scripts may be turned off: use Redis 7.0, Valkey 7.2 or later, with EVALSHA and SCRIPT LOAD"
            }
            FailureKind::CrossSlot => {
                "keys of one call were in different slots of the cluster: this is a bug of Tollgate, please report it"
            }
            FailureKind::Schema => {
                "the key was written by a newer version of Tollgate and is left alone: update this one"
            }
            FailureKind::VerificationFailed => {
                "the script and the library decided differently: this is a bug of Tollgate, please report it"
            }
            FailureKind::Protocol => {
                "the reply is none that the script gives: something between here and the server changes replies, or this is a bug of Tollgate"
            }
            FailureKind::TryAgain => {
                "the cluster moves the keys between two nodes, and did not come to an end in time: try again"
            }
            FailureKind::WrongTopology => "the server is set up in another way than the URL says",
            FailureKind::PartitionMismatch => {
                "keys of this namespace are divided into another number of groups: set the option groups to the number that is stored, or choose another namespace"
            }
            FailureKind::Rejected => "the server refused",
        }
    }
}

impl fmt::Display for FailureKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.meaning())
    }
}
