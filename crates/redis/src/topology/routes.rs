//! Routing of requests: the node of each partition.

use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use tollgate_algorithms::Check;
use tollgate_state::{Failure, FailureKind, StoreError};

use crate::context::{StoreContext, TopologyEvent};
use crate::node::Node;
use crate::request::{PendingRequest, RequestCheck};

/// The node of each partition.
#[derive(Debug)]
pub(crate) struct Routes {
    context: Arc<StoreContext>,
    table: RwLock<Table>,
}

#[derive(Debug)]
enum Table {
    /// The first discovery is in progress.
    Unknown,
    /// Discovery failed.
    Down(Failure),
    /// The node of each partition, if one serves its slot.
    Known(Box<[Option<Arc<Node>>]>),
}

impl Routes {
    pub(crate) fn new(context: Arc<StoreContext>) -> Self {
        Routes { context, table: RwLock::new(Table::Unknown) }
    }

    /// Sets the node of each partition.
    pub(crate) fn set(&self, by_partition: impl IntoIterator<Item = Option<Arc<Node>>>) {
        self.replace(Table::Known(by_partition.into_iter().collect()));
    }

    /// Fails requests with this failure, if no routes are known, or in any case if `is_final`.
    pub(crate) fn set_down(&self, failure: &Failure, is_final: bool) {
        let table = self.table.read().unwrap_or_else(PoisonError::into_inner);
        let is_known = matches!(*table, Table::Known(_));
        drop(table);
        // The topology task alone replaces the table, so it has not changed since.
        if is_final || !is_known {
            self.replace(Table::Down(failure.clone()));
        }
    }

    fn replace(&self, table: Table) {
        let mut guard = self.table.write().unwrap_or_else(PoisonError::into_inner);
        let previous = std::mem::replace(&mut *guard, table);
        // Dropped without the lock: a node that is dropped routes its requests again.
        drop(guard);
        drop(previous);
    }

    /// Returns an estimate of the time until a request is answered that is sent now.
    pub(crate) fn expected_wait(&self, partition: u16, checks: &[RequestCheck]) -> Duration {
        let table = self.table.read().unwrap_or_else(PoisonError::into_inner);
        let Table::Known(by_partition) = &*table else { return Duration::ZERO };
        let node = by_partition.get(usize::from(partition)).and_then(Option::as_ref);
        node.map_or(Duration::ZERO, |node| node.expected_wait(partition, checks))
    }

    /// Returns an error if the circuit breaker of a node rejects a request that begins. The calls that
    /// follow, and those that take back charges, are always sent.
    pub(crate) fn check_breakers(&self, checks: &[Check<'_>]) -> Result<(), StoreError> {
        if self.context.active_breakers.load(Ordering::Relaxed) == 0 {
            return Ok(());
        }
        let table = self.table.read().unwrap_or_else(PoisonError::into_inner);
        let Table::Known(by_partition) = &*table else { return Ok(()) };
        let mut nodes: Vec<&Arc<Node>> = Vec::new();
        for check in checks {
            let partition = self.context.keyspace.partition_of(check.key);
            let node = by_partition.get(usize::from(partition)).and_then(Option::as_ref);
            if let Some(node) = node
                && !nodes.iter().any(|known| Arc::ptr_eq(known, node))
            {
                node.check_breaker()?;
                nodes.push(node);
            }
        }
        Ok(())
    }

    /// Sends a request to its node, or fails it.
    pub(crate) fn submit(&self, pending: PendingRequest) {
        let table = self.table.read().unwrap_or_else(PoisonError::into_inner);
        match &*table {
            Table::Known(by_partition) => {
                let partition = usize::from(pending.batch_key.partition);
                let node = by_partition.get(partition).cloned().flatten();
                drop(table);
                match node {
                    Some(node) => node.submit(pending),
                    None => {
                        self.notify(TopologyEvent::ConnectionLost);
                        let message = "no node serves the slot of the key";
                        self.fail(pending, &Failure::new(FailureKind::ClusterDown, message));
                    }
                }
            }
            Table::Down(failure) => {
                let failure = failure.clone();
                drop(table);
                self.fail(pending, &failure);
            }
            Table::Unknown => {
                drop(table);
                self.notify(TopologyEvent::Route(vec![pending]));
            }
        }
    }

    /// Returns whether no node is known and discovery has not failed.
    pub(crate) fn are_unknown(&self) -> bool {
        matches!(*self.table.read().unwrap_or_else(PoisonError::into_inner), Table::Unknown)
    }

    /// Returns the node of a partition, if one is known.
    pub(crate) fn node_of(&self, partition: u16) -> Option<Arc<Node>> {
        let table = self.table.read().unwrap_or_else(PoisonError::into_inner);
        let Table::Known(by_partition) = &*table else { return None };
        by_partition.get(usize::from(partition)).cloned().flatten()
    }

    /// Returns the nodes, without duplicates.
    pub(crate) fn nodes(&self) -> Vec<Arc<Node>> {
        let table = self.table.read().unwrap_or_else(PoisonError::into_inner);
        let mut nodes: Vec<Arc<Node>> = Vec::new();
        if let Table::Known(by_partition) = &*table {
            for node in by_partition.iter().flatten() {
                if !nodes.iter().any(|known| Arc::ptr_eq(known, node)) {
                    nodes.push(Arc::clone(node));
                }
            }
        }
        nodes
    }

    pub(crate) fn fail(&self, pending: PendingRequest, failure: &Failure) {
        let error = StoreError::from(failure.clone());
        self.context.counters.record_error(&error, pending.request.may_charge());
        // If the caller has gone, nothing was charged.
        let _ = pending.responder.respond(Err(error));
    }

    fn notify(&self, event: TopologyEvent) {
        if let Some(topology) = &self.context.topology {
            // The receiver was dropped with the store; dropping the event fails its requests.
            let _ = topology.send(event);
        }
    }
}
