//! The plan of a run.

use std::time::Duration;

use tollgate::Limit;

use crate::keys::Keys;

/// A run: the target, the requests, their rate and the duration.
#[derive(Clone, Debug)]
pub struct Plan {
    /// What is load-tested.
    pub target: Target,
    /// What every request checks.
    pub check: CheckSpec,
    /// The keys that requests check.
    pub keys: Keys,
    /// How many requests are sent, and for how long.
    pub load: Load,
    /// The limits to verify admissions against, if they are verified; empty stands for the limits
    /// of `check`.
    pub verify: Option<Vec<Limit>>,
}

/// What is load-tested.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// A daemon, over HTTP/1.1.
    Http(Endpoint),
    /// A daemon, over Envoy's rate limit service.
    Grpc(Endpoint),
    /// A daemon or a Redis server, with a RESP command.
    Resp(Endpoint, Command),
    /// A limiter in this process.
    Memory,
}

impl Target {
    /// The endpoint of a target outside this process.
    #[must_use]
    pub fn endpoint(&self) -> Option<&Endpoint> {
        match self {
            Target::Http(endpoint) | Target::Grpc(endpoint) | Target::Resp(endpoint, _) => {
                Some(endpoint)
            }
            Target::Memory => None,
        }
    }
}

/// An address to connect to, with credentials.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// A host name or an IP address.
    pub host: String,
    /// The port.
    pub port: u16,
    /// The user name for `AUTH`.
    pub user: Option<String>,
    /// The password for `AUTH`, or the token.
    pub password: Option<String>,
}

impl Endpoint {
    /// `HOST:PORT`.
    #[must_use]
    pub fn address(&self) -> String {
        if self.host.contains(':') {
            format!("[{}]:{}", self.host, self.port)
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }
}

/// The RESP command of every request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// `TOLLGATE.CHECK`.
    Check,
    /// `CL.THROTTLE`, for a single token bucket.
    Throttle,
    /// `INCR` and `EXPIRE` of a key per minute: the usual counter on a plain Redis.
    Counter {
        /// How many requests a minute allows.
        threshold: u64,
    },
}

/// What every request checks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckSpec {
    /// The policy or the limits.
    pub limited_by: LimitedBy,
    /// The cost of a request.
    pub cost: u64,
}

/// The policy or the limits of a check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LimitedBy {
    /// The name of a policy of the daemon.
    Policy(String),
    /// Inline limits in the limit notation.
    Limits(String),
}

/// How many requests are sent, and for how long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Load {
    /// The number of connections; of threads for a target in process.
    pub connections: usize,
    /// The maximum number of requests in flight on each connection.
    pub pipeline: usize,
    /// The number of threads that share the connections.
    pub threads: usize,
    /// Requests per second, independent of responses (open loop); without it, a response triggers
    /// the next request (closed loop).
    pub rate: Option<u64>,
    /// The maximum number of requests.
    pub iterations: Option<u64>,
    /// How long requests are sent.
    pub duration: Duration,
    /// How long to wait for a response; at most an hour.
    pub timeout: Duration,
    /// How long to hold each lease of a concurrent limit.
    pub hold: Option<Duration>,
}
