//! When a server was unavailable, and why: a state machine without I/O.

use std::time::Duration;

use tokio::time::Instant;
use tollgate_state::Failure;

#[derive(Debug)]
pub(super) struct Availability {
    /// When the last outage began, or the first attempt to connect.
    since: Instant,
    /// When the last outage ended; `None` while no connection is up.
    until: Option<Instant>,
    /// The cause of the last outage: the last failed attempt to connect, or else the loss of the last
    /// connection.
    cause: Option<Failure>,
    /// Whether an attempt to connect has failed since the last connection.
    has_failed: bool,
    /// The number of outages, with the current one.
    outages: u64,
}

impl Availability {
    /// A server to which no connection has been made yet.
    pub(super) fn new(now: Instant) -> Self {
        Availability { since: now, until: None, cause: None, has_failed: false, outages: 0 }
    }

    /// Records that a connection is up.
    pub(super) fn record_up(&mut self, now: Instant) {
        self.has_failed = false;
        self.until.get_or_insert(now);
    }

    /// Records that the last connection was lost.
    pub(super) fn record_lost(&mut self, failure: &Failure, now: Instant) {
        if self.until.take().is_some() {
            self.since = now;
            self.cause = Some(failure.clone());
            self.outages += 1;
        }
    }

    /// Records that an attempt to connect failed while no connection is up.
    pub(super) fn record_failed_attempt(&mut self, failure: &Failure) {
        // An outage at the start begins with the first failure.
        self.outages = self.outages.max(1);
        self.cause = Some(failure.clone());
        self.has_failed = true;
    }

    /// Returns why there is no connection, after an attempt has failed.
    pub(super) fn failure(&self) -> Option<&Failure> {
        self.cause.as_ref().filter(|_| self.has_failed)
    }

    /// Returns the cause of the last outage.
    pub(super) fn cause(&self) -> Option<&Failure> {
        self.cause.as_ref()
    }

    pub(super) fn outages(&self) -> u64 {
        self.outages
    }

    /// Returns how long the last outage was, or has been.
    pub(super) fn last_outage(&self, now: Instant) -> Option<Duration> {
        (self.outages > 0).then(|| self.until.unwrap_or(now).duration_since(self.since))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tollgate_state::FailureKind;

    #[test]
    fn an_outage_lasts_from_the_loss_of_the_last_connection_to_the_next_connection() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let lost = Failure::new(FailureKind::Unreachable, "closed");
        let refused = Failure::new(FailureKind::Unreachable, "refused");
        let mut state = Availability::new(start);
        let shown = |state: &Availability, now| {
            let length = state.last_outage(now).map(|length| length.as_secs());
            (state.outages(), length, state.cause().map(|cause| cause.message.to_string()))
        };
        state.record_up(at(1));
        assert_eq!(shown(&state, at(2)), (0, None, None));
        state.record_lost(&lost, at(10));
        assert_eq!(state.failure(), None);
        assert_eq!(shown(&state, at(11)), (1, Some(1), Some("closed".to_owned())));
        state.record_failed_attempt(&refused);
        assert_eq!(shown(&state, at(12)), (1, Some(2), Some("refused".to_owned())));
        state.record_up(at(13));
        // A second connection does not prolong the outage.
        state.record_up(at(14));
        assert_eq!(shown(&state, at(20)), (1, Some(3), Some("refused".to_owned())));
        assert_eq!(state.failure(), None);
        state.record_lost(&lost, at(21));
        assert_eq!(shown(&state, at(25)).0, 2);
    }

    #[test]
    fn a_server_that_was_never_reached_has_one_outage() {
        let start = Instant::now();
        let mut state = Availability::new(start);
        let refused = Failure::new(FailureKind::Unreachable, "refused");
        state.record_failed_attempt(&refused);
        state.record_failed_attempt(&refused);
        assert_eq!(state.outages(), 1);
        let now = start + Duration::from_secs(3);
        assert_eq!(state.last_outage(now), Some(Duration::from_secs(3)));
    }
}
