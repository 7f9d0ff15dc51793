//! How much is wanted of a key.

use tollgate_algorithms::{Cost, Micros, Timestamp};

/// Requests and their cost, per second.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Rate {
    pub(super) requests: u64,
    pub(super) cost: u64,
}

/// How much is wanted of a key.
#[derive(Debug, Default)]
pub(super) struct Demand {
    /// Since when requests are counted.
    since: Timestamp,
    requests: u64,
    cost: u64,
    /// The rate before that.
    pub(super) rate: Rate,
}

impl Demand {
    pub(super) fn new(since: Timestamp) -> Self {
        Demand { since, ..Demand::default() }
    }

    pub(super) fn add(&mut self, cost: Cost, now: Timestamp, hold: Micros) {
        let elapsed = now.duration_since(self.since).get();
        if elapsed >= hold.get() {
            // It falls slowly, so that the gaps between bursts do not count.
            let is_recent = elapsed < 4 * hold.get();
            let rate = |count: u64, before: u64| {
                let rate = count.saturating_mul(1_000_000) / elapsed.max(1);
                if is_recent { rate.max(rate.midpoint(before)) } else { rate }
            };
            self.rate = Rate {
                requests: rate(self.requests, self.rate.requests),
                cost: rate(self.cost, self.rate.cost),
            };
            (self.since, self.requests, self.cost) = (now, 0, 0);
        }
        self.requests += 1;
        self.cost = self.cost.saturating_add(cost.get());
    }

    /// The requests within a time and their cost, at least those since the last estimate.
    pub(super) fn within(&self, time: Micros) -> (u64, u64) {
        let requests = within(self.rate.requests, time).max(self.requests);
        (requests, within(self.rate.cost, time).max(self.cost).min(Cost::MAX.get()))
    }
}

/// What a rate per second is within a time.
pub(super) fn within(rate: u64, time: Micros) -> u64 {
    match rate.checked_mul(time.get()) {
        // The usual case, without a division of 128 bits.
        Some(product) => product / 1_000_000,
        None => {
            let within = u128::from(rate) * u128::from(time.get()) / 1_000_000;
            u64::try_from(within).unwrap_or(u64::MAX)
        }
    }
}
