//! Deciding without a daemon, in its data directory.

use std::path::Path;

use anyhow::{Context, Result};
use tollgate::Key;
use tollgate_server::{Config, SnapshotTask, decision_json};

use super::request::CheckRequest;

/// Decides with what a directory holds, and saves what came of it. The answer is JSON.
pub(super) fn decide(data: &Path, file: Option<&Path>, request: &CheckRequest) -> Result<String> {
    let config = file.map_or_else(|| Ok(Config::samples()), Config::load)?;
    let policy = request.policy_in(&config)?;
    let key = Key::new(request.key())?;
    let (snapshots, _) = SnapshotTask::open(data, &config.store)?;
    let decision = if request.is_peek {
        snapshots.limiter().peek(&policy, key, request.cost)
    } else {
        snapshots.limiter().check_cost(&policy, key, request.cost)
    };
    if !request.is_peek {
        snapshots.save().context("decided, but not saved")?;
    }
    Ok(decision_json(&policy, &decision))
}
