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
            Shape::Bucket(it) => it.parts,
            _ => 1,
        }
    }

    /// The newest time in the state, in µs.
    pub(super) fn newest(&self) -> Int {
        match self {
            Shape::Bucket(it) => it.newest(),
            Shape::Window(it) => it.newest(),
            Shape::Weighted(it) => it.newest(),
            Shape::Log(it) => it.newest(),
            Shape::Precision(it) => it.newest(),
            Shape::Leases(it) => it.newest(),
        }
    }

    /// What is used, in parts, at a time that is not before the newest.
    pub(super) fn used(&self, time: Int) -> Int {
        match self {
            Shape::Bucket(it) => it.used(time),
            Shape::Window(it) => it.used(time),
            Shape::Weighted(it) => it.used(time),
            Shape::Log(it) => it.used(time),
            Shape::Precision(it) => it.used(time),
            Shape::Leases(it) => it.used(time),
        }
    }

    /// Charges parts; a concurrent limit takes a lease for them.
    pub(super) fn charge(&mut self, time: Int, parts: Int, lease: Option<Id>) {
        match self {
            Shape::Bucket(it) => it.charge(time, parts),
            Shape::Window(it) => it.charge(time, parts),
            Shape::Weighted(it) => it.charge(time, parts),
            Shape::Log(it) => it.charge(time, parts),
            Shape::Precision(it) => it.charge(time, parts),
            Shape::Leases(it) => {
                if let Some(id) = lease {
                    it.acquire(id, time, parts);
                }
            }
        }
    }

    /// Charges a denied cost to a limit that counts denied requests.
    pub(super) fn charge_denied(&mut self, time: Int, units: Int, capacity: Int) {
        match self {
            Shape::Window(it) => it.charge_denied(time, units, 2 * capacity),
            Shape::Weighted(it) => it.charge_denied(time, units, 2 * capacity),
            Shape::Log(it) => it.charge_denied(time, units, capacity),
            Shape::Precision(it) => it.charge_denied(time, units, 2 * capacity),
            // These never count denied requests.
            Shape::Bucket(_) | Shape::Leases(_) => {}
        }
    }

    /// Charges what another form of the limit was charged, until `most` units are used.
    pub(super) fn charge_within(&mut self, time: Int, units: Int, most: Int) {
        match self {
            Shape::Bucket(it) => it.charge_within(time, units * it.parts, most * it.parts),
            Shape::Weighted(it) => it.charge_denied(time, units, most),
            // The forms of these share one state.
            Shape::Window(_) | Shape::Log(_) | Shape::Precision(_) | Shape::Leases(_) => {}
        }
    }

    /// Whether a bucket or a weighted window holds nothing, however long ago it was charged.
    pub(super) fn is_nothing(&self) -> bool {
        match self {
            Shape::Bucket(it) => it.is_nothing(),
            Shape::Weighted(it) => it.is_nothing(),
            _ => false,
        }
    }

    /// Gives units back, and says how many parts that was.
    pub(super) fn refund(&mut self, time: Int, units: Int, charged: Option<Int>) -> Int {
        match self {
            Shape::Bucket(it) => it.refund(time, units * it.parts, charged),
            Shape::Window(it) => it.refund(time, units, charged),
            Shape::Weighted(it) => it.refund(time, units, charged),
            Shape::Log(it) => it.refund(time, units, charged),
            Shape::Precision(it) => it.refund(time, units, charged),
            Shape::Leases(_) => 0,
        }
    }

    /// Takes over what the same limit used with other numbers.
    pub(super) fn adopt(&mut self, other: &Shape) {
        match (self, other) {
            (Shape::Bucket(it), Shape::Bucket(other)) => it.adopt(other),
            (Shape::Window(it), Shape::Window(other)) => it.adopt(other),
            (Shape::Weighted(it), Shape::Weighted(other)) => it.adopt(other),
            (Shape::Log(it), Shape::Log(other)) => it.adopt(other),
            (Shape::Precision(it), Shape::Precision(other)) => it.adopt(other),
            (Shape::Leases(it), Shape::Leases(other)) => it.adopt(other),
            // Limits of two kinds are never the same limit, so there is nothing to take over.
            _ => {}
        }
    }

    /// Uses no more than `most` units; a lease that is held stays held.
    pub(super) fn clip(&mut self, most: Int) {
        match self {
            Shape::Bucket(it) => it.clip(most * it.parts),
            Shape::Window(it) => it.clip(most),
            Shape::Weighted(it) => it.clip(most),
            Shape::Log(it) => it.clip(most),
            Shape::Precision(it) => it.clip(most),
            Shape::Leases(_) => {}
        }
    }
}
