//! A request from its question to its decision.

use hyper::header::HeaderMap;
use tollgate::{Decision, Micros, Policy, StoreError, Timestamp};

use super::latency::Exemplar;
use super::tally::Surface;
use super::told::Told;
use super::trace::TraceId;
use crate::daemon::Daemon;
use crate::live::Live;

/// From where on a decision is slow, so that its trace is worth a look.
const SLOW: Micros = Micros::from_millis(5);

/// A request that waits for its decision. It is counted once that is there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timed<'a> {
    daemon: &'a Daemon,
    live: &'a Live,
    surface: Surface,
    headers: Option<&'a HeaderMap>,
    since: Timestamp,
}

impl<'a> Timed<'a> {
    /// Of a request that is to be decided now.
    #[inline]
    pub(crate) fn begin(
        daemon: &'a Daemon,
        live: &'a Live,
        surface: Surface,
        headers: Option<&'a HeaderMap>,
    ) -> Self {
        Timed { daemon, live, surface, headers, since: daemon.clock.now() }
    }

    /// Counts its checks, each under its policy, and the time that they took together.
    #[inline]
    pub(crate) fn decided<'d>(
        self,
        decisions: impl IntoIterator<Item = (&'d Policy, &'d Decision)>,
    ) {
        let mut told = Told::if_heard();
        let mut is_denied = false;
        for (policy, decision) in decisions {
            let tally = self.live.tallies.of(policy);
            let word = tally.count(self.surface, decision);
            if let Some(told) = &mut told {
                told.add(&tally.policy, word);
            }
            is_denied |= !decision.allowed;
        }
        self.took(is_denied, told);
    }

    /// Counts checks that got no decision, unless the request itself is at fault.
    pub(crate) fn refused<'d>(
        self,
        policies: impl IntoIterator<Item = &'d Policy>,
        error: &StoreError,
    ) {
        if error.failure().is_none() {
            return;
        }
        let mut told = Told::if_heard();
        for policy in policies {
            let tally = self.live.tallies.of(policy);
            let word = tally.count_error(self.surface);
            if let Some(told) = &mut told {
                told.add(&tally.policy, word);
            }
        }
        self.took(true, told);
    }

    #[inline]
    fn took(self, is_notable: bool, told: Option<Told>) {
        let now = self.daemon.clock.now();
        let took = now.duration_since(self.since);
        let latency = self.daemon.metrics.latency(self.surface);
        latency.count(took);
        if (is_notable || took >= SLOW)
            && let Some(trace) = self.trace()
        {
            latency.remember(Exemplar { trace, took, at: now });
        }
        if let Some(told) = told {
            told.tell(self.surface, self.traceparent(), self.since, took);
        }
    }

    fn trace(self) -> Option<TraceId> {
        TraceId::of(self.traceparent()?)
    }

    fn traceparent(self) -> Option<&'a str> {
        self.headers?.get("traceparent")?.to_str().ok()
    }
}
