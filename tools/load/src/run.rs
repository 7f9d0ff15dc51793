//! Runs a plan on all its threads.

use std::io;
use std::rc::Rc;
use std::sync::{Arc, Barrier, OnceLock};
use std::thread::JoinHandle;
use std::time::Duration;

use fastrand::Rng;
use tokio::net::TcpStream;
use tokio::sync::watch::Receiver;
use tokio::task::{LocalSet, spawn_local};

use crate::clock::{Clock, thread_cpu_time};
use crate::connection::{ConnectionEnd, Connector};
use crate::error::LoadError;
use crate::grpc;
use crate::outcome::{EndReason, ErrorCount, GeneratorUsage, Latency, Outcome, Verification};
use crate::plan::Load;
use crate::prepare::{Client, Protocol, Runner};
use crate::session;
use crate::tally::{AdmissionTimes, MAX_ADMISSIONS, Progress, Tally};
use crate::verify::{TimeSource, Verifier};
use crate::worker::{Worker, WorkerConfig};

/// Starts all threads at the same time, once every connection is open.
#[derive(Debug)]
struct StartSignal {
    barrier: Barrier,
    clock: OnceLock<Clock>,
}

impl StartSignal {
    fn wait(&self) -> Clock {
        self.barrier.wait();
        *self.clock.get_or_init(Clock::start)
    }
}

/// The result of one thread.
#[derive(Debug)]
struct ThreadResult {
    tally: Tally,
    due: u64,
    elapsed: Duration,
    cpu: Duration,
    is_target_gone: bool,
}

impl Runner {
    /// Runs the plan until all requests are sent, the time is up, or `stop` becomes true. Blocks.
    ///
    /// # Errors
    /// The system has no more threads or sockets.
    pub fn run(
        &self,
        progress: &Arc<Progress>,
        stop: &Receiver<bool>,
    ) -> Result<Outcome, LoadError> {
        let load = &self.plan.load;
        let threads = load.threads.clamp(1, load.connections.max(1));
        let hold = load.hold.filter(|_| self.has_leases);
        let config = WorkerConfig {
            load: Load { threads, hold, ..load.clone() },
            selector: self.plan.keys.selector(),
            times: self.admission_times(),
            max_admissions: MAX_ADMISSIONS / threads,
            progress: Arc::clone(progress),
        };
        let start =
            Arc::new(StartSignal { barrier: Barrier::new(threads), clock: OnceLock::new() });
        let mut seeds = Rng::with_seed(self.plan.keys.seed);
        let threads: Vec<JoinHandle<io::Result<ThreadResult>>> = (0..threads)
            .map(|thread| {
                let (config, start, random) = (config.clone(), Arc::clone(&start), seeds.fork());
                let (client, stop) = (self.client.clone(), stop.clone());
                std::thread::spawn(move || {
                    run_thread(&config, &client, &start, thread, random, stop)
                })
            })
            .collect();
        let mut results = Vec::new();
        for thread in threads {
            let result = thread.join().map_err(|_| system("a thread panicked"))?;
            results.push(result.map_err(|error| system(&error.to_string()))?);
        }
        Ok(self.outcome(results, *stop.borrow()))
    }

    #[expect(clippy::expect_used, reason = "a run has at least one thread")]
    fn outcome(&self, results: Vec<ThreadResult>, is_stopped: bool) -> Outcome {
        let elapsed = results.iter().map(|result| result.elapsed).max();
        let busy_share = |result: &ThreadResult| {
            let share = result.cpu.as_nanos() * 1_000 / result.elapsed.as_nanos().max(1);
            u64::try_from(share).expect("a thread uses one CPU")
        };
        let generator = GeneratorUsage {
            threads: results.len(),
            cpu: results.iter().map(|result| result.cpu).sum(),
            busiest: results.iter().map(busy_share).max().expect("a thread"),
        };
        let due = results.iter().map(|result| result.due).sum();
        let end = if is_stopped {
            EndReason::Interrupted
        } else if results.iter().all(|result| result.is_target_gone) {
            EndReason::TargetGone
        } else {
            EndReason::Finished
        };
        let mut tally = Tally::new(None, 0);
        for result in results {
            tally.merge(result.tally);
        }
        let verification = self.verification(&mut tally);
        let errors = std::mem::take(&mut tally.errors).into_iter();
        let errors = errors.map(|(kind, (count, first))| ErrorCount { kind, count, first });
        Outcome {
            end,
            elapsed: elapsed.expect("a thread"),
            due: tally.sent.max(due),
            sent: tally.sent,
            decisions: tally.decisions,
            degraded: tally.degraded,
            errors: errors.collect(),
            latency: Latency::from_histogram(&tally.latency),
            generator,
            verification,
        }
    }

    fn verification(&self, tally: &mut Tally) -> Option<Verification> {
        let by_store_time = self.admission_times()? != AdmissionTimes::RoundTrip;
        let source = if by_store_time { TimeSource::Store } else { TimeSource::Client };
        let verifier = Verifier::new(&self.verify, self.plan.check.cost, source);
        Some(Verification {
            limits: self.verify.clone(),
            unverifiable: verifier.unverifiable().copied().collect(),
            verdict: verifier.verify(&mut tally.admissions),
            dropped: tally.dropped,
            by_store_time,
        })
    }
}

fn system(reason: &str) -> LoadError {
    LoadError::System(reason.to_owned())
}

fn run_thread(
    config: &WorkerConfig,
    client: &Client,
    start: &StartSignal,
    thread: usize,
    random: Rng,
    mut stop: Receiver<bool>,
) -> io::Result<ThreadResult> {
    let (connector, protocol) = match client {
        Client::Memory(memory) => {
            let worker = Worker::new(config, start.wait(), thread, random);
            memory.drive(&worker, &stop);
            return Ok(thread_result(&worker, false));
        }
        Client::Remote(connector, protocol) => (connector, protocol),
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let local = LocalSet::new();
    let (total, threads) = (config.load.connections, config.load.threads);
    let connections = total / threads + usize::from(thread < total % threads);
    // A thread without a runtime still waits at the barrier; otherwise the others would wait
    // forever.
    let streams =
        runtime.as_ref().map(|runtime| runtime.block_on(connect_all(connector, connections)));
    let worker = Rc::new(Worker::new(config, start.wait(), thread, random));
    let streams = streams.map_err(|error| io::Error::new(error.kind(), error.to_string()))?;
    let is_target_gone = runtime?.block_on(local.run_until(async {
        tokio::select! {
            is_target_gone = drive_all(&worker, connector, protocol, streams) => is_target_gone,
            _ = stop.wait_for(|is_stopped| *is_stopped) => false,
        }
    }));
    Ok(thread_result(&worker, is_target_gone))
}

fn thread_result(worker: &Worker, is_target_gone: bool) -> ThreadResult {
    let elapsed = Duration::from_nanos(worker.clock.now());
    let (tally, due) = worker.finish();
    ThreadResult { tally, due, elapsed, cpu: thread_cpu_time(), is_target_gone }
}

async fn connect_all(connector: &Connector, connections: usize) -> Vec<io::Result<TcpStream>> {
    let mut streams = Vec::with_capacity(connections);
    for _ in 0..connections {
        streams.push(connector.connect().await);
    }
    streams
}

/// Drives all connections; returns whether every one of them gave up.
async fn drive_all(
    worker: &Rc<Worker>,
    connector: &Connector,
    protocol: &Protocol,
    streams: Vec<io::Result<TcpStream>>,
) -> bool {
    let mut tasks = Vec::with_capacity(streams.len());
    for stream in streams {
        let (worker, connector) = (Rc::clone(worker), connector.clone());
        tasks.push(match protocol.clone() {
            Protocol::Wire(wire) => {
                spawn_local(async move { session::drive(&worker, &connector, &wire, stream).await })
            }
            Protocol::Grpc(grpc) => spawn_local(async move {
                grpc::drive(&worker, &connector, &Rc::new(grpc), stream).await
            }),
        });
    }
    let mut is_target_gone = true;
    for task in tasks {
        is_target_gone &= matches!(task.await, Ok(ConnectionEnd::GaveUp));
    }
    is_target_gone
}
