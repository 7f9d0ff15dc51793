//! What is kept of a key: what its limits use, its reservations, and its block.

use std::collections::BTreeMap;

use tollgate_core::{Check, Id, Limit, Request, Timestamp};

use super::limit::{Identity, Kept, Limited};
use super::number::Int;
use super::shape::Shape;
use super::{Model, ModelError, place};

/// The state of one policy and key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Key {
    /// By limit, those included that the newest caller's policy lacks.
    limits: BTreeMap<Identity, Kept>,
    pub(super) reservations: BTreeMap<Id, Reservation>,
}

/// A charge that is acted on later.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Reservation {
    pub(super) cost: Int,
    pub(super) acts_at: Int,
    /// The limits under which it can be cancelled.
    pub(super) made_under: Vec<Limit>,
    /// Whether its time has been seen to be over.
    pub(super) lapsed: bool,
    /// Each limit as it was just after the charge.
    pub(super) marks: BTreeMap<Identity, Shape>,
}

/// A block: its end, or none if it is for ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Block {
    pub(super) end: Option<Int>,
    /// Whether its end has been seen.
    pub(super) lapsed: bool,
}

impl Block {
    fn in_force(&self, now: Int) -> bool {
        self.end.is_none_or(|end| now < end)
    }
}

impl Key {
    /// Whether anything is there that a reset would drop.
    pub(super) fn is_used(&self, now: Int) -> bool {
        self.limits.values().any(|it| it.is_used(now))
            || self.reservations.values().any(|it| now < it.acts_at)
    }

    fn see(&mut self, now: Int) {
        for kept in self.limits.values_mut() {
            kept.see(now);
        }
        for reservation in self.reservations.values_mut() {
            reservation.lapsed |= now >= reservation.acts_at;
        }
    }

    /// Whether something that had lapsed counts again, or a reservation is of a key that is as
    /// good as unknown.
    fn is_unsure(&self, now: Int) -> bool {
        let unused = !self.limits.values().any(|it| it.is_used(now));
        let lapsed = |it: &Reservation| now < it.acts_at && (it.lapsed || unused);
        self.limits.values().any(|it| it.is_unsure(now)) || self.reservations.values().any(lapsed)
    }
}

impl Model {
    /// Notes what has lapsed by now, of any key.
    pub(super) fn see(&mut self, now: Int) {
        self.keys.values_mut().for_each(|it| it.see(now));
        self.blocks.values_mut().for_each(|it| it.lapsed |= !it.in_force(now));
        self.memory.see(now);
    }

    /// Whether the answer to this request is anyone's guess: a clock that has stepped back has
    /// made something count again that had lapsed, and so may or may not have been dropped.
    #[must_use]
    pub fn is_unsure(&self, request: &Request<'_>, now: Timestamp) -> bool {
        let now = Int::from(now.as_micros());
        let of_a_key = request.checks.iter().any(|check| {
            let key = self.keys.get(&place(check)).is_some_and(|it| it.is_unsure(now));
            let block = self.blocks.get(&place(check));
            // Numbers that have changed may see what had lapsed by the old ones.
            let limits = self.read(check, now).unwrap_or_default();
            let lapsed = |it: &Limited| it.used() > 0 && it.had_lapsed;
            key || limits.iter().any(lapsed)
                || block.is_some_and(|it| it.lapsed && it.in_force(now))
        });
        of_a_key || self.memory.is_unsure(request, now)
    }

    /// The limits of the check's policy as its key has used them.
    pub(super) fn read(&self, check: &Check<'_>, now: Int) -> Result<Vec<Limited>, ModelError> {
        let key = self.keys.get(&place(check));
        let limits = check.policy.limits();
        let entries = check.policy.log_entries();
        let identities = Identity::of(limits);
        let limited = limits.iter().zip(identities).map(|(limit, identity)| {
            let kept = key.and_then(|it| it.limits.get(&identity));
            Limited::new(limit, identity, entries, kept, now)
        });
        limited.collect()
    }

    /// Keeps the limits if any of them has changed: all of them, in the numbers of the check's
    /// policy, if these are not those by which they were found.
    pub(super) fn write(&mut self, check: &Check<'_>, limits: &[Limited]) {
        if !limits.iter().any(|it| it.touched) {
            return;
        }
        let key = self.keys.entry(place(check)).or_default();
        for limit in limits {
            if let Some(kept) = limit.kept() {
                key.limits.insert(limit.identity, kept);
            }
        }
        // Whether a reservation outlives a charge under other limits, no text says.
        for reservation in key.reservations.values_mut() {
            reservation.lapsed |= reservation.made_under != check.policy.limits();
        }
    }

    /// A reservation that has not been acted on, and was made under the same limits.
    pub(super) fn reservation(&self, check: &Check<'_>, id: Id, now: Int) -> Option<Reservation> {
        let key = self.keys.get(&place(check))?;
        let found = key.reservations.get(&id).filter(|it| now < it.acts_at).cloned();
        found.filter(|it| it.made_under == check.policy.limits())
    }

    /// The block that is in force.
    pub(super) fn blocked(&self, check: &Check<'_>, now: Int) -> Option<Block> {
        let block = self.blocks.get(&place(check)).copied();
        block.filter(|it| it.in_force(now))
    }
}
