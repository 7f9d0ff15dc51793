//! The configuration: what the daemon runs with, and the file that it is read from.

mod error;
mod file;
mod header_style;
mod read;
mod samples;
mod store;
mod value;

use std::time::Duration;

use tollgate::Policies;
use tollgate_core::{LONGEST_KEY, MOST_CHECKS};

pub use error::ConfigError;
pub use header_style::HeaderStyle;
pub use store::{StoreConfig, StoreUrl};

/// What the daemon runs with.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Config {
    /// What keeps two installations on one store apart. Memory is always one's own.
    pub namespace: String,
    /// Where state lives.
    pub store: StoreConfig,
    /// Where it listens.
    pub listen: Listen,
    /// The policies by name.
    pub policies: Policies,
    /// What peers are held to.
    pub limits: Bounds,
    /// How it stops.
    pub drain: Drain,
    /// How headers tell a client its limits; empty if they do not.
    pub headers: Vec<HeaderStyle>,
}

/// Where it listens.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Listen {
    /// For HTTP, as `HOST:PORT`.
    pub http: String,
}

/// What peers are held to.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Bounds {
    /// The most bytes of a key, at most 65,536.
    pub key_bytes: usize,
    /// The most bytes of a body.
    pub body: usize,
    /// The most checks of a request, at most 32.
    pub checks: usize,
    /// The most connections at a time.
    pub connections: usize,
    /// How long the head of a request may take, and how long its body.
    pub header_timeout: Duration,
    /// How long a connection may be without a request.
    pub idle: Duration,
}

/// How it stops.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Drain {
    /// How long requests under way have.
    pub timeout: Duration,
}

impl Default for Config {
    /// The defaults, with no policy.
    fn default() -> Self {
        Config {
            namespace: "tollgate".to_owned(),
            store: StoreConfig::default(),
            listen: Listen { http: "127.0.0.1:8080".to_owned() },
            policies: Policies::new(),
            limits: Bounds {
                key_bytes: LONGEST_KEY,
                body: 64 * 1024,
                checks: MOST_CHECKS,
                connections: 10_000,
                header_timeout: Duration::from_secs(10),
                idle: Duration::from_secs(300),
            },
            drain: Drain { timeout: Duration::from_secs(20) },
            headers: vec![HeaderStyle::Draft11],
        }
    }
}
