//! Reads the CPU time and memory that servers report.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use anyhow::{Context, Result};
use tollgate_testkit::{Connection, Reply, Server};

use crate::redis::caller::{self, Caller};
use bench::figures::{Hundredths, number, ratio};

/// Reads the statistics of servers.
#[derive(Debug)]
pub(crate) struct Meter {
    connections: Vec<Connection>,
}

/// The cost of some decisions.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Spent {
    decisions: u64,
    /// Calls of `FCALL` and `EVALSHA`.
    calls: u64,
    script_us: u64,
    /// Everything on the server's main thread, including reads and writes of sockets.
    main_thread_us: u64,
    elapsed_us: u64,
    /// Calls of more than 2 ms.
    slow_calls: u64,
}

impl Spent {
    /// CPU time of the script per decision, in µs.
    pub(crate) fn script(&self) -> Hundredths {
        ratio(self.script_us, self.decisions)
    }

    /// CPU time of the server's main thread per decision, in µs.
    pub(crate) fn main_thread(&self) -> Hundredths {
        ratio(self.main_thread_us, self.decisions)
    }

    /// Decisions per call.
    pub(crate) fn batch(&self) -> Hundredths {
        ratio(self.decisions, self.calls)
    }

    /// The number of calls of more than 2 ms.
    pub(crate) fn slow_calls(&self) -> u64 {
        self.slow_calls
    }

    /// Decisions per second.
    pub(crate) fn rate(&self) -> u64 {
        ratio(self.decisions * 10_000, self.elapsed_us)
    }
}

impl Meter {
    pub(crate) fn new<'a>(servers: impl IntoIterator<Item = &'a Server>) -> Self {
        Meter { connections: servers.into_iter().map(Server::connect).collect() }
    }

    /// Measures `requests` requests of `decisions_each` decisions.
    pub(crate) async fn measure<C: Caller>(
        &mut self,
        callers: Vec<C>,
        next: &Arc<AtomicUsize>,
        requests: usize,
        decisions_each: usize,
    ) -> Result<Spent> {
        let before = self.main_thread_us()?;
        for connection in &mut self.connections {
            connection.command(&["CONFIG", "RESETSTAT"])?;
            connection.command(&["CONFIG", "SET", "slowlog-log-slower-than", "2000"])?;
            connection.command(&["CONFIG", "SET", "slowlog-max-len", "1000000"])?;
            connection.command(&["SLOWLOG", "RESET"])?;
        }
        let elapsed_us = caller::run(callers, next, requests).await?.get();
        let main_thread_us = self.main_thread_us()? - before;
        let decisions = number(requests * decisions_each);
        let mut spent = Spent { decisions, main_thread_us, elapsed_us, ..Spent::default() };
        for connection in &mut self.connections {
            let info = connection.command(&["INFO", "commandstats"])?.text();
            // The usual scripts are called with EVALSHA, the store's with FCALL. A node of a cluster may have
            // received no call.
            let commands = ["cmdstat_fcall:", "cmdstat_evalsha:"];
            let lines = info
                .lines()
                .filter_map(|line| commands.iter().find_map(|command| line.strip_prefix(command)));
            for line in lines {
                let mut fields = line.split(',').filter_map(|part| part.split_once('='));
                let mut field = |name| {
                    let value = fields.find(|field| field.0 == name).map(|field| field.1);
                    let value = value.and_then(|value| value.parse::<u64>().ok());
                    value.with_context(|| format!("{name} in {line}"))
                };
                spent.calls += field("calls")?;
                spent.script_us += field("usec")?;
            }
            let slow_calls = connection.command(&["SLOWLOG", "LEN"])?.integer();
            spent.slow_calls += u64::try_from(slow_calls)?;
        }
        Ok(spent)
    }

    fn main_thread_us(&mut self) -> Result<u64> {
        let mut sum = 0;
        for connection in &mut self.connections {
            let info = connection.command(&["INFO", "cpu"])?.text();
            for name in ["used_cpu_user_main_thread:", "used_cpu_sys_main_thread:"] {
                // Seconds with six decimals.
                let seconds =
                    info.lines().find_map(|line| line.strip_prefix(name)).context(name)?;
                sum += seconds.trim().replace('.', "").parse::<u64>()?;
            }
        }
        Ok(sum)
    }

    /// The memory of everything that is stored for a user's key, in bytes; 0 if any of it has expired.
    pub(crate) fn bytes(&mut self, key: &str) -> Result<u64> {
        let mut sum = 0;
        for connection in &mut self.connections {
            let names = connection.command(&["KEYS", &format!("*{key}")])?;
            for name in names.array() {
                let name = name.text();
                let usage = connection.command(&["MEMORY", "USAGE", &name, "SAMPLES", "0"])?;
                if usage == Reply::Null {
                    return Ok(0);
                }
                sum += u64::try_from(usage.integer())?;
            }
        }
        Ok(sum)
    }
}
