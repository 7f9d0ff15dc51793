//! Requests over a connection whose replies arrive in order.

use std::collections::VecDeque;
use std::io::{self, ErrorKind as IoErrorKind};
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::time::timeout;
use tollgate::Id;

use crate::clock::{Nanos, PreciseTimer, nanos};
use crate::connection::{self, ConnectionEnd, Connector, SessionEnd};
use crate::reply::{Decision, ErrorKind, Reply, RequestError};
use crate::tally::SentRequest;
use crate::wire::{Wire, parse_greeting_reply};
use crate::worker::Worker;

/// Sends requests over `first`, and over new connections whenever one ends.
pub(crate) async fn drive(
    worker: &Worker,
    connector: &Connector,
    wire: &Wire,
    first: io::Result<TcpStream>,
) -> ConnectionEnd {
    // Leases outlive a connection.
    let mut leases = VecDeque::new();
    connection::drive(worker, connector, first, async |stream| {
        let mut session = Session::new(worker, wire, stream, std::mem::take(&mut leases));
        let end = session.run().await;
        leases = session.leases;
        end
    })
    .await
}

/// A request whose reply has not arrived.
#[derive(Clone, Copy, Debug)]
enum InFlight {
    Greeting(Nanos),
    Check(SentRequest, Id),
    /// The release of a lease, with the index of its admission if that is kept.
    Release(Option<usize>, Nanos),
}

impl InFlight {
    fn sent(&self) -> Nanos {
        match self {
            InFlight::Check(request, _) => request.sent,
            InFlight::Release(_, sent) | InFlight::Greeting(sent) => *sent,
        }
    }
}

/// A lease to release later.
#[derive(Clone, Copy, Debug)]
struct HeldLease {
    key: u32,
    id: Id,
    until: Nanos,
    admission: Option<usize>,
}

#[derive(Debug)]
struct Session<'a> {
    worker: &'a Worker,
    wire: &'a Wire,
    stream: TcpStream,
    timer: PreciseTimer,
    in_flight: VecDeque<InFlight>,
    leases: VecDeque<HeldLease>,
    /// When the next request is due, if it waits for its time.
    next_due: Option<Nanos>,
    output: Vec<u8>,
    input: Vec<u8>,
    /// How many bytes of the input are parsed.
    parsed: usize,
    /// Whether the server announced that it closes the connection.
    is_closing: bool,
}

/// The size of a read.
const READ_BYTES: usize = 64 * 1024;

impl<'a> Session<'a> {
    fn new(
        worker: &'a Worker,
        wire: &'a Wire,
        stream: TcpStream,
        leases: VecDeque<HeldLease>,
    ) -> Self {
        let mut session = Session {
            worker,
            wire,
            stream,
            timer: PreciseTimer::default(),
            in_flight: VecDeque::new(),
            leases,
            next_due: None,
            output: Vec::new(),
            input: Vec::with_capacity(READ_BYTES),
            parsed: 0,
            is_closing: false,
        };
        if let Some(greeting) = wire.greeting() {
            session.output.extend_from_slice(greeting);
            session.in_flight.push_back(InFlight::Greeting(worker.clock.now()));
        }
        session
    }

    /// Sends requests until the session ends. A request that was taken but not sent remains unsent;
    /// the schedule has counted it as due.
    async fn run(&mut self) -> SessionEnd {
        match self.exchange().await {
            Ok(end) => end,
            Err(error) => {
                let lost = self.in_flight.iter().map(|request| match request {
                    InFlight::Check(..) => 1,
                    InFlight::Greeting(_) | InFlight::Release(..) => 0,
                });
                self.worker.record_errors(error, lost.sum());
                SessionEnd::Failed
            }
        }
    }

    async fn exchange(&mut self) -> Result<SessionEnd, RequestError> {
        loop {
            let wake_up = self.fill_output();
            if self.in_flight.is_empty() && wake_up.is_none() {
                return Ok(SessionEnd::Finished);
            }
            self.write().await?;
            self.wait(wake_up).await?;
            self.take_replies()?;
            if self.is_closing {
                return Ok(SessionEnd::Closed);
            }
        }
    }

    /// Writes the requests that are due into the output; returns when the next one is due.
    fn fill_output(&mut self) -> Option<Nanos> {
        let mut wake_up: Option<Nanos> = None;
        while let Some(lease) = self.leases.front().copied() {
            let now = self.worker.clock.now();
            if lease.until > now {
                wake_up = Some(lease.until);
                break;
            }
            self.leases.pop_front();
            self.wire.write_release(lease.key, lease.id, &mut self.output);
            self.in_flight.push_back(InFlight::Release(lease.admission, now));
        }
        while self.in_flight.len() + self.leases.len() < self.worker.pipeline {
            self.next_due = self.next_due.or_else(|| self.worker.take());
            let Some(due) = self.next_due else { break };
            let now = self.worker.clock.now();
            if due > now {
                return Some(wake_up.map_or(due, |release| release.min(due)));
            }
            self.next_due = None;
            self.send_check(due, now);
        }
        wake_up
    }

    fn send_check(&mut self, due: Nanos, now: Nanos) {
        let worker = self.worker;
        let key = worker.choose_key();
        let lease = match worker.hold {
            Some(_) => worker.new_lease_id(),
            None => Id::from_u128(0),
        };
        self.wire.write_check(key, worker.clock.wall_micros(now), lease, &mut self.output);
        worker.count_sent();
        self.in_flight.push_back(InFlight::Check(SentRequest { key, due, sent: now }, lease));
    }

    async fn write(&mut self) -> Result<(), RequestError> {
        let mut written = 0;
        while written < self.output.len() {
            match self.stream.try_write(&self.output[written..]) {
                Ok(more) => written += more,
                Err(error) if error.kind() == IoErrorKind::WouldBlock => {
                    match timeout(self.worker.timeout, self.stream.writable()).await {
                        Ok(ready) => ready.map_err(lost)?,
                        Err(_elapsed) => return Err(RequestError::timeout()),
                    }
                }
                Err(error) => return Err(lost(error)),
            }
        }
        self.output.clear();
        Ok(())
    }

    /// Waits until the connection is readable, the next request is due, or the timeout ends.
    async fn wait(&mut self, wake_up: Option<Nanos>) -> Result<(), RequestError> {
        let clock = self.worker.clock;
        let Some(oldest) = self.in_flight.front().map(InFlight::sent) else {
            let Some(wake_up) = wake_up else { return Ok(()) };
            return self.timer.sleep_until(&clock, wake_up).await.map_err(lost);
        };
        let deadline = oldest.saturating_add(nanos(self.worker.timeout));
        let remaining = deadline.saturating_sub(clock.now());
        if remaining == 0 {
            return Err(RequestError::timeout());
        }
        let (stream, timer) = (&self.stream, &mut self.timer);
        let ready = async {
            match wake_up {
                None => stream.readable().await,
                Some(wake_up) => tokio::select! {
                    ready = stream.readable() => ready,
                    fired = timer.sleep_until(&clock, wake_up) => fired,
                },
            }
        };
        match timeout(Duration::from_nanos(remaining), ready).await {
            Ok(ready) => ready.map_err(lost)?,
            Err(_elapsed) => return Err(RequestError::timeout()),
        }
        self.read()
    }

    /// Reads what has arrived.
    fn read(&mut self) -> Result<(), RequestError> {
        self.input.drain(..self.parsed);
        self.parsed = 0;
        self.input.reserve(READ_BYTES);
        match self.stream.try_read_buf(&mut self.input) {
            Ok(0) => Err(RequestError::new(ErrorKind::Lost, "the server closed the connection")),
            Err(error) if error.kind() != IoErrorKind::WouldBlock => Err(lost(error)),
            _ => Ok(()),
        }
    }

    fn take_replies(&mut self) -> Result<(), RequestError> {
        while let Some(request) = self.in_flight.front().copied() {
            let rest = &self.input[self.parsed..];
            if rest.is_empty() {
                break;
            }
            if let InFlight::Greeting(_) = request {
                let Some(length) = parse_greeting_reply(rest)
                    .map_err(|message| RequestError::new(ErrorKind::Rejected, message))?
                else {
                    break;
                };
                self.parsed += length;
                self.in_flight.pop_front();
                continue;
            }
            let Some(parsed) = self.wire.parse(rest)? else { break };
            self.parsed += parsed.length;
            self.is_closing |= parsed.is_last;
            self.in_flight.pop_front();
            self.record(request, parsed.reply);
        }
        Ok(())
    }

    fn record(&mut self, request: InFlight, reply: Reply) {
        match (request, reply) {
            (InFlight::Check(request, lease), Reply::Decision(decision)) => {
                let admission = self.worker.record(request, &decision);
                self.hold_lease(request.key, lease, &decision, admission);
            }
            (InFlight::Release(admission, _), Reply::Decision(decision)) => {
                self.worker.record_release(admission, decision.time);
            }
            (_, Reply::Error(error)) => self.worker.record_error(error),
            (InFlight::Greeting(_), Reply::Decision(_)) => {
                unreachable!("the reply to a greeting is not parsed as a decision")
            }
        }
    }

    fn hold_lease(&mut self, key: u32, id: Id, decision: &Decision, admission: Option<usize>) {
        if let Some(duration) = self.worker.hold.filter(|_| decision.allowed) {
            let until = self.worker.clock.now().saturating_add(duration);
            self.leases.push_back(HeldLease { key, id, until, admission });
        }
    }
}

fn lost(error: io::Error) -> RequestError {
    RequestError::new(ErrorKind::Lost, error)
}
