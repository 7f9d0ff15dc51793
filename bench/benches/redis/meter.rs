//! What servers say that they have spent.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use anyhow::{Context, Result};
use tollgate_testkit::{Connection, Server};

use crate::caller::{self, Caller};
use bench::figures::{Hundredths, number, per};

/// Reads the counters of servers.
#[derive(Debug)]
pub(crate) struct Meter {
    connections: Vec<Connection>,
}

/// What decisions have taken.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Spent {
    pub(crate) decisions: u64,
    /// Of `EVALSHA`.
    calls: u64,
    script_us: u64,
    /// All that the server's main thread did, reading and writing among it.
    main_thread_us: u64,
    elapsed_us: u64,
}

impl Spent {
    /// CPU of the script, in µs.
    pub(crate) fn script(&self) -> Hundredths {
        per(self.script_us, self.decisions)
    }

    /// CPU of the server's main thread, in µs.
    pub(crate) fn main_thread(&self) -> Hundredths {
        per(self.main_thread_us, self.decisions)
    }

    /// Decisions in a call.
    pub(crate) fn batch(&self) -> Hundredths {
        per(self.decisions, self.calls)
    }

    pub(crate) fn a_second(&self) -> u64 {
        per(self.decisions * 10_000, self.elapsed_us)
    }
}

impl Meter {
    pub(crate) fn of<'a>(servers: impl IntoIterator<Item = &'a Server>) -> Self {
        Meter { connections: servers.into_iter().map(Server::connect).collect() }
    }

    /// Measures what these callers spend on so many asks, of as many decisions each.
    pub(crate) async fn measure<C: Caller>(
        &mut self,
        callers: Vec<C>,
        asked: &Arc<AtomicUsize>,
        asks: usize,
        decisions_each: usize,
    ) -> Result<Spent> {
        let before = self.main_thread_us()?;
        for connection in &mut self.connections {
            connection.command(&["CONFIG", "RESETSTAT"])?;
        }
        let elapsed_us = caller::run(callers, asked, asks).await?.get();
        let main_thread_us = self.main_thread_us()? - before;
        let decisions = number(asks * decisions_each);
        let mut spent = Spent { decisions, main_thread_us, elapsed_us, ..Spent::default() };
        for connection in &mut self.connections {
            let info = connection.command(&["INFO", "commandstats"])?.text();
            // A node of a cluster may have had nothing to do.
            let Some(line) = info.lines().find_map(|line| line.strip_prefix("cmdstat_evalsha:"))
            else {
                continue;
            };
            let mut fields = line.split(',').filter_map(|part| part.split_once('='));
            let mut field = |name| {
                let found = fields
                    .find(|field| field.0 == name)
                    .and_then(|field| field.1.parse::<u64>().ok());
                found.with_context(|| format!("{name} in {line}"))
            };
            spent.calls += field("calls")?;
            spent.script_us += field("usec")?;
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

    /// The bytes of all that is kept of a user's key.
    pub(crate) fn bytes(&mut self, key: &str) -> Result<u64> {
        let mut sum = 0;
        for connection in &mut self.connections {
            let names = connection.command(&["KEYS", &format!("*{key}")])?;
            for name in names.array() {
                let name = name.text();
                let usage = connection.command(&["MEMORY", "USAGE", &name, "SAMPLES", "0"])?;
                sum += u64::try_from(usage.integer())?;
            }
        }
        Ok(sum)
    }
}
