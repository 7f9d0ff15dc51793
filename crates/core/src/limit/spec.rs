//! The numbers of a limit as they are written.

use crate::time::Micros;

/// The algorithm of a limit, with the numbers that only this algorithm has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Kind {
    /// `10/s burst 50`: a token bucket of capacity `burst`, refilled at a constant rate (GCRA).
    TokenBucket {
        /// The capacity.
        burst: u64,
    },
    /// `100/min fixed`: windows aligned to the epoch in UTC, whole weeks to Monday.
    Fixed {
        /// How much later than the alignment each window begins; shorter than the window.
        offset: Micros,
    },
    /// `100/min fixed from-first`: a window opens at the first charged request.
    FixedFromFirst,
    /// `100/min log`: a sliding log, which keeps the time of every charge.
    Log,
    /// `100/min sliding`: a sliding window counter, this window's count plus the weighted count of
    /// the previous window.
    Sliding,
    /// `240/h sliding by 1m`: a sliding window in buckets of that precision.
    SlidingBy {
        /// The length of a bucket; it divides the window into 1 to 4,096.
        precision: Micros,
        /// Whether the oldest bucket, which the window covers in part, counts in full.
        strict: bool,
    },
    /// `20/s queue 100`: a leaky bucket as a queue, which spaces requests evenly.
    Queue {
        /// The number of requests that may wait behind the one that departs.
        places: u64,
    },
    /// `20 concurrent lease 60s`: a limit of the requests in flight.
    Concurrent,
}

/// The numbers of a limit as they are written, not yet validated.
///
/// # Example
/// ```
/// use tollgate_algorithms::{Kind, Micros, Spec};
/// let spec = Spec::new(10, Micros::from_secs(1), Kind::TokenBucket { burst: 50 });
/// assert_eq!(spec.build()?.to_string(), "10/s burst 50");
/// # Ok::<(), tollgate_algorithms::LimitError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Spec {
    /// The cost that a window admits; for [`Kind::Concurrent`], the requests in flight.
    pub count: u64,
    /// The length of the window; for [`Kind::Concurrent`], of a lease.
    pub window: Micros,
    /// The algorithm.
    pub kind: Kind,
    /// Whether denied requests are charged too. Only windows and logs support this.
    pub count_denied: bool,
}

impl Spec {
    /// Creates a limit of `count` per `window` that does not charge denied requests.
    #[must_use]
    pub const fn new(count: u64, window: Micros, kind: Kind) -> Self {
        Spec { count, window, kind, count_denied: false }
    }

    /// Charges denied requests too.
    #[must_use]
    pub const fn with_count_denied(self) -> Self {
        Spec { count_denied: true, ..self }
    }

    /// The most that the limit can hold: the greatest cost that it ever admits.
    #[must_use]
    pub const fn capacity(&self) -> u64 {
        match self.kind {
            Kind::TokenBucket { burst } => burst,
            Kind::Queue { places } => places.saturating_add(1),
            _ => self.count,
        }
    }
}
