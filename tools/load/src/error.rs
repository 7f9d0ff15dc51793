//! Errors that prevent a run.

use std::fmt;

/// Why a run could not start.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LoadError {
    /// The target does not accept connections.
    Unreachable {
        /// `HOST:PORT`.
        address: String,
        /// The error of the connection attempt.
        reason: String,
    },
    /// The target accepts connections, but does not answer the probe with a decision.
    ProbeFailed {
        /// `HOST:PORT`.
        address: String,
        /// What the target returned instead.
        reason: String,
        /// What the user can do.
        hint: &'static str,
    },
    /// No policy limits the requests.
    Unlimited {
        /// The rate limit domain that matches no policy.
        domain: String,
    },
    /// The plan is invalid, or the protocol does not support it.
    InvalidPlan(String),
    /// The system is out of threads, sockets or timers.
    System(String),
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LoadError::Unreachable { address, reason } => write!(
                f,
                "cannot connect to {address}: {reason}; start a daemon with `tollgate serve`, or \
                 pass the address it listens on"
            ),
            LoadError::ProbeFailed { address, reason, hint } => {
                write!(f, "no decision from {address}: {reason}; {hint}")
            }
            LoadError::Unlimited { domain } => write!(
                f,
                "no policy limits the domain {domain:?}, so every request would be allowed; name a \
                 policy of the daemon with --policy"
            ),
            LoadError::InvalidPlan(reason) => f.write_str(reason),
            LoadError::System(reason) => {
                write!(f, "out of system resources: {reason}; lower --concurrency")
            }
        }
    }
}

impl std::error::Error for LoadError {}
