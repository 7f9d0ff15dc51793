//! What a store keeps of a key in one limit, and what every algorithm can say and do with it.
//!
//! Each algorithm has its file with the same words: `settle` brings state to a time, `fits`,
//! `remaining`, `fits_at`, `recovers_at` read it, `charge` and `refund` change it. Here they are
//! chosen by the limit's rule.

use alloc::boxed::Box;

use crate::leases::{self, Held};
use crate::limit::{Limit, Rule};
use crate::log::{self, Entries};
use crate::meter::Level;
use crate::request::Id;
use crate::time::Timestamp;
use crate::weighted::{self, Counts};
use crate::window::Open;

/// State further ahead of now than its own time to recover plus this, 10 s, is not believed.
pub(crate) const TRUST_AHEAD: u64 = 10_000_000;

/// What a limit holds of a key. Constant-size state is inline, the rest behind one pointer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum LimitState {
    /// As an unknown key's.
    #[default]
    Untouched,
    Meter(Level),
    Window(Open),
    Weighted(Box<Counts>),
    Log(Box<Entries>),
    Leases(Box<Held>),
}

/// A limit's state brought to a time.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Settled {
    Meter(Level),
    Window(Open),
    Weighted(weighted::Settled),
    Log(log::Settled),
    Leases(leases::Settled),
}

/// What was noticed while deciding, for a store to count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Effects {
    /// States too far ahead of their time to be believed, which counted as untouched.
    pub disbelieved: u64,
    /// Log entries that were merged because a key has more than a log keeps.
    pub merged: u64,
}

impl Effects {
    /// Both together.
    #[must_use]
    pub const fn plus(self, other: Effects) -> Effects {
        Effects {
            disbelieved: self.disbelieved + other.disbelieved,
            merged: self.merged + other.merged,
        }
    }
}

/// What a charge needs beside the cost.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Charge {
    pub(crate) cost: u64,
    /// The id of the lease that a concurrency limit gives.
    pub(crate) lease: Option<Id>,
    /// How many entries a log keeps.
    pub(crate) log_entries: usize,
}

impl LimitState {
    fn log(&self) -> Option<&Entries> {
        if let LimitState::Log(log) = self { Some(log) } else { None }
    }

    pub(crate) fn held(&self) -> Option<&Held> {
        if let LimitState::Leases(leases) = self { Some(leases) } else { None }
    }

    fn log_mut(&mut self) -> &mut Entries {
        if !matches!(self, LimitState::Log(_)) {
            *self = LimitState::Log(Box::default());
        }
        let LimitState::Log(log) = self else { unreachable!("it was just made a log") };
        log
    }

    fn held_mut(&mut self) -> &mut Held {
        if !matches!(self, LimitState::Leases(_)) {
            *self = LimitState::Leases(Box::default());
        }
        let LimitState::Leases(held) = self else { unreachable!("it was just made leases") };
        held
    }

    fn set_counts(&mut self, counts: Counts) {
        match self {
            LimitState::Weighted(weighted) => **weighted = counts,
            _ => *self = LimitState::Weighted(Box::new(counts)),
        }
    }

    /// Forgets state that says nothing any more.
    fn tidy(&mut self) {
        let empty = match self {
            LimitState::Untouched => false,
            LimitState::Meter(meter) => meter.used == 0,
            LimitState::Window(window) => window.used == 0,
            LimitState::Weighted(weighted) => weighted.current == 0 && weighted.previous == 0,
            LimitState::Log(log) => log.entries.is_empty(),
            LimitState::Leases(leases) => leases.leases.is_empty(),
        };
        if empty {
            *self = LimitState::Untouched;
        }
    }
}

impl Limit {
    /// The state at the later of `now` and its own newest time.
    #[inline]
    pub(crate) fn settle(&self, state: &LimitState, now: Timestamp, seen: &mut Effects) -> Settled {
        match (&self.rule, state) {
            (Rule::Meter(rule), LimitState::Meter(meter)) => {
                Settled::Meter(rule.settle(Some(meter), now, seen))
            }
            (Rule::Meter(rule), _) => Settled::Meter(rule.settle(None, now, seen)),
            (Rule::Window(rule), LimitState::Window(window)) => {
                Settled::Window(rule.settle(Some(window), now, seen))
            }
            (Rule::Window(rule), _) => Settled::Window(rule.settle(None, now, seen)),
            (Rule::Weighted(rule), LimitState::Weighted(weighted)) => {
                Settled::Weighted(rule.settle(Some(weighted), now, seen))
            }
            (Rule::Weighted(rule), _) => Settled::Weighted(rule.settle(None, now, seen)),
            (Rule::Log(rule), _) => Settled::Log(rule.settle(state.log(), now, seen)),
            (Rule::Leases(rule), _) => Settled::Leases(rule.settle(state.held(), now, seen)),
        }
    }

    /// Whether a cost of at most the capacity fits now.
    #[inline]
    pub(crate) fn fits(&self, it: &Settled, cost: u64) -> bool {
        match (&self.rule, it) {
            (Rule::Meter(rule), Settled::Meter(meter)) => rule.fits(meter, cost),
            (Rule::Window(rule), Settled::Window(window)) => rule.fits(window, cost),
            (Rule::Weighted(rule), Settled::Weighted(weighted)) => rule.fits(weighted, cost),
            (Rule::Log(rule), Settled::Log(log)) => rule.fits(log, cost),
            (Rule::Leases(rule), Settled::Leases(leases)) => rule.fits(leases, cost),
            _ => false,
        }
    }

    /// What could be spent at once.
    #[inline]
    pub(crate) fn remaining(&self, it: &Settled) -> u64 {
        match (&self.rule, it) {
            (Rule::Meter(rule), Settled::Meter(meter)) => rule.remaining(meter),
            (Rule::Window(rule), Settled::Window(window)) => rule.remaining(window),
            (Rule::Weighted(rule), Settled::Weighted(weighted)) => rule.remaining(weighted),
            (Rule::Log(rule), Settled::Log(log)) => rule.remaining(log),
            (Rule::Leases(rule), Settled::Leases(leases)) => rule.remaining(leases),
            _ => 0,
        }
    }

    /// What is charged and has not recovered, rounded up.
    pub(crate) fn used(&self, it: &Settled) -> u64 {
        match (&self.rule, it) {
            (Rule::Meter(rule), Settled::Meter(meter)) => rule.used(meter),
            (Rule::Weighted(rule), Settled::Weighted(weighted)) => rule.used(weighted),
            (_, Settled::Window(window)) => window.used,
            (_, Settled::Log(log)) => log.used,
            (_, Settled::Leases(leases)) => leases.used,
            _ => 0,
        }
    }

    /// When a cost of at most the capacity fits with no other traffic, in µs since the epoch.
    pub(crate) fn fits_at(&self, state: &LimitState, it: &Settled, cost: u64) -> u64 {
        match (&self.rule, it) {
            (Rule::Meter(rule), Settled::Meter(meter)) => rule.fits_at(meter, cost),
            (Rule::Window(_), Settled::Window(window)) => window.end,
            (Rule::Weighted(rule), Settled::Weighted(weighted)) => rule.fits_at(weighted, cost),
            (Rule::Log(rule), Settled::Log(log)) => rule.fits_at(state.log(), log, cost),
            (Rule::Leases(rule), Settled::Leases(leases)) => {
                rule.fits_at(state.held(), leases, cost)
            }
            _ => u64::MAX,
        }
    }

    /// When nothing is used any more, in µs since the epoch; now or earlier if nothing is.
    #[inline]
    pub(crate) fn recovers_at(&self, state: &LimitState, it: &Settled) -> u64 {
        match (&self.rule, it) {
            (Rule::Meter(rule), Settled::Meter(meter)) => rule.recovers_at(meter),
            (Rule::Window(_), Settled::Window(window)) => {
                if window.used == 0 {
                    0
                } else {
                    window.end
                }
            }
            (Rule::Weighted(rule), Settled::Weighted(weighted)) => rule.recovers_at(weighted),
            (Rule::Log(rule), Settled::Log(log)) => rule.recovers_at(state.log(), log),
            (Rule::Leases(rule), Settled::Leases(leases)) => rule.recovers_at(state.held(), leases),
            _ => 0,
        }
    }

    /// When a request of this cost that is charged now may act, in µs since the epoch.
    #[inline]
    pub(crate) fn acts_at(&self, it: &Settled, cost: u64) -> u64 {
        match (&self.rule, it) {
            (Rule::Meter(rule), Settled::Meter(meter)) => rule.acts_at(meter, cost),
            _ => 0,
        }
    }

    /// When a cost of at most the capacity may be charged ahead of time, in µs since the epoch.
    pub(crate) fn reserves_at(&self, it: &Settled, cost: u64) -> u64 {
        match (&self.rule, it) {
            (Rule::Meter(rule), Settled::Meter(meter)) => rule.fits_reserve_at(meter, cost),
            _ => u64::MAX,
        }
    }

    /// Charges a cost that fits, a reservation, or a penalty within [`Limit::debt_room`]. Says what
    /// the state is then.
    #[inline]
    pub(crate) fn charge(
        &self,
        state: &mut LimitState,
        it: Settled,
        charge: &Charge,
        now: Timestamp,
        seen: &mut Effects,
    ) -> Settled {
        if charge.cost == 0 {
            return it;
        }
        match (&self.rule, it) {
            (Rule::Meter(rule), Settled::Meter(meter)) => {
                let level = rule.charge(meter, charge.cost);
                *state = LimitState::Meter(level);
                return Settled::Meter(level);
            }
            (Rule::Window(rule), Settled::Window(window)) => {
                let open = rule.charge(window, charge.cost);
                *state = LimitState::Window(open);
                return Settled::Window(open);
            }
            (Rule::Weighted(rule), Settled::Weighted(weighted)) => {
                state.set_counts(rule.charge(weighted.counts, charge.cost));
            }
            (Rule::Log(rule), Settled::Log(log)) => {
                rule.charge(state.log_mut(), &log, charge.cost, charge.log_entries, seen);
            }
            (Rule::Leases(rule), Settled::Leases(leases)) => {
                if let Some(id) = charge.lease {
                    rule.acquire(state.held_mut(), &leases, charge.cost, id);
                }
            }
            _ => {}
        }
        self.settle(state, now, seen)
    }

    /// Charges a denied request to a `count-denied` limit. Says what the state is then.
    pub(crate) fn charge_denied(
        &self,
        state: &mut LimitState,
        it: Settled,
        charge: &Charge,
        now: Timestamp,
        seen: &mut Effects,
    ) -> Settled {
        match (&self.rule, it) {
            (Rule::Log(rule), Settled::Log(log)) if charge.cost > 0 => {
                rule.charge_denied(state.log_mut(), &log, charge.cost, charge.log_entries, seen);
                self.settle(state, now, seen)
            }
            _ => self.charge(state, it, charge, now, seen),
        }
    }

    /// How much a penalty may charge: up to a debt of one more capacity. Leases have no debt.
    pub(crate) fn debt_room(&self, it: &Settled) -> u64 {
        match (&self.rule, it) {
            (Rule::Meter(rule), Settled::Meter(meter)) => rule.debt_room(meter),
            (Rule::Window(rule), Settled::Window(window)) => rule.debt_room(window),
            (Rule::Weighted(rule), Settled::Weighted(weighted)) => rule.debt_room(weighted),
            (Rule::Log(rule), Settled::Log(log)) => rule.debt_room(log),
            _ => 0,
        }
    }

    /// Gives back up to `count`; says how much. Leases are released, not refunded.
    pub(crate) fn refund(
        &self,
        state: &mut LimitState,
        it: &Settled,
        count: u64,
        time: Option<Timestamp>,
    ) -> u64 {
        let back = match (&self.rule, it, &mut *state) {
            (Rule::Meter(rule), Settled::Meter(meter), LimitState::Meter(state)) => {
                let (level, back) = rule.refund(*state, meter, count, time);
                *state = level;
                back
            }
            (Rule::Window(rule), Settled::Window(window), LimitState::Window(state)) => {
                let (open, back) = rule.refund(*window, count, time);
                if back > 0 {
                    *state = open;
                }
                back
            }
            (Rule::Weighted(rule), Settled::Weighted(weighted), LimitState::Weighted(state)) => {
                let (counts, back) = rule.refund(weighted.counts, count, time);
                if back > 0 {
                    **state = counts;
                }
                back
            }
            (Rule::Log(rule), Settled::Log(log), LimitState::Log(state)) => {
                rule.refund(state, log, count, time)
            }
            _ => 0,
        };
        state.tidy();
        back
    }

    /// Gives back a reservation's cost less what was charged behind it; says how much.
    pub(crate) fn cancel(
        &self,
        state: &mut LimitState,
        it: &Settled,
        mark: &Level,
        cost: u64,
    ) -> u64 {
        let (Rule::Meter(rule), Settled::Meter(meter), LimitState::Meter(level)) =
            (&self.rule, it, &mut *state)
        else {
            return 0;
        };
        let (after, back) = rule.cancel(mark, *level, meter, cost);
        *level = after;
        state.tidy();
        back
    }

    /// Lets a lease last its whole length from now; whether it is still held.
    pub(crate) fn renew(&self, state: &mut LimitState, it: &Settled, id: Id) -> bool {
        match (&self.rule, it, state) {
            (Rule::Leases(rule), Settled::Leases(leases), LimitState::Leases(held)) => {
                rule.renew(held, leases, id)
            }
            _ => false,
        }
    }

    /// Gives a lease's place back; its cost, if it was still held.
    pub(crate) fn release(&self, state: &mut LimitState, it: &Settled, id: Id) -> Option<u64> {
        let released = match (&self.rule, it, &mut *state) {
            (Rule::Leases(rule), Settled::Leases(leases), LimitState::Leases(held)) => {
                rule.release(held, leases, id)
            }
            _ => None,
        };
        state.tidy();
        released
    }

    /// The cost of a lease that is still held.
    pub(crate) fn lease_cost(&self, state: &LimitState, it: &Settled, id: Id) -> Option<u64> {
        let (Settled::Leases(value), Some(held)) = (it, state.held()) else { return None };
        leases::find(held, value, id).map(|index| held.leases[index].cost)
    }

    /// The state of an earlier form of this limit, as this one keeps it.
    pub(crate) fn adopt(&self, state: &LimitState, from: &Limit) -> LimitState {
        let mut state = match (&self.rule, &from.rule, state) {
            _ if self == from => return state.clone(),
            (Rule::Meter(to), Rule::Meter(from), LimitState::Meter(meter)) => {
                LimitState::Meter(to.adopt(meter, from))
            }
            (Rule::Window(to), _, LimitState::Window(window)) => {
                LimitState::Window(to.adopt(window))
            }
            (Rule::Weighted(to), _, LimitState::Weighted(weighted)) => {
                LimitState::Weighted(Box::new(to.adopt(weighted)))
            }
            (Rule::Log(to), _, LimitState::Log(log)) => LimitState::Log(Box::new(to.adopt(log))),
            (_, _, state) => state.clone(),
        };
        state.tidy();
        state
    }
}
