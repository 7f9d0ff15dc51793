//! The state of a simulation, and the order of its events.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

use fastrand::Rng;

use super::connection::Connection;
use super::events::{Event, EventQueue};
use super::link::Link;
use super::process::{Process, Status};
use crate::node::{Kind, Node};
use crate::slots::{ClusterView, SlotTable, address_of};
use crate::trace::Trace;

pub(crate) struct State {
    /// The time since the start of the simulation.
    pub(crate) now: Duration,
    pub(crate) rng: Rng,
    pub(crate) trace: Trace,
    pub(crate) processes: Vec<Process>,
    /// The link of each client to each server, and that of new ones.
    pub(crate) links: Vec<Vec<Link>>,
    pub(crate) default_link: Link,
    pub(crate) connections: BTreeMap<u64, Connection>,
    pub(super) last_connection: u64,
    /// The server of each host name.
    pub(crate) names: BTreeMap<String, usize>,
    /// The latest assignment of slots.
    pub(crate) slots: Arc<SlotTable>,
    pub(crate) events: EventQueue,
    /// When the driver runs next.
    pub(super) driven_at: Option<Duration>,
    /// The tasks to wake when the state is unlocked.
    pub(super) wakers: Vec<Waker>,
}

impl State {
    pub(super) fn new(seed: u64, keeps_log: bool) -> Self {
        State {
            now: Duration::ZERO,
            rng: Rng::with_seed(seed),
            trace: Trace::new(keeps_log),
            processes: Vec::new(),
            links: Vec::new(),
            default_link: Link::default(),
            connections: BTreeMap::new(),
            last_connection: 0,
            names: BTreeMap::new(),
            slots: Arc::default(),
            events: EventQueue::default(),
            driven_at: None,
            wakers: Vec::new(),
        }
    }

    /// Adds a server; returns its index.
    pub(crate) fn add_server(&mut self, kind: Kind) -> usize {
        let index = self.processes.len();
        self.processes.push(Process::new(Node::new(index, kind)));
        self.names.insert(address_of(index).0, index);
        for links in &mut self.links {
            links.push(self.default_link);
        }
        index
    }

    /// Adds a client; returns its index.
    pub(crate) fn add_client(&mut self) -> usize {
        self.links.push(vec![self.default_link; self.processes.len()]);
        self.links.len() - 1
    }

    /// Returns the kind of a server like another, on which it has no data and no slots.
    pub(crate) fn kind_like(&self, server: usize) -> Kind {
        let index = self.processes.len();
        match self.processes[server].node.is_cluster() {
            true => Kind::ClusterNode(ClusterView::new(index, Arc::clone(&self.slots))),
            false => Kind::Single,
        }
    }

    /// Changes the status of a process; returns whether it had the status before.
    pub(crate) fn change_status(&mut self, server: usize, from: Status, to: Status) -> bool {
        let status = &mut self.processes[server].status;
        let is_changed = *status == from;
        if is_changed {
            *status = to;
        }
        is_changed
    }

    /// Continues with a process that has been started.
    pub(crate) fn start_process(&mut self, server: usize) {
        self.schedule_gossip(server);
        self.run_server(server);
    }

    pub(super) fn run_until(&mut self, now: Duration) {
        while let Some((at, event)) = self.events.pop_due(now) {
            self.now = self.now.max(at);
            self.handle(event);
        }
        self.now = self.now.max(now);
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Deliver { connection, to, packet } => self.deliver(connection, to, packet),
            Event::Reply { connection, bytes } => self.send_reply(connection, bytes),
            Event::Run { server } => self.run_server(server),
            Event::LearnSlots { server } => self.learn_slots(server),
            Event::LearnPrimary { sentinel, name, primary } => {
                self.processes[sentinel].node.masters.insert(name, primary);
            }
            Event::CheckAcknowledged { connection } => self.check_acknowledged(connection),
        }
    }
}
