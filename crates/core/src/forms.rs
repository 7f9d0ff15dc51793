//! Forms of one policy that act on a key in turn, as while a change is rolled out.
//!
//! A token bucket, a queue and a weighted window keep the state of each form that has charged the
//! key, by that form's own numbers, and all of them are charged. Other limits share one state.

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::key_state::KeyState;
use crate::limit::{Identity, Limit, Rule};
use crate::policy::Policy;
use crate::state::{Effects, LimitState, Settled};
use crate::time::Timestamp;

/// The most states that are kept of limits that the policy, as it was last charged, lacks.
pub(crate) const MAX_DETACHED_STATES: usize = 8;

/// The state of a limit that the policy, as it was last charged, lacks or has in another form.
#[derive(Clone, Debug)]
pub(crate) struct Stray {
    pub(crate) limit: Limit,
    /// Its place among limits of the same identity, in canonical order.
    pub(crate) rank: usize,
    pub(crate) state: LimitState,
}

impl KeyState {
    /// The same use in the form of another policy, as [`KeyState::converted`] says. What no limit
    /// of that policy takes over stays aside until it would have recovered by its own numbers.
    pub(crate) fn adopted(mut self, policy: &Policy, now: Timestamp) -> KeyState {
        let mut adopted = self.converted(policy);
        let mut strays = self.all_limits();
        strays
            .retain(|stray| !stray.is_taken_by(policy) && stray.recovers_at(now) > now.as_micros());
        drop_soonest(&mut strays, now);
        adopted.keep_aside(policy, strays, self.take_reservations());
        adopted
    }

    /// The states as the limits of another policy read them, and nothing else.
    ///
    /// A limit finds its own state or, if there is none, converts that of the form that was
    /// charged last: same identity, and the same rank among equals.
    pub(crate) fn converted(&self, policy: &Policy) -> KeyState {
        let mut converted = KeyState::default();
        let limits = policy.limits();
        for (index, state) in converted.limits_mut(policy).iter_mut().enumerate() {
            *state = self.read_as(limits, index);
        }
        converted
    }

    fn read_as(&self, limits: &[Limit], index: usize) -> LimitState {
        let Some(limit) = limits.get(index) else { return LimitState::Untouched };
        let (identity, rank) = (limit.identity(), rank(limits, index));
        let own = self.policy().and_then(|policy| place_of(policy.limits(), identity, rank));
        let own = own.and_then(|at| Some((self.policy()?.limits().get(at)?, self.limit(at))));
        let strays = self.strays().iter().filter(|stray| stray.is(identity, rank));
        // The form that was charged last comes first.
        let forms =
            || own.into_iter().chain(strays.clone().map(|stray| (&stray.limit, &stray.state)));
        let exact = forms().find(|(form, _)| *form == limit);
        let newest = || forms().find(|(_, state)| **state != LimitState::Untouched);
        exact.or_else(newest).map_or(LimitState::Untouched, |(form, x)| limit.adopt(x, form))
    }

    /// Every limit's state, each with its limit and rank: the own ones, then the strays, newest
    /// first.
    fn all_limits(&mut self) -> Vec<Stray> {
        let own = self.policy().map_or(&[][..], |policy| policy.limits());
        let stray = |(index, limit): (usize, &Limit)| Stray {
            limit: *limit,
            rank: rank(own, index),
            state: self.limit(index).clone(),
        };
        let mut all: Vec<_> = own.iter().enumerate().map(stray).collect();
        all.retain(|x| x.state != LimitState::Untouched);
        all.append(&mut self.take_strays());
        all
    }

    /// Charges other forms of limits that were charged: `charged` says how much for the index of a
    /// limit and a stray of it. What has recovered is dropped, whatever it is of.
    pub(crate) fn charge_strays(
        &mut self,
        policy: &Policy,
        now: Timestamp,
        charged: impl Fn(usize, &Stray) -> u64,
    ) {
        if self.strays().is_empty() {
            return;
        }
        let mut strays = self.take_strays();
        strays.retain(|stray| stray.recovers_at(now) > now.as_micros());
        for stray in &mut strays {
            let place = place_of(policy.limits(), stray.limit.identity(), stray.rank);
            let cost = place.map_or(0, |index| charged(index, stray));
            if cost > 0 {
                stray.charge(cost, now);
            }
        }
        self.put_strays(strays);
    }
}

impl Stray {
    pub(crate) fn is(&self, identity: Identity, rank: usize) -> bool {
        self.rank == rank && self.limit.identity() == identity
    }

    /// Whether a limit of the policy goes on with this very state, so that nothing stays aside.
    pub(crate) fn is_taken_by(&self, policy: &Policy) -> bool {
        let place = place_of(policy.limits(), self.limit.identity(), self.rank);
        let limit = place.and_then(|place| policy.limits().get(place));
        limit.is_some_and(|limit| !limit.keeps_forms() || *limit == self.limit)
    }

    fn settled(&self, now: Timestamp) -> Settled {
        self.limit.settle(&self.state, now, &mut Effects::default())
    }

    fn recovers_at(&self, now: Timestamp) -> u64 {
        self.limit.recovers_at(&self.state, &self.settled(now))
    }

    /// Charges a cost, or as much of it as stays within twice the capacity.
    fn charge(&mut self, cost: u64, now: Timestamp) {
        match (&self.limit.rule, self.settled(now)) {
            (Rule::Meter(rule), Settled::Meter(meter)) => {
                self.state = LimitState::Meter(rule.charge_at_most(meter, cost));
            }
            (Rule::Weighted(rule), Settled::Weighted(weighted)) => {
                self.state = LimitState::Weighted(Box::new(rule.charge(weighted.counts, cost)));
            }
            _ => {}
        }
    }
}

impl Limit {
    /// Whether each form of it keeps its own state: where use drains or fades, no one number says
    /// what every form must know.
    pub(crate) const fn keeps_forms(&self) -> bool {
        matches!(self.rule, Rule::Meter(_) | Rule::Weighted(_))
    }
}

/// Drops what recovers soonest, and of equals the oldest, until there are no more than may be.
fn drop_soonest(strays: &mut Vec<Stray>, now: Timestamp) {
    while strays.len() > MAX_DETACHED_STATES {
        let oldest_first = strays.iter().enumerate().rev();
        let soonest = oldest_first.min_by_key(|(_, x)| x.recovers_at(now));
        let Some((index, _)) = soonest else { return };
        strays.remove(index);
    }
}

/// The place of a limit among those of the same identity before it.
fn rank(limits: &[Limit], index: usize) -> usize {
    let identity: Option<Identity> = limits.get(index).map(Limit::identity);
    limits.iter().take(index).filter(|limit| Some(limit.identity()) == identity).count()
}

/// Where the limit of this identity and rank stands.
fn place_of(limits: &[Limit], identity: Identity, rank: usize) -> Option<usize> {
    let same = limits.iter().enumerate().filter(|(_, index)| index.identity() == identity);
    same.map(|(index, _)| index).nth(rank)
}
