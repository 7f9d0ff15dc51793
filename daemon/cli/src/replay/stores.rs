//! The stores of the candidates, which run at the log's time.

use std::time::Duration;

use anyhow::{Context, Result};
use tollgate::{ManualClock, MemoryLimiter, masked_url, random_id};
use tollgate_daemon::Config;
use tollgate_replay::CandidateStore;

use super::arguments::Replay;
use super::plan::ReplayPlan;

/// The prefix of replay namespaces, for ACLs.
const NAMESPACE_PREFIX: &str = "replay-";
/// The deadline of a decision; no client waits for it.
const DEADLINE: Duration = Duration::from_secs(5);

/// Opens the store of each candidate.
pub(super) async fn open(arguments: &Replay, plan: &ReplayPlan) -> Result<Vec<CandidateStore>> {
    let url = arguments.limits.store.as_deref().filter(|store| *store != "memory");
    let mut all = Vec::new();
    for index in 0..plan.candidates.len() {
        let clock = ManualClock::default();
        let limiter = match url {
            // The keys of a log are not limited.
            None => {
                let memory = MemoryLimiter::builder().max_keys(usize::MAX).max_bytes(usize::MAX);
                memory.clock(clock.clone()).build().into()
            }
            Some(url) => {
                let mut config = plan.config.clone().unwrap_or_else(Config::samples);
                config.store.url = url.into();
                config.store.deadline = DEADLINE;
                let namespace = format!("{NAMESPACE_PREFIX}{}-{index}", random_id());
                config.store.open_at(&namespace, clock.clone()).await?
            }
        };
        if let (Some(store), Some(url)) = (limiter.as_redis(), url) {
            let ready = store.ready().await;
            ready.with_context(|| format!("--store {}", masked_url(url)))?;
        }
        all.push(CandidateStore { limiter, clock });
    }
    Ok(all)
}

/// Deletes the keys on a server.
pub(super) async fn flush(stores: &[CandidateStore]) -> Result<()> {
    for CandidateStore { limiter, .. } in stores {
        if let Some(store) = limiter.as_redis() {
            store.flush_namespace().await?;
        }
    }
    Ok(())
}
