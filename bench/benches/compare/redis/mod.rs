//! The cost of a decision on a Redis server, beside the usual scripts in the same run.
//!
//! It starts its own servers (`REDIS_SERVER` names another binary).

mod caller;
mod costs;
mod meter;
mod row;
mod scripts;
mod throughput;

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use anyhow::Result;
use bench::Effort;
use bench::report::{Report, Row as ReportRow, Sample};
use tokio::runtime::{Builder, Runtime};
use tollgate_redis::RedisOptions;
use tollgate_testkit::Server;

use self::caller::{Caller, ScriptCaller, StoreCaller};
use self::meter::Meter;
use self::row::Row;

/// The number of tasks that make requests at the same time under load.
const CALLERS: usize = 64;

/// Enough tasks for two of the largest batches.
const MAX_BATCH_CALLERS: usize = 1_000;

fn runtime() -> Result<Runtime> {
    Ok(Builder::new_multi_thread().enable_all().build()?)
}

/// Measures a token bucket: one caller, so that each call decides one check, and [`CALLERS`], by the
/// checks that one call decides at most.
pub(crate) fn run(effort: Effort, report: &mut Report) -> Result<()> {
    bench::process::unpin()?;
    let (runtime, server) = (runtime()?, Server::start());
    for (callers, batch) in [(1, 1), (CALLERS, 7), (CALLERS, 32)] {
        let row = runtime.block_on(systems(&server, callers, batch)).and_then(|mut systems| {
            let name =
                format!("Redis, token bucket, callers: {callers}, checks per call: up to {batch}");
            let requests = if callers == 1 { 20_000 } else { 60_000 } / effort.divisor;
            ReportRow::measure(name, effort.rounds, &mut systems, |system| {
                runtime.block_on(system.measure(&server, requests))
            })
        })?;
        report.rows.push(row);
    }
    Ok(())
}

/// Callers of the store, or of the usual script with a connection each.
enum System {
    Store(Vec<StoreCaller>, Arc<AtomicUsize>),
    Script(Vec<ScriptCaller>, Arc<AtomicUsize>),
}

async fn systems(server: &Server, callers: usize, batch: usize) -> Result<Vec<(String, System)>> {
    let limits = Arc::new(Row::limits("", &["1000/s"])?);
    let hash = Arc::new(Row::script("", scripts::HASH));
    let options = RedisOptions { batch, connections: 1, ..RedisOptions::default() };
    let store = caller::open(&server.url(), options).await?;
    let store = vec![StoreCaller::new(&store, &limits); callers];
    let mut script = Vec::new();
    for _ in 0..callers {
        script.push(ScriptCaller::new(&caller::connect(server).await?, server, &hash)?);
    }
    // Every key is known before anything is measured.
    let next = Arc::new(AtomicUsize::new(0));
    caller::run(store.clone(), &next, limits.keys.len()).await?;
    caller::run(script.clone(), &next, limits.keys.len()).await?;
    Ok(vec![
        ("tollgate".to_owned(), System::Store(store, Arc::default())),
        ("a hash, one `EVALSHA` each".to_owned(), System::Script(script, Arc::default())),
    ])
}

impl System {
    /// The CPU time of Redis's main thread.
    async fn measure(&self, server: &Server, requests: usize) -> Result<Sample> {
        match self {
            System::Store(callers, next) => measure(server, callers, next, requests).await,
            System::Script(callers, next) => measure(server, callers, next, requests).await,
        }
    }
}

async fn measure<C: Caller + Clone>(
    server: &Server,
    callers: &[C],
    next: &Arc<AtomicUsize>,
    requests: usize,
) -> Result<Sample> {
    let spent = Meter::new([server]).measure(callers.to_vec(), next, requests, 1).await?;
    // Hundredths of a microsecond.
    Ok(Sample { rate: spent.rate(), cpu_ps: spent.main_thread() * 10_000 })
}

/// Prints the tables of every kind of limit, and of a cluster. Each figure is the median of the
/// rounds, each of which measures every row.
pub(crate) fn run_tables(effort: Effort, _: &mut Report) -> Result<()> {
    bench::process::unpin()?;
    runtime()?.block_on(async {
        let server = Server::start();
        costs::run(&server, effort).await?;
        server.command(&["FLUSHALL"]);
        throughput::run_server(&server, effort).await?;
        drop(server);
        throughput::run_cluster(effort).await
    })
}
