//! Token bucket and queue: a level that drains evenly, kept as what is used.

use crate::exact::{Divisor, EXACT, gcd, mul_div_ceil};
use crate::state::{Effects, TRUST_AHEAD};
use crate::time::{Micros, Timestamp};

/// The arithmetic of a token bucket or queue of rate L/W = `per_tick / per_token` a tick.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Meter {
    /// The length of a tick in µs.
    tick: u64,
    /// Units that make one token: W′.
    per_token: Divisor,
    /// Units that drain in a tick: L′.
    per_tick: Divisor,
    capacity: u64,
    /// The capacity in units.
    full: u64,
    /// Ticks after which whatever may be used has drained.
    longest: u64,
    queue: bool,
}

/// How much of a meter is used, in its units, at a time that is a tick's start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Level {
    pub(crate) at: u64,
    pub(crate) used: u64,
}

impl Meter {
    pub(crate) fn new(
        capacity: u64,
        per_token: u64,
        per_tick: u64,
        tick: u64,
        queue: bool,
    ) -> Self {
        let full = capacity * per_token;
        let longest = (2 * full).div_ceil(per_tick);
        let (per_token, per_tick) = (Divisor::new(per_token), Divisor::new(per_tick));
        Meter { tick, per_token, per_tick, capacity, full, longest, queue }
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

    /// What a script computes with: units per token, units per tick, the tick, the capacity in
    /// units, and the ticks after which whatever is used has drained.
    pub(crate) const fn numbers(&self) -> [u64; 5] {
        [self.per_token.get(), self.per_tick.get(), self.tick, self.full, self.longest]
    }

    /// The level at the later of `now` and its own time.
    #[inline]
    pub(crate) fn settle(
        &self,
        level: Option<&Level>,
        now: Timestamp,
        seen: &mut Effects,
    ) -> Level {
        let now = now.as_micros();
        match level {
            Some(level) if level.at > now && self.is_astray(level, now) => {
                seen.disbelieved += 1;
                Level { at: self.floor(now), used: 0 }
            }
            Some(level) => self.drain(level, now.max(level.at)),
            None => Level { at: self.floor(now), used: 0 },
        }
    }

    #[inline]
    fn drain(&self, level: &Level, t: u64) -> Level {
        let at = self.floor(t);
        let span = at.saturating_sub(level.at);
        let ticks = if self.tick == 1 { span } else { span / self.tick };
        let drained = if ticks >= self.longest { level.used } else { ticks * self.per_tick.get() };
        Level { at, used: level.used.saturating_sub(drained) }
    }

    #[inline]
    fn floor(&self, t: u64) -> u64 {
        if self.tick == 1 { t } else { t - t % self.tick }
    }

    /// Whether charges can have made it.
    pub(crate) fn can_be(&self, level: &Level) -> bool {
        let Level { at, used } = *level;
        at <= Timestamp::MAX.as_micros() && at == self.floor(at) && used <= 2 * self.full
    }

    #[cold]
    fn is_astray(&self, level: &Level, now: u64) -> bool {
        level.at - now > (self.recovers_at(level) - level.at).saturating_add(TRUST_AHEAD)
    }

    #[inline]
    pub(crate) fn fits(&self, level: &Level, cost: u64) -> bool {
        level.used + cost * self.per_token.get() <= self.full
    }

    #[inline]
    pub(crate) fn remaining(&self, level: &Level) -> u64 {
        self.per_token.floor(self.full.saturating_sub(level.used))
    }

    /// What is used, in tokens, rounded up.
    pub(crate) fn used(&self, level: &Level) -> u64 {
        self.per_token.ceil(level.used)
    }

    /// When nothing is used any more.
    #[inline]
    pub(crate) fn recovers_at(&self, level: &Level) -> u64 {
        self.when_drained(level, level.used)
    }

    /// When `cost`, at most the capacity, fits.
    pub(crate) fn fits_at(&self, level: &Level, cost: u64) -> u64 {
        let above = (level.used + cost * self.per_token.get()).saturating_sub(self.full);
        self.when_drained(level, above)
    }

    #[inline]
    fn when_drained(&self, level: &Level, units: u64) -> u64 {
        // A bucket that takes longer than time is told apart recovers at the end of it.
        level.at.saturating_add(self.per_tick.ceil(units).saturating_mul(self.tick))
    }

    /// When a request that is charged now may act: at once, from a queue once the level before it
    /// has drained, from a bucket in debt once that is paid.
    #[inline]
    pub(crate) fn acts_at(&self, level: &Level, cost: u64) -> u64 {
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
    pub(crate) fn charge(&self, level: Level, cost: u64) -> Level {
        Level { used: level.used + cost * self.per_token.get(), ..level }
    }

    /// Charges any cost, or as much of it as stays within twice the capacity.
    pub(crate) fn charge_at_most(&self, level: Level, cost: u64) -> Level {
        let used = level.used.saturating_add(cost.saturating_mul(self.per_token.get()));
        Level { used: used.min(2 * self.full), ..level }
    }

    /// When `cost`, at most the capacity, may be charged ahead of time: a bucket goes into a debt of
    /// at most one more capacity, a queue has its places.
    pub(crate) fn fits_reserve_at(&self, level: &Level, cost: u64) -> u64 {
        let room = if self.queue { self.full } else { 2 * self.full };
        let above = (level.used + cost * self.per_token.get()).saturating_sub(room);
        if above == 0 { 0 } else { self.when_drained(level, above) }
    }

    /// How many whole tokens may still be charged, debt included.
    pub(crate) fn debt_room(&self, level: &Level) -> u64 {
        self.per_token.floor((2 * self.full).saturating_sub(level.used))
    }

    /// Gives back up to `tokens` of what is used at the settled level; the state keeps its time,
    /// which is that of its newest charge.
    pub(crate) fn refund(
        &self,
        state: Level,
        settled: &Level,
        tokens: u64,
        time: Option<Timestamp>,
    ) -> (Level, u64) {
        let queued_behind = self.queue && time.is_some_and(|time| state.at > time.as_micros());
        if queued_behind {
            return (state, 0);
        }
        let units = tokens.saturating_mul(self.per_token.get()).min(settled.used);
        (Level { used: state.used - units, ..state }, self.per_token.floor(units))
    }

    /// What a reservation of `cost` gives back: its cost less what was charged behind it and, where
    /// that stands in a queue, nothing: it departs when it was told to. `mark` is the level just
    /// after the reservation was charged, `level` the level now.
    pub(crate) fn cancel(
        &self,
        mark: &Level,
        state: Level,
        level: &Level,
        cost: u64,
    ) -> (Level, u64) {
        let ahead = self.drain(mark, level.at.max(mark.at)).used;
        let behind = level.used.saturating_sub(ahead);
        if self.queue && behind > 0 {
            return (state, 0);
        }
        let units = (cost * self.per_token.get()).saturating_sub(behind).min(level.used);
        (Level { used: state.used - units, ..state }, self.per_token.floor(units))
    }

    /// The same use under other numbers, rounded up and clipped to their capacity.
    pub(crate) fn adopt(&self, level: &Level, from: &Meter) -> Level {
        let common = gcd(self.per_token.get(), from.per_token.get());
        let (new, old) = (self.per_token.get() / common, from.per_token.get() / common);
        let (tokens, rest) = {
            let tokens = from.per_token.floor(level.used);
            (tokens, level.used - tokens * from.per_token.get())
        };
        let exact = new.checked_mul(from.per_token.get()).is_some_and(|x| x < EXACT);
        let rest = match rest {
            0 => 0,
            _ if exact => mul_div_ceil(rest, new, old),
            _ => self.per_token.get(),
        };
        let used = tokens.saturating_mul(self.per_token.get()).saturating_add(rest).min(self.full);
        Level { at: level.at.div_ceil(self.tick) * self.tick, used }
    }
}

/// What a span from `now` to `then` is; nothing if `then` has passed.
pub(crate) const fn span(now: Timestamp, then: u64) -> Micros {
    if then == u64::MAX {
        // Later than can be counted, from whenever.
        return Micros::new(u64::MAX);
    }
    Micros::new(then.saturating_sub(now.as_micros()))
}
