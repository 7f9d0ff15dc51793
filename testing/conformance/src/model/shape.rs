//! The six shapes behind one face: what is used, what is charged, what is given back.

use tollgate_core::{Id, Kind, Limit};

use super::ModelError;
use super::bucket::Bucket;
use super::leases::Leases;
use super::log::Log;
use super::number::Int;
use super::precision::Precision;
use super::weighted::Weighted;
use super::window::Window;

/// The numbers of a limit, and what is used of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    Bucket(Bucket),
    Window(Window),
    Weighted(Weighted),
    Log(Log),
    Precision(Precision),
    Leases(Leases),
}

impl Shape {
    /// The limit's shape with nothing used.
    pub(super) fn untouched(limit: &Limit, log_entries: usize) -> Result<Shape, ModelError> {
        let spec = limit.spec();
        let (count, window) = (Int::from(spec.count), Int::from(spec.window.get()));
        let capacity = Int::from(limit.capacity());
        let bucket = |is_queue| {
            let bucket = Bucket::new(is_queue, count, window, capacity);
            bucket.map(Shape::Bucket).ok_or(ModelError::Inexact)
        };
        Ok(match spec.kind {
            Kind::TokenBucket { .. } => bucket(false)?,
            Kind::Queue { .. } => bucket(true)?,
            Kind::Fixed { offset } => {
                Shape::Window(Window::new(window, Some(Int::from(offset.get()))))
            }
            Kind::FixedFromFirst => Shape::Window(Window::new(window, None)),
            Kind::Sliding => {
                Shape::Weighted(Weighted::new(count, window).ok_or(ModelError::Inexact)?)
            }
            Kind::Log => Shape::Log(Log::new(window, log_entries)),
            Kind::SlidingBy { precision, strict } => {
                Shape::Precision(Precision::new(window, Int::from(precision.get()), strict))
            }
            Kind::Concurrent => Shape::Leases(Leases::new(window)),
            _ => return Err(ModelError::Unknown),
        })
    }

    /// How many parts make one unit.
    pub(super) fn parts(&self) -> Int {
        match self {
            Shape::Bucket(bucket) => bucket.parts,
            _ => 1,
        }
    }

    /// The newest time in the state, in µs.
    pub(super) fn newest(&self) -> Int {
        match self {
            Shape::Bucket(bucket) => bucket.newest(),
            Shape::Window(window) => window.newest(),
            Shape::Weighted(weighted) => weighted.newest(),
            Shape::Log(log) => log.newest(),
            Shape::Precision(precision) => precision.newest(),
            Shape::Leases(leases) => leases.newest(),
        }
    }

    /// What is used, in parts, at a time that is not before the newest.
    pub(super) fn used(&self, time: Int) -> Int {
        match self {
            Shape::Bucket(bucket) => bucket.used(time),
            Shape::Window(window) => window.used(time),
            Shape::Weighted(weighted) => weighted.used(time),
            Shape::Log(log) => log.used(time),
            Shape::Precision(precision) => precision.used(time),
            Shape::Leases(leases) => leases.used(time),
        }
    }

    /// Charges parts; a concurrent limit takes a lease for them.
    pub(super) fn charge(&mut self, time: Int, parts: Int, lease: Option<Id>) {
        match self {
            Shape::Bucket(bucket) => bucket.charge(time, parts),
            Shape::Window(window) => window.charge(time, parts),
            Shape::Weighted(weighted) => weighted.charge(time, parts),
            Shape::Log(log) => log.charge(time, parts),
            Shape::Precision(precision) => precision.charge(time, parts),
            Shape::Leases(leases) => {
                if let Some(id) = lease {
                    leases.acquire(id, time, parts);
                }
            }
        }
    }

    /// Charges a denied cost to a limit that counts denied requests.
    pub(super) fn charge_denied(&mut self, time: Int, units: Int, capacity: Int) {
        match self {
            Shape::Window(window) => window.charge_denied(time, units, 2 * capacity),
            Shape::Weighted(weighted) => weighted.charge_denied(time, units, 2 * capacity),
            Shape::Log(log) => log.charge_denied(time, units, capacity),
            Shape::Precision(precision) => precision.charge_denied(time, units, 2 * capacity),
            // These never count denied requests.
            Shape::Bucket(_) | Shape::Leases(_) => {}
        }
    }

    /// Charges what another form of the limit was charged, until `most` units are used.
    pub(super) fn charge_within(&mut self, time: Int, units: Int, most: Int) {
        match self {
            Shape::Bucket(bucket) => {
                bucket.charge_within(time, units * bucket.parts, most * bucket.parts)
            }
            Shape::Weighted(weighted) => weighted.charge_denied(time, units, most),
            // The forms of these share one state.
            Shape::Window(_) | Shape::Log(_) | Shape::Precision(_) | Shape::Leases(_) => {}
        }
    }

    /// Whether a bucket or a weighted window holds nothing, however long ago it was charged.
    pub(super) fn is_nothing(&self) -> bool {
        match self {
            Shape::Bucket(bucket) => bucket.is_nothing(),
            Shape::Weighted(weighted) => weighted.is_nothing(),
            _ => false,
        }
    }

    /// Gives units back, and says how many parts that was.
    pub(super) fn refund(&mut self, time: Int, units: Int, charged: Option<Int>) -> Int {
        match self {
            Shape::Bucket(bucket) => bucket.refund(time, units * bucket.parts, charged),
            Shape::Window(window) => window.refund(time, units, charged),
            Shape::Weighted(weighted) => weighted.refund(time, units, charged),
            Shape::Log(log) => log.refund(time, units, charged),
            Shape::Precision(precision) => precision.refund(time, units, charged),
            Shape::Leases(_) => 0,
        }
    }

    /// Takes over what the same limit used with other numbers.
    pub(super) fn adopt(&mut self, other: &Shape) {
        match (self, other) {
            (Shape::Bucket(bucket), Shape::Bucket(other)) => bucket.adopt(other),
            (Shape::Window(window), Shape::Window(other)) => window.adopt(other),
            (Shape::Weighted(weighted), Shape::Weighted(other)) => weighted.adopt(other),
            (Shape::Log(log), Shape::Log(other)) => log.adopt(other),
            (Shape::Precision(precision), Shape::Precision(other)) => precision.adopt(other),
            (Shape::Leases(leases), Shape::Leases(other)) => leases.adopt(other),
            // Limits of two kinds are never the same limit, so there is nothing to take over.
            _ => {}
        }
    }

    /// Uses no more than `most` units; a lease that is held stays held.
    pub(super) fn clip(&mut self, most: Int) {
        match self {
            Shape::Bucket(bucket) => bucket.clip(most * bucket.parts),
            Shape::Window(window) => window.clip(most),
            Shape::Weighted(weighted) => weighted.clip(most),
            Shape::Log(log) => log.clip(most),
            Shape::Precision(precision) => precision.clip(most),
            Shape::Leases(_) => {}
        }
    }
}
