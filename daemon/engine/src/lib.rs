//! The decision engine of the daemon.
//!
//! Every protocol does the same work between its wire format and the store, and all of it is here:
//! authenticate ([`Access`]), authorise and resolve the policy ([`RequestContext`]), execute
//! ([`RequestContext::execute`], [`Batch`]), count ([`Counters`]) and audit ([`AuditRecord`]). A
//! protocol maps a request to a [`Call`], and the [`Outcome`] or [`Error`] back, and nothing else.
//! [`OPERATIONS`] is the table that routes, commands and documentation derive from.
//!
//! The engine knows no protocol and opens no socket.

/// Defines an enum whose values have names, which a `const` method returns.
macro_rules! named_enum {
    (
        $(#[$attribute:meta])*
        $visibility:vis $kind:ident, $(#[$method_doc:meta])* fn $method:ident;
        $($(#[$doc:meta])* $variant:ident = $name:literal,)*
    ) => {
        $(#[$attribute])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        $visibility enum $kind {
            $($(#[$doc])* $variant,)*
        }

        impl $kind {
            /// Every value, in this order.
            $visibility const ALL: [$kind; [$($name),*].len()] = [$($kind::$variant),*];

            $(#[$method_doc])*
            #[must_use]
            $visibility const fn $method(self) -> &'static str {
                match self {
                    $($kind::$variant => $name,)*
                }
            }
        }
    };
}

mod access;
mod active;
mod audit;
mod batch;
mod call;
mod connection;
mod context;
mod counters;
mod descriptor;
mod engine;
mod error;
mod execution;
mod hint;
mod log_throttle;
mod meter;
mod operation;
mod parameter;
mod privacy;
mod resolution;
mod usage;

use tollgate_config as config;

pub use access::{
    Access, AccessError, AccessErrors, Anonymous, Digest, Principal, Token, WRONG_TOKEN_DELAY,
};
pub use active::ActiveConfig;
pub use audit::AuditRecord;
pub use batch::Batch;
pub use call::{Call, CheckRequest, Checks, Counting, Outcome, PolicySelector, RequestId};
pub use connection::{
    Authentication, ClientCertificate, ListenerKind, PeerAddress, PerListener, Remote,
};
pub use context::RequestContext;
pub use counters::{
    ChecksWithoutStore, Closure, Counter, Counters, DECISIONS, Exemplar, LatencyBucket,
    LatencyHistogram, ListenerCounters, PolicyCounts, ReloadCounters, Surface, TraceId,
};
pub use engine::{Engine, StoreStatus};
pub use error::{Error, ErrorKind, ErrorValue};
pub use log_throttle::LogThrottle;
pub use operation::{Action, Arguments, CHECK_PARAMETERS, OPERATIONS, OperationSpec, ResponseKind};
pub use parameter::Parameter;
pub use usage::QUERY_SCOPES;

/// The longest text quoted from a request, in characters.
pub const MAX_QUOTED_LEN: usize = 128;
