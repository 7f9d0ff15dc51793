//! When a connection is made, and what an error means for it: a state machine without I/O.

use std::time::Duration;

use tokio::time::Instant;
use tollgate_state::FailureKind;

use crate::jitter::Jitter;

/// The delay before the first attempt after a connection was lost: up to this, at random, so that
/// clients that lost the same server do not reconnect at the same time.
const FIRST_DELAY: Duration = Duration::from_millis(50);
/// The delay between attempts that keep failing.
const MAX_DELAY: Duration = Duration::from_secs(1);
/// How long a connection must last until the next loss starts with the first delay again. A server
/// that accepts connections and closes them would otherwise get a new one at once each time.
const STABLE_AFTER: Duration = Duration::from_secs(5);

/// The state of a connection.
#[derive(Debug)]
pub(super) struct ConnectionState {
    phase: Phase,
    /// The upper bound of the next delay.
    delay: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Waiting { until: Instant },
    Connecting,
    Connected { since: Instant },
}

/// What to do next for a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Start an attempt to connect.
    Connect,
    /// Wait until this time, or for an event if there is none.
    Wait(Option<Instant>),
}

impl ConnectionState {
    /// Creates a connection that is to be made at once.
    pub(super) fn new(now: Instant) -> Self {
        ConnectionState { phase: Phase::Waiting { until: now }, delay: FIRST_DELAY }
    }

    /// Returns what to do next. If the caller is to start an attempt, the state assumes that it does.
    pub(super) fn step(&mut self, now: Instant) -> Step {
        match self.phase {
            Phase::Waiting { until } if until <= now => {
                self.phase = Phase::Connecting;
                Step::Connect
            }
            Phase::Waiting { until } => Step::Wait(Some(until)),
            Phase::Connecting | Phase::Connected { .. } => Step::Wait(None),
        }
    }

    /// Records that the server accepted the connection and can decide.
    pub(super) fn record_success(&mut self, now: Instant) {
        self.phase = Phase::Connected { since: now };
    }

    /// Records that an attempt failed, or that the connection was lost or given up.
    pub(super) fn record_loss(&mut self, now: Instant, jitter: Jitter) {
        if let Phase::Connected { since } = self.phase
            && now.duration_since(since) >= STABLE_AFTER
        {
            self.delay = FIRST_DELAY;
        }
        let delay = if self.delay < MAX_DELAY {
            jitter.part_of(self.delay)
        } else {
            // Never less than the maximum: it bounds the number of attempts per second.
            MAX_DELAY + jitter.part_of(MAX_DELAY / 4)
        };
        self.phase = Phase::Waiting { until: now + delay };
        self.delay = (self.delay * 2).min(MAX_DELAY);
    }
}

/// Returns whether a server that replies with this failure must be replaced: it cannot decide, and
/// its name may refer to another server by now.
pub(super) const fn ends_connection(kind: FailureKind) -> bool {
    matches!(
        kind,
        FailureKind::ReadOnly
            | FailureKind::MasterDown
            | FailureKind::Loading
            | FailureKind::WrongPassword
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the times of the attempts, in ms, of a connection to a server that accepts each
    /// connection for this time.
    fn attempts(lifetime: Duration, jitter: Jitter, during: Duration) -> Vec<u128> {
        let start = Instant::now();
        let (mut now, mut attempts) = (start, Vec::new());
        let mut state = ConnectionState::new(now);
        while now - start <= during {
            match state.step(now) {
                Step::Connect => {
                    attempts.push((now - start).as_millis());
                    if lifetime > Duration::ZERO {
                        state.record_success(now);
                        assert_eq!(state.step(now), Step::Wait(None));
                    }
                    now += lifetime;
                    state.record_loss(now, jitter);
                }
                Step::Wait(until) => now = until.unwrap(),
            }
        }
        attempts
    }

    #[test]
    fn delays_double_up_to_a_second() {
        let seconds = Duration::from_secs;
        assert_eq!(
            attempts(Duration::ZERO, Jitter::MAX, seconds(6)),
            [0, 50, 150, 350, 750, 1_550, 2_800, 4_050, 5_300]
        );
        // The least delays: the second attempt follows at once.
        assert_eq!(
            attempts(Duration::ZERO, Jitter::MIN, seconds(3)),
            [0, 0, 0, 0, 0, 0, 1_000, 2_000, 3_000]
        );
    }

    #[test]
    fn short_lived_connections_do_not_reset_the_delay() {
        let lifetime = Duration::from_millis(10);
        let attempts = attempts(lifetime, Jitter::HALF, Duration::from_secs(12));
        let after_first_second = attempts.iter().filter(|at| **at > 1_000).count();
        assert!(after_first_second <= 11, "{attempts:?}");
    }

    #[test]
    fn a_connection_that_lasted_is_replaced_with_the_first_delay() {
        let lifetime = STABLE_AFTER;
        let attempts = attempts(lifetime, Jitter::MAX, Duration::from_secs(12));
        assert_eq!(attempts, [0, 5_050, 10_100]);
    }
}
