//! One limit of a policy, for one key at one time.

use tollgate_algorithms::{Id, Kind, Limit, Micros, Spec};

use super::ModelError;
use super::number::{Int, first};
use super::shape::Shape;
use super::stored::{StoredLimit, is_plausible};

/// The identity of a limit across changes of its policy: kind, window, precision, and the rank among
/// limits that are equal in these.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Identity {
    kind: u8,
    window: Micros,
    precision: Micros,
    rank: usize,
}

impl Identity {
    /// The identities of a policy's limits, given in canonical order.
    pub(super) fn for_limits(limits: &[Limit]) -> Vec<Identity> {
        let mut all: Vec<Identity> = Vec::new();
        for limit in limits {
            let mut identity = Identity::without_rank(limit);
            identity.rank = all.iter().filter(|other| other.equals(&identity)).count();
            all.push(identity);
        }
        all
    }

    fn without_rank(limit: &Limit) -> Identity {
        let spec = limit.spec();
        let (kind, window, precision) = match spec.kind {
            Kind::TokenBucket { .. } => (0, spec.window, Micros::ZERO),
            Kind::Fixed { .. } => (1, spec.window, Micros::ZERO),
            Kind::FixedFromFirst => (2, spec.window, Micros::ZERO),
            Kind::Log => (3, spec.window, Micros::ZERO),
            Kind::Sliding => (4, spec.window, Micros::ZERO),
            Kind::SlidingBy { precision, .. } => (5, spec.window, precision),
            Kind::Queue { .. } => (6, spec.window, Micros::ZERO),
            // The length of a lease may change, so it does not distinguish concurrent limits.
            _ => (7, Micros::ZERO, Micros::ZERO),
        };
        Identity { kind, window, precision, rank: 0 }
    }

    /// Whether each version of the limit has its own state: token buckets, queues and sliding window
    /// counters.
    pub(super) fn keeps_versions(&self) -> bool {
        matches!(self.kind, 0 | 4 | 6)
    }

    fn equals(&self, other: &Identity) -> bool {
        (self.kind, self.window, self.precision) == (other.kind, other.window, other.precision)
    }
}

/// The use of a limit at `now`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LimitUsage {
    pub(super) identity: Identity,
    pub(super) capacity: Int,
    pub(super) counts_denied: bool,
    pub(super) shape: Shape,
    spec: Spec,
    now: Int,
    /// Whether the stored state had expired under the numbers by which it was charged.
    pub(super) had_lapsed: bool,
    /// The stored state in the numbers of this limit.
    restated: Option<StoredLimit>,
    /// Whether `shape` has changed since it was read.
    pub(super) touched: bool,
    /// The units that are also charged to its other versions.
    pub(super) charged: Int,
    /// Whether they were charged for a denial.
    pub(super) charged_denied: bool,
    /// When they were admitted, if that was at another time.
    pub(super) admitted: Option<Int>,
}

impl LimitUsage {
    pub(super) fn new(
        limit: &Limit,
        identity: Identity,
        log_entries: usize,
        stored: Option<&StoredLimit>,
        now: Int,
    ) -> Result<LimitUsage, ModelError> {
        let untouched = Shape::untouched(limit, log_entries)?;
        let capacity = Int::from(limit.capacity());
        let mut shape = untouched.clone();
        if let Some(stored) = stored {
            shape.migrate(&stored.shape);
            if stored.spec != *limit.spec() {
                shape.clip(capacity);
            }
        }
        let restated = stored.map(|old| StoredLimit {
            shape: shape.clone(),
            spec: *limit.spec(),
            ..old.clone()
        });
        if !is_plausible(&shape, now) || shape.used(now.max(shape.newest())) == 0 {
            shape = untouched;
        }
        let counts_denied = limit.spec().count_denied;
        let had_lapsed = stored.is_some_and(|stored| stored.lapsed || !stored.is_used(now));
        let (touched, charged, charged_denied) = (false, 0, false);
        Ok(LimitUsage {
            identity,
            capacity,
            counts_denied,
            shape,
            spec: *limit.spec(),
            now,
            had_lapsed,
            restated,
            touched,
            charged,
            charged_denied,
            admitted: None,
        })
    }

    /// The state to store once any limit of the policy has changed.
    pub(super) fn to_stored(&self) -> Option<StoredLimit> {
        if !self.touched {
            return self.restated.clone();
        }
        let (shape, spec) = (self.shape.clone(), self.spec);
        Some(StoredLimit { shape, spec, lapsed: self.used() == 0, latest: self.now })
    }

    /// The time of the limit: the later of now and the newest time in its state.
    pub(super) fn time(&self) -> Int {
        self.now.max(self.shape.newest())
    }

    fn used_at(&self, time: Int) -> Int {
        self.shape.used(time.max(self.shape.newest()))
    }

    /// The used parts.
    pub(super) fn used(&self) -> Int {
        self.used_at(self.now)
    }

    pub(super) fn remaining(&self) -> Int {
        let parts = self.shape.parts();
        (self.capacity * parts - self.used()).max(0) / parts
    }

    /// How long until nothing is used.
    pub(super) fn reset_after(&self) -> Int {
        first(self.now, |time| self.used_at(time) == 0) - self.now
    }

    fn fits(&self, time: Int, cost: Int, capacity: Int) -> bool {
        self.used_at(time) + cost * self.shape.parts() <= capacity * self.shape.parts()
    }

    pub(super) fn never(&self, cost: Int) -> bool {
        cost > self.capacity
    }

    pub(super) fn admits(&self, cost: Int) -> bool {
        self.fits(self.now, cost, self.capacity)
    }

    /// How long until the cost fits; `None` if it never does.
    fn wait(&self, cost: Int) -> Option<Int> {
        let fits = |time| self.fits(time, cost, self.capacity);
        (!self.never(cost)).then(|| first(self.now, fits) - self.now)
    }

    /// The retry time of a denial; `None` if the cost fits or never will.
    pub(super) fn retry_after(&self, cost: Int) -> Option<Int> {
        self.wait(cost).filter(|wait| *wait > 0)
    }

    /// How long a cost that is charged at `time` waits in a queue; 0 for other limits.
    fn delay_at(&self, time: Int) -> Int {
        match &self.shape {
            Shape::TokenBucket(bucket) if bucket.is_queue => {
                bucket.drained_after(time, time.max(bucket.newest()))
            }
            _ => 0,
        }
    }

    pub(super) fn delay(&self) -> Int {
        self.delay_at(self.now)
    }

    /// How long a reservation at `time` waits; `None` if the limit has no room for the cost.
    fn reservation_wait(&self, time: Int, cost: Int) -> Option<Int> {
        let Shape::TokenBucket(bucket) = &self.shape else {
            return None;
        };
        if self.never(cost) {
            return None;
        }
        if bucket.is_queue {
            self.fits(time, cost, self.capacity).then(|| self.delay_at(time))
        } else {
            let admitted = first(time, |later| self.fits(later, cost, self.capacity));
            self.fits(time, cost, 2 * self.capacity).then_some(admitted - time)
        }
    }

    /// How long a reservation waits; `None` if it is denied.
    pub(super) fn reserves(&self, cost: Int, max_wait: Int) -> Option<Int> {
        self.reservation_wait(self.now, cost).filter(|wait| *wait <= max_wait)
    }

    /// How long until a reservation would be accepted; `None` if it is accepted now, or never.
    pub(super) fn reserve_retry_after(&self, cost: Int, max_wait: Int) -> Option<Int> {
        let accepts = |time| self.reservation_wait(time, cost).is_some_and(|wait| wait <= max_wait);
        let waits = !self.never(cost) && !accepts(self.now);
        waits.then(|| first(self.now, accepts) - self.now)
    }

    /// Charges a cost above 0.
    pub(super) fn charge(&mut self, cost: Int, lease: Option<Id>) {
        if cost > 0 {
            self.shape.charge(self.time(), cost * self.shape.parts(), lease);
            (self.touched, self.charged) = (true, cost);
        }
    }

    pub(super) fn charge_denied(&mut self, cost: Int) {
        if self.counts_denied && cost > 0 {
            self.shape.charge_denied(self.time(), cost, self.capacity);
            (self.touched, self.charged, self.charged_denied) = (true, cost, true);
        }
    }

    /// Charges up to `units` whole units, to at most twice the capacity; returns how many.
    pub(super) fn penalize(&mut self, units: Int) -> Int {
        if matches!(self.shape, Shape::LeaseSet(_)) {
            return 0;
        }
        let parts = self.shape.parts();
        let room = (2 * self.capacity * parts - self.used()).max(0) / parts;
        let charged = room.min(units);
        self.charge(charged, None);
        charged
    }

    /// Charges up to `units` whole units that were admitted at another time, to at most twice the
    /// capacity; returns how many.
    pub(super) fn backfill(&mut self, units: Int, admitted: Int) -> Int {
        let parts = self.shape.parts();
        let most = 2 * self.capacity;
        let units = units.min((most * parts - self.used()).max(0) / parts);
        let charged = self.shape.backfill(self.now, units, admitted, most);
        if charged > 0 {
            (self.touched, self.charged, self.admitted) = (true, charged, Some(admitted));
        }
        charged
    }

    /// Refunds up to `units`; returns how many whole units were refunded.
    pub(super) fn refund(&mut self, units: Int, charged: Option<Int>) -> Int {
        let back = self.shape.refund(self.time(), units, charged);
        self.touched |= back > 0;
        back / self.shape.parts()
    }

    /// Refunds a reservation of `cost`, less the later charges that have not drained; a queue with later
    /// charges refunds nothing. `mark` is the state just after the reservation.
    pub(super) fn cancel(&mut self, cost: Int, mark: &Shape) -> Int {
        let time = self.time();
        let (Shape::TokenBucket(bucket), Shape::TokenBucket(mark)) = (&mut self.shape, mark) else {
            return 0;
        };
        let alone = bucket.alone(mark).used(time);
        let behind = (bucket.used(time) - alone).max(0);
        let keeps_place = bucket.is_queue && behind > 0;
        let most = if keeps_place { 0 } else { (cost * bucket.parts - behind).max(0) };
        let back = bucket.refund_any(time, most);
        let parts = bucket.parts;
        self.touched |= back > 0;
        back / parts
    }
}
