//! Token bucket (GCRA) and queue: a level of used tokens that drains at a constant rate.

use super::exact::{Divisor, EXACT, gcd};
use super::state::{Anomalies, MAX_CLOCK_SKEW, Parameters, Refund, TokenBucketState};
use crate::time::Timestamp;

/// A token bucket or queue that refills `per_tick / per_token` tokens a tick.
///
/// Levels are counted in units of `1 / per_token` of a token, so that they are integers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct TokenBucket {
    /// The length of a tick in µs.
    tick: u64,
    /// The units that make one token.
    per_token: Divisor,
    /// The units that drain in a tick.
    per_tick: Divisor,
    capacity: u64,
    /// The capacity in units.
    full: u64,
    /// The ticks after which any level, debt included, has drained.
    ticks_to_drain: u64,
    queue: bool,
}

impl TokenBucket {
    pub(crate) fn new(
        capacity: u64,
        per_token: u64,
        per_tick: u64,
        tick: u64,
        queue: bool,
    ) -> Self {
        let full = capacity * per_token;
        let ticks_to_drain = (2 * full).div_ceil(per_tick);
        let (per_token, per_tick) = (Divisor::new(per_token), Divisor::new(per_tick));
        TokenBucket { tick, per_token, per_tick, capacity, full, ticks_to_drain, queue }
    }

    pub(crate) const fn capacity(&self) -> u64 {
        self.capacity
    }

    pub(crate) const fn tick(&self) -> u64 {
        self.tick
    }

    pub(crate) const fn is_queue(&self) -> bool {
        self.queue
    }

    pub(super) const fn parameters(&self) -> Parameters {
        Parameters::TokenBucket {
            units_per_token: self.per_token.get(),
            units_per_tick: self.per_tick.get(),
            tick: self.tick,
            capacity_units: self.full,
            ticks_to_drain: self.ticks_to_drain,
        }
    }

    /// The level at the later of `now` and its own time.
    #[inline]
    pub(crate) fn advance_to(
        &self,
        level: Option<&TokenBucketState>,
        now: Timestamp,
        anomalies: &mut Anomalies,
    ) -> TokenBucketState {
        let now = now.as_micros();
        match level {
            Some(level) if level.at > now && self.is_implausible(level, now) => {
                anomalies.implausible += 1;
                TokenBucketState { at: self.floor(now), used: 0 }
            }
            Some(level) => self.drain(level, now.max(level.at)),
            None => TokenBucketState { at: self.floor(now), used: 0 },
        }
    }

    #[inline]
    fn drain(&self, level: &TokenBucketState, t: u64) -> TokenBucketState {
        let at = self.floor(t);
        let span = at.saturating_sub(level.at);
        let ticks = if self.tick == 1 { span } else { span / self.tick };
        let drained =
            if ticks >= self.ticks_to_drain { level.used } else { ticks * self.per_tick.get() };
        TokenBucketState { at, used: level.used.saturating_sub(drained) }
    }

    #[inline]
    fn floor(&self, t: u64) -> u64 {
        if self.tick == 1 { t } else { t - t % self.tick }
    }

    /// Whether charges can have produced the level.
    pub(crate) fn can_hold(&self, level: &TokenBucketState) -> bool {
        let TokenBucketState { at, used } = *level;
        at <= Timestamp::MAX.as_micros() && at == self.floor(at) && used <= 2 * self.full
    }

    /// Whether the level is further in the future than a clock may differ.
    #[cold]
    fn is_implausible(&self, level: &TokenBucketState, now: u64) -> bool {
        level.at - now > (self.recovers_at(level) - level.at).saturating_add(MAX_CLOCK_SKEW)
    }

    #[inline]
    pub(crate) fn fits(&self, level: &TokenBucketState, cost: u64) -> bool {
        level.used + cost * self.per_token.get() <= self.full
    }

    #[inline]
    pub(crate) fn remaining(&self, level: &TokenBucketState) -> u64 {
        self.per_token.floor(self.full.saturating_sub(level.used))
    }

    /// The used tokens, rounded up.
    pub(crate) fn used(&self, level: &TokenBucketState) -> u64 {
        self.per_token.ceil(level.used)
    }

    /// When nothing is used any more.
    #[inline]
    pub(crate) fn recovers_at(&self, level: &TokenBucketState) -> u64 {
        self.when_drained(level, level.used)
    }

    /// When `cost`, at most the capacity, fits.
    #[inline]
    pub(crate) fn fits_at(&self, level: &TokenBucketState, cost: u64) -> u64 {
        let above = (level.used + cost * self.per_token.get()).saturating_sub(self.full);
        self.when_drained(level, above)
    }

    #[inline]
    fn when_drained(&self, level: &TokenBucketState, units: u64) -> u64 {
        // A level that drains after the last representable time recovers at that time.
        level.at.saturating_add(self.per_tick.ceil(units).saturating_mul(self.tick))
    }

    /// When a request that is charged now may proceed: from a bucket at once, or once its debt is
    /// paid; from a queue once the level before it has drained.
    #[inline]
    pub(crate) fn acts_at(&self, level: &TokenBucketState, cost: u64) -> u64 {
        if !self.queue {
            return if self.fits(level, cost) { 0 } else { self.fits_at(level, cost) };
        }
        let ticks = self.per_tick.floor(level.used);
        let rest = level.used - ticks * self.per_tick.get();
        let waits = ticks.saturating_mul(self.tick);
        let rest = (rest * self.tick).div_ceil(self.per_tick.get());
        level.at.saturating_add(waits).saturating_add(rest)
    }

    #[inline]
    pub(crate) fn charge(&self, level: TokenBucketState, cost: u64) -> TokenBucketState {
        TokenBucketState { used: level.used + cost * self.per_token.get(), ..level }
    }

    /// Charges the cost, or as much of it as keeps the level within twice the capacity.
    pub(crate) fn charge_at_most(&self, level: TokenBucketState, cost: u64) -> TokenBucketState {
        let used = level.used.saturating_add(cost.saturating_mul(self.per_token.get()));
        TokenBucketState { used: used.min(2 * self.full), ..level }
    }

    /// When `cost`, at most the capacity, may be reserved: a bucket may go into a debt of at most
    /// one more capacity, a queue may fill its places.
    pub(crate) fn reserves_at(&self, level: &TokenBucketState, cost: u64) -> u64 {
        let room = if self.queue { self.full } else { 2 * self.full };
        let above = (level.used + cost * self.per_token.get()).saturating_sub(room);
        if above == 0 { 0 } else { self.when_drained(level, above) }
    }

    /// The whole tokens that may still be charged, debt included.
    pub(crate) fn max_penalty(&self, level: &TokenBucketState) -> u64 {
        self.per_token.floor((2 * self.full).saturating_sub(level.used))
    }

    /// Refunds up to a count of tokens of what is used at the current level. The state keeps its time,
    /// which is that of its newest charge. A queue refunds nothing behind which others have queued.
    pub(crate) fn refund(
        &self,
        state: TokenBucketState,
        current: &TokenBucketState,
        refund: &Refund,
    ) -> (TokenBucketState, u64) {
        let Refund { count, time, recovers_at } = *refund;
        let queued_behind = self.queue && time.is_some_and(|time| state.at > time.as_micros());
        if queued_behind {
            return (state, 0);
        }
        let undrained = recovers_at.map_or(u64::MAX, |end| self.units_until(current.at, end));
        let units = count.saturating_mul(self.per_token.get()).min(undrained).min(current.used);
        (TokenBucketState { used: state.used - units, ..state }, self.per_token.floor(units))
    }

    /// The units that drain from a time until a later one, at most those of the highest level.
    fn units_until(&self, at: u64, end: u64) -> u64 {
        let ticks = (end.saturating_sub(at) / self.tick).min(self.ticks_to_drain);
        ticks * self.per_tick.get()
    }

    /// Refunds a reservation of `cost`: its cost less what was charged after it. A queue refunds
    /// nothing then, because the departures of later requests are already promised. `mark` is the
    /// level just after the reservation was charged, `level` the level now.
    pub(crate) fn cancel(
        &self,
        mark: &TokenBucketState,
        state: TokenBucketState,
        level: &TokenBucketState,
        cost: u64,
    ) -> (TokenBucketState, u64) {
        let ahead = self.drain(mark, level.at.max(mark.at)).used;
        let behind = level.used.saturating_sub(ahead);
        if self.queue && behind > 0 {
            return (state, 0);
        }
        let units = (cost * self.per_token.get()).saturating_sub(behind).min(level.used);
        (TokenBucketState { used: state.used - units, ..state }, self.per_token.floor(units))
    }

    /// The level of an earlier version in these units, rounded up, at most the capacity.
    pub(crate) fn migrate(&self, level: &TokenBucketState, from: &TokenBucket) -> TokenBucketState {
        let common = gcd(self.per_token.get(), from.per_token.get());
        let (new, old) = (self.per_token.get() / common, from.per_token.get() / common);
        let tokens = from.per_token.floor(level.used);
        let rest = level.used - tokens * from.per_token.get();
        let exact = new.checked_mul(from.per_token.get()).is_some_and(|x| x < EXACT);
        let rest = match rest {
            0 => 0,
            _ if exact => (rest * new).div_ceil(old),
            _ => self.per_token.get(),
        };
        let used = tokens.saturating_mul(self.per_token.get()).saturating_add(rest).min(self.full);
        TokenBucketState { at: level.at.div_ceil(self.tick) * self.tick, used }
    }
}
