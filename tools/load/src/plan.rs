//! What is to be run.

use std::time::Duration;

use tollgate::Limit;

use crate::keys::Keys;

/// A run: whom to ask what, how often and how long.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Who is asked.
    pub target: Target,
    /// What each request asks.
    pub question: Question,
    /// For which keys.
    pub keys: Keys,
    /// How much.
    pub load: Load,
    /// The limits that what is admitted is held against, if it is.
    pub against: Option<Vec<Limit>>,
}

/// Who is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// A daemon, over HTTP/1.1.
    Http(Peer),
    /// A daemon, as Envoy's rate limit service.
    Grpc(Peer),
    /// A daemon or a Redis, by a command.
    Resp(Peer, Command),
    /// A limiter in this process.
    Memory,
}

impl Target {
    /// The other side, if there is one.
    #[must_use]
    pub fn peer(&self) -> Option<&Peer> {
        match self {
            Target::Http(http) | Target::Grpc(http) | Target::Resp(http, _) => Some(http),
            Target::Memory => None,
        }
    }
}

/// The other side of connections.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Its name or address.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// Who asks, for `AUTH`.
    pub user: Option<String>,
    /// The password, or the token.
    pub password: Option<String>,
}

impl Peer {
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

/// What is asked of RESP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// `TOLLGATE.CHECK`.
    Check,
    /// `CL.THROTTLE`, of one token bucket.
    Throttle,
    /// `INCR` and `EXPIRE` of a key for each minute, as a bare Redis counts: so many a minute are
    /// allowed.
    Counter {
        /// The most that a minute allows.
        threshold: u64,
    },
}

/// What each request asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// By what it is limited.
    pub limited_by: LimitedBy,
    /// What each spends.
    pub cost: u64,
}

/// By what a request is limited.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LimitedBy {
    /// A policy that the daemon knows by this name.
    Policy(String),
    /// These limits, as text.
    Limits(String),
}

/// How much is asked, and how long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Load {
    /// Connections, or threads that ask in process.
    pub connections: usize,
    /// Requests under way on each connection at most.
    pub pipeline: usize,
    /// The threads that the connections are spread over.
    pub threads: usize,
    /// Requests a second, whatever the answers; without one each answer makes room for a request.
    pub rate: Option<u64>,
    /// The most requests.
    pub iterations: Option<u64>,
    /// How long requests are sent.
    pub duration: Duration,
    /// How long an answer may take; at most an hour.
    pub timeout: Duration,
    /// How long a lease is held, where there is one.
    pub hold: Option<Duration>,
}
