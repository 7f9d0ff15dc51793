//! The daemon as Envoy's rate limit service beside another, in the same run: each on one core, what
//! asks them on the other, over 10 connections with 20 requests under way on each.
//!
//! The other is limitador, in memory, if `limitador-server` is on the path or `LIMITADOR` names it. A
//! server of tonic that answers a constant, and decides nothing, is always there. Each round asks
//! all in turn, and each ratio is that of a round; the medians are printed. With `--quick` there is
//! one short round, to see that all goes.
#![expect(clippy::print_stdout, reason = "a benchmark prints what it measured")]

mod constant;
mod load;
mod servers;

use std::rc::Rc;

use anyhow::Result;
use bench::figures::{median, per, show};
use bench::process::{self, LOAD_CORE};

use load::{Load, Measured};
use servers::Served;

/// How much is asked.
#[derive(Clone, Copy, Debug)]
struct Effort {
    rounds: usize,
    asks: usize,
}

/// How many keys are asked for.
const KEYS: [(&str, usize); 2] = [("100,000", 100_000), ("1", 1)];

fn main() -> Result<()> {
    if let Some(port) = constant::port_asked_for() {
        return constant::serve(port);
    }
    let has = |flag| std::env::args().any(|arg| arg == flag);
    // `cargo test --all-targets` runs it too, only to see that it builds.
    if !has("--bench") {
        return Ok(());
    }
    let effort = if has("--quick") {
        Effort { rounds: 1, asks: 5_000 }
    } else {
        Effort { rounds: 5, asks: 150_000 }
    };
    process::pin(std::process::id(), LOAD_CORE)?;
    let servers = servers::all()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    println!(
        "| server | keys | a second | tollgate ÷ it | p50, ms | p99, ms | CPU, µs | its CPU ÷ tollgate's |\n\
         |---|---|---:|---:|---:|---:|---:|---:|"
    );
    for (keys, count) in KEYS {
        let load = Rc::new(Load::new(count));
        let mut rounds = Vec::new();
        for _ in 0..effort.rounds {
            let round: Result<Vec<Measured>> = servers
                .iter()
                .map(|server| runtime.block_on(load::run(server, &load, effort.asks)))
                .collect();
            rounds.push(round?);
        }
        print(keys, &servers, &rounds);
    }
    println!(
        "\nThe target is 1.3 times limitador. Where the load's own core is the bound, the ratio"
    );
    println!("of CPU says what the server could.");
    Ok(())
}

/// A line for each server; the first is ours.
fn print(keys: &str, servers: &[Served], rounds: &[Vec<Measured>]) {
    for (at, server) in servers.iter().enumerate() {
        let middle = |of: fn(Measured, Measured) -> u64| {
            median(rounds.iter().filter_map(|round| Some(of(*round.first()?, *round.get(at)?))))
        };
        println!(
            "| {} | {keys} | {} | **{}** | {} | {} | {} | **{}** |",
            server.name,
            middle(|_, it| it.a_second),
            show(middle(|ours, it| per(ours.a_second, it.a_second))),
            show(middle(|_, it| it.p50_us / 10)),
            show(middle(|_, it| it.p99_us / 10)),
            show(middle(|_, it| it.cpu_us)),
            show(middle(|ours, it| per(it.cpu_us, ours.cpu_us))),
        );
    }
}
