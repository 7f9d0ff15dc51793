//! The clock of a run: nanoseconds since its start, and the wall clock at that moment.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rustix::time::{ClockId, clock_gettime};

/// Nanoseconds since the start of a run.
pub(crate) type Nanos = u64;

/// A monotonic clock with a wall clock reference. Copies show the same time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    start: Instant,
    /// The wall clock at the start, in µs since the epoch.
    wall_start: u64,
}

impl Clock {
    #[expect(clippy::disallowed_methods, reason = "a measurement needs the real time")]
    #[expect(clippy::expect_used, reason = "no system runs with a clock before 1970")]
    pub(crate) fn start() -> Self {
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).expect("the clock is after 1970");
        Clock { start: Instant::now(), wall_start: nanos(wall) / 1_000 }
    }

    #[expect(clippy::disallowed_methods, reason = "a measurement needs the real time")]
    pub(crate) fn now(&self) -> Nanos {
        nanos(Instant::now().saturating_duration_since(self.start))
    }

    /// The wall clock in µs since the epoch, derived from the reference at the start.
    pub(crate) fn wall_micros(&self, at: Nanos) -> u64 {
        self.wall_start + at / 1_000
    }
}

/// The nanoseconds of a duration.
///
/// # Panics
/// The duration is longer than 584 years.
#[expect(clippy::expect_used, reason = "durations are at most a day, times since 1970 < 2554")]
pub(crate) fn nanos(duration: Duration) -> Nanos {
    u64::try_from(duration.as_nanos()).expect("a duration below 584 years")
}

/// The CPU time that this thread has used.
#[expect(clippy::expect_used, reason = "the kernel returns a normalised, non-negative time")]
pub(crate) fn thread_cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::try_from(time).expect("a non-negative CPU time")
}
