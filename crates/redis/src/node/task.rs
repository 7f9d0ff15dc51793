//! The task that keeps a connection, and sends what waits for it.
//!
//! A request that comes while less than [`DEPTH`] calls are under way is sent at once. Else requests
//! wait, and go together as soon as a call is answered: no timer decides, so the busier the line, the
//! more share a call. Calls on a connection are executed in the order in which they are sent.

use std::collections::VecDeque;
use std::sync::Arc;

use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesOrdered;
use redis::{ServerError, Value};
use tollgate_store::{Failure, FailureKind};

use super::batch::Batch;
use super::lane::Lane;
use super::{Backoff, News, Status};
use crate::error;
use crate::link::{Fault, How, Link};
use crate::url::Address;
use crate::waiting::{Line, Waiting};

/// How many calls are under way on a connection. With one the server waits for us between two, for
/// as long as the way there and back takes; with more than two there are fewer requests in each, and
/// on one machine 64 callers were told later (405 µs in the middle with three, 386 with two, 437
/// with one, of two connections).
const DEPTH: usize = 2;
/// How often a call is repeated because somebody has flushed the scripts meanwhile.
const MAX_LOADS: u8 = 5;

/// Starts the task. It ends when the lane is closed and all calls are answered.
pub(super) fn start(lane: &Arc<Lane>, address: Address, reports: bool) {
    let task = Task {
        lane: Arc::clone(lane),
        address,
        reports: reports && lane.common.news.is_none(),
        link: None,
        links: 0,
        attempt: None,
        backoff: Backoff::default(),
        repeats: VecDeque::new(),
        under_way: FuturesOrdered::new(),
    };
    tokio::spawn(task.run());
}

struct Task {
    lane: Arc<Lane>,
    address: Address,
    /// Whether this connection stands for the store's.
    reports: bool,
    link: Option<Link>,
    /// How many there have been.
    links: u64,
    attempt: Option<BoxFuture<'static, Result<Link, Failure>>>,
    backoff: Backoff,
    /// Calls that were not executed and are to be sent again, before all others.
    repeats: VecDeque<Batch>,
    under_way: FuturesOrdered<BoxFuture<'static, Done>>,
}

/// A call that is answered, or lost.
struct Done {
    batch: Batch,
    result: Result<Value, Fault>,
    /// Over which link.
    link: u64,
}

impl Task {
    async fn run(mut self) {
        loop {
            if self.lane.is_closed() && self.under_way.is_empty() {
                self.give_up_repeats(&closed());
                return;
            }
            self.keep_link();
            self.send_what_waits();
            let is_stuck = !self.lane.is_empty();
            if is_stuck {
                self.lane.expire();
            }
            let tick = self.lane.common.options.call_timeout / 4;
            tokio::select! {
                biased;
                Some(done) = self.under_way.next() => self.settle(done),
                attempt = attempted(&mut self.attempt) => self.attempted(attempt),
                () = self.lane.wake.notified() => {}
                () = tokio::time::sleep(tick), if is_stuck => {}
            }
        }
    }

    /// Notices that the link has closed, and makes another.
    fn keep_link(&mut self) {
        if self.link.as_ref().is_some_and(Link::is_closed) {
            self.lose_link();
        }
        if self.link.is_none() && self.attempt.is_none() && !self.lane.is_closed() {
            self.attempt = Some(Box::pin(connect(
                Arc::clone(&self.lane),
                self.address.clone(),
                self.backoff.wait(),
            )));
        }
    }

    fn lose_link(&mut self) {
        self.link = None;
        // Nobody to tell on a single server.
        let _ = self.lane.tell(News::Lost);
    }

    fn attempted(&mut self, attempt: Result<Link, Failure>) {
        self.attempt = None;
        let common = &self.lane.common;
        let status = match attempt {
            Ok(link) => {
                if self.links > 0 {
                    common.counters.reconnects.count();
                }
                self.link = Some(link);
                self.links += 1;
                self.backoff.reset();
                self.lane.set_up();
                Status::Up
            }
            Err(failure) => {
                self.lane.set_down(failure.clone());
                self.give_up_repeats(&failure);
                let _ = self.lane.tell(News::Lost);
                Status::Down(failure)
            }
        };
        if self.reports {
            self.lane.common.status.send_replace(status);
        }
    }

    fn send_what_waits(&mut self) {
        while self.under_way.len() < DEPTH {
            let Some(link) = self.link.as_ref().filter(|link| !link.is_closed()) else { return };
            let common = &self.lane.common;
            let next = self.repeats.pop_front();
            let Some(batch) = next.or_else(|| Batch::of(self.lane.take(), common)) else { return };
            common.counters.sent(batch.len());
            let how = How { asks: batch.line.asks, loads: batch.loads > 0 };
            let (reply, link) = (link.call(&batch.call, how), self.links);
            self.under_way
                .push_back(Box::pin(async move { Done { result: reply.await, batch, link } }));
        }
    }

    fn settle(&mut self, done: Done) {
        let Done { mut batch, result, link } = done;
        let common = &self.lane.common;
        match result {
            Ok(reply) => batch.answer(reply, common),
            Err(Fault::Broken(failure)) => {
                if link == self.links && self.link.is_some() {
                    self.lose_link();
                }
                batch.fail(&failure.into(), &self.lane.common);
            }
            Err(Fault::Server(server))
                if server.code() == "NOSCRIPT" && batch.loads < MAX_LOADS =>
            {
                common.counters.noscripts.count();
                batch.loads += 1;
                self.repeats.push_back(batch);
            }
            Err(Fault::Server(server)) => self.refused(batch, &server),
        }
    }

    /// The server has refused a call: it goes elsewhere if servers can change places, else the
    /// requests are answered so.
    fn refused(&self, batch: Batch, error: &ServerError) {
        let common = &self.lane.common;
        let failure = error::of_server(error);
        if common.news.is_none() {
            return batch.fail(&failure.into(), common);
        }
        let line = Line::of(batch.line.group);
        let alone = Line { alone: true, ..line };
        let line = match error.code() {
            "ASK" => Line { asks: true, ..alone },
            "TRYAGAIN" => alone,
            "MOVED" | "READONLY" | "CLUSTERDOWN" => line,
            _ => {
                // It may be one that others have replaced.
                let _ = self.lane.tell(News::Lost);
                return batch.fail(&failure.into(), common);
            }
        };
        let was_alone = batch.line.alone;
        let (requests, too_often) = batch.into_waiting(line);
        self.lane.fail(too_often, &failure.clone().into());
        let requests = self.without_late(requests, &failure);
        if requests.is_empty() {
            return;
        }
        common.counters.redirections.count();
        let to = error.details().and_then(|detail| redirection(detail, &self.address));
        let news = match (error.code(), to) {
            ("MOVED", Some((slot, to))) => News::Moved { slot, to, requests },
            ("ASK", Some((_, to))) => News::Ask { to, requests },
            ("READONLY", _) => News::Stale(requests),
            ("TRYAGAIN", _) if !was_alone => News::Route(requests),
            _ => News::Later(requests),
        };
        if let Err(
            News::Moved { requests, .. }
            | News::Ask { requests, .. }
            | News::Stale(requests)
            | News::Later(requests)
            | News::Route(requests),
        ) = self.lane.tell(news)
        {
            self.lane.fail(requests, &closed().into());
        }
    }

    /// The requests, without those that have been on their way for as long as a call may take.
    fn without_late(&self, requests: Vec<Waiting>, failure: &Failure) -> Vec<Waiting> {
        let common = &self.lane.common;
        let longest = common.options.call_timeout.as_micros();
        let longest = u64::try_from(longest).unwrap_or(u64::MAX);
        let now = common.clock.now();
        let is_late = |waiting: &Waiting| now.duration_since(waiting.caller.since).get() > longest;
        let (late, requests) = requests.into_iter().partition(is_late);
        self.lane.fail(late, &failure.clone().into());
        requests
    }

    fn give_up_repeats(&mut self, failure: &Failure) {
        for batch in self.repeats.drain(..) {
            batch.fail(&failure.clone().into(), &self.lane.common);
        }
    }
}

/// A slot and where it is: `SLOT HOST:PORT`.
fn redirection(details: &str, speaker: &Address) -> Option<(u16, Address)> {
    let (slot, address) = details.split_once(' ')?;
    Some((slot.parse().ok()?, Address::of_redirection(address.trim(), speaker)?))
}

fn closed() -> Failure {
    Failure::new(FailureKind::Unreachable, "the store was closed")
}

/// The end of the attempt that is under way, if there is one.
async fn attempted(
    attempt: &mut Option<BoxFuture<'static, Result<Link, Failure>>>,
) -> Result<Link, Failure> {
    match attempt {
        Some(attempt) => attempt.await,
        None => std::future::pending().await,
    }
}

/// Makes a link after a wait, with the script loaded.
async fn connect(
    lane: Arc<Lane>,
    address: Address,
    wait: std::time::Duration,
) -> Result<Link, Failure> {
    tokio::time::sleep(wait).await;
    let woken = Arc::clone(&lane);
    let link = lane.common.dialer.dial(&address, move || woken.wake.notify_one()).await?;
    match link.load().await {
        Err(Fault::Broken(failure)) => Err(Failure::new(FailureKind::Unreachable, failure.message)),
        Err(error) if error.failure().kind == FailureKind::WrongPassword => Err(error.failure()),
        // Why it cannot be loaded is said to whoever calls it, if it still matters then.
        _ => Ok(link),
    }
}
