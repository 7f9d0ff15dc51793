//! A model of `CL.THROTTLE` according to the documentation of redis-cell, in 128 bits.
//!
//! Times are in fractions of a nanosecond, `count` of them in each, so that the time between two
//! units is a whole number. redis-cell itself uses whole nanoseconds, as [`Model::truncated`] does.

const SECOND: i128 = 1_000_000_000;

/// The arguments of a command, in the range in which redis-cell does not overflow.
#[derive(Clone, Copy, Debug)]
pub(super) struct Numbers {
    pub(super) max_burst: i128,
    pub(super) count: i128,
    /// In seconds.
    pub(super) period: i128,
}

impl Numbers {
    /// Whether the time between two units is a whole number of nanoseconds.
    pub(super) fn are_exact(self) -> bool {
        (self.period * SECOND) % self.count == 0
    }
}

/// The five integers of a reply.
pub(super) type Reply = [i128; 5];

/// The state of one key.
#[derive(Clone, Copy, Debug)]
pub(super) struct Model {
    numbers: Numbers,
    /// The time between two units.
    emission: i128,
    /// When the key is back in its initial state.
    recovered: i128,
}

impl Model {
    /// A model without rounding.
    pub(super) fn exact(numbers: Numbers) -> Self {
        Model { numbers, emission: numbers.period * SECOND, recovered: 0 }
    }

    /// A model that rounds as redis-cell does.
    pub(super) fn truncated(numbers: Numbers) -> Self {
        let emission = numbers.period * SECOND / numbers.count * numbers.count;
        Model { emission, ..Model::exact(numbers) }
    }

    /// The reply at a time in nanoseconds, without charging.
    pub(super) fn peek(&self, now: i128, quantity: i128) -> Reply {
        let now = now * self.numbers.count;
        let limit = self.numbers.max_burst + 1;
        let tolerance = self.emission * limit;
        let before = self.recovered.max(now) - now;
        let after = before + self.emission * quantity;
        // A quantity of 0 is never denied, even if nothing remains.
        let is_limited = quantity > 0 && after > tolerance;
        let used = if is_limited { before } else { after };
        let retry =
            if is_limited && quantity <= limit { self.seconds(after - tolerance) } else { -1 };
        let remaining = ((tolerance - used) / self.emission).max(0);
        [i128::from(is_limited), limit, remaining, retry, self.seconds(used)]
    }

    /// The distance from the boundary between allowed and limited, in whole nanoseconds.
    pub(super) fn distance(&self, now: i128, quantity: i128) -> i128 {
        let now = now * self.numbers.count;
        let tolerance = self.emission * (self.numbers.max_burst + 1);
        let after = self.recovered.max(now) - now + self.emission * quantity;
        (after - tolerance).abs() / self.numbers.count
    }

    /// Charges an admitted quantity.
    pub(super) fn charge(&mut self, now: i128, quantity: i128) {
        let from = self.recovered.max(now * self.numbers.count);
        self.recovered = from + self.emission * quantity;
    }

    /// Whole seconds, rounded up. redis-cell drops fractions of a millisecond; the daemon does not.
    fn seconds(&self, parts: i128) -> i128 {
        let second = SECOND * self.numbers.count;
        (parts + second - 1) / second
    }
}
