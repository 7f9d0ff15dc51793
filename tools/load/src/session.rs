//! Requests over one connection, whose replies come in their order.

use std::collections::VecDeque;
use std::io::{self, ErrorKind as Io};
use std::ops::ControlFlow;
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::time::timeout;
use tollgate::Id;

use crate::alarm::Alarm;
use crate::answer::{Answer, ErrorKind, Reply};
use crate::clock::{Nanos, nanos};
use crate::connection::{Attempts, Ended, connect};
use crate::tally::Asked;
use crate::wire::Wire;
use crate::worker::Worker;

/// Why there is no use in waiting on.
type Failed = (ErrorKind, String);

/// Asks over one connection after the other, the first of which is there.
pub(crate) async fn drive(worker: &Worker, wire: &Wire, first: io::Result<TcpStream>) -> Ended {
    let (mut attempts, mut stream, mut held) = (Attempts::default(), first, VecDeque::new());
    loop {
        match stream {
            Ok(value) => {
                let mut session = Session::over(worker, wire, value, held);
                let over = session.run().await;
                // Leases outlive a connection.
                held = session.held;
                match over {
                    Over::Done => return Ended::Done,
                    Over::Closed => {
                        stream = connect(&worker.peer, worker.patience).await;
                        continue;
                    }
                    Over::Failed => {}
                }
            }
            Err(error) => worker.failed(ErrorKind::Refused, 1, || error.to_string()),
        }
        stream = match attempts.another(worker).await {
            ControlFlow::Continue(another) => another,
            ControlFlow::Break(ended) => return ended,
        };
    }
}

/// Why a session is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Over {
    /// There is nothing more to ask.
    Done,
    /// The other side has ended it in good order.
    Closed,
    /// The connection is of no more use.
    Failed,
}

/// What a reply will answer.
#[derive(Clone, Copy, Debug)]
enum Flying {
    Greeting(Nanos),
    Check(Asked, Id),
    /// Of a lease; its admission, if that was kept.
    Release(Option<usize>, Nanos),
}

/// A lease that is held.
#[derive(Clone, Copy, Debug)]
struct Held {
    key: u32,
    lease: Id,
    until: Nanos,
    admission: Option<usize>,
}

#[derive(Debug)]
struct Session<'a> {
    worker: &'a Worker,
    wire: &'a Wire,
    stream: TcpStream,
    alarm: Alarm,
    flying: VecDeque<Flying>,
    held: VecDeque<Held>,
    /// The next request, which waits until it is due.
    next: Option<Nanos>,
    output: Vec<u8>,
    input: Vec<u8>,
    /// How much of the input has been read.
    read: usize,
    /// Whether the other side has said that it closes the connection.
    is_closing: bool,
}

/// How much is read at once.
const CHUNK: usize = 64 * 1024;

impl<'a> Session<'a> {
    fn over(worker: &'a Worker, wire: &'a Wire, stream: TcpStream, held: VecDeque<Held>) -> Self {
        let mut session = Session {
            worker,
            wire,
            stream,
            alarm: Alarm::default(),
            flying: VecDeque::new(),
            held,
            next: None,
            output: Vec::new(),
            input: Vec::with_capacity(CHUNK),
            read: 0,
            is_closing: false,
        };
        if let Some(greeting) = wire.greeting() {
            session.output.extend_from_slice(greeting);
            session.flying.push_back(Flying::Greeting(worker.clock.now()));
        }
        session
    }

    /// Asks until it is over. What was taken and not sent by then stays unsent: the schedule has
    /// counted it as due.
    async fn run(&mut self) -> Over {
        match self.exchange().await {
            Ok(over) => over,
            Err((kind, words)) => {
                let lost =
                    self.flying.iter().filter(|flying| matches!(flying, Flying::Check(..))).count();
                self.worker.failed(kind, lost, || words);
                Over::Failed
            }
        }
    }

    async fn exchange(&mut self) -> Result<Over, Failed> {
        loop {
            let wakes = self.fill();
            if self.flying.is_empty() && wakes.is_none() {
                return Ok(Over::Done);
            }
            self.write().await?;
            self.wait(wakes).await?;
            self.take_replies()?;
            if self.is_closing {
                return Ok(Over::Closed);
            }
        }
    }

    /// Writes what is due into the output; when more is, if anything.
    fn fill(&mut self) -> Option<Nanos> {
        let mut wakes = None;
        while let Some(held) = self.held.front().copied() {
            if held.until > self.worker.clock.now() {
                wakes = Some(held.until);
                break;
            }
            self.held.pop_front();
            self.wire.release(held.key, held.lease, &mut self.output);
            let sent = self.worker.clock.now();
            self.flying.push_back(Flying::Release(held.admission, sent));
        }
        while self.flying.len() + self.held.len() < self.worker.pipeline {
            self.next = self.next.or_else(|| self.worker.take());
            let Some(due) = self.next else { break };
            let now = self.worker.clock.now();
            if due > now {
                return Some(wakes.map_or(due, |nanos: Nanos| nanos.min(due)));
            }
            self.next = None;
            self.ask(due, now);
        }
        wakes
    }

    fn ask(&mut self, due: Nanos, now: Nanos) {
        let (key, lease) = (self.worker.choose(), self.lease());
        let wall = self.worker.clock.wall_micros(now);
        self.wire.ask(key, wall, lease, &mut self.output);
        self.worker.sent();
        self.flying.push_back(Flying::Check(Asked { key, due, sent: now }, lease));
    }

    fn lease(&self) -> Id {
        if self.worker.hold.is_some() { self.worker.draw_lease() } else { Id::from_u128(0) }
    }

    async fn write(&mut self) -> Result<(), Failed> {
        let mut written = 0;
        while written < self.output.len() {
            match self.stream.try_write(&self.output[written..]) {
                Ok(more) => written += more,
                Err(error) if error.kind() == Io::WouldBlock => {
                    let patience = self.worker.patience;
                    match timeout(patience, self.stream.writable()).await {
                        Ok(ready) => ready.map_err(|error| lost(&error))?,
                        Err(_) => return Err(timed_out()),
                    }
                }
                Err(error) => return Err(lost(&error)),
            }
        }
        self.output.clear();
        Ok(())
    }

    /// Waits until there is something to read, something is due, or patience ends.
    async fn wait(&mut self, wakes: Option<Nanos>) -> Result<(), Failed> {
        let clock = self.worker.clock;
        let oldest = self.flying.front().map(|front| match front {
            Flying::Check(asked, _) => asked.sent,
            Flying::Release(_, sent) | Flying::Greeting(sent) => *sent,
        });
        let Some(oldest) = oldest else {
            let Some(wakes) = wakes else { return Ok(()) };
            return self.alarm.until(&clock, wakes).await.map_err(|error| lost(&error));
        };
        let ends = oldest.saturating_add(nanos(self.worker.patience)).saturating_sub(clock.now());
        if ends == 0 {
            return Err(timed_out());
        }
        let stream = &self.stream;
        let alarm = &mut self.alarm;
        let ready = async {
            match wakes {
                None => stream.readable().await,
                Some(wakes) => tokio::select! {
                    ready = stream.readable() => ready,
                    rung = alarm.until(&clock, wakes) => rung,
                },
            }
        };
        match timeout(Duration::from_nanos(ends), ready).await {
            Ok(ready) => ready.map_err(|error| lost(&error))?,
            Err(_) => return Err(timed_out()),
        }
        self.receive()
    }

    /// Takes what has come.
    fn receive(&mut self) -> Result<(), Failed> {
        self.input.drain(..self.read);
        self.read = 0;
        self.input.reserve(CHUNK);
        match self.stream.try_read_buf(&mut self.input) {
            Ok(0) => Err((ErrorKind::Lost, "the other side closed the connection".to_owned())),
            Err(error) if error.kind() != Io::WouldBlock => Err(lost(&error)),
            _ => Ok(()),
        }
    }

    fn take_replies(&mut self) -> Result<(), Failed> {
        while let Some(flying) = self.flying.front().copied() {
            let rest = self.input.get(self.read..).unwrap_or_default();
            if rest.is_empty() {
                break;
            }
            if matches!(flying, Flying::Greeting(_)) {
                match greeted(rest).map_err(|words| (ErrorKind::Rejected, words))? {
                    None => break,
                    Some(length) => self.read += length,
                }
                self.flying.pop_front();
                continue;
            }
            let broken = |broken: crate::answer::Broken| (ErrorKind::Protocol, broken.0.to_owned());
            let Some(taken) = self.wire.read(rest).map_err(broken)? else { break };
            self.read += taken.length;
            self.is_closing |= taken.is_last;
            self.flying.pop_front();
            self.enter(flying, taken.reply);
        }
        Ok(())
    }

    fn enter(&mut self, flying: Flying, reply: Reply) {
        match (flying, reply) {
            (Flying::Check(asked, lease), Reply::Answer(answer)) => {
                let admission = self.worker.answered(asked, &answer);
                self.hold(asked.key, lease, &answer, admission);
            }
            (Flying::Release(admission, _), Reply::Answer(answer)) => {
                self.worker.released(admission, answer.time);
            }
            (_, Reply::Error(kind, words)) => self.worker.failed(kind, 1, || words),
            (Flying::Greeting(_), Reply::Answer(_)) => {}
        }
    }

    fn hold(&mut self, key: u32, lease: Id, answer: &Answer, admission: Option<usize>) {
        if let Some(span) = self.worker.hold.filter(|_| answer.allowed) {
            let until = self.worker.clock.now().saturating_add(span);
            self.held.push_back(Held { key, lease, until, admission });
        }
    }
}

/// How long the reply to a greeting is, once it is there; an error if it refuses.
pub(crate) fn greeted(input: &[u8]) -> Result<Option<usize>, String> {
    let Some(end) = input.windows(2).position(|pair| pair == b"\r\n") else { return Ok(None) };
    if !input.starts_with(b"+OK") {
        return Err(String::from_utf8_lossy(&input[..end]).into_owned());
    }
    Ok(Some(end + 2))
}

fn lost(error: &io::Error) -> Failed {
    (ErrorKind::Lost, error.to_string())
}

fn timed_out() -> Failed {
    (ErrorKind::Timeout, "no answer came within --timeout".to_owned())
}
