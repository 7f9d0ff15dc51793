//! `redis-benchmark`, on the other core.

use std::process::Command;

use anyhow::{Context, Result, ensure};
use bench::figures::{Hundredths, per};
use bench::process::{LOAD_CORE, cpu_ns};

use crate::row::{KEYS, Row};

/// A server that is driven.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Load {
    pub(crate) port: u16,
    pub(crate) process: u32,
}

/// What a run came to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Measured {
    pub(crate) a_second: u64,
    pub(crate) p99_us: u64,
    /// Of the server for each command.
    pub(crate) cpu_us: Hundredths,
}

impl Load {
    /// Asks so often, over 50 connections.
    pub(crate) fn run(&self, row: &Row, command: &[&str], asks: u64) -> Result<Measured> {
        let mut load = Command::new("taskset");
        load.args(["-c", LOAD_CORE, "redis-benchmark", "-p", &self.port.to_string()]);
        load.args(["-c", "50", "-P", &row.pipeline.to_string(), "-n", &asks.to_string()]);
        load.args(["-r", KEYS, "--csv"]).args(command);
        let before = cpu_ns(self.process)?;
        let output = load.output().context("redis-benchmark, of redis-tools")?;
        let spent = cpu_ns(self.process)?.saturating_sub(before);
        let said = String::from_utf8_lossy(&output.stdout);
        let complaint = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "redis-benchmark: {said}{complaint}");
        let figures = Figures::of(&said).with_context(|| format!("{said}{complaint}"))?;
        Ok(Measured {
            a_second: figures.thousandths("rps")? / 1_000,
            p99_us: figures.thousandths("p99_latency_ms")?,
            cpu_us: per(spent / 1_000, asks),
        })
    }
}

/// The last two lines: names, and a figure for each.
#[derive(Debug)]
struct Figures<'a> {
    names: Vec<&'a str>,
    values: Vec<&'a str>,
}

impl<'a> Figures<'a> {
    fn of(said: &'a str) -> Option<Self> {
        let mut lines = said.lines().rev();
        let values = lines.next()?.split("\",\"").collect();
        let names = lines.next()?.split("\",\"").collect();
        Some(Figures { names, values })
    }

    /// A figure with up to three decimals, in thousandths.
    fn thousandths(&self, name: &str) -> Result<u64> {
        let named = self.names.iter().zip(&self.values).find(|x| x.0.trim_matches('"') == name);
        let value = named.with_context(|| name.to_owned())?.1.trim_matches('"');
        let (whole, part) = value.split_once('.').unwrap_or((value, ""));
        let part = format!("{part:0<3}");
        Ok(whole.parse::<u64>()? * 1_000 + part.get(..3).context("decimals")?.parse::<u64>()?)
    }
}
