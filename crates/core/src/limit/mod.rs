//! A limit: an algorithm with its numbers, validated for exact arithmetic.

pub(crate) mod precision;
pub(crate) mod spec;

use core::fmt;

use crate::algorithm::{Algorithm, LimitState, LogCoverage, Parameters};
use crate::error::LimitError;
use crate::time::Micros;
pub use spec::{Kind, Spec};

impl Spec {
    /// Validates the numbers and prepares the arithmetic.
    ///
    /// # Errors
    /// A number is out of its range, or the limit is too large for exact arithmetic; that error
    /// names the nearest lower limit that fits.
    pub fn build(self) -> Result<Limit, LimitError> {
        precision::check_ranges(&self)?;
        let algorithm = precision::algorithm(&self).ok_or_else(|| LimitError::Inexact {
            limit: self,
            nearest: precision::nearest_lower(&self),
        })?;
        Ok(Limit { spec: self, algorithm })
    }
}

/// A valid limit: one algorithm with its numbers. It is parsed from text, or built from a [`Spec`] by
/// [`Spec::build`].
///
/// # Example
/// ```
/// use tollgate_algorithms::Limit;
/// let limit: Limit = "600/10min".parse()?;
/// assert_eq!(limit.to_string(), "600/10min");
/// assert_eq!(limit.capacity(), 600);
/// # Ok::<(), tollgate_algorithms::NotationError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Limit {
    spec: Spec,
    pub(crate) algorithm: Algorithm,
}

impl Limit {
    /// The numbers that the limit was built from.
    #[must_use]
    pub const fn spec(&self) -> &Spec {
        &self.spec
    }

    /// The most that the limit can hold; a greater cost is never admitted.
    #[must_use]
    pub const fn capacity(&self) -> u64 {
        self.spec.capacity()
    }

    /// Whether this is a concurrency limit.
    #[must_use]
    pub const fn is_concurrent(&self) -> bool {
        matches!(self.spec.kind, Kind::Concurrent)
    }

    /// Whether denied requests are charged too.
    #[must_use]
    pub const fn counts_denied(&self) -> bool {
        self.spec.count_denied
    }

    /// Whether the limit takes reservations: token buckets and queues do.
    #[must_use]
    pub const fn can_reserve(&self) -> bool {
        matches!(self.spec.kind, Kind::TokenBucket { .. } | Kind::Queue { .. })
    }

    /// The resolution of the limit's arithmetic: 1 µs, or longer for a token bucket, a queue or a
    /// sliding window counter whose numbers are too large for that.
    ///
    /// # Example
    /// ```
    /// use tollgate_algorithms::Limit;
    /// let limit: Limit = "9999991/30d".parse()?;
    /// assert_eq!(limit.tick().get(), 10_000);
    /// # Ok::<(), tollgate_algorithms::NotationError>(())
    /// ```
    #[must_use]
    pub const fn tick(&self) -> Micros {
        match &self.algorithm {
            Algorithm::TokenBucket(bucket) => Micros::new(bucket.tick()),
            Algorithm::SlidingWindow(window) => Micros::new(window.tick()),
            Algorithm::FixedWindow(_) | Algorithm::SlidingLog(_) | Algorithm::Concurrency(_) => {
                Micros::new(1)
            }
        }
    }

    /// The numbers that the limit computes with.
    #[must_use]
    pub fn parameters(&self) -> Parameters {
        self.algorithm.parameters()
    }

    /// Whether charges to this limit, or to an earlier version of it, can have produced the state.
    #[must_use]
    pub fn can_hold(&self, state: &LimitState, coverage: LogCoverage) -> bool {
        self.algorithm.can_hold(state, coverage)
    }

    /// The numbers that identify the limit in a changed policy: kind, window and precision. If only
    /// its count, burst, places or lease change, the limit keeps its state.
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

/// The kind, window and precision of a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Identity(u8, Micros, Micros);

/// The canonical order of a policy's limits. It compares identities first, so that a change of
/// counts rarely changes the order.
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

impl fmt::Debug for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Limit({self})")
    }
}

/// Writes the canonical text: it parses back to the same limit, and equal limits have equal texts.
///
/// # Example
/// ```
/// use tollgate_algorithms::Limit;
/// let limit: Limit = "240 / 60 minutes strict sliding by 60s".parse()?;
/// assert_eq!(limit.to_string(), "240/h sliding by 1min strict");
/// # Ok::<(), tollgate_algorithms::NotationError>(())
/// ```
impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.spec.fmt(f)
    }
}
