//! Decisions as events, for who makes traces of them.

use tollgate::{Micros, Timestamp};
use tracing::Level;

use super::tally::Surface;

/// The target of the events that tell of decisions, one for each request, at the level `TRACE`.
///
/// Their fields are `surface`, `policy` and `answer` in the words of the metrics (of several
/// checks all, in their order, with commas between), `traceparent` as the caller said it,
/// `since_us` since 1970 and `took_us`. None carries a key.
pub const DECISIONS: &str = "tollgate::decision";

/// What is told of a request.
#[derive(Debug, Default)]
pub(super) struct Told {
    policies: String,
    answers: String,
}

impl Told {
    /// Nothing unless somebody listens; to ask that costs the look at a number.
    #[inline]
    pub(super) fn if_heard() -> Option<Self> {
        tracing::enabled!(target: DECISIONS, Level::TRACE).then(Self::default)
    }

    /// Adds a check.
    pub(super) fn add(&mut self, policy: &str, answer: &str) {
        if !self.policies.is_empty() {
            self.policies.push(',');
            self.answers.push(',');
        }
        self.policies.push_str(policy);
        self.answers.push_str(answer);
    }

    /// Tells of it.
    pub(super) fn tell(
        &self,
        surface: Surface,
        traceparent: Option<&str>,
        since: Timestamp,
        took: Micros,
    ) {
        tracing::trace!(
            target: DECISIONS,
            surface = surface.as_str(),
            policy = self.policies,
            answer = self.answers,
            traceparent,
            since_us = since.as_micros(),
            took_us = took.get(),
            "decided"
        );
    }
}
