//! Token bucket and queue: one level that fills with every charge and drains evenly.
//!
//! The level is stored in parts of a unit, `parts` of which make one; every tick drains `rate`.

use super::number::{Int, bucket_product, divide_up, gcd, tick};

/// A token bucket or a queue and its level.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TokenBucket {
    pub(super) is_queue: bool,
    /// How many parts make one unit: the window in ticks, divided by its greatest common divisor with
    /// the count.
    pub(super) parts: Int,
    /// How many parts drain in a tick: the count, divided by the same divisor.
    rate: Int,
    /// Length of a tick in µs.
    tick: Int,
    /// The used parts at `time`.
    level: Int,
    /// The tick of the newest charge.
    time: Int,
}

impl TokenBucket {
    pub(super) fn new(is_queue: bool, count: Int, window: Int, capacity: Int) -> Option<Self> {
        let tick = tick(count, window, bucket_product(count, capacity))?;
        let common = gcd(count, window / tick);
        let (parts, rate) = (window / tick / common, count / common);
        Some(TokenBucket { is_queue, parts, rate, tick, level: 0, time: 0 })
    }

    pub(super) fn newest(&self) -> Int {
        self.time * self.tick
    }

    pub(super) fn used(&self, time: Int) -> Int {
        let elapsed = (time.div_euclid(self.tick) - self.time).max(0);
        (self.level - elapsed * self.rate).max(0)
    }

    pub(super) fn charge(&mut self, time: Int, parts: Int) {
        self.level = self.used(time) + parts;
        self.time = time.div_euclid(self.tick);
    }

    /// Charges until `most` parts are used.
    pub(super) fn charge_within(&mut self, time: Int, parts: Int, most: Int) {
        self.charge(time, parts);
        self.clip(most);
    }

    pub(super) fn is_nothing(&self) -> bool {
        self.level == 0
    }

    /// Refunds parts, whenever they were charged.
    pub(super) fn refund_any(&mut self, time: Int, parts: Int) -> Int {
        let back = parts.min(self.used(time));
        self.level -= back;
        back
    }

    /// Refunds parts. With the time of the charge, a queue refunds only the last charge.
    pub(super) fn refund(&mut self, time: Int, parts: Int, charged: Option<Int>) -> Int {
        let behind = charged.is_some_and(|charged| self.time > charged.div_euclid(self.tick));
        if self.is_queue && behind { 0 } else { self.refund_any(time, parts) }
    }

    /// The parts that drain from one time to a later one.
    pub(super) fn drained_until(&self, time: Int, end: Int) -> Int {
        (end.div_euclid(self.tick) - time.div_euclid(self.tick)).max(0) * self.rate
    }

    /// How long from `now` until the level of `time` has drained, rounded up to a µs.
    pub(super) fn drained_after(&self, now: Int, time: Int) -> Int {
        let level = self.used(time);
        if level == 0 {
            return 0;
        }
        let start = time.div_euclid(self.tick) * self.tick;
        (start + divide_up(level * self.tick, self.rate) - now).max(0)
    }

    /// Continues the state of a limit with other numbers, rounded up to the parts and ticks of this one.
    pub(super) fn migrate(&mut self, other: &TokenBucket) {
        self.level = divide_up(other.level * self.parts, other.parts);
        self.time = divide_up(other.newest(), self.tick);
    }

    /// Reduces the level to at most this many parts.
    pub(super) fn clip(&mut self, most: Int) {
        self.level = self.level.min(most);
    }

    /// This bucket as if only the charges of `mark` had been made.
    pub(super) fn alone(&self, mark: &TokenBucket) -> TokenBucket {
        let mut alone = TokenBucket { level: 0, ..self.clone() };
        alone.migrate(mark);
        alone
    }
}
