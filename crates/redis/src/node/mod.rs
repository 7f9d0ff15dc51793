//! A server: the connections to it, and the requests that wait for each.

mod backoff;
mod batch;
mod connection_queue;
mod task;

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use crate::context::StoreContext;
use crate::keyspace::{bucket, hash};
use crate::request::PendingRequest;
use crate::url::Address;
use connection_queue::ConnectionQueue;

/// A server, and the connections to it. They close when this is dropped.
#[derive(Debug)]
pub(crate) struct Node {
    address: Address,
    queues: Box<[Arc<ConnectionQueue>]>,
}

impl Node {
    /// Starts to connect in the background.
    pub(crate) fn start(address: &Address, context: &Arc<StoreContext>) -> Self {
        let len = Arc::new(AtomicUsize::new(0));
        let start = |index| {
            let queue = Arc::new(ConnectionQueue::new(Arc::clone(context), Arc::clone(&len)));
            task::start(&queue, address.clone(), index == 0);
            queue
        };
        let queues = (0..context.options.connections).map(start).collect();
        Node { queues, address: address.clone() }
    }

    pub(crate) fn address(&self) -> &Address {
        &self.address
    }

    /// Enqueues a request. Requests with the same first key use the same connection, so that they
    /// are decided in order.
    pub(crate) fn submit(&self, pending: PendingRequest) {
        let number = match (pending.batch_key.partition, pending.request.checks.first()) {
            (0, Some(check)) => hash(&check.key) >> 33,
            (partition, _) => u64::from(partition),
        };
        self.queues[bucket(number, self.queues.len())].push(pending);
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.queues.iter().for_each(|queue| queue.close());
    }
}
