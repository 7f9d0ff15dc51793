//! Clocks. No other module reads the time.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering, fence};

use tollgate_algorithms::{Micros, Timestamp};

use crate::sync::{Mutex, lock};

/// The clock of a store.
#[derive(Clone)]
#[non_exhaustive]
pub enum Clock {
    /// The system clock.
    System(Arc<SystemClock>),
    /// A manual clock, for tests and for replaying logs.
    Manual(ManualClock),
    /// A function, see [`Clock::from_fn`].
    Function(Arc<dyn Fn() -> Timestamp + Send + Sync>),
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Clock::System(_) => f.write_str("System"),
            Clock::Manual(manual) => manual.fmt(f),
            Clock::Function(_) => f.write_str("Function"),
        }
    }
}

impl From<ManualClock> for Clock {
    fn from(clock: ManualClock) -> Self {
        Clock::Manual(clock)
    }
}

impl Clock {
    /// Creates a system clock. The first one of a process takes a few milliseconds to calibrate.
    #[must_use]
    pub fn system() -> Self {
        Clock::System(Arc::new(SystemClock::new()))
    }

    /// Creates a clock that calls a function for each decision, such as one that follows the time of a
    /// runtime in tests. The function is called while a part of the table is locked: it returns at
    /// once, and calls no limiter.
    pub fn from_fn(now: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        Clock::Function(Arc::new(now))
    }

    /// Returns the time.
    #[must_use]
    #[inline]
    pub fn now(&self) -> Timestamp {
        match self {
            Clock::System(system) => system.now(),
            Clock::Manual(manual) => manual.now(),
            Clock::Function(now) => now(),
        }
    }
}

/// A clock that only its owner sets and advances. Clones share the time.
///
/// # Examples
/// ```
/// use tollgate_algorithms::{Micros, Timestamp};
/// use tollgate_state::ManualClock;
/// let clock = ManualClock::at(Timestamp::from_micros(1_763_650_000_000_000));
/// clock.clone().advance(Micros::from_secs(1));
/// assert_eq!(clock.now().as_micros(), 1_763_650_001_000_000);
/// ```
#[derive(Clone, Debug, Default)]
pub struct ManualClock(Arc<AtomicU64>);

impl ManualClock {
    /// Creates a clock set to `time`.
    #[must_use]
    pub fn at(time: Timestamp) -> Self {
        ManualClock(Arc::new(AtomicU64::new(time.as_micros())))
    }

    /// Returns the time.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        Timestamp::from_micros(self.0.load(Ordering::SeqCst))
    }

    /// Sets the time, which may be earlier than before.
    pub fn set(&self, time: Timestamp) {
        self.0.store(time.as_micros(), Ordering::SeqCst);
    }

    /// Advances the time by `duration`.
    pub fn advance(&self, duration: impl Into<Micros>) {
        self.0.fetch_add(duration.into().get(), Ordering::SeqCst);
    }
}

/// The interval at which the counter is compared with the system's clocks, in µs.
const ANCHOR_INTERVAL: u64 = 100_000;
/// The maximum slew towards the wall clock: 500 µs per second, as in NTP.
const SLEW_PER_SECOND: i64 = 500;
/// Fractional bits of the rate, which is in µs per tick of the counter.
const RATE_BITS: u32 = 40;

/// The wall time at start plus a monotonic clock that includes suspension, slewed towards the wall
/// clock. It never goes backwards.
///
/// A read costs a read of the CPU's time stamp counter and a multiplication. Every 100 ms, one
/// reader compares the counter with the system's clocks and adjusts its rate.
#[derive(Debug)]
pub struct SystemClock {
    counter: quanta::Clock,
    /// A sequence lock: odd while the anchor is being updated.
    sequence: AtomicU64,
    /// The counter at the anchor.
    ticks: AtomicU64,
    /// The time at the anchor, in µs since the epoch.
    time: AtomicU64,
    /// µs per tick, with [`RATE_BITS`] fractional bits.
    rate: AtomicU64,
    /// Ticks after which the anchor is updated.
    anchor_ticks: AtomicU64,
    steering: Mutex<Steering>,
}

/// The previous update of the anchor.
#[derive(Debug)]
struct Steering {
    ticks: u64,
    monotonic: u64,
    /// The time minus the monotonic clock.
    offset: i64,
}

impl SystemClock {
    fn new() -> Self {
        let counter = quanta::Clock::new();
        let ticks = counter.raw();
        let (monotonic, wall) = (monotonic_micros(), wall_micros());
        // A million ticks: enough for precision, and too few to overflow.
        let nanos = counter.delta_as_nanos(0, 1_000_000).max(1);
        let rate = (u128::from(nanos) << RATE_BITS) / 1_000_000_000;
        #[expect(clippy::expect_used, reason = "only a counter below 1 Hz would overflow")]
        let rate = u64::try_from(rate).expect("a tick is shorter than a second").max(1);
        SystemClock {
            counter,
            sequence: AtomicU64::new(0),
            ticks: AtomicU64::new(ticks),
            time: AtomicU64::new(wall),
            rate: AtomicU64::new(rate),
            anchor_ticks: AtomicU64::new(anchor_ticks(rate)),
            steering: Mutex::new(Steering {
                ticks,
                monotonic,
                offset: wall.cast_signed().wrapping_sub(monotonic.cast_signed()),
            }),
        }
    }

    /// Returns the time.
    #[must_use]
    #[inline]
    pub fn now(&self) -> Timestamp {
        let sequence = self.sequence.load(Ordering::Acquire);
        let ticks = self.ticks.load(Ordering::Relaxed);
        let time = self.time.load(Ordering::Relaxed);
        let rate = self.rate.load(Ordering::Relaxed);
        let anchor_ticks = self.anchor_ticks.load(Ordering::Relaxed);
        fence(Ordering::Acquire);
        let span = self.counter.raw().wrapping_sub(ticks);
        let is_consistent =
            self.sequence.load(Ordering::Relaxed) == sequence && sequence.is_multiple_of(2);
        if is_consistent && span <= anchor_ticks {
            return Timestamp::from_micros(time + ((span * rate) >> RATE_BITS));
        }
        self.update_anchor()
    }

    /// Compares the counter with the system's clocks, and adjusts the rate.
    #[cold]
    fn update_anchor(&self) -> Timestamp {
        let mut steering = lock(&self.steering);
        let (ticks, monotonic, wall) = (self.counter.raw(), monotonic_micros(), wall_micros());
        let anchor = self.ticks.load(Ordering::Relaxed);
        let mut rate = self.rate.load(Ordering::Relaxed);
        // Another reader may have updated the anchor meanwhile. A suspension may have reset the
        // counter, which is then behind the anchor.
        let span = ticks.wrapping_sub(anchor);
        let time = self.time.load(Ordering::Relaxed);
        let anchor_ticks = self.anchor_ticks.load(Ordering::Relaxed);
        let is_plausible = span <= 2 * anchor_ticks;
        let shown = if is_plausible { time + ((span * rate) >> RATE_BITS) } else { time };
        let passed = monotonic.saturating_sub(steering.monotonic);
        if is_plausible && span < anchor_ticks / 2 {
            return Timestamp::from_micros(shown);
        }
        let slew = SLEW_PER_SECOND * (passed / 1_000_000 + 1).cast_signed();
        let wanted = wall.cast_signed().wrapping_sub(monotonic.cast_signed());
        steering.offset += (wanted - steering.offset).clamp(-slew, slew);
        let target = monotonic.saturating_add_signed(steering.offset);
        if is_plausible && passed > ANCHOR_INTERVAL / 2 && ticks > steering.ticks {
            let measured = (u128::from(passed) << RATE_BITS) / u128::from(ticks - steering.ticks);
            // A measurement that overflows is implausible, like one beyond the clamp.
            rate =
                u64::try_from(measured).unwrap_or(rate).clamp(rate - rate / 16, rate + rate / 16);
        }
        let next = target.max(shown);
        // If the time is ahead of the target, slow the clock down by up to 5 % until they agree.
        let ahead = (next - target).min(ANCHOR_INTERVAL / 20);
        let steered = rate - rate / ANCHOR_INTERVAL * ahead;
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
        self.anchor_ticks.store(anchor_ticks(rate), Ordering::Relaxed);
        self.sequence.fetch_add(1, Ordering::Release);
    }
}

/// Returns the ticks between two updates of the anchor.
const fn anchor_ticks(rate: u64) -> u64 {
    (ANCHOR_INTERVAL << RATE_BITS) / rate
}

/// Returns the µs of a clock that is never set and includes suspension.
#[cfg(target_os = "linux")]
#[must_use]
pub fn monotonic_micros() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    let micros = time.tv_sec.saturating_mul(1_000_000).saturating_add(time.tv_nsec / 1_000);
    #[expect(clippy::expect_used, reason = "the clock counts from boot")]
    u64::try_from(micros).expect("the time since boot is positive")
}

/// Returns the µs of a clock that is never set. Whether it includes suspension depends on the
/// platform.
#[cfg(not(target_os = "linux"))]
#[must_use]
pub fn monotonic_micros() -> u64 {
    static START: std::sync::OnceLock<std::time::Instant> = std::sync::OnceLock::new();
    #[expect(clippy::disallowed_methods, reason = "this is the clock")]
    let elapsed = START.get_or_init(std::time::Instant::now).elapsed();
    // Saturates after 584,000 years.
    u64::try_from(elapsed.as_micros()).unwrap_or(u64::MAX)
}

/// Returns the µs of the wall clock since the epoch; 0 if the clock is set before it.
#[must_use]
pub fn wall_micros() -> u64 {
    #[expect(clippy::disallowed_methods, reason = "this is the clock")]
    let now = std::time::SystemTime::now();
    let span = now.duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    // Saturates in the year 586,000.
    u64::try_from(span.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_is_monotonic_and_follows_the_wall_clock() {
        let clock = SystemClock::new();
        let (start, mut last) = (wall_micros(), clock.now());
        // Long enough for several anchors.
        while wall_micros() < start + 4 * ANCHOR_INTERVAL {
            let now = clock.now();
            assert!(now >= last, "{last} then {now}");
            last = now;
        }
        let apart = last.as_micros().abs_diff(wall_micros());
        assert!(apart < 50_000, "{apart} µs from the wall clock");
    }

    #[test]
    fn a_counter_reset_by_a_suspension_is_detected() {
        let clock = SystemClock::new();
        let before = clock.now();
        // As after a suspension: the counter is behind its anchor.
        clock.publish(u64::MAX / 2, before.as_micros(), clock.rate.load(Ordering::Relaxed));
        let after = clock.now();
        assert!(after >= before && after.duration_since(before) < Micros::from_secs(5));
    }
}
