//! The states of all algorithms behind one interface.

use tollgate_algorithms::{Id, Kind, Limit};

use super::ModelError;
use super::buckets::Buckets;
use super::fixed_window::FixedWindow;
use super::leases::LeaseSet;
use super::number::Int;
use super::sliding_window::SlidingWindowCounter;
use super::token_bucket::TokenBucket;

/// The numbers and the state of a limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    TokenBucket(TokenBucket),
    FixedWindow(FixedWindow),
    SlidingWindow(SlidingWindowCounter),
    SlidingLog(Buckets),
    Buckets(Buckets),
    LeaseSet(LeaseSet),
}

impl Shape {
    /// The state of an unknown key.
    pub(super) fn untouched(limit: &Limit, log_entries: usize) -> Result<Shape, ModelError> {
        let spec = limit.spec();
        let (count, window) = (Int::from(spec.count), Int::from(spec.window.get()));
        let capacity = Int::from(limit.capacity());
        let bucket = |is_queue| {
            let bucket = TokenBucket::new(is_queue, count, window, capacity);
            bucket.map(Shape::TokenBucket).ok_or(ModelError::Inexact)
        };
        Ok(match spec.kind {
            Kind::TokenBucket { .. } => bucket(false)?,
            Kind::Queue { .. } => bucket(true)?,
            Kind::Fixed { offset } => {
                Shape::FixedWindow(FixedWindow::new(window, Some(Int::from(offset.get()))))
            }
            Kind::FixedFromFirst => Shape::FixedWindow(FixedWindow::new(window, None)),
            Kind::Sliding => Shape::SlidingWindow(
                SlidingWindowCounter::new(count, window).ok_or(ModelError::Inexact)?,
            ),
            Kind::Log => Shape::SlidingLog(Buckets::log(window, log_entries)),
            Kind::SlidingBy { precision, strict } => {
                Shape::Buckets(Buckets::new(window, Int::from(precision.get()), strict))
            }
            Kind::Concurrent => Shape::LeaseSet(LeaseSet::new(window)),
            _ => return Err(ModelError::Unknown),
        })
    }

    /// How many parts make one unit.
    pub(super) fn parts(&self) -> Int {
        match self {
            Shape::TokenBucket(bucket) => bucket.parts,
            _ => 1,
        }
    }

    /// The newest time in the state, in µs.
    pub(super) fn newest(&self) -> Int {
        match self {
            Shape::TokenBucket(bucket) => bucket.newest(),
            Shape::FixedWindow(window) => window.newest(),
            Shape::SlidingWindow(counter) => counter.newest(),
            Shape::SlidingLog(buckets) | Shape::Buckets(buckets) => buckets.newest(),
            Shape::LeaseSet(leases) => leases.newest(),
        }
    }

    /// The used parts at a time that is not before the newest.
    pub(super) fn used(&self, time: Int) -> Int {
        match self {
            Shape::TokenBucket(bucket) => bucket.used(time),
            Shape::FixedWindow(window) => window.used(time),
            Shape::SlidingWindow(counter) => counter.used(time),
            Shape::SlidingLog(buckets) | Shape::Buckets(buckets) => buckets.used(time),
            Shape::LeaseSet(leases) => leases.used(time),
        }
    }

    /// Charges parts; a concurrent limit acquires a lease for them.
    pub(super) fn charge(&mut self, time: Int, parts: Int, lease: Option<Id>) {
        match self {
            Shape::TokenBucket(bucket) => bucket.charge(time, parts),
            Shape::FixedWindow(window) => window.charge(time, parts),
            Shape::SlidingWindow(counter) => counter.charge(time, parts),
            Shape::SlidingLog(buckets) | Shape::Buckets(buckets) => buckets.charge(time, parts),
            Shape::LeaseSet(leases) => {
                if let Some(id) = lease {
                    leases.acquire(id, time, parts);
                }
            }
        }
    }

    /// Charges a denied cost to a limit that counts denied requests.
    pub(super) fn charge_denied(&mut self, time: Int, units: Int, capacity: Int) {
        match self {
            Shape::FixedWindow(window) => window.charge_denied(time, units, 2 * capacity),
            Shape::SlidingWindow(counter) => counter.charge_denied(time, units, 2 * capacity),
            Shape::SlidingLog(log) => {
                log.charge(time, units);
                log.clip(capacity);
            }
            Shape::Buckets(buckets) => buckets.charge_denied(time, units, 2 * capacity),
            // These never count denied requests.
            Shape::TokenBucket(_) | Shape::LeaseSet(_) => {}
        }
    }

    /// Charges the units that another version of the limit was charged, until `most` units are used.
    pub(super) fn charge_within(&mut self, time: Int, units: Int, most: Int) {
        match self {
            Shape::TokenBucket(bucket) => {
                bucket.charge_within(time, units * bucket.parts, most * bucket.parts)
            }
            Shape::SlidingWindow(counter) => counter.charge_denied(time, units, most),
            // The versions of these share one state.
            Shape::FixedWindow(_)
            | Shape::SlidingLog(_)
            | Shape::Buckets(_)
            | Shape::LeaseSet(_) => {}
        }
    }

    /// Charges units that were admitted at another time, as far as each count stays within `most`.
    /// Returns how many.
    pub(super) fn backfill(&mut self, now: Int, units: Int, admitted: Int, most: Int) -> Int {
        let time = now.max(self.newest());
        // Nothing is admitted in the future.
        let admitted = if admitted < now { admitted } else { time };
        match self {
            Shape::TokenBucket(_) => {
                self.charge_within(time, units, most);
                units
            }
            Shape::FixedWindow(window) => window.backfill(time, units, admitted),
            Shape::SlidingWindow(counter) => counter.backfill(time, units, admitted, most),
            Shape::SlidingLog(log) => log.backfill_newest(time, units, admitted),
            Shape::Buckets(buckets) => buckets.backfill(time, units, admitted),
            Shape::LeaseSet(_) => 0,
        }
    }

    /// Whether a bucket or a sliding window counter is empty, regardless of the time.
    pub(super) fn is_nothing(&self) -> bool {
        match self {
            Shape::TokenBucket(bucket) => bucket.is_nothing(),
            Shape::SlidingWindow(counter) => counter.is_nothing(),
            _ => false,
        }
    }

    /// Refunds units; returns the number of refunded parts.
    pub(super) fn refund(&mut self, time: Int, units: Int, charged: Option<Int>) -> Int {
        match self {
            Shape::TokenBucket(bucket) => bucket.refund(time, units * bucket.parts, charged),
            Shape::FixedWindow(window) => window.refund(time, units, charged),
            Shape::SlidingWindow(counter) => counter.refund(time, units, charged),
            Shape::SlidingLog(buckets) | Shape::Buckets(buckets) => {
                buckets.refund(time, units, charged)
            }
            Shape::LeaseSet(_) => 0,
        }
    }

    /// Continues the state of a limit with the same identity and other numbers.
    pub(super) fn migrate(&mut self, other: &Shape) {
        match (self, other) {
            (Shape::TokenBucket(bucket), Shape::TokenBucket(other)) => bucket.migrate(other),
            (Shape::FixedWindow(window), Shape::FixedWindow(other)) => window.migrate(other),
            (Shape::SlidingWindow(counter), Shape::SlidingWindow(other)) => counter.migrate(other),
            (Shape::SlidingLog(buckets), Shape::SlidingLog(other))
            | (Shape::Buckets(buckets), Shape::Buckets(other)) => buckets.migrate(other),
            (Shape::LeaseSet(leases), Shape::LeaseSet(other)) => leases.migrate(other),
            // Limits of different kinds have different identities.
            _ => {}
        }
    }

    /// Reduces the use to at most `most` units; leases stay.
    pub(super) fn clip(&mut self, most: Int) {
        match self {
            Shape::TokenBucket(bucket) => bucket.clip(most * bucket.parts),
            Shape::FixedWindow(window) => window.clip(most),
            Shape::SlidingWindow(counter) => counter.clip(most),
            Shape::SlidingLog(buckets) | Shape::Buckets(buckets) => buckets.clip(most),
            Shape::LeaseSet(_) => {}
        }
    }
}
