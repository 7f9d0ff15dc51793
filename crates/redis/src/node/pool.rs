//! The connections to a server, and the requests that wait for each.

use std::sync::atomic::{AtomicBool, AtomicU16, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;
use tollgate_state::{Failure, FailureKind, StoreError};

use super::availability::Availability;
use super::breaker::Breaker;
use super::queue::{RequestQueue, Taken};
use crate::compensation::reconcile;
use crate::connection::{CommandChannel, Connection};
use crate::context::{Status, StoreContext, TopologyEvent, store_closed};
use crate::keyspace::{bucket, hash};
use crate::node_stats::{NodeStats, ReportedNode, ScriptTime};
use crate::request::{Outcome, PendingRequest, RequestCheck, Response, StoreRequest};
use crate::script::ScriptForm;
use crate::stats::Counters;
use crate::url::Address;

/// How much a slow call adds to the average of the round trips at most, besides an eighth.
const MAX_STEP: Duration = Duration::from_micros(100);

/// The connections to a server. The first is the leader: while no connection is up, it alone tries to
/// connect, so that a server that is down gets few attempts.
#[derive(Debug)]
pub(super) struct Pool {
    pub(super) context: Arc<StoreContext>,
    pub(super) address: Address,
    pub(super) connections: Box<[ConnectionQueue]>,
    /// One bit for each connection that is up.
    up: AtomicU64,
    /// The number of requests that wait for the server.
    len: AtomicUsize,
    /// The number of requests in the calls that are in flight.
    pub(super) in_flight: AtomicUsize,
    counters: Counters,
    availability: Mutex<Availability>,
    pub(super) breaker: Mutex<Breaker>,
    /// Wakes the task that probes the server.
    pub(super) probe_wake: Notify,
    /// The connection that was made last.
    newest: AtomicUsize,
    /// A partition whose keys the server had when a call was sent last.
    pub(super) partition: AtomicU16,
    script_time: Mutex<Option<ScriptTime>>,
    calls_functions: AtomicBool,
}

/// A connection over which a probe is sent.
#[derive(Debug)]
pub(super) struct ProbedConnection {
    pub(super) commands: CommandChannel,
    index: usize,
    /// The number of connections that were made at its place, with this one.
    number: u64,
}

/// The requests that wait for a connection.
#[derive(Debug, Default)]
pub(super) struct ConnectionQueue {
    /// Wakes the connection's task.
    pub(super) wake: Notify,
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    requests: RequestQueue,
    /// Sends commands, if the connection is up.
    commands: Option<CommandChannel>,
    /// The number of connections made so far.
    made: u64,
    /// Why the connection is to be replaced, if it is.
    dead: Option<Failure>,
    /// A moving average of the round trips.
    round_trip: Duration,
    is_closed: bool,
}

impl ReportedNode for Pool {
    fn address(&self) -> &Address {
        &self.address
    }

    fn stats(&self) -> NodeStats {
        let availability = self.lock_availability();
        NodeStats {
            address: self.address.to_string().into(),
            connections: self.up.load(Ordering::Acquire).count_ones(),
            failure: availability.cause().cloned(),
            outages: availability.outages(),
            last_outage: availability.last_outage(Instant::now()),
            in_flight: self.in_flight.load(Ordering::Relaxed),
            queued: self.len.load(Ordering::Relaxed),
            breaker: self.lock_breaker().stats(Instant::now()),
            script_time: *self.script_time.lock().unwrap_or_else(PoisonError::into_inner),
            counters: self.counters.lock().clone(),
        }
    }

    fn connections(&self) -> Vec<CommandChannel> {
        self.connections.iter().filter_map(|queue| queue.lock().commands.clone()).collect()
    }
}

impl Pool {
    pub(super) fn new(address: Address, context: Arc<StoreContext>) -> Self {
        let connections = (0..context.options.connections).map(|_| ConnectionQueue::default());
        Pool {
            context,
            address,
            connections: connections.collect(),
            up: AtomicU64::new(0),
            len: AtomicUsize::new(0),
            in_flight: AtomicUsize::new(0),
            counters: Counters::default(),
            availability: Mutex::new(Availability::new(Instant::now())),
            breaker: Mutex::new(Breaker::new(Instant::now())),
            probe_wake: Notify::new(),
            newest: AtomicUsize::new(0),
            partition: AtomicU16::new(0),
            script_time: Mutex::default(),
            calls_functions: AtomicBool::new(true),
        }
    }

    pub(super) fn is_up(&self) -> bool {
        self.up.load(Ordering::Acquire) != 0
    }

    /// Records an event in the counters of the store and of this server.
    pub(super) fn record(&self, record: impl Fn(&Counters)) {
        record(&self.context.counters);
        record(&self.counters);
    }

    pub(super) fn set_script_time(&self, script_time: ScriptTime) {
        *self.script_time.lock().unwrap_or_else(PoisonError::into_inner) = Some(script_time);
    }

    /// Returns whether the newest connection calls the script as a function.
    pub(super) fn calls_functions(&self) -> bool {
        self.calls_functions.load(Ordering::Relaxed)
    }

    /// Returns a channel for commands, if a connection is up.
    pub(super) fn commands(&self) -> Option<CommandChannel> {
        self.connections.iter().find_map(|queue| queue.lock().commands.clone())
    }

    /// Returns the connection for a probe: the newest, because older ones may be dead.
    pub(super) fn probed_connection(&self) -> Option<ProbedConnection> {
        let newest = self.newest.load(Ordering::Relaxed);
        std::iter::once(newest).chain(0..self.connections.len()).find_map(|index| {
            let inner = self.connections[index].lock();
            let commands = inner.commands.clone()?;
            Some(ProbedConnection { commands, index, number: inner.made })
        })
    }

    /// Replaces a connection, unless it was replaced meanwhile.
    pub(super) fn replace(&self, connection: &ProbedConnection, failure: Failure) {
        let queue = &self.connections[connection.index];
        let mut inner = queue.lock();
        if inner.made == connection.number {
            inner.dead = Some(failure);
            drop(inner);
            queue.wake.notify_one();
        }
    }

    /// Returns the connection for a request. Requests with the same first key use the same connection
    /// while it is up, so that they are decided in order.
    fn connection_for(&self, partition: u16, checks: &[RequestCheck]) -> usize {
        let number = match (partition, checks.first()) {
            (0, Some(check)) => hash(&check.key) >> 33,
            (partition, _) => u64::from(partition),
        };
        let preferred = bucket(number, self.connections.len());
        match self.up.load(Ordering::Acquire) {
            0 => 0,
            up if up & (1 << preferred) != 0 => preferred,
            // A bit without a connection is never set.
            up => (0..self.connections.len()).find(|index| up & (1 << index) != 0).unwrap_or(0),
        }
    }

    /// Returns an estimate of the time until a request is answered that is enqueued now.
    pub(super) fn expected_wait(&self, partition: u16, checks: &[RequestCheck]) -> Duration {
        let inner = self.connections[self.connection_for(partition, checks)].lock();
        inner.requests.expected_wait(inner.round_trip, self.context.options.batch)
    }

    /// Enqueues a request, or responds at once if it cannot be sent.
    pub(super) fn submit(&self, pending: PendingRequest) {
        let index = self.connection_for(pending.batch_key.partition, &pending.request.checks);
        self.push(index, pending);
    }

    fn push(&self, index: usize, pending: PendingRequest) {
        let queue = &self.connections[index];
        let mut inner = queue.lock();
        if inner.is_closed {
            drop(inner);
            return self.reroute(vec![pending]);
        }
        if inner.commands.is_none() {
            if index > 0 {
                // The connection was lost meanwhile.
                drop(inner);
                return self.push(0, pending);
            }
            if let Some(failure) = self.failure() {
                drop(inner);
                return self.fail(vec![pending], &failure.into());
            }
        }
        let max = self.context.options.queue;
        if self.len.load(Ordering::Relaxed) >= max && !pending.responder.is_compensation() {
            drop(inner);
            let message = format!("{max} requests wait for {}", self.address);
            let error = StoreError::unavailable(FailureKind::Overloaded, message);
            return self.fail(vec![pending], &error);
        }
        self.len.fetch_add(1, Ordering::Relaxed);
        inner.requests.push(pending);
        drop(inner);
        queue.wake.notify_one();
    }

    /// Takes requests for calls, and fails those that cannot be answered in time. An idle connection
    /// takes any request, so that a slow reply is not the last.
    pub(super) fn take(&self, index: usize, now: Instant, is_idle: bool) -> Taken {
        let mut inner = self.connections[index].lock();
        let before = inner.requests.len();
        let answered_at = if is_idle { now } else { now + inner.round_trip };
        let mut taken = inner.requests.take(self.context.options.batch, now, answered_at);
        let removed = before - inner.requests.len();
        drop(inner);
        if removed > 0 {
            self.len.fetch_sub(removed, Ordering::Relaxed);
        }
        if taken.abandoned > 0 {
            self.record(|counters| counters.lock().abandoned += taken.abandoned);
        }
        self.fail_late(std::mem::take(&mut taken.late));
        taken
    }

    /// Fails the waiting requests whose deadline is near.
    pub(super) fn expire(&self, index: usize, now: Instant) {
        let late = self.connections[index].lock().requests.take_late(now);
        self.len.fetch_sub(late.len(), Ordering::Relaxed);
        self.fail_late(late);
    }

    fn fail_late(&self, late: Vec<PendingRequest>) {
        if late.is_empty() {
            return;
        }
        let (kind, message) = if self.is_up() {
            (
                FailureKind::Overloaded,
                "the server was busy with earlier requests until the deadline",
            )
        } else {
            (FailureKind::Unreachable, "no connection within the deadline")
        };
        self.fail(late, &StoreError::unavailable(kind, format!("{}: {message}", self.address)));
    }

    /// Records that a connection is up.
    pub(super) fn set_up(&self, index: usize, connection: &Connection) {
        let commands = connection.commands();
        self.calls_functions.store(connection.form() == ScriptForm::Function, Ordering::Relaxed);
        let mut inner = self.connections[index].lock();
        (inner.commands, inner.round_trip) = (Some(commands), Duration::ZERO);
        (inner.made, inner.dead) = (inner.made + 1, None);
        drop(inner);
        // Under one lock, so that the state of a node and the record of its outages agree.
        let mut availability = self.lock_availability();
        let were_up = self.up.fetch_or(1 << index, Ordering::AcqRel);
        availability.record_up(Instant::now());
        drop(availability);
        self.newest.store(index, Ordering::Relaxed);
        self.record_connection();
        if were_up == 0 {
            // The other connections are made now.
            self.connections.iter().for_each(|queue| queue.wake.notify_one());
            self.report(Status::Up);
            // A single server has no topology task; nothing to do.
            let _ = self.notify(TopologyEvent::Connected);
        }
    }

    /// Records that a connection was lost; moves its requests to another that is up, if there is one.
    pub(super) fn set_lost(&self, index: usize, failure: &Failure) {
        let mut inner = self.connections[index].lock();
        inner.commands = None;
        let mut availability = self.lock_availability();
        let others = self.up.fetch_and(!(1 << index), Ordering::AcqRel) & !(1 << index);
        if others == 0 {
            availability.record_lost(failure, Instant::now());
        }
        drop(availability);
        let moved = if others != 0 || index > 0 { inner.requests.take_all() } else { Vec::new() };
        drop(inner);
        self.len.fetch_sub(moved.len(), Ordering::Relaxed);
        moved.into_iter().for_each(|pending| self.submit(pending));
        self.notify_connection_lost();
    }

    /// Records that an attempt to connect failed. Without another connection, all requests fail until
    /// there is one.
    pub(super) fn set_down(&self, failure: &Failure) {
        self.notify_connection_lost();
        let mut availability = self.lock_availability();
        if self.is_up() {
            return;
        }
        availability.record_failed_attempt(failure);
        drop(availability);
        let error = failure.clone().into();
        for queue in &self.connections {
            let pending = queue.lock().requests.take_all();
            self.len.fetch_sub(pending.len(), Ordering::Relaxed);
            self.fail(pending, &error);
        }
        self.report(Status::Down(failure.clone()));
    }

    /// Returns why the server cannot be used, after an attempt to connect has failed.
    pub(super) fn failure(&self) -> Option<Failure> {
        self.lock_availability().failure().cloned()
    }

    fn lock_availability(&self) -> MutexGuard<'_, Availability> {
        self.availability.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the status of the store, if this is its only server.
    fn report(&self, status: Status) {
        if self.context.topology.is_none() {
            self.context.status.send_replace(status);
        }
    }

    fn notify_connection_lost(&self) {
        // A single server has no topology task; nothing to do.
        let _ = self.notify(TopologyEvent::ConnectionLost);
    }

    /// Closes the connections and routes their requests again.
    pub(super) fn close(&self) {
        for queue in &self.connections {
            let mut inner = queue.lock();
            inner.is_closed = true;
            let pending = inner.requests.take_all();
            drop(inner);
            self.len.fetch_sub(pending.len(), Ordering::Relaxed);
            self.reroute(pending);
            queue.wake.notify_one();
        }
        self.probe_wake.notify_one();
    }

    pub(super) fn is_closed(&self) -> bool {
        self.connections.iter().all(ConnectionQueue::is_closed)
    }

    pub(super) fn fail(&self, requests: Vec<PendingRequest>, error: &StoreError) {
        for pending in requests {
            self.record(|counters| counters.record_error(error, pending.request.may_charge()));
            // If the caller has gone, nothing was charged.
            let _ = pending.responder.respond(Err(error.clone()));
        }
    }

    /// Takes back the charge of a request whose caller did not wait for the outcome.
    pub(super) fn reconcile(&self, request: &StoreRequest, partition: u16, outcome: &Outcome) {
        let Ok(Response::Decisions(answer)) = outcome else { return };
        for undo in reconcile(request, answer, &self.context.counters) {
            self.submit(PendingRequest::compensation(undo, partition));
        }
    }

    /// Hands over requests whose keys are on two nodes, to be decided key by key.
    pub(super) fn decide_per_key(&self, requests: Vec<PendingRequest>) {
        for pending in requests {
            if let Err(error) = self.context.per_key.send(pending) {
                self.fail(vec![error.0], &store_closed().into());
            }
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
}

impl ConnectionQueue {
    pub(super) fn is_empty(&self) -> bool {
        self.lock().requests.is_empty()
    }

    pub(super) fn is_closed(&self) -> bool {
        self.lock().is_closed
    }

    /// Returns why the connection is to be replaced, once.
    pub(super) fn take_dead(&self) -> Option<Failure> {
        self.lock().dead.take()
    }

    /// Adds the duration of a call to the average.
    pub(super) fn record_round_trip(&self, sample: Duration) {
        let average = &mut self.lock().round_trip;
        *average = if sample < *average {
            (*average + sample) / 2
        } else {
            // A single stall says little about the next call.
            let growth = *average / 8 + MAX_STEP;
            *average + ((sample - *average) / 8).min(growth)
        };
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
