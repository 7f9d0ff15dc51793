//! `redis-benchmark`.

use anyhow::{Context, Result};
use bench::figures::number;
use bench::process;
use bench::report::Sample;

use super::row::KEYS;
use crate::servers;

/// The server under load.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Target {
    pub(crate) port: u16,
    /// The process id.
    pub(crate) id: u32,
}

impl Target {
    /// Measures a command that is sent this often over 50 connections.
    pub(crate) fn measure(
        &self,
        pipeline: usize,
        command: &[&str],
        requests: usize,
    ) -> Result<Sample> {
        servers::measure(self.id, || self.load(pipeline, command, requests))
    }

    /// Returns the number of requests, and how many there were per second.
    pub(crate) fn load(
        &self,
        pipeline: usize,
        command: &[&str],
        requests: usize,
    ) -> Result<(u64, u64)> {
        let (port, pipeline) = (self.port.to_string(), pipeline.to_string());
        let count = requests.to_string();
        let mut load = vec!["redis-benchmark", "-p", &port, "-c", "50", "-P", &pipeline];
        load.extend(["-n", &count, "-r", KEYS, "--csv"]);
        load.extend(command);
        let output = process::run_load(&load)?;
        let rate = rate(&output).with_context(|| format!("no rate: {output}"))?;
        Ok((number(requests), rate))
    }
}

/// The whole part of the column `rps`. The last two lines of the output are the names and the
/// figures.
fn rate(output: &str) -> Option<u64> {
    let mut lines = output.lines().rev().map(|line| line.split("\",\""));
    let (mut figures, mut names) = (lines.next()?, lines.next()?);
    let index = names.position(|column| column.trim_matches('"') == "rps")?;
    let figure = figures.nth(index)?.trim_matches('"');
    figure.split('.').next()?.parse().ok()
}
