//! The second and the third table: decisions per second of one server, and of a cluster of three
//! primaries by the number of partitions.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use anyhow::Result;
use bench::Effort;
use bench::figures::{decimal, median, ratio};
use tollgate_redis::RedisOptions;
use tollgate_testkit::{Cluster, Server};

use crate::redis::caller::{self, ScriptCaller, StoreCaller};
use crate::redis::meter::{Meter, Spent};
use crate::redis::row::Row;
use crate::redis::{CALLERS, scripts};

/// How many requests load the scripts and create the keys before anything is measured.
const WARM_UP: usize = 1_024;

pub(crate) async fn run_server(server: &Server, effort: Effort) -> Result<()> {
    let mut meter = Meter::new([server]);
    let store = caller::open(&server.url(), RedisOptions::default()).await?;
    let limits = Arc::new(Row::limits("", &["1000/s"])?);
    let hash = Arc::new(Row::script("", scripts::HASH));
    let store = vec![StoreCaller::new(&store, &limits); CALLERS];
    let mut scripts = Vec::new();
    for _ in 0..CALLERS {
        scripts.push(ScriptCaller::new(&caller::connect(server).await?, server, &hash)?);
    }
    println!(
        "| callers | store, decisions/s | one EVALSHA each, decisions/s | ratio \
         | script CPU, µs | × each | main thread, µs | × each |\n\
         |---:|---:|---:|---:|---:|---:|---:|---:|"
    );
    let next: Arc<AtomicUsize> = Arc::default();
    for (callers, requests) in [(1, 4_000), (CALLERS, 60_000)] {
        let requests = requests / effort.divisor;
        let mut rounds = Vec::new();
        for _ in 0..effort.rounds {
            caller::run(store.clone(), &next, WARM_UP).await?;
            let by_store = meter.measure(store[..callers].to_vec(), &next, requests, 1).await?;
            caller::run(scripts.clone(), &next, WARM_UP).await?;
            let by_script = meter.measure(scripts[..callers].to_vec(), &next, requests, 1).await?;
            rounds.push((by_store, by_script));
        }
        let median = |figure: fn(&Spent, &Spent) -> u64| {
            median(rounds.iter().map(|(store, script)| figure(store, script)))
        };
        println!(
            "| {callers} | {} | {} | {} | {} | {} | {} | {} |",
            median(|store, _| store.rate()),
            median(|_, script| script.rate()),
            decimal(median(|store, script| ratio(store.rate(), script.rate()))),
            decimal(median(|store, _| store.script())),
            decimal(median(|store, script| ratio(store.script(), script.script()))),
            decimal(median(|store, _| store.main_thread())),
            decimal(median(|store, script| ratio(store.main_thread(), script.main_thread()))),
        );
    }
    println!("\n- {CALLERS} callers: the target is a ratio of 3 or more\n");
    Ok(())
}

const PARTITIONS: [u16; 5] = [1, 16, 64, 256, 1_024];

pub(crate) async fn run_cluster(effort: Effort) -> Result<()> {
    let cluster = Cluster::start(3, 0);
    let mut meter = Meter::new(cluster.nodes());
    let row = Arc::new(Row::limits("", &["1000/s"])?);
    let mut stores = Vec::new();
    for groups in PARTITIONS {
        let namespace = format!("by-{groups}");
        let options = RedisOptions { groups: Some(groups), namespace, ..RedisOptions::default() };
        let store = caller::open(&cluster.url(), options).await?;
        stores.push((groups, vec![StoreCaller::new(&store, &row); CALLERS], Vec::new()));
    }
    let next: Arc<AtomicUsize> = Arc::default();
    for _ in 0..effort.rounds {
        for (_, callers, rounds) in &mut stores {
            caller::run(callers.clone(), &next, WARM_UP).await?;
            let requests = 20_000 / effort.divisor;
            rounds.push(meter.measure(callers.clone(), &next, requests, 1).await?);
        }
    }
    println!(
        "| partitions | decisions/s | decisions per call | script CPU, µs | main threads, µs |\n\
         |---:|---:|---:|---:|---:|"
    );
    for (partitions, _, rounds) in &stores {
        let median = |figure: fn(&Spent) -> u64| median(rounds.iter().map(figure));
        println!(
            "| {partitions} | {} | {} | {} | {} |",
            median(Spent::rate),
            decimal(median(Spent::batch)),
            decimal(median(Spent::script)),
            decimal(median(Spent::main_thread)),
        );
    }
    Ok(())
}
