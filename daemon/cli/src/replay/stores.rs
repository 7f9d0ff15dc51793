//! The stores that decide, one for each alternative, all at the log's time.

use std::time::Duration;

use anyhow::{Context, Result};
use tollgate::{ManualClock, MemoryLimiter, masked_url, random_id};
use tollgate_replay::Store;
use tollgate_server::Config;

use super::arguments::Replay;
use super::asking::Asking;

/// What namespaces of replays begin with, so that an ACL can name them.
const NAMESPACE: &str = "replay-";
/// How long the store has for a decision: nobody waits but this command.
const PATIENCE: Duration = Duration::from_secs(5);

/// The stores.
#[derive(Debug)]
pub(super) struct Stores {
    pub(super) all: Vec<Store>,
}

impl Stores {
    pub(super) async fn open(arguments: &Replay, asking: &Asking) -> Result<Self> {
        let url = arguments.store.as_deref().filter(|store| *store != "memory");
        let mut all = Vec::new();
        for place in 0..asking.alternatives.len() {
            let clock = ManualClock::default();
            let limiter = match url {
                // A log has as many keys as it has.
                None => {
                    let memory = MemoryLimiter::builder().max_keys(usize::MAX);
                    memory.clock(clock.clone()).build().into()
                }
                Some(url) => {
                    let mut config = asking.config.clone().unwrap_or_else(Config::samples);
                    config.store.url = url.into();
                    config.store.deadline = PATIENCE;
                    let namespace = format!("{NAMESPACE}{}-{place}", random_id());
                    config.store.open_at(&namespace, clock.clone()).await?
                }
            };
            if let (Some(store), Some(url)) = (limiter.as_redis(), url) {
                let ready = store.ready().await;
                ready.with_context(|| format!("--store {}", masked_url(url)))?;
            }
            all.push(Store { limiter, clock });
        }
        Ok(Stores { all })
    }

    /// Deletes what was kept on a server.
    pub(super) async fn erase(&self) -> Result<()> {
        for Store { limiter, .. } in &self.all {
            if let Some(store) = limiter.as_redis() {
                store.flush_namespace().await?;
            }
        }
        Ok(())
    }
}
