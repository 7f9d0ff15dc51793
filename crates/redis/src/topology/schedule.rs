//! When the topology is queried: a state machine without I/O.

use std::time::Duration;

use tokio::time::Instant;

use crate::jitter::Jitter;

/// The interval between queries while the topology changes: it doubles between these bounds.
const MIN_INTERVAL: Duration = Duration::from_millis(25);
const MAX_INTERVAL: Duration = Duration::from_millis(500);
/// After this time without a change, the interval starts at its minimum again.
const QUIET: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub(super) struct Schedule {
    /// The interval between queries without a cause.
    regular: Duration,
    next: Instant,
    interval: Duration,
    last_query: Option<Instant>,
    last_doubt: Option<Instant>,
    in_progress: bool,
}

impl Schedule {
    pub(super) fn new(regular: Duration, now: Instant) -> Self {
        Schedule {
            regular,
            next: now,
            interval: MIN_INTERVAL,
            last_query: None,
            last_doubt: None,
            in_progress: false,
        }
    }

    /// Records a sign that the topology has changed.
    pub(super) fn doubt(&mut self, now: Instant, jitter: Jitter) {
        if self.last_doubt.is_none_or(|last| now.duration_since(last) > QUIET) {
            self.interval = MIN_INTERVAL;
        }
        self.last_doubt = Some(now);
        let due = self.last_query.map_or(now, |last| last + self.interval).max(now);
        self.next = self.next.min(due + jitter.part_of(self.interval / 2));
    }

    /// Returns when the next query is due; `None` while one is in progress.
    pub(super) fn next(&self) -> Option<Instant> {
        (!self.in_progress).then_some(self.next)
    }

    pub(super) fn start_query(&mut self, now: Instant, jitter: Jitter) {
        self.in_progress = true;
        self.last_query = Some(now);
        self.interval = (self.interval * 2).min(MAX_INTERVAL);
        self.next = now + self.regular - jitter.part_of(self.regular / 4);
    }

    pub(super) fn end_query(&mut self) {
        self.in_progress = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_become_rare_while_the_topology_keeps_changing() {
        let start = Instant::now();
        let mut schedule = Schedule::new(Duration::from_secs(30), start);
        let (mut now, mut queries) = (start, Vec::new());
        while now - start < Duration::from_secs(3) {
            schedule.doubt(now, Jitter::MIN);
            if schedule.next().is_some_and(|next| next <= now) {
                queries.push((now - start).as_millis());
                schedule.start_query(now, Jitter::MIN);
                schedule.end_query();
            }
            now += Duration::from_millis(1);
        }
        assert_eq!(queries, [0, 50, 150, 350, 750, 1_250, 1_750, 2_250, 2_750]);
    }

    #[test]
    fn queries_are_regular_without_a_cause() {
        let start = Instant::now();
        let mut schedule = Schedule::new(Duration::from_secs(30), start);
        schedule.start_query(start, Jitter::MIN);
        assert_eq!(schedule.next(), None);
        schedule.end_query();
        assert_eq!(schedule.next(), Some(start + Duration::from_secs(30)));
        let later = start + Duration::from_secs(10);
        schedule.doubt(later, Jitter::MAX);
        assert_eq!(schedule.next(), Some(later + MIN_INTERVAL / 2));
    }
}
