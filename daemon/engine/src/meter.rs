//! Measuring requests: counts of their decisions, and latency.

use std::borrow::Cow;

use tollgate::{Cost, Decision, Micros, Policy, StoreError, Timestamp};
use tollgate_insight::{NoteAnswer, Tracked, TrackedDecision};

use crate::active::ActiveConfig;
use crate::call::CheckRequest;
use crate::counters::{BatchCounters, DecisionEvent, Exemplar, PolicyCounters, Surface, TraceId};
use crate::engine::Engine;

/// Requests that take longer keep their trace as an exemplar.
const SLOW: Micros = Micros::from_millis(5);

/// A check to count.
#[derive(Debug)]
pub(crate) struct CountedCheck<'c> {
    pub(crate) check: &'c CheckRequest<'c>,
    /// Whether the client is admitted although the check denies.
    pub(crate) is_shadow: bool,
    pub(crate) result: Result<Cow<'c, Decision>, &'c StoreError>,
}

/// Measures one request, or those of a pipeline, from before their execution. It adds to the shared
/// counters once, when it is dropped: an atomic addition costs a good part of a decision.
#[derive(Debug)]
pub(crate) struct Meter<'a> {
    engine: &'a Engine,
    active: &'a ActiveConfig,
    surface: Surface,
    /// The header `traceparent`, of a single request.
    traceparent: Option<&'a str>,
    /// When the meter was started.
    since: Timestamp,
    /// The counters that `batch` is added to, with the hash of the policy's name.
    shared: Option<(u64, &'a PolicyCounters)>,
    /// What the policy of `shared` tracks.
    tracked: Option<&'a Tracked>,
    batch: BatchCounters,
    requests: u64,
    /// Whether a check was denied, or has no decision.
    is_denied: bool,
    emits_events: bool,
}

impl<'a> Meter<'a> {
    /// Starts the timer.
    #[inline]
    pub(crate) fn start(
        engine: &'a Engine,
        active: &'a ActiveConfig,
        surface: Surface,
        traceparent: Option<&'a str>,
    ) -> Self {
        Meter {
            engine,
            active,
            surface,
            traceparent,
            since: engine.clock().now(),
            shared: None,
            tracked: None,
            batch: BatchCounters::default(),
            requests: 0,
            is_denied: false,
            emits_events: DecisionEvent::is_enabled(),
        }
    }

    /// Counts a request with one check that was decided.
    #[inline]
    pub(crate) fn count_one(
        &mut self,
        policy: &Policy,
        key: &[u8],
        cost: Cost,
        note: Option<&str>,
        decision: &Decision,
    ) {
        self.requests += 1;
        let hash = policy.name_hash();
        if self.shared.is_none_or(|(current, _)| current != hash) {
            self.switch_to(policy);
        }
        let answer = self.batch.count(decision);
        if !decision.allowed {
            self.is_denied = true;
            self.log_denial(key, decision);
        }
        self.track(key, cost, note, decision, false);
        if self.emits_events {
            self.emit(&[(policy, answer)]);
        }
    }

    /// Counts a request with any number of checks. A check without a decision counts as an error,
    /// unless the request itself is invalid.
    pub(crate) fn count<'d>(&mut self, checks: impl IntoIterator<Item = CountedCheck<'d>>) {
        let mut is_counted = false;
        let mut answers = Vec::new();
        for CountedCheck { check, is_shadow, result } in checks {
            let (policy, key) = (&*check.policy, &*check.key);
            self.switch_to(policy);
            if let Ok(decision) = &result {
                self.track(key, check.cost, check.note.as_deref(), decision, is_shadow);
            }
            let answer = match &result {
                Ok(decision) if is_shadow && !decision.allowed => {
                    self.batch.count_shadow_denial(decision)
                }
                Ok(decision) => {
                    if !decision.allowed {
                        self.log_denial(key, decision);
                    }
                    self.batch.count(decision)
                }
                Err(error) if error.failure().is_none() => continue,
                Err(_) => self.batch.count_error(),
            };
            is_counted = true;
            self.is_denied |= !result.is_ok_and(|decision| decision.allowed || is_shadow);
            if self.emits_events {
                answers.push((policy, answer));
            }
        }
        self.requests += u64::from(is_counted);
        if !answers.is_empty() {
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
        self.tracked = self.active.tracking.get(policy);
    }

    /// Records a decision, if the policy tracks its keys. A repeated answer is recorded once.
    #[inline]
    fn track(
        &self,
        key: &[u8],
        cost: Cost,
        note: Option<&str>,
        decision: &Decision,
        is_shadow: bool,
    ) {
        let Some(tracked) = self.tracked else { return };
        if decision.replayed {
            return;
        }
        let decision = TrackedDecision {
            key,
            time: decision.time.as_micros(),
            cost: cost.get(),
            granted: decision.granted,
            answer: NoteAnswer::new(decision, is_shadow),
            note,
        };
        self.engine.insight().record(tracked, &decision);
    }

    /// Logs a sample of the denials of a policy.
    fn log_denial(&self, key: &[u8], decision: &Decision) {
        if let Some((_, counters)) = self.shared
            && counters.may_log_denial(self.since)
        {
            let key = self.active.display_key(key);
            let (policy, surface) = (&*counters.policy, self.surface.as_str());
            let reason = decision.reason.as_str();
            let retry_after_us = decision.retry_after.map(Micros::get);
            tracing::info!(policy, key, surface, reason, retry_after_us, "denied");
        }
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
        event.emit(self.surface, self.traceparent, self.since, duration);
    }
}

impl Drop for Meter<'_> {
    fn drop(&mut self) {
        if self.requests == 0 {
            return;
        }
        self.flush();
        let now = self.engine.clock().now();
        let duration = now.duration_since(self.since);
        let latency = self.engine.counters.latency(self.surface);
        latency.count(duration, self.requests);
        if (self.is_denied || duration >= SLOW)
            && let Some(trace) = self.traceparent.and_then(TraceId::from_traceparent)
        {
            latency.set_exemplar(Exemplar { trace, duration, time: now });
        }
    }
}
