//! The cost of a decision on a Redis server, beside the usual scripts in the same run: CPU time,
//! memory, and decisions per second.
//!
//! It starts its own servers (`REDIS_SERVER` names another binary) and prints tables in Markdown.
//! Each figure is the median of three rounds, each of which measures every row. `--quick` runs one
//! short round.
#![expect(clippy::print_stdout, reason = "a benchmark prints what it measured")]

mod caller;
mod costs;
mod meter;
mod row;
mod scripts;
mod throughput;

use anyhow::Result;
use bench::Effort;
use tollgate_testkit::Server;

/// The number of tasks that make requests at the same time under load.
const CALLERS: usize = 64;

/// Enough tasks for two of the largest batches.
const MAX_BATCH_CALLERS: usize = 1_000;

fn main() -> Result<()> {
    let Some(effort) = Effort::from_args(3, 10) else { return Ok(()) };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let server = Server::start();
        costs::run(&server, effort).await?;
        server.command(&["FLUSHALL"]);
        throughput::run_server(&server, effort).await?;
        drop(server);
        throughput::run_cluster(effort).await
    })
}
