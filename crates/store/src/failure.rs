//! Failures of a remote store.

use std::fmt;

/// A failure of the store.
///
/// # Examples
/// ```
/// use tollgate_state::{Failure, FailureKind};
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

/// Defines the kinds of failure, each with its name in metrics and logs and its message.
macro_rules! failure_kinds {
    ($($(#[$doc:meta])* $kind:ident $name:literal: $message:literal;)*) => {
        /// The kinds of failure. The `Display` text states what happened and what to do.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum FailureKind {
            $($(#[$doc])* $kind,)*
        }

        impl FailureKind {
            /// Returns the name in metrics and logs.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(FailureKind::$kind => $name,)*
                }
            }
        }

        impl fmt::Display for FailureKind {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self {
                    $(FailureKind::$kind => $message,)*
                })
            }
        }
    };
}

failure_kinds! {
    /// There is no connection: the request was not sent.
    Unreachable "unreachable":
        "the server cannot be reached, so nothing was charged: check its address and that it is \
         running";
    /// The request was sent and no reply arrived: the outcome is unknown.
    ConnectionLost "lost":
        "the connection was lost or timed out after the request was sent: it may have been \
         charged";
    /// The caller's deadline passed: the outcome is unknown.
    Deadline "deadline":
        "the store did not answer within the deadline: the request may have been charged; raise \
         the deadline if this happens often";
    /// Too many requests are waiting.
    Overloaded "overloaded":
        "too many requests wait for the server, so this one was not sent: add servers or reduce \
         the load";
    /// The circuit breaker of the server is open: the request was not sent.
    BreakerOpen "breaker_open":
        "the server fails or is too slow, so the request was not sent and nothing was charged: requests \
         are sent again when it has recovered";
    /// The server is loading its data.
    Loading "loading":
        "the server is loading its data after a start: wait until it has finished";
    /// The server is a replica.
    ReadOnly "read_only":
        "the server is a replica and rejects writes: point the URL at the primary or at the \
         sentinels";
    /// The server's memory is full.
    OutOfMemory "out_of_memory":
        "the server's memory is full: raise its maxmemory or use a dedicated server";
    /// The server cannot save its data, so it rejects writes.
    Misconfigured "misconfigured":
        "the server cannot save its data and rejects writes: check its disk and its log";
    /// Another script blocks the server.
    Busy "busy":
        "another script blocks the server: stop it with SCRIPT KILL or FUNCTION KILL";
    /// The cluster is down.
    ClusterDown "cluster_down":
        "the cluster is down: check CLUSTER INFO for slots without a node";
    /// A replica has lost its primary.
    MasterDown "master_down":
        "the server is a replica that has lost its primary: restore the primary or promote the \
         replica";
    /// The server has fewer replicas than it requires.
    NoReplicas "no_replicas":
        "the server has fewer replicas than min-replicas-to-write requires: restore them or lower \
         the setting";
    /// The user lacks a permission.
    NoPermission "no_permission":
        "the user lacks a permission: the documentation of tollgate-redis has the ACL rule to \
         use";
    /// The user or the password is wrong or missing.
    WrongPassword "wrong_password":
        "the user or the password is wrong or missing: set them in the URL or the options";
    /// The server does not know a required command.
    UnknownCommand "unknown_command":
        "the server does not know a required command, or scripts are disabled: use Redis 7.0, \
         Valkey 7.2 or later, with FUNCTION LOAD or SCRIPT LOAD";
    /// The keys of a call are in different slots.
    CrossSlot "cross_slot":
        "the keys of a call are in different slots: a proxy distributes the keys over several \
         servers; set groups, so that keys have hash tags, or connect to the cluster with \
         redis+cluster://";
    /// A key was written by a newer version.
    Schema "schema":
        "a newer version of Tollgate wrote the key, which is left unchanged: update this version";
    /// The script and this library decided differently.
    VerificationFailed "disagreement":
        "the script and the library decided differently: this is a bug in Tollgate, please report \
         it";
    /// The reply is invalid.
    Protocol "protocol":
        "invalid reply: a proxy changed it, or this is a bug in Tollgate";
    /// A later attempt with the same request id is in progress.
    Superseded "superseded":
        "a later attempt with the same request id is in progress, so this one charged nothing: \
         repeat the request";
    /// Keys are being migrated between nodes.
    TryAgain "try_again":
        "the cluster is migrating the keys: try again";
    /// The server is not of the kind that the URL names.
    WrongTopology "wrong_topology":
        "the server is not of the kind that the URL names";
    /// The server is too old, or another product.
    UnsupportedServer "unsupported_server":
        "the server is not supported: use Redis 7.0, Valkey 7.2 or later";
    /// The namespace is divided into another number of partitions.
    PartitionMismatch "groups":
        "the namespace is divided into another number of groups: set the option groups to the \
         stored number or choose another namespace";
    /// The server rejected the request for another reason.
    Rejected "refused":
        "the server rejected the request";
}

impl FailureKind {
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
}
