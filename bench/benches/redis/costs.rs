//! The first table: what a decision of each kind costs the server, and what a key weighs.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Result, bail};
use redis::aio::MultiplexedConnection;
use tollgate_redis::{RedisOptions, RedisStore};
use tollgate_testkit::Server;

use crate::caller::{self, Caller, ScriptCaller, StoreCaller};
use crate::meter::{Meter, Spent};
use crate::row::{self, Asked, Row};
use crate::{CALLERS, Effort};
use bench::figures::{Hundredths, median, per, show};

/// What is measured of a row in a round.
#[derive(Clone, Copy, Debug)]
struct Figures {
    alone: Spent,
    loaded: Spent,
    bytes: u64,
}

/// How decisions are asked for, and what it costs is read.
struct Bench {
    effort: Effort,
    meter: Meter,
    /// With one request in a call.
    single: RedisStore,
    /// As it is by default.
    shared: RedisStore,
    connection: MultiplexedConnection,
}

pub(crate) async fn run(server: &Server, effort: Effort) -> Result<()> {
    let single = RedisOptions { batch: 1, connections: 1, ..RedisOptions::default() };
    let mut bench = Bench {
        effort,
        meter: Meter::of([server]),
        single: caller::open(&server.url(), single).await?,
        shared: caller::open(&server.url(), RedisOptions::default()).await?,
        connection: caller::connect(server).await?,
    };
    let rows: Vec<Arc<Row>> = row::all()?.into_iter().map(Arc::new).collect();
    for row in &rows {
        caller::fill(server, row).await?;
    }
    let asked: Vec<_> = rows.iter().map(|_| Arc::default()).collect();
    let mut rounds = Vec::new();
    for _ in 0..effort.rounds {
        let mut round = Vec::new();
        for (row, asked) in rows.iter().zip(&asked) {
            round.push(bench.measure(server, row, asked).await?);
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
        asked: &Arc<AtomicUsize>,
    ) -> Result<Figures> {
        match &row.asked {
            Asked::Policies(..) => {
                let alone = StoreCaller::new(&self.single, row);
                let loaded = StoreCaller::new(&self.shared, row);
                self.figures(row, asked, alone, loaded).await
            }
            Asked::Script(_) => {
                let caller = ScriptCaller::new(&self.connection, server, row)?;
                self.figures(row, asked, caller.clone(), caller).await
            }
        }
    }

    async fn figures<C: Caller + Clone>(
        &mut self,
        row: &Row,
        asked: &Arc<AtomicUsize>,
        alone: C,
        loaded: C,
    ) -> Result<Figures> {
        let is_filled = row.filled.entries > 0;
        let asks = if is_filled { 6_400 } else { 19_200 } / self.effort.divisor;
        let each = if row.has_leases() { 2 } else { 1 };
        if !is_filled {
            // Every key is known before anything is measured.
            caller::run(vec![loaded.clone(); CALLERS], asked, row.keys.len()).await?;
        }
        let alone = self.meter.measure(vec![alone], asked, asks / 8, each).await?;
        let last = asked.load(Ordering::Relaxed) + asks;
        let loaded = self.meter.measure(vec![loaded; CALLERS], asked, asks, each).await?;
        Ok(Figures { alone, loaded, bytes: self.meter.bytes(row.key(last - 1))? })
    }
}

fn print(rows: &[Arc<Row>], rounds: &[Vec<Figures>]) -> Result<()> {
    println!(
        "| | script CPU, one at a time, µs | × hash | under load, µs | × hash | decisions a call \
         | main thread, µs | bytes a key |\n|---|---:|---:|---:|---:|---:|---:|---:|"
    );
    let middle = |place: usize, of: &dyn Fn(&Figures, &Figures) -> u64| {
        let pair = |y: &Vec<Figures>| y.get(place).zip(y.first()).map(|x| of(x.0, x.1));
        median(rounds.iter().filter_map(pair))
    };
    for (place, row) in rows.iter().enumerate() {
        println!(
            "| {} | {} | {} | {} | {} | {} | {} | {} |",
            row.name,
            show(middle(place, &|it, _| it.alone.script())),
            show(middle(place, &|it, hash| per(it.alone.script(), hash.alone.script()))),
            show(middle(place, &|it, _| it.loaded.script())),
            show(middle(place, &loaded)),
            show(middle(place, &|it, _| it.loaded.batch())),
            show(middle(place, &|it, _| it.loaded.main_thread())),
            middle(place, &|it, _| it.bytes),
        );
    }
    let place_of = |name| rows.iter().position(|row| row.name == name);
    let (Some(bucket), Some(three)) = (place_of(row::TOKEN_BUCKET), place_of(row::THREE_LIMITS))
    else {
        bail!("a row that has a target is missing");
    };
    let cpu = show(middle(bucket, &loaded));
    let bytes = show(middle(three, &|x, hash| per(x.bytes, 3 * hash.bytes)));
    println!("\n- token bucket under load: {cpu} × the CPU of the hash; at most 0.35");
    println!("- three limits: {bytes} × the memory of three hashes; at most 0.45\n");
    Ok(())
}

fn loaded(it: &Figures, hash: &Figures) -> Hundredths {
    per(it.loaded.script(), hash.loaded.script())
}
