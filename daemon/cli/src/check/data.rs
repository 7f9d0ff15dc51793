//! Deciding without a daemon, in its data directory.

use std::path::Path;

use anyhow::{Context, Result};
use tollgate::Key;
use tollgate_server::{Config, Keeper, decision_json};

use super::question::Question;

/// Decides with what a directory holds, and saves what came of it. The answer is JSON.
pub(super) fn decide(data: &Path, file: Option<&Path>, question: &Question) -> Result<String> {
    let config = file.map_or_else(|| Ok(Config::samples()), Config::load)?;
    let policy = question.policy_in(&config)?;
    let key = Key::new(question.key())?;
    let (keeper, _) = Keeper::open(data, &config.store)?;
    let decision = if question.is_peek {
        keeper.limiter().peek(&policy, key, question.cost)
    } else {
        keeper.limiter().check_cost(&policy, key, question.cost)
    };
    if !question.is_peek {
        keeper.save().context("decided, but not saved")?;
    }
    Ok(decision_json(&policy, &decision))
}
