//! The check of the command line.

use anyhow::{Result, anyhow, bail};
use serde_json::json;
use tollgate::{Cost, Policy, ResolveError};
use tollgate_daemon::Config;

use super::Mode;
use crate::arguments::Check;
use crate::output;
use crate::subject::{Subject, SubjectKind};

/// A check, for a daemon, a store or a data directory.
#[derive(Debug)]
pub(super) struct CheckRequest {
    pub(super) subject: Subject,
    pub(super) cost: Cost,
    mode: Mode,
}

impl CheckRequest {
    pub(super) fn new(arguments: &Check, mode: Mode) -> Result<Self> {
        let subject = Subject::new(&arguments.key)?;
        let cost = Cost::new(arguments.cost).ok_or_else(|| {
            anyhow!("a cost of {} is too large; at most {}", arguments.cost, Cost::MAX.get())
        })?;
        Ok(CheckRequest { subject, cost, mode })
    }

    /// The named policy with the tier and the override of the key, or a policy of the limit.
    /// As a daemon does, applies the limits without a tier if the policy does not have the tier.
    pub(super) fn policy_in(&self, config: &Config) -> Result<Policy> {
        let Subject { kind, policy, tier, .. } = &self.subject;
        match kind {
            SubjectKind::Limit => return Ok(policy.parse()?),
            SubjectKind::Domain => bail!("--domain needs a daemon; omit --store and --data"),
            SubjectKind::Policy => {}
        }
        match config.policies.resolve(policy, self.key(), tier.as_deref()) {
            Err(error @ ResolveError::Tier(_)) => {
                output::print_error(&format!("hint: {error}; the limits without a tier apply\n"));
                Ok(config.policies.resolve(policy, self.key(), None)?.clone())
            }
            resolved => Ok(resolved?.clone()),
        }
    }

    pub(super) fn is_peek(&self) -> bool {
        self.mode == Mode::Peek
    }

    pub(super) fn key(&self) -> &[u8] {
        self.subject.key()
    }

    /// The path and query of the request to a daemon.
    pub(super) fn path(&self) -> &'static str {
        if self.is_peek() { "/v1/peek?status=200" } else { "/v1/check?status=200" }
    }

    /// The body of the request to a daemon.
    pub(super) fn json(&self) -> String {
        self.subject.json([("cost", json!(self.cost.get()))])
    }
}
