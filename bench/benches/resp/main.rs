//! The daemon over RESP beside Redis itself, in the same run: both on one core, `redis-benchmark`
//! on the other, 50 connections.
//!
//! What a Redis server can do at best is one `INCR` for each request, which limits nothing yet. Each
//! round asks both in turn, and each ratio is that of a round; the medians are printed. The rate
//! hangs on what else the machine does; the CPU of a command hardly does. It starts its own servers
//! (`REDIS_SERVER` names another binary). With `--quick` there is one short round, to see that
//! all goes.
#![expect(clippy::print_stdout, reason = "a benchmark prints what it measured")]

mod daemon;
mod load;
mod row;

use anyhow::Result;
use bench::figures::{median, per, show};
use bench::process::{self, SERVER_CORE};
use tollgate_testkit::Server;

use daemon::Daemon;
use load::{Load, Measured};
use row::{Row, rows};

/// How much is asked.
#[derive(Clone, Copy, Debug)]
struct Effort {
    rounds: usize,
    /// What the numbers of requests are divided by.
    divisor: u64,
}

fn main() -> Result<()> {
    let has = |flag| std::env::args().any(|arg| arg == flag);
    // `cargo test --all-targets` runs it too, only to see that it builds.
    if !has("--bench") {
        return Ok(());
    }
    let effort = if has("--quick") {
        Effort { rounds: 1, divisor: 20 }
    } else {
        Effort { rounds: 5, divisor: 1 }
    };
    let daemon = Daemon::start()?;
    let server = Server::start();
    process::pin(server.pid(), SERVER_CORE)?;
    let ours = Load { port: daemon.port, process: daemon.id() };
    let redis = Load { port: server.port(), process: server.pid() };
    print_head();
    for row in rows() {
        let mut rounds = Vec::new();
        for _ in 0..effort.rounds {
            let asks = row.asks / effort.divisor;
            let theirs = redis.run(&row, row.keys.increment(), asks)?;
            rounds.push((ours.run(&row, &row.command, asks)?, theirs));
        }
        print(&row, &rounds);
    }
    println!(
        "\nThe targets of `CL.THROTTLE` are ratios of 1.8 at pipeline 32 and 1.0 at pipeline 1. \
         Where the load's own core is the bound, the ratio of CPU says what the server could."
    );
    Ok(())
}

fn print_head() {
    println!(
        "| command | keys | pipeline | a second | `INCR` a second | ratio | p99, ms | `INCR` p99, ms \
         | CPU, µs | `INCR` CPU, µs | `INCR` CPU × |\n\
         |---|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|"
    );
}

fn print(row: &Row, rounds: &[(Measured, Measured)]) {
    let middle = |of: fn(&(Measured, Measured)) -> u64| median(rounds.iter().map(of));
    println!(
        "| {} | {} | {} | {} | {} | **{}** | {} | {} | {} | {} | **{}** |",
        row.name,
        row.keys.name(),
        row.pipeline,
        middle(|it| it.0.a_second),
        middle(|it| it.1.a_second),
        show(middle(|it| per(it.0.a_second, it.1.a_second))),
        show(middle(|it| it.0.p99_us / 10)),
        show(middle(|it| it.1.p99_us / 10)),
        show(middle(|it| it.0.cpu_us)),
        show(middle(|it| it.1.cpu_us)),
        show(middle(|it| per(it.1.cpu_us, it.0.cpu_us))),
    );
}
