//! Counting single requests.

use std::borrow::Cow;

use tollgate::{Decision, Micros, Policy, StoreError, Timestamp};

use super::event::DecisionEvent;
use super::latency::Exemplar;
use super::trace::TraceId;
use crate::context::RequestContext;

/// Requests that take longer keep their trace as an exemplar.
const SLOW: Micros = Micros::from_millis(5);

/// Measures one request from before its execution until its decisions are counted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RequestMeter<'a> {
    context: RequestContext<'a>,
    since: Timestamp,
}

impl<'a> RequestMeter<'a> {
    /// Starts the timer.
    #[inline]
    pub(crate) fn start(context: RequestContext<'a>) -> Self {
        RequestMeter { context, since: context.engine.clock().now() }
    }

    /// Counts the decisions of all checks of the request, and the time since the start.
    ///
    /// A check without a decision counts as an error, unless the request itself is invalid.
    #[inline]
    pub(crate) fn count<'d>(
        self,
        checks: impl IntoIterator<Item = (&'d Policy, Result<Cow<'d, Decision>, &'d StoreError>)>,
    ) {
        let surface = self.context.surface;
        let mut event = DecisionEvent::if_enabled();
        let (mut is_counted, mut is_denied) = (false, false);
        for (policy, result) in checks {
            let counters = self.context.active.counters.get(policy);
            let answer = match &result {
                Ok(decision) => counters.count(surface, decision),
                Err(error) if error.failure().is_none() => continue,
                Err(_) => counters.count_error(surface),
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
        let RequestContext { engine, surface, traceparent, .. } = self.context;
        let now = engine.clock().now();
        let duration = now.duration_since(self.since);
        let latency = engine.counters.latency(surface);
        latency.count(duration, 1);
        if (is_denied || duration >= SLOW)
            && let Some(trace) = traceparent.and_then(TraceId::from_traceparent)
        {
            latency.set_exemplar(Exemplar { trace, duration, time: now });
        }
        if let Some(event) = event {
            event.emit(surface, traceparent, self.since, duration);
        }
    }
}
