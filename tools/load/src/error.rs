//! Why there is no run.

use std::fmt;

/// Why a run could not begin.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LoadError {
    /// Nobody listens there.
    Unreachable {
        /// `HOST:PORT`.
        address: String,
        /// Why it seems so.
        why: String,
    },
    /// Somebody listens and does not answer as it should.
    Refused {
        /// `HOST:PORT`.
        address: String,
        /// What came in place of an answer.
        why: String,
        /// What can be done.
        remedy: &'static str,
    },
    /// Nothing limits what would be asked.
    Unlimited {
        /// The domain that no policy is named as.
        domain: String,
    },
    /// What would be asked cannot be, or not over this protocol.
    Plan(String),
    /// The system has no more threads, sockets or timers.
    System(String),
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LoadError::Unreachable { address, why } => write!(
                f,
                "nobody answers at {address} ({why}); start a daemon with `tollgate serve`, or say \
                 where it listens"
            ),
            LoadError::Refused { address, why, remedy } => {
                write!(f, "{address} does not answer: {why}; {remedy}")
            }
            LoadError::Unlimited { domain } => write!(
                f,
                "nothing limits the domain {domain:?}, so that everything would pass; name a policy \
                 of the daemon with --policy"
            ),
            LoadError::Plan(why) => f.write_str(why),
            LoadError::System(why) => {
                write!(f, "the system has no room for it ({why}); ask for less with --concurrency")
            }
        }
    }
}

impl std::error::Error for LoadError {}
