//! Waking up in time.
//!
//! The runtime's own timers are a millisecond coarse, which would count to every latency of a steady
//! rate. A timer of the kernel is exact to what the scheduler takes.

use std::io;
#[cfg(target_os = "linux")]
use std::os::fd::OwnedFd;
use std::time::Duration;

#[cfg(target_os = "linux")]
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};
#[cfg(target_os = "linux")]
use tokio::io::unix::AsyncFd;

use crate::clock::{Clock, Nanos};

/// Wakes one task. Its timer is made when it is first needed.
#[derive(Debug, Default)]
pub(crate) struct Alarm {
    #[cfg(target_os = "linux")]
    timer: Option<AsyncFd<OwnedFd>>,
}

impl Alarm {
    /// Waits until a time of the run.
    pub(crate) async fn until(&mut self, clock: &Clock, time: Nanos) -> io::Result<()> {
        match time.saturating_sub(clock.now()) {
            0 => Ok(()),
            rest => self.after(Duration::from_nanos(rest)).await,
        }
    }

    #[cfg(target_os = "linux")]
    async fn after(&mut self, span: Duration) -> io::Result<()> {
        let timer = match self.timer.take() {
            Some(timer) => timer,
            None => new_timer()?,
        };
        let timer = self.timer.insert(timer);
        let zero = Timespec { tv_sec: 0, tv_nsec: 0 };
        let it_value = Timespec {
            tv_sec: i64::try_from(span.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: span.subsec_nanos().into(),
        };
        let once = Itimerspec { it_interval: zero, it_value };
        timerfd_settime(timer.get_ref(), TimerfdTimerFlags::empty(), &once)?;
        loop {
            let mut ready = timer.readable().await?;
            let mut rings = [0; 8];
            let read = ready.try_io(|ready| Ok(rustix::io::read(ready.get_ref(), &mut rings)?));
            match read {
                Ok(rung) => return rung.map(|_| ()),
                Err(_) => continue,
            }
        }
    }

    #[cfg(not(target_os = "linux"))]
    async fn after(&mut self, span: Duration) -> io::Result<()> {
        tokio::time::sleep(span).await;
        Ok(())
    }
}

#[cfg(target_os = "linux")]
#[expect(
    deprecated,
    reason = "its successor is unsafe for the sake of types that change their descriptor; an \
              `OwnedFd` keeps its own to the end"
)]
fn new_timer() -> io::Result<AsyncFd<OwnedFd>> {
    let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
    AsyncFd::new(timerfd_create(TimerfdClockId::Monotonic, flags)?)
}
