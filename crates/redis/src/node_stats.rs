//! The state of each server, for metrics and logs.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tollgate_state::Failure;

use crate::connection::CommandChannel;
use crate::stats::RedisStats;
use crate::url::Address;

/// The state of a server, and its counters since the store uses it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct NodeStats {
    /// Its address.
    pub address: Box<str>,
    /// The number of connections that are up. Without any, the server is unavailable.
    pub connections: u32,
    /// The cause of the last outage, which may have ended.
    pub failure: Option<Failure>,
    /// The number of outages, with the current one. An outage lasts from the loss of the last connection
    /// to the next connection.
    pub outages: u64,
    /// How long the last outage was, or has been.
    pub last_outage: Option<Duration>,
    /// The number of requests that were sent and not answered yet.
    pub in_flight: usize,
    /// The number of requests that wait to be sent.
    pub queued: usize,
    /// Its circuit breaker.
    pub breaker: BreakerStats,
    /// The script calls of all clients, when [`RedisStore::warnings`](crate::RedisStore::warnings) last
    /// read them.
    pub script_time: Option<ScriptTime>,
    /// The counters of this server. Events that concern no particular server, such as
    /// [`overshoot`](RedisStats::overshoot), are counted for the store only.
    pub counters: RedisStats,
}

/// The state of a circuit breaker. It opens when calls to a server fail or are too slow.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct BreakerStats {
    /// The state.
    pub state: BreakerState,
    /// How often it opened.
    pub opened: u64,
    /// The requests that it rejected.
    pub rejected: u64,
    /// Why it opened last.
    pub cause: Box<str>,
    /// How long it took until it was closed again, or has taken.
    pub last_opening: Option<Duration>,
}

/// The states of a circuit breaker. Only requests that decide are rejected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BreakerState {
    /// All requests are sent.
    #[default]
    Closed,
    /// Requests are rejected.
    Open,
    /// Requests are rejected, and a call in the background probes the server.
    HalfOpen,
    /// A growing part of the requests is sent.
    Closing,
}

impl BreakerState {
    /// All states.
    pub const ALL: [BreakerState; 4] =
        [BreakerState::Closed, BreakerState::Open, BreakerState::HalfOpen, BreakerState::Closing];

    /// Returns the name in metrics.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            BreakerState::Closed => "closed",
            BreakerState::Open => "open",
            BreakerState::HalfOpen => "half_open",
            BreakerState::Closing => "closing",
        }
    }
}

/// The calls of scripts that a server has executed since its start, for all its clients.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ScriptTime {
    /// The number of calls.
    pub calls: u64,
    /// Their execution time, in µs.
    pub sum_us: u64,
}

impl NodeStats {
    /// Returns whether a connection is up.
    #[must_use]
    pub fn is_up(&self) -> bool {
        self.connections > 0
    }

    /// Returns whether no connection is up, after one was lost or could not be made.
    #[must_use]
    pub fn is_unavailable(&self) -> bool {
        !self.is_up() && self.outages > 0
    }
}

/// A server whose state is reported.
pub(crate) trait ReportedNode: fmt::Debug + Send + Sync {
    fn address(&self) -> &Address;

    fn stats(&self) -> NodeStats;

    /// Returns a channel for commands on each connection that is up.
    fn connections(&self) -> Vec<CommandChannel>;
}

/// The servers of a store.
#[derive(Debug, Default)]
pub(crate) struct NodeList(Mutex<Vec<Weak<dyn ReportedNode>>>);

impl NodeList {
    pub(crate) fn add(&self, node: Weak<dyn ReportedNode>) {
        self.lock().push(node);
    }

    pub(crate) fn remove(&self, node: &Weak<dyn ReportedNode>) {
        self.lock().retain(|known| !Weak::ptr_eq(known, node));
    }

    /// Returns the connections to all servers that are up.
    pub(crate) fn connections(&self) -> Vec<CommandChannel> {
        self.nodes().iter().flat_map(|node| node.connections()).collect()
    }

    /// Returns the state of each server, by address.
    pub(crate) fn stats(&self) -> Vec<NodeStats> {
        let nodes = self.nodes();
        // A server may be dropped and needed again at once: the newer one replaces the older one.
        let by_address: BTreeMap<&Address, &Arc<dyn ReportedNode>> =
            nodes.iter().map(|node| (node.address(), node)).collect();
        by_address.into_values().map(|node| node.stats()).collect()
    }

    fn nodes(&self) -> Vec<Arc<dyn ReportedNode>> {
        self.lock().iter().filter_map(Weak::upgrade).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Weak<dyn ReportedNode>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
