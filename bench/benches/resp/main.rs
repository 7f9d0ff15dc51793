//! The daemon over RESP beside Redis itself, in the same run: both servers on one core,
//! `redis-benchmark` on another, 50 connections.
//!
//! A rate limiter on Redis takes at least one `INCR` per request. Each round measures both servers
//! in turn, and each ratio is of one round; the medians of the rounds are printed. The rate depends
//! on the other load of the machine; the CPU time of a command hardly does. `REDIS_SERVER` names
//! another server. `--quick` runs one short round.
#![expect(clippy::print_stdout, reason = "a benchmark prints what it measured")]

mod load;
mod row;

use anyhow::Result;
use bench::Effort;
use bench::figures::{decimal, median, ratio};
use bench::process::{self, SERVER_CORE};
use tollgate_testkit::Server;

use load::{Measured, Target};
use row::{Row, rows};

fn main() -> Result<()> {
    let Some(effort) = Effort::from_args(5, 20) else { return Ok(()) };
    let (daemon, port) = load::start_daemon()?;
    let server = Server::start();
    process::pin(server.pid(), SERVER_CORE)?;
    let tollgate = Target { port, id: daemon.id() };
    let redis = Target { port: server.port(), id: server.pid() };
    println!(
        "| command | keys | pipeline | commands/s | `INCR`/s | ratio | p99, ms | `INCR` p99, ms \
         | CPU, µs | `INCR` CPU, µs | `INCR` CPU ÷ CPU |\n\
         |---|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|"
    );
    for row in rows() {
        let mut rounds = Vec::new();
        for _ in 0..effort.rounds {
            let requests = row.requests() / effort.divisor;
            let increment = redis.run(&row, &["INCR", row.keys.argument()], requests)?;
            rounds.push((tollgate.run(&row, &row.command, requests)?, increment));
        }
        print(&row, &rounds);
    }
    println!(
        "\nThe targets of `CL.THROTTLE` are ratios of 1.8 at pipeline 32 and 1.0 at pipeline 1. If \
         the core of the load is saturated, the ratio of CPU times shows what the server could do."
    );
    Ok(())
}

/// Prints the medians of the command and of `INCR`.
fn print(row: &Row, rounds: &[(Measured, Measured)]) {
    let median = |figure: fn(Measured, Measured) -> u64| {
        median(rounds.iter().map(|(command, increment)| figure(*command, *increment)))
    };
    println!(
        "| {} | {} | {} | {} | {} | **{}** | {} | {} | {} | {} | **{}** |",
        row.name,
        row.keys.count(),
        row.pipeline,
        median(|command, _| command.rate),
        median(|_, increment| increment.rate),
        decimal(median(|command, increment| ratio(command.rate, increment.rate))),
        decimal(median(|command, _| command.p99_us / 10)),
        decimal(median(|_, increment| increment.p99_us / 10)),
        decimal(median(|command, _| command.cpu_us)),
        decimal(median(|_, increment| increment.cpu_us)),
        decimal(median(|command, increment| ratio(increment.cpu_us, command.cpu_us))),
    );
}
