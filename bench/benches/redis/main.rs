//! What a decision costs a Redis server, beside the scripts that are usually written, in the same
//! run: its CPU, its memory, and how many decisions a second it gives.
//!
//! It starts its own servers (`REDIS_SERVER` names another binary) and prints tables in Markdown.
//! Each figure is the median of three rounds, in each of which every row has its turn.
//! With `--quick` there is one short round, to see that all goes.
#![expect(clippy::print_stdout, reason = "a benchmark prints what it measured")]

mod caller;
mod cluster;
mod costs;
mod meter;
mod row;
mod scripts;
mod throughput;

use anyhow::Result;
use tollgate_testkit::Server;

/// How much is asked.
#[derive(Clone, Copy, Debug)]
struct Effort {
    rounds: usize,
    /// What the numbers of decisions are divided by.
    divisor: usize,
}

/// How many tasks ask at the same time, under load.
const CALLERS: usize = 64;

fn main() -> Result<()> {
    let has = |flag| std::env::args().any(|arg| arg == flag);
    // `cargo test --all-targets` runs it too, only to see that it builds.
    if !has("--bench") {
        return Ok(());
    }
    let effort = if has("--quick") {
        Effort { rounds: 1, divisor: 10 }
    } else {
        Effort { rounds: 3, divisor: 1 }
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let server = Server::start();
        costs::run(&server, effort).await?;
        server.command(&["FLUSHALL"]);
        throughput::run(&server, effort).await?;
        drop(server);
        cluster::run(effort).await
    })
}
