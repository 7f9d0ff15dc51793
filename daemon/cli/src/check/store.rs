//! Asking a store itself, without a daemon.

use std::path::Path;
use std::time::Duration;

use anyhow::{Result, anyhow, bail};
use tollgate::{Key, masked_url};
use tollgate_server::{Config, decision_json};

use super::question::Question;

/// How long the store has: somebody waits, but nothing else does.
const PATIENCE: Duration = Duration::from_secs(5);

/// Asks the store at a URL. The answer is JSON.
pub(super) async fn decide(
    url: &str,
    namespace: Option<&str>,
    file: Option<&Path>,
    question: &Question,
) -> Result<String> {
    let mut config = file.map_or_else(|| Ok(Config::samples()), Config::load)?;
    if url == "memory" {
        bail!("--store memory would forget at once; name a server, or a directory with --data");
    }
    config.store.url = url.into();
    config.store.deadline = PATIENCE;
    let policy = question.policy_in(&config)?;
    let limiter = config.store.open(namespace.unwrap_or(&config.namespace)).await?;
    let away = |why: &dyn std::fmt::Display| anyhow!("{}: {why}", masked_url(url));
    if let Some(store) = limiter.as_redis() {
        store.ready().await.map_err(|error| away(&error))?;
    }
    let key = Key::new(question.key())?;
    let decision = if question.is_peek {
        limiter.peek(&policy, key, question.cost).await?
    } else {
        limiter.check_cost(&policy, key, question.cost).await?
    };
    if decision.degraded {
        let why = limiter.stats().last_failure.map(|last_failure| last_failure.to_string());
        return Err(away(&why.unwrap_or_default()));
    }
    Ok(decision_json(&policy, &decision))
}
