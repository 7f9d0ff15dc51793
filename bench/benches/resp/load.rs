//! The daemon, and `redis-benchmark` on another core.

use std::process::Command;

use anyhow::{Context, Result, ensure};
use bench::figures::{Hundredths, number, ratio};
use bench::process::{self, LOAD_CORE, PinnedProcess, cpu_ns};

use crate::row::{KEYS, Row};

/// One policy, `api`, which the load cannot exhaust.
const CONFIG: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/resp/tollgate.yaml");

/// Starts the daemon with its RESP listener only; returns it and the port.
pub(crate) fn start_daemon() -> Result<(PinnedProcess, u16)> {
    let mut command = Command::new(process::tollgate()?);
    command.args(["serve", "--config", CONFIG, "--http", "off", "--grpc", "off"]);
    command.args(["--resp", "127.0.0.1:0", "--admin", "off", "--metrics", "127.0.0.1:0"]);
    let mut process = PinnedProcess::start(&command)?;
    let line = process.line_with("  RESP ")?;
    let port = line.trim().rsplit_once(':').context(line.clone())?.1.parse()?;
    Ok((process, port))
}

/// The server under load.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Target {
    pub(crate) port: u16,
    /// The process id.
    pub(crate) id: u32,
}

/// The result of a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Measured {
    pub(crate) rate: u64,
    pub(crate) p99_us: u64,
    /// The CPU time of the server per command.
    pub(crate) cpu_us: Hundredths,
}

impl Target {
    /// Sends a command this often over 50 connections, with the pipeline of the row.
    pub(crate) fn run(&self, row: &Row, command: &[&str], requests: usize) -> Result<Measured> {
        let mut load = Command::new("taskset");
        load.args(["-c", LOAD_CORE, "redis-benchmark", "-p", &self.port.to_string()]);
        load.args(["-c", "50", "-P", &row.pipeline.to_string(), "-n", &requests.to_string()]);
        load.args(["-r", KEYS, "--csv"]).args(command);
        let cpu_before = cpu_ns(self.id)?;
        let output = load.output().context("cannot start taskset; install util-linux")?;
        let cpu = cpu_ns(self.id)?.checked_sub(cpu_before);
        let cpu = cpu.context("busy threads of the server ended during the run")?;
        let [stdout, stderr] =
            [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
        ensure!(output.status.success(), "redis-benchmark, of redis-tools: {stdout}{stderr}");
        let figure = |name| thousandths(&stdout, name).with_context(|| format!("{stdout}{stderr}"));
        Ok(Measured {
            rate: figure("rps")? / 1_000,
            p99_us: figure("p99_latency_ms")?,
            cpu_us: ratio(cpu / 1_000, number(requests)),
        })
    }
}

/// A figure with up to three decimals, in thousandths. The last two lines of the output are the
/// names and the figures.
fn thousandths(output: &str, name: &str) -> Option<u64> {
    let mut lines = output.lines().rev().map(|line| line.split("\",\""));
    let (mut figures, mut names) = (lines.next()?, lines.next()?);
    let index = names.position(|column| column.trim_matches('"') == name)?;
    let figure = figures.nth(index)?.trim_matches('"');
    let (whole, decimals) = figure.split_once('.').unwrap_or((figure, ""));
    let decimals = format!("{decimals:0<3}");
    Some(whole.parse::<u64>().ok()? * 1_000 + decimals.get(..3)?.parse::<u64>().ok()?)
}
