//! Measuring requests: their decisions are counted, and how long they took.

use std::borrow::Cow;

use tollgate::{Decision, Micros, Policy, StoreError, Timestamp};

use crate::active::ActiveConfig;
use crate::counters::{BatchCounters, DecisionEvent, Exemplar, PolicyCounters, Surface, TraceId};
use crate::engine::Engine;

/// Requests that take longer keep their trace as an exemplar.
const SLOW: Micros = Micros::from_millis(5);

/// Measures one request from before its execution until its decisions are counted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RequestMeter<'a> {
    engine: &'a Engine,
    active: &'a ActiveConfig,
    surface: Surface,
    traceparent: Option<&'a str>,
    since: Timestamp,
}

impl<'a> RequestMeter<'a> {
    /// Starts the timer.
    #[inline]
    pub(crate) fn start(
        engine: &'a Engine,
        active: &'a ActiveConfig,
        surface: Surface,
        traceparent: Option<&'a str>,
    ) -> Self {
        RequestMeter { engine, active, surface, traceparent, since: engine.clock().now() }
    }

    /// Counts the decisions of all checks of the request, and the time since the start.
    ///
    /// A check without a decision counts as an error, unless the request itself is invalid.
    #[inline]
    pub(crate) fn count<'d>(
        self,
        checks: impl IntoIterator<Item = (&'d Policy, Result<Cow<'d, Decision>, &'d StoreError>)>,
    ) {
        let mut event = DecisionEvent::if_enabled();
        let (mut is_counted, mut is_denied) = (false, false);
        for (policy, result) in checks {
            let counters = self.active.counters.get(policy);
            let answer = match &result {
                Ok(decision) => counters.count(self.surface, decision),
                Err(error) if error.failure().is_none() => continue,
                Err(_) => counters.count_error(self.surface),
            };
            if let Some(event) = &mut event {
                event.add(&counters.policy, answer);
            }
            is_counted = true;
            is_denied |= result.map_or(true, |decision| !decision.allowed);
        }
        if is_counted {
            self.finish(is_denied, event);
        }
    }

    #[inline]
    fn finish(self, is_denied: bool, event: Option<DecisionEvent>) {
        let RequestMeter { engine, surface, traceparent, since, .. } = self;
        let now = engine.clock().now();
        let duration = now.duration_since(since);
        let latency = engine.counters.latency(surface);
        latency.count(duration, 1);
        if (is_denied || duration >= SLOW)
            && let Some(trace) = traceparent.and_then(TraceId::from_traceparent)
        {
            latency.set_exemplar(Exemplar { trace, duration, time: now });
        }
        if let Some(event) = event {
            event.emit(surface, traceparent, since, duration);
        }
    }
}

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
        let mut is_counted = false;
        let mut answers = Vec::new();
        for (policy, result) in checks {
            self.switch_to(policy);
            let answer = match &result {
                Ok(decision) => self.batch.count(decision),
                Err(error) if error.failure().is_none() => continue,
                Err(_) => self.batch.count_error(),
            };
            is_counted = true;
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
