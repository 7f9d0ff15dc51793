//! The second table: decisions a second of one server.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use anyhow::Result;
use tollgate_redis::RedisOptions;
use tollgate_testkit::Server;

use crate::caller::{self, ScriptCaller, StoreCaller};
use crate::meter::{Meter, Spent};
use crate::row::Row;
use crate::{CALLERS, Effort, scripts};
use bench::figures::{median, per, show};

pub(crate) async fn run(server: &Server, effort: Effort) -> Result<()> {
    let mut meter = Meter::of([server]);
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
    let asked: Arc<AtomicUsize> = Arc::default();
    for (callers, asks) in [(1, 4_000), (CALLERS, 60_000)] {
        let asks = asks / effort.divisor;
        let mut rounds = Vec::new();
        for _ in 0..effort.rounds {
            // Both once before, so that scripts are loaded and keys known.
            caller::run(store.clone(), &asked, 1_024).await?;
            let ours = store.iter().take(callers).cloned().collect();
            let ours = meter.measure(ours, &asked, asks, 1).await?;
            caller::run(scripts.clone(), &asked, 1_024).await?;
            let theirs = scripts.iter().take(callers).cloned().collect();
            rounds.push((ours, meter.measure(theirs, &asked, asks, 1).await?));
        }
        let middle = |of: fn(&(Spent, Spent)) -> u64| median(rounds.iter().map(of));
        println!(
            "| {callers} | {} | {} | {} | {} | {} | {} | {} |",
            middle(|it| it.0.a_second()),
            middle(|it| it.1.a_second()),
            show(middle(|it| per(it.0.a_second(), it.1.a_second()))),
            show(middle(|it| it.0.script())),
            show(middle(|it| per(it.0.script(), it.1.script()))),
            show(middle(|it| it.0.main_thread())),
            show(middle(|it| per(it.0.main_thread(), it.1.main_thread()))),
        );
    }
    println!("\n- {CALLERS} callers: the target is a ratio of 3 or more\n");
    Ok(())
}
