//! The third table: a cluster of three primaries, by the number of groups that keys are divided into.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use anyhow::Result;
use tollgate_redis::RedisOptions;
use tollgate_testkit::Cluster;

use crate::caller::{self, StoreCaller};
use crate::meter::{Meter, Spent};
use crate::row::Row;
use crate::{CALLERS, Effort};
use bench::figures::{median, show};

const GROUPS: [u16; 5] = [1, 16, 64, 256, 1_024];

pub(crate) async fn run(effort: Effort) -> Result<()> {
    let cluster = Cluster::start(3, 0);
    let mut meter = Meter::of(cluster.nodes());
    let row = Arc::new(Row::limits("", &["1000/s"])?);
    let mut stores = Vec::new();
    for groups in GROUPS {
        let namespace = format!("by-{groups}");
        let options = RedisOptions { groups, namespace, ..RedisOptions::default() };
        let store = caller::open(&cluster.url(), options).await?;
        stores.push((groups, vec![StoreCaller::new(&store, &row); CALLERS], Vec::new()));
    }
    let asked: Arc<AtomicUsize> = Arc::default();
    for _ in 0..effort.rounds {
        for (_, callers, rounds) in &mut stores {
            caller::run(callers.clone(), &asked, 1_024).await?;
            let asks = 20_000 / effort.divisor;
            rounds.push(meter.measure(callers.clone(), &asked, asks, 1).await?);
        }
    }
    println!(
        "| groups | decisions/s | decisions a call | script CPU, µs | main threads, µs |\n\
         |---:|---:|---:|---:|---:|"
    );
    for (groups, _, rounds) in &stores {
        let middle = |of: fn(&Spent) -> u64| median(rounds.iter().map(of));
        println!(
            "| {groups} | {} | {} | {} | {} |",
            middle(Spent::a_second),
            show(middle(Spent::batch)),
            show(middle(Spent::script)),
            show(middle(Spent::main_thread)),
        );
    }
    Ok(())
}
