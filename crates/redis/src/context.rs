//! What all parts of a store share.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use futures_util::future::BoxFuture;
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::watch;
use tokio::time::Instant;
use tollgate_state::{Failure, FailureKind};

use crate::connection::Dialer;
use crate::credentials::Credentials;
use crate::encoding::PolicyEncodings;
use crate::handshake::ServerKind;
use crate::keyspace::Keyspace;
use crate::node_stats::NodeList;
use crate::options::RedisOptions;
use crate::request::PendingRequest;
use crate::stats::Counters;
use crate::url::{Address, AddressMap};

#[derive(Debug)]
pub(crate) struct StoreContext {
    pub(crate) options: RedisOptions,
    pub(crate) keyspace: Keyspace,
    pub(crate) encodings: PolicyEncodings,
    pub(crate) dialer: Dialer,
    pub(crate) address_map: AddressMap,
    pub(crate) credentials: Arc<Credentials>,
    pub(crate) server_kind: ServerKind,
    pub(crate) counters: Counters,
    pub(crate) nodes: NodeList,
    /// The number of nodes whose circuit breaker is not closed.
    pub(crate) active_breakers: AtomicUsize,
    pub(crate) status: watch::Sender<Status>,
    /// The topology task; `None` for a single server.
    pub(crate) topology: Option<UnboundedSender<TopologyEvent>>,
    /// Requests whose keys are on two nodes, because their slot is being migrated, to be decided key by
    /// key.
    pub(crate) per_key: UnboundedSender<PendingRequest>,
}

/// Whether the store is connected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Status {
    Connecting,
    Up,
    Down(Failure),
}

/// An event for the topology task. The requests in it have not been executed.
#[derive(Debug)]
pub(crate) enum TopologyEvent {
    /// A slot has moved to another node.
    Moved { slot: u16, to: Address, requests: Vec<PendingRequest> },
    /// A slot is being migrated to another node, where the keys of these requests are.
    Ask { to: Address, requests: Vec<PendingRequest> },
    /// The node is not a primary.
    NotPrimary(Vec<PendingRequest>),
    /// Retry these requests after a short delay.
    RetryLater(Vec<PendingRequest>),
    /// Route these requests again.
    Route(Vec<PendingRequest>),
    /// A node is connected.
    Connected,
    /// A connection was lost or could not be made.
    ConnectionLost,
}

impl TopologyEvent {
    /// Takes the requests of an event that could not be delivered.
    pub(crate) fn into_requests(self) -> Vec<PendingRequest> {
        match self {
            TopologyEvent::Moved { requests, .. }
            | TopologyEvent::Ask { requests, .. }
            | TopologyEvent::NotPrimary(requests)
            | TopologyEvent::RetryLater(requests)
            | TopologyEvent::Route(requests) => requests,
            TopologyEvent::Connected | TopologyEvent::ConnectionLost => Vec::new(),
        }
    }
}

pub(crate) fn store_closed() -> Failure {
    Failure::new(FailureKind::Unreachable, "the store was closed")
}

/// Sleeps until a time; for ever if there is none.
pub(crate) async fn sleep_until(time: Option<Instant>) {
    match time {
        Some(time) => tokio::time::sleep_until(time).await,
        None => std::future::pending().await,
    }
}

/// Waits for a future; never returns if there is none.
pub(crate) async fn wait_for<T>(future: &mut Option<BoxFuture<'static, T>>) -> T {
    match future {
        Some(future) => future.await,
        None => std::future::pending().await,
    }
}
