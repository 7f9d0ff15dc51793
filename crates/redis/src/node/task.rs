//! The task that maintains a connection and sends its queue.
//!
//! A request that arrives while fewer than [`MAX_PACKETS`] packets are in flight is sent at once.
//! Other requests wait, and are sent together when a packet is answered. So no timer delays a request,
//! and batches grow with the load. A packet has a call for each partition, which the server executes
//! in order.

use std::collections::VecDeque;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::stream::FuturesOrdered;
use futures_util::{FutureExt, StreamExt};
use redis::{ServerError, Value};
use tokio::time::{Instant, Sleep};
use tollgate_state::{Failure, FailureKind};

use super::batch::Batch;
use super::breaker::Breaker;
use super::connection_state::{ConnectionState, Step, ends_connection};
use super::pool::{ConnectionQueue, Pool};
use super::queue::MAX_PACKETS;
use crate::connection::{CallOptions, CommandError, Connection};
use crate::context::{TopologyEvent, sleep_until, store_closed, wait_for};
use crate::error;
use crate::handshake::check_server;
use crate::jitter::Jitter;
use crate::request::{BatchKey, PendingRequest};
use crate::url::Address;

/// How often a call is repeated because the server does not have the script.
const MAX_SCRIPT_LOADS: u8 = 5;
/// How often waiting requests are checked for their deadlines.
const TICK: Duration = Duration::from_millis(1);
/// How late a timer is at most, unless this process is slow.
const MAX_DELAY: Duration = Duration::from_millis(5);

/// Starts the task. It ends when the queue is closed and all calls are answered. If it panics, which
/// is a bug, it starts again with a new connection.
pub(super) fn start(pool: &Arc<Pool>, index: usize) {
    let pool = Arc::clone(pool);
    tokio::spawn(async move {
        while AssertUnwindSafe(Task::new(&pool, index).run()).catch_unwind().await.is_err() {
            let message = "the task of the connection failed";
            pool.set_lost(index, &Failure::new(FailureKind::Unreachable, message));
        }
    });
}

struct Task {
    pool: Arc<Pool>,
    index: usize,
    state: ConnectionState,
    connection: Option<Connection>,
    /// The number of connections made so far.
    generation: u64,
    attempt: Option<BoxFuture<'static, Result<Connection, Failure>>>,
    /// Calls that were not executed, to be sent again before all others.
    repeats: VecDeque<Batch>,
    in_flight: FuturesOrdered<BoxFuture<'static, CallResult>>,
    /// The packets of which a call is in flight.
    packets: VecDeque<Packet>,
    /// When they are checked for a stall of the server next.
    stall_timer: Pin<Box<Sleep>>,
    is_stall_timer_set: bool,
    /// When waiting requests are checked for their deadlines next.
    expires_at: Instant,
}

/// Calls that were sent together.
struct Packet {
    sent: Instant,
    /// How long the callers of a call wait, if a stall of the server is to be detected by it.
    budget: Option<Duration>,
}

impl Packet {
    /// Returns when the server has stalled if it replies to nothing until then.
    fn stalls_at(&self) -> Option<Instant> {
        self.budget.map(|budget| self.sent + Breaker::stall_time(budget))
    }
}

/// The result of a call.
struct CallResult {
    batch: Batch,
    result: Result<Value, CommandError>,
    /// The generation of the connection.
    generation: u64,
    sent: Instant,
    ends_packet: bool,
    in_flight: InFlight,
}

/// Counts the requests of a call as in flight until it is dropped.
struct InFlight {
    pool: Arc<Pool>,
    requests: usize,
}

impl InFlight {
    fn new(pool: &Arc<Pool>, requests: usize) -> Self {
        pool.in_flight.fetch_add(requests, Ordering::Relaxed);
        InFlight { pool: Arc::clone(pool), requests }
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.pool.in_flight.fetch_sub(self.requests, Ordering::Relaxed);
    }
}

impl Task {
    fn new(pool: &Arc<Pool>, index: usize) -> Self {
        let now = Instant::now();
        Task {
            pool: Arc::clone(pool),
            index,
            state: ConnectionState::new(now),
            connection: None,
            generation: 0,
            attempt: None,
            repeats: VecDeque::new(),
            in_flight: FuturesOrdered::new(),
            packets: VecDeque::new(),
            stall_timer: Box::pin(tokio::time::sleep_until(now)),
            is_stall_timer_set: false,
            expires_at: now,
        }
    }

    fn queue(&self) -> &ConnectionQueue {
        &self.pool.connections[self.index]
    }

    async fn run(mut self) {
        loop {
            if self.queue().is_closed() && self.in_flight.is_empty() {
                self.fail_repeats(&store_closed());
                return;
            }
            let wait = self.maintain_connection();
            self.send_queue();
            let is_blocked = !self.queue().is_empty();
            if is_blocked {
                self.expire_queue();
            }
            let pool = Arc::clone(&self.pool);
            tokio::select! {
                biased;
                Some(result) = self.in_flight.next() => self.handle_result(result),
                attempt = wait_for(&mut self.attempt) => self.handle_attempt(attempt),
                () = pool.connections[self.index].wake.notified() => {}
                () = sleep_until(wait) => {}
                () = &mut self.stall_timer, if self.is_stall_timer_set => self.check_stall(),
                () = tokio::time::sleep(TICK), if is_blocked => {}
            }
        }
    }

    /// Fails requests whose deadline is near. Each new request wakes the task, so this is limited.
    fn expire_queue(&mut self) {
        let now = Instant::now();
        if now >= self.expires_at {
            self.expires_at = now + TICK;
            self.pool.expire(self.index, now);
        }
    }

    /// Detects a closed connection, and starts to make another when it is time. Returns when to check
    /// again.
    fn maintain_connection(&mut self) -> Option<Instant> {
        if self.connection.as_ref().is_some_and(Connection::is_closed) {
            let message = "the server closed the connection";
            self.drop_connection(&Failure::new(FailureKind::Unreachable, message));
        }
        if let Some(failure) = self.queue().take_dead()
            && self.connection.is_some()
        {
            self.drop_connection(&failure);
        }
        let may_connect = self.index == 0 || self.pool.is_up();
        if !may_connect || self.queue().is_closed() {
            return None;
        }
        match self.state.step(Instant::now()) {
            Step::Wait(until) => until,
            Step::Connect => {
                let attempt = connect(Arc::clone(&self.pool), self.index);
                self.attempt = Some(Box::pin(attempt));
                None
            }
        }
    }

    fn drop_connection(&mut self, failure: &Failure) {
        self.connection = None;
        self.state.record_loss(Instant::now(), Jitter::random());
        self.pool.set_lost(self.index, failure);
    }

    fn handle_attempt(&mut self, attempt: Result<Connection, Failure>) {
        self.attempt = None;
        match attempt {
            Ok(connection) => {
                if self.generation > 0 {
                    self.pool.record(|counters| counters.lock().reconnects += 1);
                }
                self.generation += 1;
                self.state.record_success(Instant::now());
                self.pool.set_up(self.index, &connection);
                self.connection = Some(connection);
            }
            Err(failure) => {
                self.state.record_loss(Instant::now(), Jitter::random());
                self.pool.set_down(&failure);
                self.fail_repeats(&failure);
            }
        }
    }

    fn send_queue(&mut self) {
        while self.packets.len() < usize::from(MAX_PACKETS) {
            if self.connection.as_ref().is_none_or(Connection::is_closed) {
                return;
            }
            let now = Instant::now();
            let mut batches: Vec<Batch> = self.repeats.drain(..).collect();
            if batches.is_empty() {
                let taken = self.pool.take(self.index, now, self.packets.is_empty());
                let calls = taken.calls.into_iter();
                batches.extend(calls.filter_map(|call| Batch::new(call, &self.pool.context)));
            }
            let Some(last) = batches.len().checked_sub(1) else { return };
            let budget = batches.iter().filter_map(Batch::budget).min();
            self.packets.push_back(Packet { sent: now, budget });
            self.set_stall_timer();
            for (number, batch) in batches.into_iter().enumerate() {
                self.send(batch, now, number == last);
            }
        }
    }

    fn send(&mut self, batch: Batch, sent: Instant, ends_packet: bool) {
        let Some(connection) = &self.connection else { return };
        self.pool.record(|counters| counters.record_call(batch.len()));
        self.pool.partition.store(batch.key.partition, Ordering::Relaxed);
        let options =
            CallOptions { sends_asking: batch.key.is_asking, loads_script: batch.script_loads > 0 };
        let reply = connection.call(&batch.call, options);
        let generation = self.generation;
        let in_flight = InFlight::new(&self.pool, batch.len());
        self.in_flight.push_back(Box::pin(async move {
            CallResult { result: reply.await, batch, generation, sent, ends_packet, in_flight }
        }));
    }

    /// Sets the timer if a packet in flight needs it earlier than it is set.
    fn set_stall_timer(&mut self) {
        if !self.pool.context.options.breaker {
            return;
        }
        let Some(at) = self.packets.iter().filter_map(Packet::stalls_at).min() else { return };
        if !self.is_stall_timer_set || at < self.stall_timer.deadline() {
            self.stall_timer.as_mut().reset(at);
            self.is_stall_timer_set = true;
        }
    }

    /// Reports the packets to which the server should have replied by now.
    fn check_stall(&mut self) {
        let now = Instant::now();
        self.is_stall_timer_set = false;
        if now > self.stall_timer.deadline() + MAX_DELAY {
            // This process was slow, too: a reply may wait to be read.
            self.stall_timer.as_mut().reset(now + MAX_DELAY);
            self.is_stall_timer_set = true;
            return;
        }
        for packet in &mut self.packets {
            if packet.stalls_at().is_some_and(|at| at <= now)
                && let Some(budget) = packet.budget.take()
            {
                self.pool.record_stall(packet.sent, budget);
            }
        }
        self.set_stall_timer();
    }

    fn handle_result(&mut self, result: CallResult) {
        let CallResult { mut batch, result, generation, sent, ends_packet, in_flight } = result;
        drop(in_flight);
        if ends_packet {
            self.packets.pop_front();
        }
        let round_trip = sent.elapsed();
        self.pool.record(|counters| counters.record_round_trip(round_trip));
        self.queue().record_round_trip(round_trip);
        self.pool.record_call_end(&batch, sent, &result);
        let is_current = generation == self.generation && self.connection.is_some();
        match result {
            Ok(reply) => batch.respond(reply, &self.pool),
            Err(CommandError::Lost(failure)) => {
                if is_current {
                    let lost = Failure::new(FailureKind::Unreachable, failure.message.clone());
                    self.drop_connection(&lost);
                }
                batch.fail(&failure.into(), &self.pool);
            }
            Err(CommandError::Server(error))
                if error::is_script_missing(&error) && batch.script_loads < MAX_SCRIPT_LOADS =>
            {
                self.pool.record(|counters| counters.lock().noscripts += 1);
                batch.script_loads += 1;
                self.repeats.push_back(batch);
            }
            Err(CommandError::Server(error)) => {
                let failure = error::from_server(&error);
                if is_current && ends_connection(failure.kind) {
                    self.drop_connection(&failure);
                }
                self.handle_rejection(batch, &error);
            }
        }
    }

    /// Handles an error of the server: sends the requests again if another server may decide them,
    /// else fails them.
    fn handle_rejection(&self, batch: Batch, error: &ServerError) {
        let failure = error::from_server(error);
        let is_single = self.pool.context.topology.is_none();
        let plain = BatchKey::new(batch.key.partition);
        let alone = BatchKey::alone(batch.key.partition);
        let key = match error.code() {
            _ if is_single && ends_connection(failure.kind) => plain,
            _ if is_single => return batch.fail(&failure.into(), &self.pool),
            "ASK" => BatchKey { is_asking: true, ..alone },
            "TRYAGAIN" => alone,
            "MOVED" | "READONLY" | "CLUSTERDOWN" | "MASTERDOWN" | "LOADING" => plain,
            _ => return batch.fail(&failure.into(), &self.pool),
        };
        let is_single_request = batch.len() == 1;
        let (requests, redirected_too_often) = batch.into_pending(key);
        self.pool.fail(redirected_too_often, &failure.clone().into());
        let requests = self.fail_expired(requests, &failure);
        if requests.is_empty() {
            return;
        }
        if is_single {
            // They wait for the next connection, which may be to another server.
            return requests.into_iter().for_each(|pending| self.pool.submit(pending));
        }
        self.pool.record(|counters| counters.lock().redirections += 1);
        if error.code() == "TRYAGAIN" && is_single_request {
            return self.pool.decide_per_key(requests);
        }
        let to = error.details().and_then(|details| redirection(details, &self.pool.address));
        let map = &self.pool.context.address_map;
        let to = to.map(|(slot, to)| (slot, map.translate(to)));
        let event = match (error.code(), to) {
            ("MOVED", Some((slot, to))) => TopologyEvent::Moved { slot, to, requests },
            ("ASK", Some((_, to))) => TopologyEvent::Ask { to, requests },
            ("READONLY", _) => TopologyEvent::NotPrimary(requests),
            ("TRYAGAIN", _) => TopologyEvent::Route(requests),
            _ => TopologyEvent::RetryLater(requests),
        };
        if let Err(event) = self.pool.notify(event) {
            self.pool.fail(event.into_requests(), &store_closed().into());
        }
    }

    /// Fails the requests whose deadline has passed, and returns the others.
    fn fail_expired(
        &self,
        requests: Vec<PendingRequest>,
        failure: &Failure,
    ) -> Vec<PendingRequest> {
        let now = Instant::now();
        let (expired, requests) =
            requests.into_iter().partition(|pending| pending.responder.deadline <= now);
        self.pool.fail(expired, &failure.clone().into());
        requests
    }

    fn fail_repeats(&mut self, failure: &Failure) {
        for batch in self.repeats.drain(..) {
            batch.fail(&failure.clone().into(), &self.pool);
        }
    }
}

/// Parses the slot and the address of a redirection: `SLOT HOST:PORT`.
fn redirection(details: &str, speaker: &Address) -> Option<(u16, Address)> {
    let (slot, address) = details.split_once(' ')?;
    Some((slot.parse().ok()?, Address::from_redirection(address.trim(), speaker)?))
}

/// Connects, and checks that the server can decide.
async fn connect(pool: Arc<Pool>, index: usize) -> Result<Connection, Failure> {
    let waker = Arc::clone(&pool);
    let on_close = move || waker.connections[index].wake.notify_one();
    let context = &pool.context;
    pool.record(|counters| counters.lock().dials += 1);
    let mut connection = context.dialer.dial(&pool.address, on_close).await?;
    let checked = check_server(&mut connection, context.server_kind, &context.keyspace).await;
    checked.map_err(|failure| {
        Failure::new(failure.kind, format!("{}: {}", pool.address, failure.message))
    })?;
    Ok(connection)
}
