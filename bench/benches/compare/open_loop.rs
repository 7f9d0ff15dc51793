//! Requests that are due at a steady rate, whether or not earlier ones were answered. A latency counts from
//! when the request was due, so that a server that stops delays all requests that are due meanwhile.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use anyhow::{Context, Result};
use bench::figures::number;
use tokio::runtime::Builder;
use tokio::sync::Mutex;
use tokio::task::{JoinSet, LocalSet, yield_now};
use tokio::time::timeout;
use tollgate::Timestamp;
use tollgate_state::Clock;

/// A client with one request in flight.
pub(crate) trait Client: 'static {
    /// Sends the request with this number, and reads the response.
    async fn call(&mut self, number: u64) -> Result<()>;
}

/// The requests of a run.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// By ascending length.
    pub(crate) latencies_us: Vec<u64>,
    /// Requests that were due and never sent.
    pub(crate) unsent: u64,
}

impl Outcome {
    /// The latency that this many of a thousand requests did not exceed.
    pub(crate) fn per_mille(&self, share: usize) -> u64 {
        let rank = (self.latencies_us.len() * share).div_ceil(1_000);
        self.latencies_us.get(rank.saturating_sub(1)).copied().unwrap_or(0)
    }
}

/// Sends requests for some seconds: this many per second, or in a closed loop as soon as a client is free.
pub(crate) fn run<C: Client>(
    connect: impl AsyncFnOnce() -> Result<Vec<C>>,
    seconds: u64,
    rate: Option<u64>,
) -> Result<Outcome> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let local = LocalSet::new();
    runtime.block_on(local.run_until(async {
        let clients = connect().await?;
        let clock = Clock::system();
        let schedule = Rc::new(Schedule {
            start: clock.now(),
            clock,
            end: seconds * SECOND,
            rate,
            next: Mutex::new(0),
            latencies: RefCell::default(),
        });
        let mut tasks = JoinSet::new();
        for client in clients {
            tasks.spawn_local(schedule.clone().send(client));
        }
        let all = async {
            while let Some(result) = tasks.join_next().await {
                result??;
            }
            anyhow::Ok(())
        };
        timeout(Duration::from_secs(2 * seconds + 10), all)
            .await
            .context("a server does not answer")??;
        let mut latencies_us = schedule.latencies.take();
        latencies_us.sort_unstable();
        let sent = number(latencies_us.len());
        let unsent = rate.map_or(0, |rate| (rate * seconds).saturating_sub(sent));
        Ok(Outcome { latencies_us, unsent })
    }))
}

/// A second in µs.
const SECOND: u64 = 1_000_000;

/// When requests are due, in µs since the start.
struct Schedule {
    clock: Clock,
    start: Timestamp,
    end: u64,
    rate: Option<u64>,
    /// The number of the next request. The client that waits for it holds the lock.
    next: Mutex<u64>,
    latencies: RefCell<Vec<u64>>,
}

impl Schedule {
    fn now(&self) -> u64 {
        self.clock.now().duration_since(self.start).get()
    }

    /// Waits until the next request is due; returns its number, and when it was due. `None` at the end.
    async fn wait(&self) -> Option<(u64, u64)> {
        let mut next = self.next.lock().await;
        let due = self.rate.map_or_else(|| self.now(), |rate| *next * SECOND / rate);
        // A timer of tokio has a resolution of a millisecond.
        while self.now() < due.min(self.end) {
            yield_now().await;
        }
        if due >= self.end || self.now() >= self.end {
            return None;
        }
        let number = *next;
        *next += 1;
        Some((number, due))
    }

    async fn send(self: Rc<Self>, mut client: impl Client) -> Result<()> {
        while let Some((number, due)) = self.wait().await {
            client.call(number).await?;
            self.latencies.borrow_mut().push(self.now() - due);
        }
        Ok(())
    }
}
