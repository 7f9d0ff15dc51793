//! The queue of requests for a connection.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use tollgate_store::{Failure, FailureKind, StoreError};

use super::request_queue::RequestQueue;
use crate::context::{StoreContext, TopologyEvent, store_closed};
use crate::request::PendingRequest;

#[derive(Debug)]
pub(crate) struct ConnectionQueue {
    pub(super) context: Arc<StoreContext>,
    /// Wakes the connection's task.
    pub(super) wake: Notify,
    /// The number of requests that wait for the node, on all its connections.
    node_len: Arc<AtomicUsize>,
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    requests: RequestQueue,
    /// Why there is no connection, after an attempt has failed.
    down: Option<Failure>,
    is_closed: bool,
}

impl ConnectionQueue {
    pub(super) fn new(context: Arc<StoreContext>, node_len: Arc<AtomicUsize>) -> Self {
        ConnectionQueue { context, wake: Notify::new(), node_len, inner: Mutex::default() }
    }

    /// Enqueues a request, or responds at once if it cannot be sent.
    pub(super) fn push(&self, pending: PendingRequest) {
        let mut inner = self.lock();
        if inner.is_closed {
            drop(inner);
            self.reroute(vec![pending]);
        } else if let Some(failure) = inner.down.clone() {
            drop(inner);
            self.fail(vec![pending], &failure.into());
        } else if self.node_len.load(Ordering::Relaxed) >= self.context.options.queue {
            drop(inner);
            let message = format!("{} requests wait", self.context.options.queue);
            let error = StoreError::unavailable(FailureKind::Overloaded, message);
            self.fail(vec![pending], &error);
        } else {
            self.node_len.fetch_add(1, Ordering::Relaxed);
            inner.requests.push(pending);
            drop(inner);
            self.wake.notify_one();
        }
    }

    /// Takes the next requests, without those whose caller has gone.
    pub(super) fn take(&self) -> Vec<PendingRequest> {
        loop {
            let taken = self.lock().requests.take(self.context.options.batch);
            if taken.is_empty() {
                return taken;
            }
            self.record_removal(taken.len());
            let mut wanted = Vec::with_capacity(taken.len());
            for pending in taken {
                if pending.responder.is_closed() {
                    self.context.counters.abandoned.increment();
                } else {
                    wanted.push(pending);
                }
            }
            if !wanted.is_empty() {
                return wanted;
            }
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.lock().requests.is_empty()
    }

    pub(super) fn is_closed(&self) -> bool {
        self.lock().is_closed
    }

    /// Fails the requests that have waited longer than the timeout of a call. They were not sent.
    pub(super) fn expire(&self) {
        let oldest = self.context.clock.now().saturating_sub(self.context.call_timeout());
        let expired = self.lock().requests.take_older(oldest);
        if !expired.is_empty() {
            self.record_removal(expired.len());
            let message = "no connection within the timeout of a call";
            self.fail(expired, &StoreError::unavailable(FailureKind::Unreachable, message));
        }
    }

    /// Accepts requests again after a connection was made.
    pub(super) fn set_up(&self) {
        self.lock().down = None;
    }

    /// Fails all requests, now and until there is a connection.
    pub(super) fn set_down(&self, failure: Failure) {
        let mut inner = self.lock();
        inner.down = Some(failure.clone());
        let pending = inner.requests.take_all();
        drop(inner);
        self.record_removal(pending.len());
        self.fail(pending, &failure.into());
    }

    /// Closes the queue and routes its requests again.
    pub(super) fn close(&self) {
        let mut inner = self.lock();
        inner.is_closed = true;
        let pending = inner.requests.take_all();
        drop(inner);
        self.record_removal(pending.len());
        self.reroute(pending);
        self.wake.notify_one();
    }

    pub(super) fn fail(&self, requests: Vec<PendingRequest>, error: &StoreError) {
        for pending in requests {
            self.context.counters.record_error(error);
            pending.responder.respond(Err(error.clone()));
        }
    }

    /// Sends an event to the topology task. Returns it if there is none: for a single server, or
    /// while the store is being dropped.
    pub(super) fn notify(&self, event: TopologyEvent) -> Result<(), TopologyEvent> {
        match &self.context.topology {
            Some(topology) => topology.send(event).map_err(|error| error.0),
            None => Err(event),
        }
    }

    fn reroute(&self, requests: Vec<PendingRequest>) {
        if requests.is_empty() {
            return;
        }
        if let Err(event) = self.notify(TopologyEvent::Route(requests)) {
            self.fail(event.into_requests(), &store_closed().into());
        }
    }

    fn record_removal(&self, count: usize) {
        self.node_len.fetch_sub(count, Ordering::Relaxed);
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
