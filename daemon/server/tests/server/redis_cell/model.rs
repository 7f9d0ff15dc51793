//! What redis-cell's documentation says that `CL.THROTTLE` answers, written plainly in 128 bits.
//!
//! Times are in parts of a nanosecond, of which there are as many as the command's count: so the
//! time between two units is a whole number of them. redis-cell itself has whole nanoseconds, which
//! [`Model::truncated`] is.

const SECOND: i128 = 1_000_000_000;

/// The numbers of a command, all where redis-cell's own do not overflow.
#[derive(Clone, Copy, Debug)]
pub(super) struct Numbers {
    pub(super) max_burst: i128,
    pub(super) count: i128,
    /// In seconds.
    pub(super) period: i128,
}

impl Numbers {
    /// Whether the time between two units is a whole number of nanoseconds.
    pub(super) fn are_whole(self) -> bool {
        (self.period * SECOND) % self.count == 0
    }
}

/// The five integers of an answer.
pub(super) type Reply = [i128; 5];

/// What is known of one key.
#[derive(Clone, Copy, Debug)]
pub(super) struct Model {
    numbers: Numbers,
    /// Between two units.
    emission: i128,
    /// When the key is as if it were unknown.
    recovered: i128,
}

impl Model {
    /// Without a loss.
    pub(super) fn exact(numbers: Numbers) -> Self {
        Model { numbers, emission: numbers.period * SECOND, recovered: 0 }
    }

    /// As redis-cell has it.
    pub(super) fn truncated(numbers: Numbers) -> Self {
        let emission = numbers.period * SECOND / numbers.count * numbers.count;
        Model { emission, ..Model::exact(numbers) }
    }

    /// What it answers at a time in nanoseconds. Nothing is charged.
    pub(super) fn ask(&self, now: i128, quantity: i128) -> Reply {
        let now = now * self.numbers.count;
        let limit = self.numbers.max_burst + 1;
        let tolerance = self.emission * limit;
        let before = self.recovered.max(now) - now;
        let after = before + self.emission * quantity;
        // A peek is never denied, not even where nothing is left.
        let is_limited = quantity > 0 && after > tolerance;
        let used = if is_limited { before } else { after };
        let retry =
            if is_limited && quantity <= limit { self.seconds(after - tolerance) } else { -1 };
        let remaining = ((tolerance - used) / self.emission).max(0);
        [i128::from(is_limited), limit, remaining, retry, self.seconds(used)]
    }

    /// How far from the edge between allowed and limited it is, in whole nanoseconds.
    pub(super) fn distance(&self, now: i128, quantity: i128) -> i128 {
        let now = now * self.numbers.count;
        let tolerance = self.emission * (self.numbers.max_burst + 1);
        let after = self.recovered.max(now) - now + self.emission * quantity;
        (after - tolerance).abs() / self.numbers.count
    }

    /// Charges what was admitted.
    pub(super) fn charge(&mut self, now: i128, quantity: i128) {
        let from = self.recovered.max(now * self.numbers.count);
        self.recovered = from + self.emission * quantity;
    }

    /// Whole seconds, rounded up. redis-cell drops what is left below a millisecond; we do not.
    fn seconds(&self, parts: i128) -> i128 {
        let second = SECOND * self.numbers.count;
        (parts + second - 1) / second
    }
}
