//! The queue of requests for a connection.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use tollgate_core::Timestamp;
use tollgate_store::{Failure, FailureKind, StoreError};

use crate::context::{StoreContext, TopologyEvent, store_closed};
use crate::request::{BatchKey, PendingRequest};

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
                    self.context.counters.lock().abandoned += 1;
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

/// The maximum number of checks in a call, unless a single request has more.
const MAX_CHECKS: usize = 500;

/// How many empty lists are kept. Batch keys change while slots move.
const MAX_EMPTY: usize = 64;

/// Requests in batches by partition that take turns.
#[derive(Debug, Default)]
struct RequestQueue {
    by_key: HashMap<BatchKey, VecDeque<PendingRequest>>,
    /// The keys of the lists that are not empty, in the order of their turns.
    turns: VecDeque<BatchKey>,
    len: usize,
}

impl RequestQueue {
    fn is_empty(&self) -> bool {
        self.len == 0
    }

    fn push(&mut self, pending: PendingRequest) {
        let list = self.by_key.entry(pending.batch_key).or_default();
        if list.is_empty() {
            self.turns.push_back(pending.batch_key);
        }
        list.push_back(pending);
        self.len += 1;
    }

    /// Takes the first requests of the next list, at most `max` and as many as fit into a call.
    fn take(&mut self, max: usize) -> Vec<PendingRequest> {
        let Some(turn) = self.turns.pop_front() else { return Vec::new() };
        #[expect(clippy::expect_used, reason = "turns has the keys of lists only")]
        let list = self.by_key.get_mut(&turn).expect("a turn has a list");
        let max = if turn.is_alone { 1 } else { max };
        let mut checks = 0;
        let fits = |pending: &&PendingRequest| {
            checks += pending.request.checks.len();
            checks <= MAX_CHECKS
        };
        let count = list.iter().take(max).take_while(fits).count().max(1).min(list.len());
        let taken: Vec<PendingRequest> = list.drain(..count).collect();
        self.len -= taken.len();
        if !list.is_empty() {
            self.turns.push_back(turn);
        } else if self.by_key.len() > MAX_EMPTY {
            self.by_key.remove(&turn);
        }
        taken
    }

    /// Takes the requests made before a time.
    fn take_older(&mut self, than: Timestamp) -> Vec<PendingRequest> {
        let mut older = Vec::new();
        self.turns.retain(|turn| {
            let Some(list) = self.by_key.get_mut(turn) else { return false };
            while list.front().is_some_and(|front| front.responder.since < than) {
                older.extend(list.pop_front());
            }
            !list.is_empty()
        });
        self.len -= older.len();
        older
    }

    /// Takes all requests.
    fn take_all(&mut self) -> Vec<PendingRequest> {
        let lists = self.turns.drain(..).filter_map(|turn| self.by_key.remove(&turn));
        let all = lists.flatten().collect();
        self.len = 0;
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::{RequestCheck, StoreRequest};
    use tollgate_core::{Cost, Operation};

    fn queue(requests: &[(u16, usize)]) -> RequestQueue {
        let policy: tollgate_core::Policy = "1/s".parse().unwrap();
        let mut queue = RequestQueue::default();
        for (number, (partition, checks)) in requests.iter().enumerate() {
            let check =
                RequestCheck { policy: policy.clone(), key: Box::new([1]), cost: Cost::ONE };
            let request = StoreRequest::new(Operation::Peek, vec![check; *checks]);
            let since = Timestamp::from_micros(u64::try_from(number).unwrap());
            queue.push(PendingRequest::new(request, *partition, since).0);
        }
        queue
    }

    fn numbers(requests: &[PendingRequest]) -> Vec<u64> {
        requests.iter().map(|pending| pending.responder.since.as_micros()).collect()
    }

    #[test]
    fn requests_of_a_partition_share_a_call_and_partitions_take_turns() {
        let mut queue = queue(&[(1, 1), (2, 1), (1, 1), (1, 1), (2, 1), (3, 1)]);
        assert_eq!(numbers(&queue.take(2)), [0, 2]);
        assert_eq!(numbers(&queue.take(2)), [1, 4]);
        assert_eq!(numbers(&queue.take(2)), [5]);
        assert_eq!(numbers(&queue.take(2)), [3]);
        assert!(queue.is_empty() && queue.take(2).is_empty());
    }

    #[test]
    fn a_call_has_a_bounded_number_of_checks() {
        let mut queue = queue(&[(1, 300), (1, 200), (1, 1), (1, 600)]);
        assert_eq!(numbers(&queue.take(64)), [0, 1]);
        assert_eq!(numbers(&queue.take(64)), [2]);
        assert_eq!(numbers(&queue.take(64)), [3]);
    }

    #[test]
    fn old_requests_are_taken_out() {
        let mut queue = queue(&[(1, 1), (2, 1), (1, 1)]);
        assert_eq!(numbers(&queue.take_older(Timestamp::from_micros(2))), [0, 1]);
        assert_eq!(numbers(&queue.take_all()), [2]);
        assert!(queue.is_empty() && queue.take(1).is_empty());
    }
}
