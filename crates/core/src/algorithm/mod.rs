//! The algorithms: what a limit computes, and the state that it computes with.
//!
//! Each algorithm has a file. `advance_to` brings state to a time; `fits_at` and `recovers_at` read
//! the result; `charge` and `refund` change the state. [`Algorithm`] dispatches to them.

mod concurrency;
mod exact;
mod fixed_window;
mod sliding_log;
mod sliding_window;
mod state;
mod token_bucket;

use alloc::boxed::Box;

pub(crate) use concurrency::Concurrency;
pub(crate) use exact::{EXACT, gcd};
pub(crate) use fixed_window::FixedWindow;
pub(crate) use sliding_log::SlidingLog;
pub(crate) use sliding_window::SlidingWindowCounter;
pub use state::{
    Anomalies, FixedWindowState, Lease, LeaseSet, LimitState, LogCoverage, LogEntry, MAX_LEASES,
    Parameters, SlidingLogState, SlidingWindowState, TokenBucketState,
};
pub(crate) use state::{Charge, MAX_CLOCK_SKEW, Refund, Usage};
pub(crate) use token_bucket::TokenBucket;

use crate::id::Id;
use crate::time::Timestamp;

/// The algorithm of a limit, with its numbers prepared for exact arithmetic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Algorithm {
    TokenBucket(TokenBucket),
    FixedWindow(FixedWindow),
    SlidingWindow(SlidingWindowCounter),
    SlidingLog(SlidingLog),
    Concurrency(Concurrency),
}

/// The usage of a key is always computed by the algorithm that then reads it.
#[cold]
fn mismatch() -> ! {
    unreachable!("the usage was computed by another algorithm")
}

impl Algorithm {
    pub(crate) fn parameters(&self) -> Parameters {
        match self {
            Algorithm::TokenBucket(bucket) => bucket.parameters(),
            Algorithm::FixedWindow(window) => window.parameters(),
            Algorithm::SlidingWindow(window) => window.parameters(),
            Algorithm::SlidingLog(log) => log.parameters(),
            Algorithm::Concurrency(concurrency) => concurrency.parameters(),
        }
    }

    /// Whether charges can have produced the state.
    pub(crate) fn can_hold(&self, state: &LimitState, coverage: LogCoverage) -> bool {
        match (self, state) {
            (_, LimitState::Untouched) => true,
            (Algorithm::TokenBucket(bucket), LimitState::TokenBucket(level)) => {
                bucket.can_hold(level)
            }
            (Algorithm::FixedWindow(window), LimitState::FixedWindow(state)) => {
                window.can_hold(state)
            }
            (Algorithm::SlidingWindow(window), LimitState::SlidingWindow(counts)) => {
                window.can_hold(counts)
            }
            (Algorithm::SlidingLog(log), LimitState::SlidingLog(state)) => match coverage {
                LogCoverage::Complete => log.can_hold(state),
                LogCoverage::Excerpt => log.can_hold_excerpt(state),
            },
            (Algorithm::Concurrency(_), LimitState::Concurrency(set)) => set.is_valid(),
            _ => false,
        }
    }

    /// The state at the later of `now` and its own newest time. State of another algorithm counts
    /// as untouched.
    #[inline]
    pub(crate) fn advance_to(
        &self,
        state: &LimitState,
        now: Timestamp,
        anomalies: &mut Anomalies,
    ) -> Usage {
        match (self, state) {
            (Algorithm::TokenBucket(bucket), LimitState::TokenBucket(level)) => {
                Usage::TokenBucket(bucket.advance_to(Some(level), now, anomalies))
            }
            (Algorithm::TokenBucket(bucket), _) => {
                Usage::TokenBucket(bucket.advance_to(None, now, anomalies))
            }
            (Algorithm::FixedWindow(window), LimitState::FixedWindow(state)) => {
                Usage::FixedWindow(window.advance_to(Some(state), now, anomalies))
            }
            (Algorithm::FixedWindow(window), _) => {
                Usage::FixedWindow(window.advance_to(None, now, anomalies))
            }
            (Algorithm::SlidingWindow(window), LimitState::SlidingWindow(counts)) => {
                Usage::SlidingWindow(window.advance_to(Some(counts), now, anomalies))
            }
            (Algorithm::SlidingWindow(window), _) => {
                Usage::SlidingWindow(window.advance_to(None, now, anomalies))
            }
            (Algorithm::SlidingLog(log), _) => {
                Usage::SlidingLog(log.advance_to(state.log(), now, anomalies))
            }
            (Algorithm::Concurrency(concurrency), _) => {
                Usage::Concurrency(concurrency.advance_to(state.leases(), now, anomalies))
            }
        }
    }

    /// Whether a cost of at most the capacity fits now.
    #[inline]
    pub(crate) fn fits(&self, usage: &Usage, cost: u64) -> bool {
        if let (Algorithm::TokenBucket(bucket), Usage::TokenBucket(level)) = (self, usage) {
            return bucket.fits(level, cost);
        }
        let (used, capacity) = self.used_of_capacity(usage);
        used + cost <= capacity
    }

    /// The greatest cost that fits now.
    #[inline]
    pub(crate) fn remaining(&self, usage: &Usage) -> u64 {
        if let (Algorithm::TokenBucket(bucket), Usage::TokenBucket(level)) = (self, usage) {
            return bucket.remaining(level);
        }
        let (used, capacity) = self.used_of_capacity(usage);
        capacity.saturating_sub(used)
    }

    /// The cost that was charged and has not recovered, rounded up.
    pub(crate) fn used(&self, usage: &Usage) -> u64 {
        match (self, usage) {
            (Algorithm::TokenBucket(bucket), Usage::TokenBucket(level)) => bucket.used(level),
            _ => self.used_of_capacity(usage).0,
        }
    }

    /// The used cost and the capacity of an algorithm that counts whole costs: any except a bucket.
    #[inline]
    fn used_of_capacity(&self, usage: &Usage) -> (u64, u64) {
        match (self, usage) {
            (Algorithm::FixedWindow(window), Usage::FixedWindow(state)) => {
                (state.used, window.capacity)
            }
            (Algorithm::SlidingWindow(window), Usage::SlidingWindow(usage)) => {
                (window.used(usage), window.capacity)
            }
            (Algorithm::SlidingLog(log), Usage::SlidingLog(usage)) => (usage.used, log.capacity),
            (Algorithm::Concurrency(concurrency), Usage::Concurrency(usage)) => {
                (usage.used, concurrency.capacity)
            }
            _ => mismatch(),
        }
    }

    /// When a cost of at most the capacity fits if there is no other traffic, in µs since the
    /// epoch.
    pub(crate) fn fits_at(&self, state: &LimitState, usage: &Usage, cost: u64) -> u64 {
        match (self, usage) {
            (Algorithm::TokenBucket(bucket), Usage::TokenBucket(level)) => {
                bucket.fits_at(level, cost)
            }
            (Algorithm::FixedWindow(_), Usage::FixedWindow(state)) => state.end,
            (Algorithm::SlidingWindow(window), Usage::SlidingWindow(usage)) => {
                window.fits_at(usage, cost)
            }
            (Algorithm::SlidingLog(log), Usage::SlidingLog(usage)) => {
                log.fits_at(state.log(), usage, cost)
            }
            (Algorithm::Concurrency(concurrency), Usage::Concurrency(usage)) => {
                concurrency.fits_at(state.leases(), usage, cost)
            }
            _ => mismatch(),
        }
    }

    /// When nothing is used any more, in µs since the epoch; now or earlier if nothing is used.
    #[inline]
    pub(crate) fn recovers_at(&self, state: &LimitState, usage: &Usage) -> u64 {
        match (self, usage) {
            (Algorithm::TokenBucket(bucket), Usage::TokenBucket(level)) => {
                bucket.recovers_at(level)
            }
            (Algorithm::FixedWindow(_), Usage::FixedWindow(FixedWindowState { used: 0, .. })) => 0,
            (Algorithm::FixedWindow(_), Usage::FixedWindow(state)) => state.end,
            (Algorithm::SlidingWindow(window), Usage::SlidingWindow(usage)) => {
                window.recovers_at(usage)
            }
            (Algorithm::SlidingLog(log), Usage::SlidingLog(usage)) => {
                log.recovers_at(state.log(), usage)
            }
            (Algorithm::Concurrency(concurrency), Usage::Concurrency(usage)) => {
                concurrency.recovers_at(state.leases(), usage)
            }
            _ => mismatch(),
        }
    }

    /// When a request of this cost that is charged now may proceed, in µs since the epoch. Only
    /// token buckets and queues delay requests.
    #[inline]
    pub(crate) fn acts_at(&self, usage: &Usage, cost: u64) -> u64 {
        match (self, usage) {
            (Algorithm::TokenBucket(bucket), Usage::TokenBucket(level)) => {
                bucket.acts_at(level, cost)
            }
            _ => 0,
        }
    }

    /// When a cost of at most the capacity may be reserved, in µs since the epoch. Only token
    /// buckets and queues take reservations.
    pub(crate) fn reserves_at(&self, usage: &Usage, cost: u64) -> u64 {
        match (self, usage) {
            (Algorithm::TokenBucket(bucket), Usage::TokenBucket(level)) => {
                bucket.reserves_at(level, cost)
            }
            _ => u64::MAX,
        }
    }

    /// Charges a cost that fits, a reservation, or a penalty within [`Algorithm::max_penalty`].
    /// Returns the usage after the charge.
    #[inline]
    pub(crate) fn charge(
        &self,
        state: &mut LimitState,
        usage: Usage,
        charge: &Charge,
        now: Timestamp,
        anomalies: &mut Anomalies,
    ) -> Usage {
        if charge.cost == 0 {
            return usage;
        }
        match (self, usage) {
            (Algorithm::TokenBucket(bucket), Usage::TokenBucket(level)) => {
                let level = bucket.charge(level, charge.cost);
                *state = LimitState::TokenBucket(level);
                return Usage::TokenBucket(level);
            }
            (Algorithm::FixedWindow(window), Usage::FixedWindow(open)) => {
                let open = window.charge(open, charge.cost);
                *state = LimitState::FixedWindow(open);
                return Usage::FixedWindow(open);
            }
            (Algorithm::SlidingWindow(window), Usage::SlidingWindow(usage)) => {
                state.set_counts(window.charge(usage.counts, charge.cost));
            }
            (Algorithm::SlidingLog(log), Usage::SlidingLog(usage)) => {
                log.charge(state.log_mut(), &usage, charge.cost, charge.log_entries, anomalies);
            }
            (Algorithm::Concurrency(concurrency), Usage::Concurrency(usage)) => {
                // Without a lease, as in a penalty, there is nothing to hold.
                if let Some(id) = charge.lease {
                    concurrency.acquire(state.leases_mut(), &usage, charge.cost, id);
                }
            }
            _ => mismatch(),
        }
        self.advance_to(state, now, anomalies)
    }

    /// Charges a denied request to a `count-denied` limit. Returns the usage after the charge.
    pub(crate) fn charge_denied(
        &self,
        state: &mut LimitState,
        usage: Usage,
        charge: &Charge,
        now: Timestamp,
        anomalies: &mut Anomalies,
    ) -> Usage {
        match (self, usage) {
            (Algorithm::SlidingLog(log), Usage::SlidingLog(usage)) if charge.cost > 0 => {
                let (cost, log_entries) = (charge.cost, charge.log_entries);
                log.charge_denied(state.log_mut(), &usage, cost, log_entries, anomalies);
                self.advance_to(state, now, anomalies)
            }
            _ => self.charge(state, usage, charge, now, anomalies),
        }
    }

    /// The greatest penalty: it may lead to a debt of at most one more capacity. Concurrency limits
    /// take no penalties.
    pub(crate) fn max_penalty(&self, usage: &Usage) -> u64 {
        match (self, usage) {
            (Algorithm::TokenBucket(bucket), Usage::TokenBucket(level)) => {
                bucket.max_penalty(level)
            }
            (Algorithm::Concurrency(_), _) => 0,
            _ => {
                let (used, capacity) = self.used_of_capacity(usage);
                (2 * capacity).saturating_sub(used)
            }
        }
    }

    /// Charges a cost that was admitted at `time`, up to [`Algorithm::max_penalty`], where that time
    /// counts, and returns how much. Token buckets and queues are charged now.
    pub(crate) fn backfill(
        &self,
        state: &mut LimitState,
        usage: &Usage,
        charge: &Charge,
        time: Timestamp,
        now: Timestamp,
        anomalies: &mut Anomalies,
    ) -> u64 {
        let charge = Charge { cost: charge.cost.min(self.max_penalty(usage)), ..*charge };
        if charge.cost == 0 {
            return 0;
        }
        match (self, usage) {
            (Algorithm::FixedWindow(window), Usage::FixedWindow(open)) => {
                let Some(open) = window.backfill(*open, charge.cost, time, now) else { return 0 };
                *state = LimitState::FixedWindow(open);
            }
            (Algorithm::SlidingWindow(window), Usage::SlidingWindow(usage)) => {
                let (counts, charged) = window.backfill(usage, charge.cost, time, now);
                if charged > 0 {
                    state.set_counts(counts);
                }
                return charged;
            }
            (Algorithm::SlidingLog(log), Usage::SlidingLog(usage)) => {
                let stamp = log.backfill_stamp(state.log(), usage, time, now);
                let Some(stamp) = stamp else { return 0 };
                log.charge_at(state.log_mut(), usage, stamp, &charge, anomalies);
            }
            _ => {
                self.charge(state, *usage, &charge, now, anomalies);
            }
        }
        charge.cost
    }

    /// Refunds up to a count and returns how much. Leases are released, not refunded.
    pub(crate) fn refund(&self, state: &mut LimitState, usage: &Usage, refund: &Refund) -> u64 {
        let Refund { count, time, .. } = *refund;
        let refunded = match (self, usage, &mut *state) {
            (
                Algorithm::TokenBucket(bucket),
                Usage::TokenBucket(level),
                LimitState::TokenBucket(state),
            ) => {
                let (level, refunded) = bucket.refund(*state, level, refund);
                *state = level;
                refunded
            }
            (
                Algorithm::FixedWindow(window),
                Usage::FixedWindow(open),
                LimitState::FixedWindow(state),
            ) => {
                let (open, refunded) = window.refund(*open, count, time);
                if refunded > 0 {
                    *state = open;
                }
                refunded
            }
            (
                Algorithm::SlidingWindow(window),
                Usage::SlidingWindow(usage),
                LimitState::SlidingWindow(state),
            ) => {
                let (counts, refunded) = window.refund(usage.counts, count, time);
                if refunded > 0 {
                    **state = counts;
                }
                refunded
            }
            (
                Algorithm::SlidingLog(log),
                Usage::SlidingLog(usage),
                LimitState::SlidingLog(state),
            ) => log.refund(state, usage, count, time),
            // Nothing is charged, or leases are held.
            _ => 0,
        };
        state.clear_if_empty();
        refunded
    }

    /// Refunds the cost of a reservation less what was charged after it, and returns how much.
    pub(crate) fn cancel(
        &self,
        state: &mut LimitState,
        usage: &Usage,
        mark: &TokenBucketState,
        cost: u64,
    ) -> u64 {
        let (
            Algorithm::TokenBucket(bucket),
            Usage::TokenBucket(level),
            LimitState::TokenBucket(newest),
        ) = (self, usage, &mut *state)
        else {
            // Everything that was charged has recovered since.
            return 0;
        };
        let (after, refunded) = bucket.cancel(mark, *newest, level, cost);
        *newest = after;
        state.clear_if_empty();
        refunded
    }

    /// Extends a lease to its whole length from now. Returns whether it was still held.
    pub(crate) fn renew(&self, state: &mut LimitState, usage: &Usage, id: Id) -> bool {
        match (self, usage, state) {
            (
                Algorithm::Concurrency(concurrency),
                Usage::Concurrency(usage),
                LimitState::Concurrency(set),
            ) => concurrency.renew(set, usage, id),
            _ => false,
        }
    }

    /// Releases a lease. Returns its cost, or 0 if it was not held.
    pub(crate) fn release(&self, state: &mut LimitState, usage: &Usage, id: Id) -> u64 {
        let released = match (usage, &mut *state) {
            (Usage::Concurrency(usage), LimitState::Concurrency(set)) => set.release(usage, id),
            _ => 0,
        };
        state.clear_if_empty();
        released
    }

    /// The state of an earlier version of this limit in this limit's numbers.
    pub(crate) fn migrate(&self, state: &LimitState, from: &Algorithm) -> LimitState {
        let mut state = match (self, from, state) {
            (
                Algorithm::TokenBucket(to),
                Algorithm::TokenBucket(from),
                LimitState::TokenBucket(level),
            ) => LimitState::TokenBucket(to.migrate(level, from)),
            (Algorithm::FixedWindow(to), _, LimitState::FixedWindow(state)) => {
                LimitState::FixedWindow(to.migrate(state))
            }
            (Algorithm::SlidingWindow(to), _, LimitState::SlidingWindow(counts)) => {
                LimitState::SlidingWindow(Box::new(to.migrate(counts)))
            }
            (Algorithm::SlidingLog(to), _, LimitState::SlidingLog(log)) => {
                LimitState::SlidingLog(Box::new(to.migrate(log)))
            }
            (_, _, state) => state.clone(),
        };
        state.clear_if_empty();
        state
    }
}

/// The cost of a lease that is still held.
pub(crate) fn lease_cost(state: &LimitState, usage: &Usage, id: Id) -> Option<u64> {
    let (Usage::Concurrency(usage), Some(set)) = (usage, state.leases()) else { return None };
    set.find(usage, id).map(|index| set.leases[index].cost)
}
