//! The circuit breaker of a server: a state machine without I/O.
//!
//! It counts calls, not requests: requests that the queue drops under overload are no sign of a server
//! that fails. While it is open, requests that decide fail at once. A call in the background probes the
//! server, and if it answers in time, a growing part of the requests is sent again.

use std::time::Duration;

use tokio::time::Instant;
use tollgate_state::{Failure, FailureKind};

use crate::jitter::Jitter;
use crate::node_stats::{BreakerState, BreakerStats};

/// The time over which calls are counted, in parts that expire one by one.
const BUCKETS: usize = 10;
const BUCKET: Duration = Duration::from_millis(100);
/// The number of calls below which their share of failures says little.
const MIN_CALLS: u32 = 20;
/// The same while it closes, when few calls are sent.
const MIN_CALLS_CLOSING: u32 = 5;
/// The time until the first probe and the longest between two, each plus or minus a fifth. A probe is one
/// call, however many requests wait, so a longer time would only delay the recovery.
const MIN_COOL_DOWN: Duration = Duration::from_millis(250);
const MAX_COOL_DOWN: Duration = Duration::from_secs(1);
/// The least time within which a probe must be answered. Calls have less if their requests have waited.
const MIN_THRESHOLD: Duration = Duration::from_millis(10);
/// While it closes, one of so many requests is sent, in each step.
const STEPS: [u32; 3] = [10, 4, 2];
/// A step ends after this time, or after this number of calls in time.
const STEP_TIME: Duration = Duration::from_millis(100);
const STEP_CALLS: u32 = 20;

/// How a call ended.
#[derive(Clone, Copy, Debug)]
pub(super) enum Outcome<'a> {
    InTime,
    /// The reply came after the deadlines of all requests.
    Late,
    /// The server could not execute it, or the connection was lost.
    Failed(&'a Failure),
}

/// A call that has ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct EndedCall<'a> {
    pub(super) sent: Instant,
    pub(super) outcome: Outcome<'a>,
    /// Whether the server replied.
    pub(super) is_answered: bool,
    /// How long its callers wait at most; `None` if it only takes back charges.
    pub(super) budget: Option<Duration>,
}

/// What to do next while the breaker is not closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Send a probe, which must be answered within this time.
    Probe(Duration),
    /// Wait until this time, or for an event if there is none.
    Wait(Option<Instant>),
    /// It is closed; nothing to do.
    Done,
}

#[derive(Debug)]
pub(super) struct Breaker {
    phase: Phase,
    calls: Window,
    /// Calls that were sent before are not counted.
    counts_since: Instant,
    last_reply: Option<Instant>,
    /// When it opened because the server did not reply; `None` if it has replied since.
    stalled_since: Option<Instant>,
    /// The next cool-down.
    cool_down: Duration,
    /// The time within which a probe must be answered.
    threshold: Duration,
    /// When it opened last, and closed.
    opened_at: Instant,
    closed_at: Instant,
    cause: Box<str>,
    opened: u64,
    rejected: u64,
}

#[derive(Clone, Copy, Debug)]
enum Phase {
    Closed,
    Open {
        probe_at: Instant,
    },
    /// A probe is in flight.
    HalfOpen,
    Closing {
        step: usize,
        ends_at: Instant,
        /// The requests that wanted to pass, and the calls answered in time.
        requests: u32,
        in_time: u32,
    },
}

impl Breaker {
    pub(super) fn new(now: Instant) -> Self {
        Breaker {
            phase: Phase::Closed,
            calls: Window::new(now),
            counts_since: now,
            last_reply: None,
            stalled_since: None,
            cool_down: MIN_COOL_DOWN,
            threshold: MIN_THRESHOLD,
            opened_at: now,
            closed_at: now,
            cause: Box::default(),
            opened: 0,
            rejected: 0,
        }
    }

    pub(super) fn is_closed(&self) -> bool {
        matches!(self.phase, Phase::Closed)
    }

    /// Returns how often it has opened.
    pub(super) fn opened(&self) -> u64 {
        self.opened
    }

    /// Returns how long a call may be in flight while the server replies to nothing.
    pub(super) fn stall_time(budget: Duration) -> Duration {
        2 * budget.max(MIN_THRESHOLD)
    }

    /// Returns whether a request that decides may be sent; counts it if not.
    pub(super) fn admit(&mut self) -> bool {
        let is_admitted = match &mut self.phase {
            Phase::Closed => true,
            Phase::Open { .. } | Phase::HalfOpen => false,
            Phase::Closing { step, requests, .. } => {
                let number = *requests;
                *requests = requests.wrapping_add(1);
                number.is_multiple_of(STEPS[*step])
            }
        };
        self.rejected += u64::from(!is_admitted);
        is_admitted
    }

    /// Returns the failure of a request that is not sent.
    pub(super) fn rejection(&self, address: &str) -> Failure {
        Failure::new(FailureKind::BreakerOpen, format!("{address}: {}", self.cause))
    }

    /// Records the end of a call. `jitter` is drawn only if it opens.
    pub(super) fn record_call(
        &mut self,
        call: EndedCall<'_>,
        now: Instant,
        jitter: impl FnOnce() -> Jitter,
    ) {
        if call.is_answered {
            self.record_reply(now);
        }
        let is_counted = matches!(self.phase, Phase::Closed | Phase::Closing { .. });
        // Late replies cause compensations, which are never late themselves.
        let says_nothing = call.budget.is_none() && matches!(call.outcome, Outcome::InTime);
        if !is_counted || says_nothing || call.sent < self.counts_since {
            return;
        }
        self.calls.record(call.outcome, now);
        if let Outcome::InTime = call.outcome {
            return self.record_in_time(now);
        }
        let min = if self.is_closed() { MIN_CALLS } else { MIN_CALLS_CLOSING };
        let Counts { calls, late, failed } = self.calls.sum();
        let message = match call.outcome {
            _ if calls < min => return,
            Outcome::Failed(failure) if failed * 2 >= calls => {
                format!("{failed} of {calls} calls within a second failed: {}", failure.message)
            }
            _ if (late + failed) * 5 >= calls * 4 => {
                format!("{} of {calls} calls within a second failed or were late", late + failed)
            }
            _ => return,
        };
        self.stalled_since = None;
        self.open(message, call.budget, now, jitter());
    }

    /// A reply ends a stall.
    fn record_reply(&mut self, now: Instant) {
        self.last_reply = Some(now);
        if let Phase::Open { probe_at } = &mut self.phase
            && self.stalled_since.take().is_some()
        {
            *probe_at = now;
        }
    }

    fn record_in_time(&mut self, now: Instant) {
        if let Phase::Closing { step, in_time, .. } = &mut self.phase {
            *in_time += 1;
            if *in_time >= STEP_CALLS {
                let next = *step + 1;
                self.close_to(next, now);
            }
        }
    }

    /// Records that a call has been in flight for its stall time.
    pub(super) fn record_stall(
        &mut self,
        sent: Instant,
        budget: Duration,
        now: Instant,
        jitter: Jitter,
    ) {
        let may_open = matches!(self.phase, Phase::Closed | Phase::Closing { .. });
        if !may_open || sent < self.counts_since || self.last_reply > Some(sent) {
            return;
        }
        self.stalled_since = Some(now);
        self.open(format!("no reply within {:?}", now - sent), Some(budget), now, jitter);
    }

    /// Records that a new connection is up. Its server may be another one.
    pub(super) fn record_connection(&mut self, now: Instant) {
        if let Phase::Open { probe_at } = &mut self.phase {
            *probe_at = now;
        }
    }

    fn open(&mut self, message: String, budget: Option<Duration>, now: Instant, jitter: Jitter) {
        if self.is_closed() {
            self.opened += 1;
            self.opened_at = now;
            self.cool_down = MIN_COOL_DOWN;
        }
        self.cause = message.into();
        self.threshold = budget.unwrap_or_default().max(MIN_THRESHOLD);
        self.cool_down(now, jitter);
    }

    fn cool_down(&mut self, now: Instant, jitter: Jitter) {
        let delay = self.cool_down * 4 / 5 + jitter.part_of(self.cool_down * 2 / 5);
        self.phase = Phase::Open { probe_at: now + delay };
        self.cool_down = (self.cool_down * 2).min(MAX_COOL_DOWN);
    }

    /// Returns what to do next. If the caller is to send a probe, the state assumes that it does.
    pub(super) fn step(&mut self, now: Instant) -> Step {
        match self.phase {
            Phase::Closed => Step::Done,
            Phase::Open { probe_at } if probe_at <= now => {
                self.phase = Phase::HalfOpen;
                Step::Probe(self.threshold)
            }
            Phase::Open { probe_at } => Step::Wait(Some(probe_at)),
            Phase::HalfOpen => Step::Wait(None),
            Phase::Closing { step, ends_at, .. } if ends_at <= now => {
                self.close_to(step + 1, now);
                self.step(now)
            }
            Phase::Closing { ends_at, .. } => Step::Wait(Some(ends_at)),
        }
    }

    /// Records whether a probe was answered in time. After a short outage, all requests are sent again.
    pub(super) fn record_probe(&mut self, is_answered: bool, now: Instant, jitter: Jitter) {
        if !is_answered {
            let has_resumed = self.stalled_since.is_some() && self.last_reply > self.stalled_since;
            if has_resumed {
                // The stall ended while the probe was in flight: the next one follows at once.
                self.stalled_since = None;
                self.phase = Phase::Open { probe_at: now };
            } else {
                self.cool_down(now, jitter);
            }
            return;
        }
        self.calls = Window::new(now);
        self.counts_since = now;
        self.stalled_since = None;
        let is_short = now - self.opened_at < MIN_COOL_DOWN * 4 / 5;
        self.close_to(if is_short { STEPS.len() } else { 0 }, now);
    }

    /// Begins a step of closing; after the last, it is closed.
    fn close_to(&mut self, step: usize, now: Instant) {
        self.phase = if step < STEPS.len() {
            Phase::Closing { step, ends_at: now + STEP_TIME, requests: 0, in_time: 0 }
        } else {
            self.closed_at = now;
            Phase::Closed
        };
    }

    pub(super) fn stats(&self, now: Instant) -> BreakerStats {
        let (state, until) = match self.phase {
            Phase::Closed => (BreakerState::Closed, self.closed_at),
            Phase::Open { .. } => (BreakerState::Open, now),
            Phase::HalfOpen => (BreakerState::HalfOpen, now),
            Phase::Closing { .. } => (BreakerState::Closing, now),
        };
        BreakerStats {
            state,
            opened: self.opened,
            rejected: self.rejected,
            cause: self.cause.clone(),
            last_opening: (self.opened > 0).then(|| until - self.opened_at),
        }
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    calls: u32,
    late: u32,
    failed: u32,
}

/// The calls of the last second.
#[derive(Debug)]
struct Window {
    buckets: [Counts; BUCKETS],
    /// The index of the newest bucket, and when it began.
    newest: usize,
    began: Instant,
}

impl Window {
    fn new(now: Instant) -> Self {
        Window { buckets: [Counts::default(); BUCKETS], newest: 0, began: now }
    }

    fn record(&mut self, outcome: Outcome<'_>, now: Instant) {
        for _ in 0..BUCKETS {
            if now.saturating_duration_since(self.began) < BUCKET {
                break;
            }
            self.began += BUCKET;
            self.newest = (self.newest + 1) % BUCKETS;
            self.buckets[self.newest] = Counts::default();
        }
        if now.saturating_duration_since(self.began) >= BUCKET {
            self.began = now;
        }
        let counts = &mut self.buckets[self.newest];
        counts.calls += 1;
        counts.late += u32::from(matches!(outcome, Outcome::Late));
        counts.failed += u32::from(matches!(outcome, Outcome::Failed(_)));
    }

    fn sum(&self) -> Counts {
        let mut sum = Counts::default();
        for Counts { calls, late, failed } in self.buckets {
            sum.calls += calls;
            sum.late += late;
            sum.failed += failed;
        }
        sum
    }
}

/// Returns whether a server that replies with this failure cannot decide.
pub(super) const fn is_unable(kind: FailureKind) -> bool {
    matches!(
        kind,
        FailureKind::Loading
            | FailureKind::MasterDown
            | FailureKind::ClusterDown
            | FailureKind::OutOfMemory
            | FailureKind::Misconfigured
            | FailureKind::ReadOnly
            | FailureKind::NoReplicas
            | FailureKind::Busy
    )
}

#[cfg(test)]
mod tests;
