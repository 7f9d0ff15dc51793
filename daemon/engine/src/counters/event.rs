//! Decisions as tracing events.

use tollgate::{Micros, Timestamp};
use tracing::Level;

use super::policy::Surface;

/// The target of the event that each request emits at level `TRACE` when it is decided.
///
/// Its fields are `surface`, `policy` and `answer` with the values of the metrics' labels (comma
/// separated in the order of the checks), `traceparent` as the client sent it, `since_us` since the
/// Unix epoch and `took_us`. No field contains a key.
pub const DECISIONS: &str = "tollgate::decision";

/// The event of one request.
#[derive(Debug, Default)]
pub(crate) struct DecisionEvent {
    policies: String,
    answers: String,
}

impl DecisionEvent {
    /// Whether a subscriber is interested. Reads one atomic number.
    #[inline]
    pub(crate) fn is_enabled() -> bool {
        tracing::enabled!(target: DECISIONS, Level::TRACE)
    }

    /// Adds a check.
    pub(crate) fn add(&mut self, policy: &str, answer: &str) {
        if !self.policies.is_empty() {
            self.policies.push(',');
            self.answers.push(',');
        }
        self.policies.push_str(policy);
        self.answers.push_str(answer);
    }

    /// Emits the event.
    pub(crate) fn emit(
        &self,
        surface: Surface,
        traceparent: Option<&str>,
        since: Timestamp,
        duration: Micros,
    ) {
        tracing::trace!(
            target: DECISIONS,
            surface = surface.as_str(),
            policy = self.policies,
            answer = self.answers,
            traceparent,
            since_us = since.as_micros(),
            took_us = duration.get(),
            "decided"
        );
    }
}
