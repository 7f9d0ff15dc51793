//! Checks without a daemon, with a store or a data directory. They return the decision as JSON.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use tollgate::{Key, masked_url};
use tollgate_daemon::{Config, SnapshotTask, decision_json};

use super::request::CheckRequest;

/// A person waits for the decision, so more than a daemon's default.
const DEADLINE: Duration = Duration::from_secs(5);

/// Decides with the store at a URL.
pub(super) async fn decide_with_store(
    url: &str,
    namespace: Option<&str>,
    file: Option<&Path>,
    request: &CheckRequest,
) -> Result<String> {
    let mut config = load(file)?;
    if url == "memory" {
        bail!("--store memory has no state; name a server, or a directory with --data");
    }
    config.store.url = url.into();
    config.store.deadline = DEADLINE;
    let policy = request.policy_in(&config)?;
    let limiter = config.store.open(namespace.unwrap_or(&config.namespace)).await?;
    let unavailable = |error: &dyn std::fmt::Display| anyhow!("{}: {error}", masked_url(url));
    if let Some(store) = limiter.as_redis() {
        store.ready().await.map_err(|error| unavailable(&error))?;
    }
    let key = Key::new(request.key())?;
    let decision = if request.is_peek() {
        limiter.peek(&policy, key, request.cost).await
    } else {
        limiter.check_cost(&policy, key, request.cost).await
    };
    limiter.leave(DEADLINE).await.map_err(|error| unavailable(&error))?;
    if decision.degraded {
        return Err(match limiter.stats().last_failure {
            Some(failure) => unavailable(&failure),
            None => unavailable(&"the store is unavailable"),
        });
    }
    Ok(decision_json(&policy, &decision))
}

/// Decides with the snapshot in a directory, and saves the new state.
pub(super) fn decide_with_data(
    data: &Path,
    file: Option<&Path>,
    request: &CheckRequest,
) -> Result<String> {
    let config = load(file)?;
    let policy = request.policy_in(&config)?;
    let key = Key::new(request.key())?;
    let (snapshots, _) = SnapshotTask::open(data, &config.store)?;
    let decision = if request.is_peek() {
        snapshots.limiter().peek(&policy, key, request.cost)
    } else {
        snapshots.limiter().check_cost(&policy, key, request.cost)
    };
    if !request.is_peek() {
        snapshots.save().context("decided, but cannot save the state")?;
    }
    Ok(decision_json(&policy, &decision))
}

/// The configuration of a file, or the samples.
fn load(file: Option<&Path>) -> Result<Config> {
    Ok(file.map_or_else(|| Ok(Config::samples()), Config::load)?)
}
