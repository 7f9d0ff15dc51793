//! Topology: which server has which keys, on a cluster and behind sentinels.
//!
//! A task discovers the topology at the start, at regular intervals, and whenever a connection is lost
//! or a server redirects a request. Requests that were not executed meanwhile are routed again when
//! the topology is known.

mod cluster;
mod discovery;
mod partition_check;
mod routes;
mod sentinels;
mod slot_map;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};
use tollgate_store::{Failure, FailureKind};

pub(crate) use cluster::{ClusterDiscovery, fetch_slots};
pub(crate) use routes::Routes;
pub(crate) use sentinels::SentinelDiscovery;
pub(crate) use slot_map::SlotMap;

use crate::context::{Status, StoreContext, TopologyEvent, wait_for};
use crate::node::Node;
use crate::request::{BatchKey, PendingRequest};
use crate::url::Address;

/// How the topology is discovered.
#[derive(Debug)]
pub(crate) enum Discovery {
    Cluster(ClusterDiscovery),
    Sentinels(Box<SentinelDiscovery>),
}

/// The minimum pause between two discoveries.
const PAUSE: Duration = Duration::from_millis(20);
/// The delay before a request is retried.
const RETRY_DELAY: Duration = Duration::from_millis(10);

impl Discovery {
    async fn discover(&self, is_doubted: bool) -> Result<SlotMap, Failure> {
        match self {
            Discovery::Cluster(cluster) => cluster.discover().await,
            Discovery::Sentinels(sentinels) => sentinels.discover(is_doubted).await,
        }
    }

    /// Returns the interval of regular discoveries.
    fn interval(&self) -> Duration {
        match self {
            Discovery::Cluster(_) => Duration::from_secs(30),
            Discovery::Sentinels(_) => Duration::from_secs(1),
        }
    }
}

/// The topology task.
pub(crate) struct Topology {
    context: Arc<StoreContext>,
    routes: Arc<Routes>,
    discovery: Arc<Discovery>,
    events: UnboundedReceiver<TopologyEvent>,
    /// To send delayed events to itself.
    sender: UnboundedSender<TopologyEvent>,
    slots: Option<SlotMap>,
    nodes: HashMap<Address, Arc<Node>>,
    in_progress: Option<BoxFuture<'static, Result<SlotMap, Failure>>>,
    /// Whether something has changed since the discovery in progress started.
    is_doubted: bool,
    /// Requests that wait for the discovery in progress.
    held: Vec<PendingRequest>,
}

impl Topology {
    pub(crate) fn new(
        context: &Arc<StoreContext>,
        routes: &Arc<Routes>,
        discovery: Discovery,
        (sender, events): (UnboundedSender<TopologyEvent>, UnboundedReceiver<TopologyEvent>),
    ) -> Self {
        Topology {
            context: Arc::clone(context),
            routes: Arc::clone(routes),
            discovery: Arc::new(discovery),
            events,
            sender,
            slots: None,
            nodes: HashMap::new(),
            in_progress: None,
            is_doubted: true,
            held: Vec::new(),
        }
    }

    /// Runs until the task is aborted.
    pub(crate) async fn run(mut self) {
        let mut interval = tokio::time::interval(self.discovery.interval());
        interval.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            if self.in_progress.is_none() && self.is_doubted {
                self.start_discovery(true);
            }
            tokio::select! {
                Some(event) = self.events.recv() => self.handle_event(event),
                result = wait_for(&mut self.in_progress) => self.handle_discovery(result),
                _ = interval.tick() => if self.in_progress.is_none() {
                    self.start_discovery(false);
                },
            }
        }
    }

    fn start_discovery(&mut self, is_doubted: bool) {
        let discovery = Arc::clone(&self.discovery);
        let pause = if self.slots.is_some() { PAUSE } else { Duration::ZERO };
        self.is_doubted = false;
        self.in_progress = Some(Box::pin(async move {
            tokio::time::sleep(pause).await;
            discovery.discover(is_doubted).await
        }));
    }

    fn handle_discovery(&mut self, result: Result<SlotMap, Failure>) {
        self.in_progress = None;
        match result {
            Ok(slots) => {
                self.nodes.retain(|address, _| slots.nodes.contains(address));
                self.slots = Some(slots);
                self.publish();
                self.context.status.send_replace(Status::Up);
            }
            Err(failure) => {
                // With another number of partitions, requests would reach the wrong keys.
                let is_final = failure.kind == FailureKind::PartitionMismatch;
                self.routes.set_down(&failure, is_final);
                if is_final {
                    self.slots = None;
                    self.nodes.clear();
                }
                if self.slots.is_none() {
                    self.context.status.send_replace(Status::Down(failure));
                    self.send_after(PAUSE * 10, TopologyEvent::ConnectionLost);
                }
            }
        }
        for pending in std::mem::take(&mut self.held) {
            self.routes.submit(pending);
        }
    }

    /// Publishes the node of each partition.
    fn publish(&mut self) {
        let Some(slots) = self.slots.take() else { return };
        let partitions = match &*self.discovery {
            Discovery::Cluster(_) => self.context.options.groups,
            Discovery::Sentinels(_) => 1,
        };
        let by_partition: Vec<_> = slots
            .by_partition(&self.context.keyspace, partitions)
            .into_iter()
            .map(|address| address.map(|address| self.node(&address)))
            .collect();
        self.routes.set(by_partition);
        self.slots = Some(slots);
    }

    fn node(&mut self, address: &Address) -> Arc<Node> {
        let start = || Arc::new(Node::start(address, &self.context));
        Arc::clone(self.nodes.entry(address.clone()).or_insert_with(start))
    }

    fn handle_event(&mut self, event: TopologyEvent) {
        match event {
            TopologyEvent::Moved { slot, to, requests } => {
                self.is_doubted = true;
                if let Some(slots) = &mut self.slots {
                    slots.move_slot(slot, &to);
                    self.publish();
                }
                let node = self.node(&to);
                requests.into_iter().for_each(|pending| node.submit(pending));
            }
            TopologyEvent::Ask { to, requests } => {
                let node = self.node(&to);
                requests.into_iter().for_each(|pending| node.submit(pending));
            }
            TopologyEvent::NotPrimary(requests) => {
                self.is_doubted = true;
                self.hold(requests);
            }
            TopologyEvent::RetryLater(requests) => {
                self.is_doubted = true;
                self.send_after(RETRY_DELAY, TopologyEvent::Route(requests));
            }
            TopologyEvent::Route(requests) => self.route(requests),
            TopologyEvent::ConnectionLost => self.is_doubted = true,
        }
    }

    fn route(&mut self, requests: Vec<PendingRequest>) {
        let has_routes = self.slots.is_some();
        for mut pending in requests {
            pending.batch_key = BatchKey { is_asking: false, ..pending.batch_key };
            if has_routes || (self.in_progress.is_none() && !self.is_doubted) {
                self.routes.submit(pending);
            } else {
                self.hold(vec![pending]);
            }
        }
    }

    /// Holds requests until the discovery in progress ends: at most as many as may wait for a node,
    /// and for at most the timeout of a call.
    fn hold(&mut self, requests: Vec<PendingRequest>) {
        let timeout = self.context.call_timeout();
        let now = self.context.clock.now();
        for pending in requests {
            if self.held.len() >= self.context.options.queue {
                let message = "requests wait for the topology of the cluster";
                self.routes.fail(pending, &Failure::new(FailureKind::Overloaded, message));
            } else if now.duration_since(pending.responder.since) > timeout {
                let message = "the topology of the cluster was not discovered in time";
                self.routes.fail(pending, &Failure::new(FailureKind::Unreachable, message));
            } else {
                self.held.push(pending);
            }
        }
    }

    fn send_after(&self, delay: Duration, event: TopologyEvent) {
        let sender = self.sender.clone();
        tokio::spawn(async move {
            tokio::time::sleep(delay).await;
            // The receiver was dropped with the store; nothing to do.
            let _ = sender.send(event);
        });
    }
}
