//! A limit: one algorithm with its numbers, proven to fit exact arithmetic when it is built.

use crate::error::LimitError;
use crate::fit;
use crate::leases::Leases;
use crate::log::Log;
use crate::meter::Meter;
use crate::time::Micros;
use crate::weighted::Weighted;
use crate::window::Window;

/// The algorithm of a limit, with the numbers that only it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Kind {
    /// `10/s burst 50`: a token bucket of capacity `burst`, refilled evenly. GCRA is the same.
    TokenBucket {
        /// The capacity.
        burst: u64,
    },
    /// `100/min fixed`: windows aligned to the epoch in UTC, whole weeks to Monday.
    Fixed {
        /// How much later than the alignment each window begins; less than the window.
        offset: Micros,
    },
    /// `100/min fixed from-first`: a window opens at the first charged request.
    FixedFromFirst,
    /// `100/min log`: the time of every charge is kept.
    Log,
    /// `100/min sliding`: this window's count and the previous one's, weighted.
    Sliding,
    /// `240/h sliding by 1m`: counts in buckets of that precision.
    SlidingBy {
        /// The length of a bucket; it divides the window into 1 to 4,096.
        precision: Micros,
        /// Whether the whole of the oldest bucket, which is partly out, still counts.
        strict: bool,
    },
    /// `20/s queue 100`: a leaky bucket as a queue, spaced evenly.
    Queue {
        /// How many may wait behind the one that departs.
        places: u64,
    },
    /// `20 concurrent lease 60s`: requests in flight.
    Concurrent,
}

/// The numbers of a limit as they were written, not yet known to fit.
///
/// # Example
/// ```
/// use tollgate_core::{Kind, Micros, Spec};
/// let spec = Spec::new(10, Micros::from_secs(1), Kind::TokenBucket { burst: 50 });
/// assert_eq!(spec.build()?.to_string(), "10/s burst 50");
/// # Ok::<(), tollgate_core::LimitError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Spec {
    /// How much a window admits; for [`Kind::Concurrent`], how many may be in flight.
    pub count: u64,
    /// The window; for [`Kind::Concurrent`], the lease.
    pub window: Micros,
    /// The algorithm.
    pub kind: Kind,
    /// Whether denied requests are charged too: for the window kinds and the log.
    pub count_denied: bool,
}

impl Spec {
    /// A limit of `count` per `window`, decided as `kind` says; denied requests are not charged.
    #[must_use]
    pub const fn new(count: u64, window: Micros, kind: Kind) -> Self {
        Spec { count, window, kind, count_denied: false }
    }

    /// Charges denied requests too.
    #[must_use]
    pub const fn count_denied(self) -> Self {
        Spec { count_denied: true, ..self }
    }

    /// Proves that the limit can be decided exactly, and prepares its arithmetic.
    ///
    /// # Errors
    /// A number out of its range, or a limit too large for exact arithmetic; the error then names
    /// the nearest lower limit that fits.
    pub fn build(self) -> Result<Limit, LimitError> {
        fit::check_ranges(&self)?;
        let rule = fit::rule(&self).ok_or_else(|| LimitError::Inexact {
            limit: self,
            nearest: fit::nearest_lower(&self),
        })?;
        Ok(Limit { spec: self, rule })
    }

    /// The most that the limit can hold.
    #[must_use]
    pub const fn capacity(&self) -> u64 {
        match self.kind {
            Kind::TokenBucket { burst } => burst,
            Kind::Queue { places } => places.saturating_add(1),
            _ => self.count,
        }
    }
}

/// How a limit's numbers became arithmetic; one arm for each shape of state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Rule {
    Meter(Meter),
    Window(Window),
    Weighted(Weighted),
    Log(Log),
    Leases(Leases),
}

/// One algorithm with its numbers. A `Limit` that exists is valid.
///
/// # Example
/// ```
/// use tollgate_core::Limit;
/// let limit: Limit = "600/10min".parse()?;
/// assert_eq!(limit.to_string(), "600/10min");
/// assert_eq!(limit.capacity(), 600);
/// # Ok::<(), tollgate_core::NotationError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Limit {
    spec: Spec,
    pub(crate) rule: Rule,
}

impl Limit {
    /// The numbers it was built from.
    #[must_use]
    pub const fn spec(&self) -> &Spec {
        &self.spec
    }

    /// The most that the limit can hold: a cost above it never passes.
    #[must_use]
    pub const fn capacity(&self) -> u64 {
        self.spec.capacity()
    }

    /// Whether it limits requests in flight, with leases.
    #[must_use]
    pub const fn is_concurrent(&self) -> bool {
        matches!(self.spec.kind, Kind::Concurrent)
    }

    /// Whether denied requests are charged too.
    #[must_use]
    pub const fn counts_denied(&self) -> bool {
        self.spec.count_denied
    }

    /// Whether a charge may be made now for later: token bucket and queue.
    #[must_use]
    pub const fn can_reserve(&self) -> bool {
        matches!(self.spec.kind, Kind::TokenBucket { .. } | Kind::Queue { .. })
    }

    /// How far apart two times must be for the limit to tell them apart: 1 µs, but for a token bucket,
    /// a queue or a weighted window whose numbers are too large for that.
    ///
    /// # Example
    /// ```
    /// use tollgate_core::Limit;
    /// let limit: Limit = "9999991/30d".parse()?;
    /// assert_eq!(limit.tick().get(), 10_000);
    /// # Ok::<(), tollgate_core::NotationError>(())
    /// ```
    #[must_use]
    pub const fn tick(&self) -> Micros {
        match &self.rule {
            Rule::Meter(meter) => Micros::new(meter.tick()),
            Rule::Weighted(weighted) => Micros::new(weighted.tick()),
            Rule::Window(_) | Rule::Log(_) | Rule::Leases(_) => Micros::new(1),
        }
    }

    /// What makes this the same limit when its numbers change: kind, window, precision and
    /// `from-first`. Count, burst, places and lease may change and its state is kept.
    pub(crate) const fn identity(&self) -> Identity {
        let window = self.spec.window;
        match self.spec.kind {
            Kind::TokenBucket { .. } => Identity(0, window, Micros::ZERO),
            Kind::Fixed { .. } => Identity(1, window, Micros::ZERO),
            Kind::FixedFromFirst => Identity(2, window, Micros::ZERO),
            Kind::Log => Identity(3, window, Micros::ZERO),
            Kind::Sliding => Identity(4, window, Micros::ZERO),
            Kind::SlidingBy { precision, .. } => Identity(5, window, precision),
            Kind::Queue { .. } => Identity(6, window, Micros::ZERO),
            Kind::Concurrent => Identity(7, Micros::ZERO, Micros::ZERO),
        }
    }
}

/// Kind, window and precision of a limit: equal before and after a change of its other numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Identity(u8, Micros, Micros);

/// The canonical order of a policy's limits: identity first, so that a change of counts leaves
/// the order alone wherever it can.
impl Ord for Limit {
    fn cmp(&self, other: &Self) -> core::cmp::Ordering {
        let key = |limit: &Limit| {
            (
                limit.identity(),
                limit.spec.count,
                limit.spec.kind,
                limit.spec.window,
                limit.spec.count_denied,
            )
        };
        key(self).cmp(&key(other))
    }
}

impl PartialOrd for Limit {
    fn partial_cmp(&self, other: &Self) -> Option<core::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl core::fmt::Debug for Limit {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Limit({self})")
    }
}
