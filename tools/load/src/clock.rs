//! The clock of a run, and a timer with the precision of the kernel.
//!
//! The runtime's own timers have a resolution of one millisecond, which would add to every latency
//! measured at a fixed rate. A kernel timer is exact up to the delay of the scheduler.

use std::io;
#[cfg(target_os = "linux")]
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rustix::time::{ClockId, clock_gettime};
#[cfg(target_os = "linux")]
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};
#[cfg(target_os = "linux")]
use tokio::io::unix::AsyncFd;

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

/// Wakes one task. The kernel timer is created on first use.
#[derive(Debug, Default)]
pub(crate) struct PreciseTimer {
    #[cfg(target_os = "linux")]
    timer: Option<AsyncFd<OwnedFd>>,
}

impl PreciseTimer {
    /// Waits until `deadline`.
    pub(crate) async fn sleep_until(&mut self, clock: &Clock, deadline: Nanos) -> io::Result<()> {
        match deadline.saturating_sub(clock.now()) {
            0 => Ok(()),
            remaining => self.sleep(Duration::from_nanos(remaining)).await,
        }
    }

    #[cfg(target_os = "linux")]
    async fn sleep(&mut self, duration: Duration) -> io::Result<()> {
        let timer = match self.timer.take() {
            Some(timer) => timer,
            None => new_timer()?,
        };
        let timer = self.timer.insert(timer);
        let zero = Timespec { tv_sec: 0, tv_nsec: 0 };
        let it_value = Timespec {
            tv_sec: duration.as_secs().try_into().map_err(io::Error::other)?,
            tv_nsec: duration.subsec_nanos().into(),
        };
        let once = Itimerspec { it_interval: zero, it_value };
        timerfd_settime(timer.get_ref(), TimerfdTimerFlags::empty(), &once)?;
        loop {
            let mut guard = timer.readable().await?;
            let mut expirations = [0; 8];
            let read =
                guard.try_io(|timer| Ok(rustix::io::read(timer.get_ref(), &mut expirations)?));
            match read {
                Ok(read) => return read.map(|_| ()),
                Err(_would_block) => continue,
            }
        }
    }

    #[cfg(not(target_os = "linux"))]
    async fn sleep(&mut self, duration: Duration) -> io::Result<()> {
        tokio::time::sleep(duration).await;
        Ok(())
    }
}

#[cfg(target_os = "linux")]
#[expect(
    deprecated,
    reason = "its replacement is unsafe because some types may change their descriptor; an \
              `OwnedFd` never does"
)]
fn new_timer() -> io::Result<AsyncFd<OwnedFd>> {
    let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
    AsyncFd::new(timerfd_create(TimerfdClockId::Monotonic, flags)?)
}
