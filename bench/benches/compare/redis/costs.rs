//! The first table: the cost of a decision of each kind, and the memory of a key.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context, Result, bail};
use bench::Effort;
use bench::figures::{Hundredths, decimal, median, ratio};
use redis::aio::MultiplexedConnection;
use tollgate_redis::{RedisOptions, RedisStore};
use tollgate_testkit::Server;

use crate::redis::caller::{self, Caller, ScriptCaller, StoreCaller};
use crate::redis::meter::{Meter, Spent};
use crate::redis::row::{self, Decider, Row};
use crate::redis::{CALLERS, MAX_BATCH_CALLERS};

/// The figures of a row in one round.
#[derive(Clone, Copy, Debug)]
struct Figures {
    alone: Spent,
    loaded: Spent,
    /// With the largest `batch`; only for rows of the store.
    largest: Option<Spent>,
    bytes: u64,
}

struct Bench {
    effort: Effort,
    meter: Meter,
    /// One connection, and one request per call.
    single: RedisStore,
    /// The default options.
    shared: RedisStore,
    /// One connection, and the largest `batch` that the options accept.
    largest: RedisStore,
    connection: MultiplexedConnection,
}

pub(crate) async fn run(server: &Server, effort: Effort) -> Result<()> {
    let single = RedisOptions { batch: 1, connections: 1, ..RedisOptions::default() };
    let largest = RedisOptions { batch: 500, connections: 1, ..RedisOptions::default() };
    let mut bench = Bench {
        effort,
        meter: Meter::new([server]),
        single: caller::open(&server.url(), single).await?,
        shared: caller::open(&server.url(), RedisOptions::default()).await?,
        largest: caller::open(&server.url(), largest).await?,
        connection: caller::connect(server).await?,
    };
    let rows: Vec<Arc<Row>> = row::all()?.into_iter().map(Arc::new).collect();
    for row in &rows {
        caller::fill(server, row).await?;
    }
    let next_keys: Vec<_> = rows.iter().map(|_| Arc::default()).collect();
    let mut rounds = Vec::new();
    for _ in 0..effort.rounds {
        let mut round = Vec::new();
        for (row, next) in rows.iter().zip(&next_keys) {
            round.push(bench.measure(server, row, next).await?);
        }
        rounds.push(round);
    }
    print(&rows, &rounds)
}

impl Bench {
    async fn measure(
        &mut self,
        server: &Server,
        row: &Arc<Row>,
        next: &Arc<AtomicUsize>,
    ) -> Result<Figures> {
        match &row.decider {
            Decider::Policies { .. } => {
                let alone = StoreCaller::new(&self.single, row);
                let loaded = StoreCaller::new(&self.shared, row);
                let mut figures = self.figures(row, next, alone, loaded).await?;
                let largest = vec![StoreCaller::new(&self.largest, row); MAX_BATCH_CALLERS];
                let requests = requests(row, self.effort);
                let spent = self.meter.measure(largest, next, requests, row.decisions()).await?;
                figures.largest = Some(spent);
                Ok(figures)
            }
            Decider::Script(_) => {
                let caller = ScriptCaller::new(&self.connection, server, row)?;
                self.figures(row, next, caller.clone(), caller).await
            }
        }
    }

    async fn figures<C: Caller + Clone>(
        &mut self,
        row: &Row,
        next: &Arc<AtomicUsize>,
        alone: C,
        loaded: C,
    ) -> Result<Figures> {
        let requests = requests(row, self.effort);
        let decisions_each = row.decisions();
        if row.fill.entries == 0 {
            // Every key is known before anything is measured.
            caller::run(vec![loaded.clone(); CALLERS], next, row.keys.len()).await?;
        }
        let alone = self.meter.measure(vec![alone], next, requests / 8, decisions_each).await?;
        let end = next.load(Ordering::Relaxed) + requests;
        let callers = vec![loaded.clone(); CALLERS];
        let mut last = loaded;
        let loaded = self.meter.measure(callers, next, requests, decisions_each).await?;
        for _ in 0..10 {
            let bytes = self.meter.bytes(row.key(end - 1))?;
            if bytes > 0 {
                return Ok(Figures { alone, loaded, largest: None, bytes });
            }
            last.call(end - 1).await?;
        }
        bail!("{}: the key expires before it is measured", row.name)
    }
}

/// The number of requests that measure a row. Requests lengthen the logs of a filled row.
fn requests(row: &Row, effort: Effort) -> usize {
    let requests = if row.fill.entries > 0 { 6_400 } else { 19_200 };
    requests / effort.divisor
}

fn print(rows: &[Arc<Row>], rounds: &[Vec<Figures>]) -> Result<()> {
    println!(
        "| | script CPU, one at a time, µs | × hash | under load, µs | × hash | decisions per call \
         | main thread, µs | calls over 2 ms | largest batch: decisions per call | calls over 2 ms \
         | bytes per key |\n\
         |---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|"
    );
    // The first row is the hash.
    let median = |index: usize, figure: fn(&Figures, &Figures) -> u64| {
        median(rounds.iter().map(|round| figure(&round[index], &round[0])))
    };
    let sum = |index: usize, figure: fn(&Figures) -> u64| {
        rounds.iter().map(|round| figure(&round[index])).sum::<u64>()
    };
    for (index, row) in rows.iter().enumerate() {
        let is_store = rounds[0][index].largest.is_some();
        let of_store = |figure: String| if is_store { figure } else { String::new() };
        println!(
            "| {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} |",
            row.name,
            decimal(median(index, |row, _| row.alone.script())),
            decimal(median(index, |row, hash| ratio(row.alone.script(), hash.alone.script()))),
            decimal(median(index, |row, _| row.loaded.script())),
            decimal(median(index, loaded_ratio)),
            decimal(median(index, |row, _| row.loaded.batch())),
            decimal(median(index, |row, _| row.loaded.main_thread())),
            sum(index, |row| row.loaded.slow_calls()),
            of_store(decimal(median(index, |row, _| row.largest.unwrap_or_default().batch()))),
            of_store(sum(index, |row| row.largest.unwrap_or_default().slow_calls()).to_string()),
            median(index, |row, _| row.bytes),
        );
    }
    let index = |name: &'static str| rows.iter().position(|row| row.name == name).context(name);
    let cpu = decimal(median(index(row::TOKEN_BUCKET)?, loaded_ratio));
    let bytes =
        decimal(median(index(row::THREE_LIMITS)?, |row, hash| ratio(row.bytes, 3 * hash.bytes)));
    println!(
        "\n- token bucket under load: {cpu} × the CPU of the hash; the target is at most 0.35"
    );
    println!("- three limits: {bytes} × the memory of three hashes; the target is at most 0.45\n");
    Ok(())
}

fn loaded_ratio(row: &Figures, hash: &Figures) -> Hundredths {
    ratio(row.loaded.script(), hash.loaded.script())
}
