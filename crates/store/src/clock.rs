//! The clock: the only place that asks what time it is.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering, fence};

use tollgate_core::{Micros, Timestamp};

use crate::sync::{Mutex, lock};

/// Whose time decides.
#[derive(Clone, Debug)]
pub enum Clock {
    /// This machine's.
    System(Arc<SystemClock>),
    /// A clock that stands still until it is moved: for tests, and for logs replayed at their
    /// own time.
    Manual(ManualClock),
}

impl Clock {
    /// This machine's clock. Making one calibrates it, which takes some milliseconds once a
    /// process.
    #[must_use]
    pub fn system() -> Self {
        Clock::System(Arc::new(SystemClock::new()))
    }

    /// The time.
    #[must_use]
    #[inline]
    pub fn now(&self) -> Timestamp {
        match self {
            Clock::System(system) => system.now(),
            Clock::Manual(manual) => manual.now(),
        }
    }
}

/// A clock that stands still until it is moved. Clones show the same time.
///
/// # Example
/// ```
/// use tollgate_core::{Micros, Timestamp};
/// use tollgate_store::ManualClock;
/// let clock = ManualClock::at(Timestamp::from_micros(1_763_650_000_000_000));
/// clock.clone().advance(Micros::from_secs(1));
/// assert_eq!(clock.now().as_micros(), 1_763_650_001_000_000);
/// ```
#[derive(Clone, Debug, Default)]
pub struct ManualClock(Arc<AtomicU64>);

impl ManualClock {
    /// A clock that shows this time.
    #[must_use]
    pub fn at(time: Timestamp) -> Self {
        ManualClock(Arc::new(AtomicU64::new(time.as_micros())))
    }

    /// The time it shows.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        Timestamp::from_micros(self.0.load(Ordering::SeqCst))
    }

    /// Shows another time, which may be an earlier one.
    pub fn set(&self, time: Timestamp) {
        self.0.store(time.as_micros(), Ordering::SeqCst);
    }

    /// Shows a later time.
    pub fn advance(&self, span: Micros) {
        self.0.fetch_add(span.get(), Ordering::SeqCst);
    }
}

/// How often the counter is held against the system's clocks, in µs.
const ANCHOR_EVERY: u64 = 100_000;
/// How fast time is slewed towards the wall clock: 500 µs a second, as NTP does.
const SLEW_PER_SECOND: i64 = 500;
/// Fractional bits of the µs that a tick of the counter lasts.
const RATE_BITS: u32 = 40;

/// The wall time at start plus a monotonic clock that counts suspension, slewed towards the wall
/// clock, never backwards.
///
/// Reading it costs a read of the CPU's time stamp counter and a multiplication. Every 100 ms one
/// reader holds the counter against the system's clocks and sets its rate anew.
#[derive(Debug)]
pub struct SystemClock {
    counter: quanta::Clock,
    /// Odd while the anchor is being moved.
    sequence: AtomicU64,
    /// The counter, at the anchor.
    ticks: AtomicU64,
    /// The time, at the anchor.
    time: AtomicU64,
    /// µs a tick, with [`RATE_BITS`] of fraction.
    rate: AtomicU64,
    /// Ticks after which the anchor is moved.
    reach: AtomicU64,
    steering: Mutex<Steering>,
}

/// What moving the anchor needs to know of the last time.
#[derive(Debug)]
struct Steering {
    ticks: u64,
    monotonic: u64,
    /// The time less the monotonic clock.
    offset: i64,
}

impl SystemClock {
    fn new() -> Self {
        let counter = quanta::Clock::new();
        let ticks = counter.raw();
        let (monotonic, wall) = (monotonic_micros(), wall_micros());
        // A million ticks are long enough to divide and short enough for the product.
        let nanos = counter.delta_as_nanos(0, 1_000_000).max(1);
        let rate = (u128::from(nanos) << RATE_BITS) / 1_000_000_000;
        let rate = u64::try_from(rate).unwrap_or(u64::MAX).max(1);
        SystemClock {
            counter,
            sequence: AtomicU64::new(0),
            ticks: AtomicU64::new(ticks),
            time: AtomicU64::new(wall),
            rate: AtomicU64::new(rate),
            reach: AtomicU64::new(reach_of(rate)),
            steering: Mutex::new(Steering {
                ticks,
                monotonic,
                offset: wall.cast_signed().wrapping_sub(monotonic.cast_signed()),
            }),
        }
    }

    /// The time.
    #[must_use]
    #[inline]
    pub fn now(&self) -> Timestamp {
        let sequence = self.sequence.load(Ordering::Acquire);
        let ticks = self.ticks.load(Ordering::Relaxed);
        let time = self.time.load(Ordering::Relaxed);
        let rate = self.rate.load(Ordering::Relaxed);
        let reach = self.reach.load(Ordering::Relaxed);
        fence(Ordering::Acquire);
        let span = self.counter.raw().wrapping_sub(ticks);
        let settled =
            self.sequence.load(Ordering::Relaxed) == sequence && sequence.is_multiple_of(2);
        if settled && span <= reach {
            return Timestamp::from_micros(time + ((span * rate) >> RATE_BITS));
        }
        self.move_anchor()
    }

    /// Holds the counter against the system's clocks, and sets the rate so that it meets them.
    #[cold]
    fn move_anchor(&self) -> Timestamp {
        let mut steering = lock(&self.steering);
        let (ticks, monotonic, wall) = (self.counter.raw(), monotonic_micros(), wall_micros());
        let anchor = self.ticks.load(Ordering::Relaxed);
        let mut rate = self.rate.load(Ordering::Relaxed);
        // Another reader may have moved it while this one waited; a counter that went back was
        // reset by a suspension.
        let span = ticks.wrapping_sub(anchor);
        let time = self.time.load(Ordering::Relaxed);
        let counted = span <= 2 * self.reach.load(Ordering::Relaxed);
        let shown = if counted { time + ((span * rate) >> RATE_BITS) } else { time };
        let passed = monotonic.saturating_sub(steering.monotonic);
        if counted && span < self.reach.load(Ordering::Relaxed) / 2 {
            return Timestamp::from_micros(shown);
        }
        let slew = SLEW_PER_SECOND * i64::try_from(passed / 1_000_000 + 1).unwrap_or(1);
        let wanted = wall.cast_signed().wrapping_sub(monotonic.cast_signed());
        steering.offset += (wanted - steering.offset).clamp(-slew, slew);
        let target = monotonic.saturating_add_signed(steering.offset);
        if counted && passed > ANCHOR_EVERY / 2 && ticks > steering.ticks {
            let measured = (u128::from(passed) << RATE_BITS) / u128::from(ticks - steering.ticks);
            rate =
                u64::try_from(measured).unwrap_or(rate).clamp(rate - rate / 16, rate + rate / 16);
        }
        let next = target.max(shown);
        // Time that ran ahead runs slower until the clocks meet, at most by a twentieth.
        let ahead = (next - target).min(ANCHOR_EVERY / 20);
        let steered = rate - rate / ANCHOR_EVERY * ahead;
        steering.ticks = ticks;
        steering.monotonic = monotonic;
        self.publish(ticks, next, steered.max(1));
        Timestamp::from_micros(next)
    }

    fn publish(&self, ticks: u64, time: u64, rate: u64) {
        self.sequence.fetch_add(1, Ordering::Relaxed);
        fence(Ordering::Release);
        self.ticks.store(ticks, Ordering::Relaxed);
        self.time.store(time, Ordering::Relaxed);
        self.rate.store(rate, Ordering::Relaxed);
        self.reach.store(reach_of(rate), Ordering::Relaxed);
        self.sequence.fetch_add(1, Ordering::Release);
    }
}

/// The ticks that pass between two anchors.
const fn reach_of(rate: u64) -> u64 {
    (ANCHOR_EVERY << RATE_BITS) / rate
}

/// µs of a clock that is never set and counts suspension.
#[cfg(target_os = "linux")]
pub(crate) fn monotonic_micros() -> u64 {
    let value = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    let micros = value.tv_sec.saturating_mul(1_000_000).saturating_add(value.tv_nsec / 1_000);
    u64::try_from(micros).unwrap_or(0)
}

/// µs of a clock that is never set. Whether it counts suspension is the platform's choice.
#[cfg(not(target_os = "linux"))]
pub(crate) fn monotonic_micros() -> u64 {
    static START: std::sync::OnceLock<std::time::Instant> = std::sync::OnceLock::new();
    #[expect(clippy::disallowed_methods, reason = "this is the clock")]
    let elapsed = START.get_or_init(std::time::Instant::now).elapsed();
    u64::try_from(elapsed.as_micros()).unwrap_or(u64::MAX)
}

/// µs of the wall clock since the epoch; 0 before it.
pub(crate) fn wall_micros() -> u64 {
    #[expect(clippy::disallowed_methods, reason = "this is the clock")]
    let now = std::time::SystemTime::now();
    let span = now.duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(span.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_never_goes_back_and_keeps_to_the_wall_clock() {
        let clock = SystemClock::new();
        let (start, mut last) = (wall_micros(), clock.now());
        // Long enough for several anchors.
        while wall_micros() < start + 4 * ANCHOR_EVERY {
            let now = clock.now();
            assert!(now >= last, "{last} then {now}");
            last = now;
        }
        let apart = last.as_micros().abs_diff(wall_micros());
        assert!(apart < 50_000, "{apart} µs from the wall clock");
    }

    #[test]
    fn a_counter_that_was_reset_is_found_out() {
        let clock = SystemClock::new();
        let before = clock.now();
        // As after a suspension: the counter is behind its anchor.
        clock.publish(u64::MAX / 2, before.as_micros(), clock.rate.load(Ordering::Relaxed));
        let after = clock.now();
        assert!(after >= before && after.since(before) < Micros::from_secs(5));
    }
}
