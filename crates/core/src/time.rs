//! Time stamps and durations in whole microseconds.

use core::fmt;
use core::time::Duration;

/// A duration in whole microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Micros(u64);

impl Micros {
    /// A duration of zero.
    pub const ZERO: Micros = Micros(0);
    /// The longest window of a limit: 366 days.
    pub const MAX_WINDOW: Micros = Micros(366 * 86_400 * 1_000_000);

    /// Creates a duration of `us` microseconds.
    #[must_use]
    pub const fn new(us: u64) -> Self {
        Micros(us)
    }

    /// Creates a duration of `ms` milliseconds, saturating at the maximum.
    #[must_use]
    pub const fn from_millis(ms: u64) -> Self {
        Micros(ms.saturating_mul(1_000))
    }

    /// Creates a duration of `s` seconds, saturating at the maximum.
    #[must_use]
    pub const fn from_secs(s: u64) -> Self {
        Micros(s.saturating_mul(1_000_000))
    }

    /// The number of microseconds.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The whole seconds, rounded up, as in `Retry-After`.
    ///
    /// # Example
    /// ```
    /// use tollgate_algorithms::Micros;
    /// assert_eq!(Micros::new(1_000_001).secs_rounded_up(), 2);
    /// assert_eq!(Micros::new(1_000_000).secs_rounded_up(), 1);
    /// ```
    #[must_use]
    pub const fn secs_rounded_up(self) -> u64 {
        self.0.div_ceil(1_000_000)
    }
}

impl From<Micros> for Duration {
    fn from(duration: Micros) -> Self {
        Duration::from_micros(duration.0)
    }
}

impl From<Duration> for Micros {
    /// Rounds up to a whole microsecond and saturates at 584,000 years.
    fn from(duration: Duration) -> Self {
        Micros(u64::try_from(duration.as_nanos().div_ceil(1_000)).unwrap_or(u64::MAX))
    }
}

/// Writes seconds with up to six decimals: `0.1`, `60`, `0.000001`. Width and alignment apply.
impl fmt::Display for Micros {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, mut rest, mut digits) = (self.0 / 1_000_000, self.0 % 1_000_000, 6);
        if rest == 0 {
            return whole.fmt(f);
        }
        while rest.is_multiple_of(10) {
            rest /= 10;
            digits -= 1;
        }
        match f.width() {
            None => write!(f, "{whole}.{rest:0digits$}"),
            Some(_) => f.pad(&alloc::format!("{whole}.{rest:0digits$}")),
        }
    }
}

/// A point in time, in microseconds since the Unix epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(u64);

impl Timestamp {
    /// 1970-01-01T00:00:00Z.
    pub const EPOCH: Timestamp = Timestamp(0);
    /// The latest time stamp, in the year 2239. It is far enough below 2^53 µs that a window or a
    /// lease added to it is exact in a double.
    pub const MAX: Timestamp = Timestamp(8_500_000_000_000_000);

    /// Creates the time stamp `us` microseconds after the epoch, at most [`Timestamp::MAX`].
    #[must_use]
    pub const fn from_micros(us: u64) -> Self {
        if us > Self::MAX.0 { Self::MAX } else { Timestamp(us) }
    }

    /// The microseconds since the epoch.
    #[must_use]
    pub const fn as_micros(self) -> u64 {
        self.0
    }

    /// The time `span` later, at most [`Timestamp::MAX`].
    #[must_use]
    pub const fn saturating_add(self, span: Micros) -> Self {
        Self::from_micros(self.0.saturating_add(span.0))
    }

    /// The time `span` earlier, at least the epoch.
    #[must_use]
    pub const fn saturating_sub(self, span: Micros) -> Self {
        Timestamp(self.0.saturating_sub(span.0))
    }

    /// The duration since `earlier`; zero if `earlier` is later.
    #[must_use]
    pub const fn duration_since(self, earlier: Timestamp) -> Micros {
        Micros(self.0.saturating_sub(earlier.0))
    }
}

/// Writes the seconds since the epoch with up to six decimals.
impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Micros(self.0).fmt(f)
    }
}

/// The time from `now` until `then`, in µs since the epoch; zero if `then` has passed.
pub(crate) const fn duration_until(now: Timestamp, then: u64) -> Micros {
    if then == u64::MAX {
        // Later than any time that can be represented, so it is equally far from every `now`.
        return Micros::new(u64::MAX);
    }
    Micros::new(then.saturating_sub(now.as_micros()))
}
