//! Counting pipelined requests.

use std::borrow::Cow;

use tollgate::{Decision, Policy, StoreError, Timestamp};

use super::event::DecisionEvent;
use super::policy::{BatchCounters, PolicyCounters, Surface};
use crate::active::ActiveConfig;
use crate::engine::Engine;

/// Counts the requests of a pipeline, and adds to the shared counters once for all of them when it
/// is dropped: an atomic addition costs a good part of a decision.
#[derive(Debug)]
pub(crate) struct BatchMeter<'a> {
    engine: &'a Engine,
    active: &'a ActiveConfig,
    surface: Surface,
    /// When the first request was read.
    since: Timestamp,
    /// The counters that `batch` is added to, with the hash of the policy's name.
    shared: Option<(u64, &'a PolicyCounters)>,
    batch: BatchCounters,
    requests: u64,
    emits_events: bool,
}

impl<'a> BatchMeter<'a> {
    /// Starts the timer.
    #[inline]
    pub(crate) fn start(engine: &'a Engine, active: &'a ActiveConfig, surface: Surface) -> Self {
        BatchMeter {
            engine,
            active,
            surface,
            since: engine.clock().now(),
            shared: None,
            batch: BatchCounters::default(),
            requests: 0,
            emits_events: DecisionEvent::if_enabled().is_some(),
        }
    }

    /// Counts a request with one check.
    #[inline]
    pub(crate) fn count_one(&mut self, policy: &Policy, decision: &Decision) {
        self.requests += 1;
        let hash = policy.name_hash();
        if self.shared.is_none_or(|(current, _)| current != hash) {
            self.switch_to(policy);
        }
        let answer = self.batch.count(decision);
        if self.emits_events {
            self.emit(&[(policy, answer)]);
        }
    }

    /// Counts a request with any number of checks. A check without a decision counts as an error,
    /// unless the request itself is invalid.
    pub(crate) fn count<'d>(
        &mut self,
        checks: impl IntoIterator<Item = (&'d Policy, Result<Cow<'d, Decision>, &'d StoreError>)>,
    ) {
        let mut answers = Vec::new();
        for (policy, result) in checks {
            self.switch_to(policy);
            let answer = match &result {
                Ok(decision) => self.batch.count(decision),
                Err(error) if error.failure().is_none() => continue,
                Err(_) => self.batch.count_error(),
            };
            answers.push((policy, answer));
        }
        if answers.is_empty() {
            return;
        }
        self.requests += 1;
        if self.emits_events {
            self.emit(&answers);
        }
    }

    /// Counts under this policy from now on.
    fn switch_to(&mut self, policy: &Policy) {
        let hash = policy.name_hash();
        if self.shared.is_some_and(|(current, _)| current == hash) {
            return;
        }
        self.flush();
        self.shared = Some((hash, self.active.counters.get(policy)));
    }

    fn flush(&mut self) {
        let batch = std::mem::take(&mut self.batch);
        if let Some((_, shared)) = self.shared {
            shared.add(self.surface, &batch);
        }
    }

    #[cold]
    fn emit(&self, answers: &[(&Policy, &'static str)]) {
        let mut event = DecisionEvent::default();
        for (policy, answer) in answers {
            event.add(&self.active.counters.get(policy).policy, answer);
        }
        let duration = self.engine.clock().now().duration_since(self.since);
        event.emit(self.surface, None, self.since, duration);
    }
}

impl Drop for BatchMeter<'_> {
    fn drop(&mut self) {
        if self.requests == 0 {
            return;
        }
        self.flush();
        let duration = self.engine.clock().now().duration_since(self.since);
        self.engine.counters.latency(self.surface).count(duration, self.requests);
    }
}
