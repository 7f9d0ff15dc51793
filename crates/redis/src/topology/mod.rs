//! Topology: which server has which keys, on a cluster and behind sentinels.
//!
//! A task queries the topology at the start, at regular intervals, and when a connection is lost or a
//! server redirects a request. It queries nodes of a cluster over the connections that exist for
//! requests. Requests that were not executed meanwhile are routed again when the topology is known.

mod cluster;
mod discovery;
mod partition_check;
mod routes;
mod schedule;
mod sentinels;
mod slot_map;
mod state;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};
use tokio::time::Instant;
use tollgate_state::{Failure, FailureKind};

pub(crate) use cluster::query_slots;
pub(crate) use routes::Routes;
pub(crate) use sentinels::Sentinels;
pub(crate) use slot_map::SlotMap;

use crate::connection::CommandChannel;
use crate::context::{Status, StoreContext, TopologyEvent, sleep_until, wait_for};
use crate::jitter::Jitter;
use crate::node::Node;
use crate::request::{BatchKey, PendingRequest};
use crate::url::Address;
use partition_check::PartitionCheck;
use schedule::Schedule;
use state::TopologyState;

/// How the topology is discovered.
#[derive(Debug)]
pub(crate) enum Discovery {
    /// A cluster with these nodes in the URL.
    Cluster(Vec<Address>),
    Sentinels(Arc<Sentinels>),
}

/// The interval of regular queries.
const CLUSTER_INTERVAL: Duration = Duration::from_secs(30);
const SENTINEL_INTERVAL: Duration = Duration::from_secs(1);
/// The delay before a request is retried.
const RETRY_DELAY: Duration = Duration::from_millis(3);
/// How often held requests are checked for their deadlines.
const TICK: Duration = Duration::from_millis(2);

/// The topology task.
pub(crate) struct Topology {
    context: Arc<StoreContext>,
    routes: Arc<Routes>,
    discovery: Discovery,
    events: UnboundedReceiver<TopologyEvent>,
    /// To send delayed events to itself.
    sender: UnboundedSender<TopologyEvent>,
    state: TopologyState,
    nodes: BTreeMap<Address, Arc<Node>>,
    query: Option<BoxFuture<'static, Result<(Address, SlotMap), Failure>>>,
    partitions: Option<PartitionCheck>,
    /// Requests that wait until the topology is known.
    held: Vec<PendingRequest>,
}

impl Topology {
    pub(crate) fn new(
        context: &Arc<StoreContext>,
        routes: &Arc<Routes>,
        discovery: Discovery,
        (sender, events): (UnboundedSender<TopologyEvent>, UnboundedReceiver<TopologyEvent>),
    ) -> Self {
        let (seeds, interval) = match &discovery {
            Discovery::Cluster(seeds) => (&seeds[..], CLUSTER_INTERVAL),
            Discovery::Sentinels(_) => (&[][..], SENTINEL_INTERVAL),
        };
        let partitions = matches!(discovery, Discovery::Cluster(_))
            .then(|| PartitionCheck::new(&context.options, context.keyspace.partition_count()));
        Topology {
            state: TopologyState::new(seeds, Schedule::new(interval, Instant::now())),
            context: Arc::clone(context),
            routes: Arc::clone(routes),
            discovery,
            events,
            sender,
            nodes: BTreeMap::new(),
            query: None,
            partitions,
            held: Vec::new(),
        }
    }

    /// Runs until the task is aborted.
    pub(crate) async fn run(mut self) {
        loop {
            self.maintain_nodes();
            self.start_query();
            self.start_partition_check();
            let next_query = self.state.schedule.next();
            let is_holding = !self.held.is_empty();
            tokio::select! {
                biased;
                result = wait_for(&mut self.query) => self.handle_map(result),
                result = PartitionCheck::wait(&mut self.partitions) => {
                    self.handle_partition_check(result);
                }
                Some(event) = self.events.recv() => self.handle_event(event),
                () = sleep_until(next_query), if self.can_query() => {}
                () = tokio::time::sleep(TICK), if is_holding => self.expire_held(),
            }
        }
    }

    /// Connects to the nodes that are needed, and disconnects from others.
    fn maintain_nodes(&mut self) {
        let is_connected = self.nodes.values().any(|node| node.is_connected());
        let needed = self.state.nodes_to_keep(is_connected, Instant::now());
        self.nodes.retain(|address, _| needed.contains(address));
        for address in needed {
            self.node(&address);
        }
    }

    fn connected(&self) -> BTreeSet<Address> {
        let connected = self.nodes.iter().filter(|(_, node)| node.is_connected());
        connected.map(|(address, _)| address.clone()).collect()
    }

    /// Returns whether there is a server to query.
    fn can_query(&self) -> bool {
        match &self.discovery {
            Discovery::Cluster(_) => self.nodes.values().any(|node| node.is_connected()),
            Discovery::Sentinels(_) => true,
        }
    }

    fn start_query(&mut self) {
        let now = Instant::now();
        if self.state.schedule.next().is_none_or(|next| next > now) || !self.can_query() {
            return;
        }
        self.state.schedule.start_query(now, Jitter::random());
        self.query = Some(match &self.discovery {
            Discovery::Cluster(_) => {
                let order = self.state.nodes_to_query(&self.connected());
                let commands = |node: Address| {
                    let commands = self.nodes.get(&node)?.commands()?;
                    Some((node, commands))
                };
                let nodes: Vec<(Address, CommandChannel)> =
                    order.into_iter().filter_map(commands).collect();
                Box::pin(cluster::query(nodes))
            }
            Discovery::Sentinels(sentinels) => {
                let sentinels = Arc::clone(sentinels);
                Box::pin(async move { sentinels.query().await })
            }
        });
    }

    fn handle_map(&mut self, result: Result<(Address, SlotMap), Failure>) {
        self.query = None;
        self.state.schedule.end_query();
        match result {
            Ok((speaker, map)) => {
                let map = map.translate(&self.context.address_map);
                if self.state.record_map(&speaker, map) {
                    self.doubt();
                }
                self.maintain_nodes();
                self.publish();
            }
            Err(failure) => {
                self.doubt();
                if self.state.slots().is_none() {
                    self.set_down(&failure, false);
                }
            }
        }
    }

    fn start_partition_check(&mut self) {
        let (Some(check), Some(slots)) = (&mut self.partitions, self.state.slots()) else { return };
        let node = slots.node_of(check.slot()).and_then(|address| self.nodes.get(address));
        check.start(node, Instant::now());
    }

    fn handle_partition_check(&mut self, result: Result<(), Failure>) {
        match result {
            Ok(()) => self.publish(),
            // With another number of partitions, requests would reach the wrong keys.
            Err(failure) => self.set_down(&failure, true),
        }
    }

    fn set_down(&mut self, failure: &Failure, is_final: bool) {
        self.routes.set_down(failure, is_final);
        self.context.status.send_replace(Status::Down(failure.clone()));
        self.submit_held();
    }

    /// Publishes the node of each partition.
    fn publish(&mut self) {
        if self.partitions.as_ref().is_some_and(|check| !check.permits_requests()) {
            return;
        }
        let Some(slots) = self.state.slots() else { return };
        if matches!(self.discovery, Discovery::Sentinels(_)) {
            let Some(master) = slots.nodes.first() else { return };
            // A sentinel may be outdated: a new master must be connected, and thereby have
            // proved that it is a master, before it replaces one that is.
            let is_connected =
                |address: &Address| self.nodes.get(address).is_some_and(|node| node.is_connected());
            let current = self.routes.nodes();
            let is_current_connected = current.iter().any(|node| node.is_connected());
            if !is_connected(master) && is_current_connected {
                return;
            }
        }
        let nodes = slots
            .by_partition(&self.context.keyspace)
            .into_iter()
            .map(|address| address.and_then(|address| self.nodes.get(&address).map(Arc::clone)));
        self.routes.set(nodes.collect::<Vec<_>>());
        self.context.status.send_replace(Status::Up);
        self.submit_held();
    }

    fn submit_held(&mut self) {
        for pending in std::mem::take(&mut self.held) {
            self.routes.submit(pending);
        }
    }

    fn node(&mut self, address: &Address) -> Arc<Node> {
        let start = || Arc::new(Node::start(address, &self.context));
        Arc::clone(self.nodes.entry(address.clone()).or_insert_with(start))
    }

    fn doubt(&mut self) {
        self.state.schedule.doubt(Instant::now(), Jitter::random());
    }

    fn handle_event(&mut self, event: TopologyEvent) {
        match event {
            TopologyEvent::Moved { slot, to, requests } => {
                self.doubt();
                self.state.record_moved(slot, &to);
                let node = self.node(&to);
                self.publish();
                requests.into_iter().for_each(|pending| node.submit(pending));
            }
            TopologyEvent::Ask { to, requests } => {
                self.state.record_asked(&to, Instant::now());
                let node = self.node(&to);
                requests.into_iter().for_each(|pending| node.submit(pending));
            }
            TopologyEvent::NotPrimary(requests) => {
                self.doubt();
                self.hold(requests);
            }
            TopologyEvent::RetryLater(requests) => {
                self.doubt();
                self.send_after(RETRY_DELAY, TopologyEvent::Route(requests));
            }
            TopologyEvent::Route(requests) => self.route(requests),
            TopologyEvent::Connected => self.handle_connected(),
            TopologyEvent::ConnectionLost => self.handle_connection_lost(),
        }
    }

    fn handle_connected(&mut self) {
        if self.state.slots().is_none() {
            self.doubt();
        } else {
            self.publish();
        }
    }

    fn handle_connection_lost(&mut self) {
        self.doubt();
        if self.state.slots().is_some() || self.can_query() {
            return;
        }
        // Every node in the URL has failed.
        let failures: Option<Vec<Failure>> =
            self.nodes.values().map(|node| node.failure()).collect();
        let is_informative = |failure: &&Failure| failure.kind != FailureKind::Unreachable;
        if let Some(failures) = failures
            && let Some(failure) = failures.iter().find(is_informative).or(failures.first())
        {
            self.set_down(failure, false);
        }
    }

    fn route(&mut self, requests: Vec<PendingRequest>) {
        for mut pending in requests {
            pending.batch_key = BatchKey { is_asking: false, ..pending.batch_key };
            if self.routes.are_unknown() {
                self.hold(vec![pending]);
            } else {
                self.routes.submit(pending);
            }
        }
    }

    /// Holds requests until the topology is known: at most as many as may wait for a node.
    fn hold(&mut self, requests: Vec<PendingRequest>) {
        for pending in requests {
            if self.held.len() < self.context.options.queue {
                self.held.push(pending);
            } else {
                let message = "requests wait for the topology of the cluster";
                self.routes.fail(pending, &Failure::new(FailureKind::Overloaded, message));
            }
        }
    }

    fn expire_held(&mut self) {
        let latest = Instant::now() + TICK;
        let (expired, held): (Vec<_>, _) = std::mem::take(&mut self.held)
            .into_iter()
            .partition(|held| held.responder.deadline < latest);
        self.held = held;
        for pending in expired {
            let message = "the topology was not discovered within the deadline";
            self.routes.fail(pending, &Failure::new(FailureKind::Unreachable, message));
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
