//! A server: the connections to it, and the requests that wait for each.

mod availability;
mod batch;
mod breaker;
mod connection_state;
mod pool;
mod probe;
mod queue;
mod task;

use std::sync::{Arc, Weak};
use std::time::Duration;

use tollgate_state::{Failure, StoreError};

use crate::connection::CommandChannel;
use crate::context::StoreContext;
use crate::node_stats::{ReportedNode, ScriptTime};
use crate::request::{PendingRequest, RequestCheck};
use crate::url::Address;
use pool::Pool;

/// A server, and the connections to it. They close when this is dropped.
#[derive(Debug)]
pub(crate) struct Node(Arc<Pool>);

impl Node {
    /// Starts to connect in the background.
    pub(crate) fn start(address: &Address, context: &Arc<StoreContext>) -> Self {
        let pool = Arc::new(Pool::new(address.clone(), Arc::clone(context)));
        context.nodes.add(reported(&pool));
        for index in 0..pool.connections.len() {
            task::start(&pool, index);
        }
        Node(pool)
    }

    pub(crate) fn address(&self) -> &Address {
        &self.0.address
    }

    /// Enqueues a request.
    pub(crate) fn submit(&self, pending: PendingRequest) {
        self.0.submit(pending);
    }

    /// Returns an estimate of the time until a request is answered that is enqueued now.
    pub(crate) fn expected_wait(&self, partition: u16, checks: &[RequestCheck]) -> Duration {
        self.0.expected_wait(partition, checks)
    }

    /// Returns an error if the circuit breaker rejects a request that decides.
    pub(crate) fn check_breaker(&self) -> Result<(), StoreError> {
        self.0.check_breaker()
    }

    pub(crate) fn is_connected(&self) -> bool {
        self.0.is_up()
    }

    /// Returns a channel for commands, if the server is connected.
    pub(crate) fn commands(&self) -> Option<CommandChannel> {
        self.0.commands()
    }

    pub(crate) fn calls_functions(&self) -> bool {
        self.0.calls_functions()
    }

    pub(crate) fn set_script_time(&self, script_time: ScriptTime) {
        self.0.set_script_time(script_time);
    }

    /// Returns why the server cannot be used, after an attempt to connect has failed.
    pub(crate) fn failure(&self) -> Option<Failure> {
        self.0.failure()
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.0.context.nodes.remove(&reported(&self.0));
        self.0.close();
    }
}

fn reported(pool: &Arc<Pool>) -> Weak<dyn ReportedNode> {
    let weak: Weak<Pool> = Arc::downgrade(pool);
    weak
}
