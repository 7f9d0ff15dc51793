//! The clock of a run: nanoseconds since it began, and the wall clock of that moment.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rustix::time::{ClockId, clock_gettime};

/// Nanoseconds since a run began.
pub(crate) type Nanos = u64;

/// The caller's clock. Clones tell the same time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    start: Instant,
    /// µs since the epoch when it started, by the wall clock.
    wall: u64,
}

impl Clock {
    #[expect(clippy::disallowed_methods, reason = "it measures")]
    pub(crate) fn start() -> Self {
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Clock { start: Instant::now(), wall: u64::try_from(wall.as_micros()).unwrap_or(u64::MAX) }
    }

    #[expect(clippy::disallowed_methods, reason = "it measures")]
    pub(crate) fn now(&self) -> Nanos {
        nanos(Instant::now().saturating_duration_since(self.start))
    }

    /// µs since the epoch, as far as the wall clock was right at the start.
    pub(crate) fn wall_micros(&self, at: Nanos) -> u64 {
        self.wall.saturating_add(at / 1_000)
    }
}

pub(crate) fn nanos(span: Duration) -> Nanos {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}

/// What this thread has spent of its CPU.
pub(crate) fn cpu_of_thread() -> Duration {
    let value = clock_gettime(ClockId::ThreadCPUTime);
    let (seconds, rest) = (u64::try_from(value.tv_sec), u32::try_from(value.tv_nsec));
    Duration::new(seconds.unwrap_or(0), rest.unwrap_or(0))
}
