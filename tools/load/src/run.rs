//! All threads of a run.

use std::io;
use std::rc::Rc;
use std::sync::{Arc, Barrier, OnceLock};
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::sync::watch::Receiver;
use tokio::task::LocalSet;

use crate::clock::{Clock, cpu_of_thread};
use crate::connection::{self, connect};
use crate::error::LoadError;
use crate::grpc;
use crate::outcome::{Ended, Generator, Held, Outcome, outcome};
use crate::plan::Peer;
use crate::prepare::{Asking, Prepared};
use crate::progress::Progress;
use crate::session;
use crate::tally::{MAX_ADMISSIONS, Stamps, Tally};
use crate::verify::{Times, Verifier};
use crate::worker::{Share, Worker};

/// How a run begins: all threads at once, when every connection stands.
#[derive(Debug)]
struct Start {
    barrier: Barrier,
    clock: OnceLock<Clock>,
}

impl Start {
    fn wait(&self) -> Clock {
        self.barrier.wait();
        *self.clock.get_or_init(Clock::start)
    }
}

/// What one thread did.
#[derive(Debug)]
struct Done {
    tally: Tally,
    due: u64,
    elapsed: Duration,
    cpu: Duration,
    is_gone: bool,
}

impl Prepared {
    /// Runs it, until all is asked, the time is up, or `stop` says so. Blocks.
    ///
    /// # Errors
    /// The system has no threads or sockets for it.
    pub fn run(
        &self,
        progress: &Arc<Progress>,
        stop: &Receiver<bool>,
    ) -> Result<Outcome, LoadError> {
        let load = &self.plan.load;
        let threads = load.threads.clamp(1, load.connections.max(1));
        let share = Share {
            peer: self.plan.target.peer().cloned().unwrap_or_else(nobody),
            load: crate::plan::Load {
                threads,
                hold: load.hold.filter(|_| self.has_leases),
                ..load.clone()
            },
            choice: self.plan.keys.choice(),
            seed: self.plan.keys.seed,
            stamps: self.stamps(),
            room: MAX_ADMISSIONS / threads,
            progress: Arc::clone(progress),
        };
        let start = Arc::new(Start { barrier: Barrier::new(threads), clock: OnceLock::new() });
        let threads: Vec<JoinHandle<io::Result<Done>>> = (0..threads)
            .map(|thread| {
                let (share, start) = (share.clone(), Arc::clone(&start));
                let (asking, stop) = (self.asking.clone(), stop.clone());
                std::thread::spawn(move || work(&share, &asking, &start, thread, stop))
            })
            .collect();
        let mut all = Vec::new();
        for thread in threads {
            let done = thread.join().map_err(|_| system("a thread of it failed"))?;
            all.push(done.map_err(|error| system(&error.to_string()))?);
        }
        Ok(self.sum(all, *stop.borrow()))
    }

    fn sum(&self, all: Vec<Done>, is_stopped: bool) -> Outcome {
        let elapsed = all.iter().map(|x| x.elapsed).max().unwrap_or_default();
        let share = |x: &Done| x.cpu.as_nanos() * 1_000 / x.elapsed.as_nanos().max(1);
        let generator = Generator {
            threads: all.len(),
            cpu: all.iter().map(|x| x.cpu).sum(),
            busiest: all.iter().map(share).max().and_then(|x| u64::try_from(x).ok()).unwrap_or(0),
        };
        let due = all.iter().map(|x| x.due).sum();
        let is_gone = all.iter().all(|x| x.is_gone);
        let ended = match (is_stopped, is_gone) {
            (true, _) => Ended::Interrupted,
            (false, true) => Ended::Gone,
            (false, false) => Ended::Finished,
        };
        let mut tally = Tally::new(None, 0);
        all.into_iter().for_each(|x| tally.merge(x.tally));
        let held = self.held(&mut tally);
        outcome(&tally, ended, elapsed, due, generator, held)
    }

    fn held(&self, tally: &mut Tally) -> Option<Held> {
        let stamps = self.stamps()?;
        let times = if stamps == Stamps::Caller { Times::Caller } else { Times::Store };
        let verifier = Verifier::new(&self.against, self.plan.question.cost, times);
        Some(Held {
            limits: self.against.clone(),
            unheld: verifier.unheld().copied().collect(),
            verdict: verifier.verify(&mut tally.admissions),
            unkept: tally.unkept,
            by_store_time: stamps != Stamps::Caller,
        })
    }
}

fn system(why: &str) -> LoadError {
    LoadError::System(why.to_owned())
}

fn nobody() -> Peer {
    Peer { host: String::new(), port: 0, user: None, password: None }
}

fn work(
    share: &Share,
    asking: &Asking,
    start: &Start,
    thread: usize,
    mut stop: Receiver<bool>,
) -> io::Result<Done> {
    if let Asking::Memory(memory) = asking {
        let worker = Worker::new(share, start.wait(), thread);
        memory.drive(&worker, &stop);
        return Ok(done(&worker, false));
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let local = LocalSet::new();
    let (all, threads) = (share.load.connections, share.load.threads);
    let connections = all / threads + usize::from(thread < all % threads);
    // Who has no runtime or no connection still waits with the others, or they would wait for ever.
    let streams = runtime.as_ref().map(|runtime| runtime.block_on(connect_all(share, connections)));
    let worker = Rc::new(Worker::new(share, start.wait(), thread));
    let streams = streams.map_err(|error| io::Error::new(error.kind(), error.to_string()))?;
    let is_gone = runtime?.block_on(local.run_until(async {
        tokio::select! {
            gone = drive_all(&worker, asking, streams) => gone,
            _ = stop.wait_for(|it| *it) => false,
        }
    }));
    Ok(done(&worker, is_gone))
}

fn done(worker: &Worker, is_gone: bool) -> Done {
    let elapsed = Duration::from_nanos(worker.clock.now());
    let (tally, due) = worker.finish();
    Done { tally, due, elapsed, cpu: cpu_of_thread(), is_gone }
}

async fn connect_all(share: &Share, connections: usize) -> Vec<io::Result<TcpStream>> {
    let mut streams = Vec::with_capacity(connections);
    for _ in 0..connections {
        streams.push(connect(&share.peer, share.load.timeout).await);
    }
    streams
}

/// Drives all connections to their ends; whether there was nobody to ask on any of them.
async fn drive_all(
    worker: &Rc<Worker>,
    asking: &Asking,
    streams: Vec<io::Result<TcpStream>>,
) -> bool {
    let mut tasks = Vec::with_capacity(streams.len());
    for stream in streams {
        let worker = Rc::clone(worker);
        tasks.push(match asking.clone() {
            Asking::Wire(wire) => {
                tokio::task::spawn_local(
                    async move { session::drive(&worker, &wire, stream).await },
                )
            }
            Asking::Grpc(grpc) => tokio::task::spawn_local(async move {
                grpc::drive(&worker, &Rc::new(grpc), stream).await
            }),
            Asking::Memory(_) => continue,
        });
    }
    let mut is_gone = true;
    for task in tasks {
        is_gone &= matches!(task.await, Ok(connection::Ended::Gone));
    }
    is_gone
}
