//! What became of those who brought no token that is known.

use tollgate::Timestamp;

use crate::seldom::Seldom;

/// Requests that brought no token that is known: told in the log now and then.
#[derive(Debug, Default)]
pub(crate) struct Failures(Seldom);

impl Failures {
    /// Counts one, from `peer` at `now`; never is any part of what it brought logged.
    pub(crate) fn add(&self, now: Timestamp, peer: impl std::fmt::Display) {
        if let Some((requests, all)) = self.0.count(now) {
            tracing::warn!(%peer, requests, all, "no known token");
        }
    }
}
