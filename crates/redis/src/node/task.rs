//! The task that maintains a connection and sends its queue.
//!
//! A request that arrives while fewer than [`MAX_CALLS`] calls are in flight is sent at once. Other
//! requests wait, and are sent together when a call is answered. So no timer delays a request, and
//! batches grow with the load. The server executes the calls of a connection in order.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesOrdered;
use redis::{ServerError, Value};
use tollgate_store::{Failure, FailureKind};

use super::backoff::Backoff;
use super::batch::Batch;
use super::connection_queue::ConnectionQueue;
use crate::connection::{CallOptions, CommandError, Connection};
use crate::context::{Status, TopologyEvent, store_closed, wait_for};
use crate::error;
use crate::request::{BatchKey, PendingRequest};
use crate::url::Address;

/// The maximum number of calls in flight on a connection. With one call, the server is idle for a
/// round trip between calls. With more than two, batches are smaller and latency is higher: with 64
/// callers on two connections the median was 437 µs for one call, 386 µs for two, 405 µs for three.
const MAX_CALLS: usize = 2;
/// How often a call is repeated because the server's scripts were flushed.
const MAX_SCRIPT_LOADS: u8 = 5;

/// Starts the task. It ends when the queue is closed and all calls are answered.
pub(super) fn start(queue: &Arc<ConnectionQueue>, address: Address, is_first: bool) {
    let task = Task {
        queue: Arc::clone(queue),
        address,
        reports_status: is_first && queue.context.topology.is_none(),
        connection: None,
        generation: 0,
        attempt: None,
        backoff: Backoff::default(),
        repeats: VecDeque::new(),
        in_flight: FuturesOrdered::new(),
    };
    tokio::spawn(task.run());
}

struct Task {
    queue: Arc<ConnectionQueue>,
    address: Address,
    /// Whether this connection determines the status of the store.
    reports_status: bool,
    connection: Option<Connection>,
    /// The number of connections made so far.
    generation: u64,
    attempt: Option<BoxFuture<'static, Result<Connection, Failure>>>,
    backoff: Backoff,
    /// Calls that were not executed, to be sent again before all others.
    repeats: VecDeque<Batch>,
    in_flight: FuturesOrdered<BoxFuture<'static, CallResult>>,
}

/// The result of a call.
struct CallResult {
    batch: Batch,
    result: Result<Value, CommandError>,
    /// The generation of the connection.
    generation: u64,
}

impl Task {
    async fn run(mut self) {
        loop {
            if self.queue.is_closed() && self.in_flight.is_empty() {
                self.fail_repeats(&store_closed());
                return;
            }
            self.maintain_connection();
            self.send_queue();
            let is_blocked = !self.queue.is_empty();
            if is_blocked {
                self.queue.expire();
            }
            let tick = self.queue.context.options.call_timeout / 4;
            tokio::select! {
                biased;
                Some(result) = self.in_flight.next() => self.handle_result(result),
                attempt = wait_for(&mut self.attempt) => self.handle_attempt(attempt),
                () = self.queue.wake.notified() => {}
                () = tokio::time::sleep(tick), if is_blocked => {}
            }
        }
    }

    /// Detects a closed connection, and starts to make another.
    fn maintain_connection(&mut self) {
        if self.connection.as_ref().is_some_and(Connection::is_closed) {
            self.drop_connection();
        }
        if self.connection.is_none() && self.attempt.is_none() && !self.queue.is_closed() {
            let delay = self.backoff.next_delay();
            let attempt = connect(Arc::clone(&self.queue), self.address.clone(), delay);
            self.attempt = Some(Box::pin(attempt));
        }
    }

    fn drop_connection(&mut self) {
        self.connection = None;
        self.notify_connection_lost();
    }

    fn notify_connection_lost(&self) {
        // A single server has no topology task; nothing to do.
        let _ = self.queue.notify(TopologyEvent::ConnectionLost);
    }

    fn handle_attempt(&mut self, attempt: Result<Connection, Failure>) {
        self.attempt = None;
        let status = match attempt {
            Ok(connection) => {
                if self.generation > 0 {
                    self.queue.context.counters.lock().reconnects += 1;
                }
                self.connection = Some(connection);
                self.generation += 1;
                self.backoff.reset();
                self.queue.set_up();
                Status::Up
            }
            Err(failure) => {
                self.queue.set_down(failure.clone());
                self.fail_repeats(&failure);
                self.notify_connection_lost();
                Status::Down(failure)
            }
        };
        if self.reports_status {
            self.queue.context.status.send_replace(status);
        }
    }

    fn send_queue(&mut self) {
        while self.in_flight.len() < MAX_CALLS {
            let connection = self.connection.as_ref().filter(|connection| !connection.is_closed());
            let Some(connection) = connection else { return };
            let context = &self.queue.context;
            let repeat = self.repeats.pop_front();
            let batch = repeat.or_else(|| Batch::new(self.queue.take(), context));
            let Some(batch) = batch else { return };
            context.counters.record_call(batch.len());
            let options = CallOptions {
                sends_asking: batch.key.is_asking,
                loads_script: batch.script_loads > 0,
            };
            let reply = connection.call(&batch.call, options);
            let generation = self.generation;
            self.in_flight.push_back(Box::pin(async move {
                CallResult { result: reply.await, batch, generation }
            }));
        }
    }

    fn handle_result(&mut self, result: CallResult) {
        let CallResult { mut batch, result, generation } = result;
        let context = &self.queue.context;
        match result {
            Ok(reply) => batch.respond(reply, context),
            Err(CommandError::Lost(failure)) => {
                if generation == self.generation && self.connection.is_some() {
                    self.drop_connection();
                }
                batch.fail(&failure.into(), &self.queue.context);
            }
            Err(CommandError::Server(error))
                if error.code() == "NOSCRIPT" && batch.script_loads < MAX_SCRIPT_LOADS =>
            {
                context.counters.lock().noscripts += 1;
                batch.script_loads += 1;
                self.repeats.push_back(batch);
            }
            Err(CommandError::Server(error)) => self.handle_rejection(batch, &error),
        }
    }

    /// Handles an error of the server: redirects the requests if the topology can change, else fails
    /// them.
    fn handle_rejection(&self, batch: Batch, error: &ServerError) {
        let context = &self.queue.context;
        let failure = error::from_server(error);
        if context.topology.is_none() {
            return batch.fail(&failure.into(), context);
        }
        let plain = BatchKey::new(batch.key.partition);
        let alone = BatchKey { is_alone: true, ..plain };
        let key = match error.code() {
            "ASK" => BatchKey { is_asking: true, ..alone },
            "TRYAGAIN" => alone,
            "MOVED" | "READONLY" | "CLUSTERDOWN" => plain,
            _ => {
                // The server may have been replaced by another.
                self.notify_connection_lost();
                return batch.fail(&failure.into(), context);
            }
        };
        let was_alone = batch.key.is_alone;
        let (requests, redirected_too_often) = batch.into_pending(key);
        self.queue.fail(redirected_too_often, &failure.clone().into());
        let requests = self.fail_expired(requests, &failure);
        if requests.is_empty() {
            return;
        }
        context.counters.lock().redirections += 1;
        let to = error.details().and_then(|details| redirection(details, &self.address));
        let event = match (error.code(), to) {
            ("MOVED", Some((slot, to))) => TopologyEvent::Moved { slot, to, requests },
            ("ASK", Some((_, to))) => TopologyEvent::Ask { to, requests },
            ("READONLY", _) => TopologyEvent::NotPrimary(requests),
            ("TRYAGAIN", _) if !was_alone => TopologyEvent::Route(requests),
            _ => TopologyEvent::RetryLater(requests),
        };
        if let Err(event) = self.queue.notify(event) {
            self.queue.fail(event.into_requests(), &store_closed().into());
        }
    }

    /// Fails the requests that are older than the timeout of a call, and returns the others.
    fn fail_expired(
        &self,
        requests: Vec<PendingRequest>,
        failure: &Failure,
    ) -> Vec<PendingRequest> {
        let timeout = self.queue.context.call_timeout();
        let now = self.queue.context.clock.now();
        let is_expired =
            |pending: &PendingRequest| now.duration_since(pending.responder.since) > timeout;
        let (expired, requests) = requests.into_iter().partition(is_expired);
        self.queue.fail(expired, &failure.clone().into());
        requests
    }

    fn fail_repeats(&mut self, failure: &Failure) {
        for batch in self.repeats.drain(..) {
            batch.fail(&failure.clone().into(), &self.queue.context);
        }
    }
}

/// Parses the slot and the address of a redirection: `SLOT HOST:PORT`.
fn redirection(details: &str, speaker: &Address) -> Option<(u16, Address)> {
    let (slot, address) = details.split_once(' ')?;
    Some((slot.parse().ok()?, Address::from_redirection(address.trim(), speaker)?))
}

/// Connects after a delay, and loads the script.
async fn connect(
    queue: Arc<ConnectionQueue>,
    address: Address,
    delay: Duration,
) -> Result<Connection, Failure> {
    tokio::time::sleep(delay).await;
    let waker = Arc::clone(&queue);
    let connection = queue.context.dialer.dial(&address, move || waker.wake.notify_one()).await?;
    match connection.load_script().await {
        Err(CommandError::Lost(failure)) => {
            Err(Failure::new(FailureKind::Unreachable, failure.message))
        }
        Err(error) if error.failure().kind == FailureKind::WrongPassword => Err(error.failure()),
        // Other errors are reported to the calls, if they still occur then.
        _ => Ok(connection),
    }
}
