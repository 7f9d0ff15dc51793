//! Points and lengths of time, in whole microseconds.

use core::fmt;
use core::time::Duration;

/// A length of time in whole microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Micros(u64);

impl Micros {
    /// No time at all.
    pub const ZERO: Micros = Micros(0);
    /// The longest window of a limit: 366 days.
    pub const MAX_WINDOW: Micros = Micros(366 * 86_400 * 1_000_000);

    /// A length of `us` microseconds.
    #[must_use]
    pub const fn new(us: u64) -> Self {
        Micros(us)
    }

    /// A length of `ms` milliseconds, at most what fits.
    #[must_use]
    pub const fn from_millis(ms: u64) -> Self {
        Micros(ms.saturating_mul(1_000))
    }

    /// A length of `s` seconds, at most what fits.
    #[must_use]
    pub const fn from_secs(s: u64) -> Self {
        Micros(s.saturating_mul(1_000_000))
    }

    /// The number of microseconds.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// Whole seconds, rounded up: what `Retry-After` carries.
    ///
    /// # Example
    /// ```
    /// use tollgate_core::Micros;
    /// assert_eq!(Micros::new(1_000_001).secs_rounded_up(), 2);
    /// assert_eq!(Micros::new(1_000_000).secs_rounded_up(), 1);
    /// ```
    #[must_use]
    pub const fn secs_rounded_up(self) -> u64 {
        self.0.div_ceil(1_000_000)
    }
}

impl From<Micros> for Duration {
    fn from(it: Micros) -> Self {
        Duration::from_micros(it.0)
    }
}

impl From<Duration> for Micros {
    /// Rounds up to a whole microsecond; past 584,000 years it stays there.
    fn from(it: Duration) -> Self {
        Micros(u64::try_from(it.as_nanos().div_ceil(1_000)).unwrap_or(u64::MAX))
    }
}

/// Seconds with as many decimals as are needed, at most six: `0.1`, `60`, `0.000001`. Width and
/// alignment are kept.
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

/// A point in time: microseconds since the Unix epoch, in UTC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(u64);

impl Timestamp {
    /// 1970-01-01T00:00:00Z.
    pub const EPOCH: Timestamp = Timestamp(0);
    /// The last moment that is told apart, in the year 2239. Far enough below 2^53 µs that a
    /// window and a lease added to it are still exact in a double.
    pub const MAX: Timestamp = Timestamp(8_500_000_000_000_000);

    /// The moment `us` microseconds after the epoch, or [`Timestamp::MAX`] if that is later.
    #[must_use]
    pub const fn from_micros(us: u64) -> Self {
        if us > Self::MAX.0 { Self::MAX } else { Timestamp(us) }
    }

    /// Microseconds since the epoch.
    #[must_use]
    pub const fn as_micros(self) -> u64 {
        self.0
    }

    /// This much later, or [`Timestamp::MAX`].
    #[must_use]
    pub const fn after(self, span: Micros) -> Self {
        Self::from_micros(self.0.saturating_add(span.0))
    }

    /// This much earlier, or the epoch.
    #[must_use]
    pub const fn before(self, span: Micros) -> Self {
        Timestamp(self.0.saturating_sub(span.0))
    }

    /// How long after `earlier` this is; zero if it is not.
    #[must_use]
    pub const fn since(self, earlier: Timestamp) -> Micros {
        Micros(self.0.saturating_sub(earlier.0))
    }
}

/// Seconds since the epoch with up to six decimals.
impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Micros(self.0).fmt(f)
    }
}
