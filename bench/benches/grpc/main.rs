//! The daemon as Envoy's rate limit service beside other servers, in the same run: each server on
//! one core, the load on another, over 10 connections with 20 requests in flight on each.
//!
//! The others are limitador in memory, if `limitador-server` is on the path or `LIMITADOR` names
//! it, and a server of tonic that returns a constant. Each round measures all servers in turn, and
//! each ratio is of one round; the medians of the rounds are printed. `--quick` runs one short
//! round.
#![expect(clippy::print_stdout, reason = "a benchmark prints what it measured")]

mod load;
mod servers;

use std::rc::Rc;

use anyhow::Result;
use bench::Effort;
use bench::figures::{decimal, median, ratio};
use bench::process::{self, LOAD_CORE};

use load::{Load, Measured};
use servers::Server;

/// The numbers of keys, as text and as a number.
const KEYS: [(&str, usize); 2] = [("100,000", 100_000), ("1", 1)];
const REQUESTS: usize = 150_000;

fn main() -> Result<()> {
    if let Some(port) = servers::constant_port() {
        return servers::serve_constant(port);
    }
    let Some(effort) = Effort::from_args(5, 30) else { return Ok(()) };
    process::pin(std::process::id(), LOAD_CORE)?;
    let servers = servers::start_all()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    println!(
        "| server | keys | requests/s | tollgate's rate ÷ its rate | p50, ms | p99, ms | CPU, µs \
         | its CPU ÷ tollgate's |\n\
         |---|---|---:|---:|---:|---:|---:|---:|"
    );
    for (keys, count) in KEYS {
        let load = Rc::new(Load::new(count));
        let mut rounds = Vec::new();
        for _ in 0..effort.rounds {
            let run =
                |server| runtime.block_on(load::run(server, &load, REQUESTS / effort.divisor));
            rounds.push(servers.iter().map(run).collect::<Result<Vec<Measured>>>()?);
        }
        print(keys, &servers, &rounds);
    }
    println!(
        "\nThe target is 1.3 times the rate of limitador. If the core of the load is saturated, \
         the ratio of CPU times shows what the server could do."
    );
    Ok(())
}

/// Prints a line for each server; Tollgate is the first.
fn print(keys: &str, servers: &[Server], rounds: &[Vec<Measured>]) {
    for (index, server) in servers.iter().enumerate() {
        let median = |figure: fn(Measured, Measured) -> u64| {
            median(rounds.iter().map(|round| figure(round[0], round[index])))
        };
        println!(
            "| {} | {keys} | {} | **{}** | {} | {} | {} | **{}** |",
            server.name,
            median(|_, other| other.rate),
            decimal(median(|tollgate, other| ratio(tollgate.rate, other.rate))),
            decimal(median(|_, other| other.p50_us / 10)),
            decimal(median(|_, other| other.p99_us / 10)),
            decimal(median(|_, other| other.cpu_us)),
            decimal(median(|tollgate, other| ratio(other.cpu_us, tollgate.cpu_us))),
        );
    }
}
