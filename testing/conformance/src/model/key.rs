//! What is kept of a key: what its limits use, its reservations, and its block.

use std::collections::BTreeMap;

use tollgate_core::{Check, Id, Limit, Request, Timestamp};

use super::kept::Kept;
use super::limit::{Identity, Limited};
use super::number::Int;
use super::shape::Shape;
use super::{Model, ModelError, place};

/// The state of one policy and key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Key {
    /// The limits by which it was last charged.
    form: Vec<Limit>,
    /// What is kept of these.
    own: BTreeMap<Identity, Kept>,
    /// What is kept by the numbers of other limits, the newest first.
    aside: Vec<(Identity, Kept)>,
    pub(super) reservations: BTreeMap<Id, Reservation>,
}

/// How much is kept aside of a key.
const MAX_DETACHED: usize = 8;

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
        self.kept().any(|x| x.is_used(now))
            || self.reservations.values().any(|value| now < value.acts_at)
    }

    fn kept(&self) -> impl Iterator<Item = &Kept> {
        self.own.values().chain(self.aside.iter().map(|aside| &aside.1))
    }

    /// What a limit finds: its own state, or else that of the form that was charged last.
    fn found(&self, limit: &Limit, identity: Identity) -> Option<&Kept> {
        let own = self.own.get(&identity);
        let mut form = self.form.iter().zip(Identity::of(&self.form));
        if form.any(|(x, its)| x == limit && its == identity) {
            return own;
        }
        let aside = self.aside.iter().filter(|aside| aside.0 == identity).map(|aside| &aside.1);
        let forms: Vec<&Kept> = own.into_iter().chain(aside).filter(|x| !x.is_nothing()).collect();
        let exact = forms.iter().find(|form| form.is_by(limit.spec()));
        exact.or(forms.first()).copied()
    }

    /// Turns to the form of these limits. What none of them goes on with stays aside.
    fn turn_to(&mut self, limits: &[Limit], now: Int) {
        let identities = Identity::of(limits);
        let goes_on = |identity: Identity, kept: &Kept| {
            let mut both = limits.iter().zip(&identities);
            let same = both.find(|(_, x)| **x == identity);
            same.is_some_and(|(x, _)| !identity.keeps_forms() || kept.is_by(x.spec()))
        };
        let own = std::mem::take(&mut self.own);
        let mut aside: Vec<_> = own.into_iter().collect();
        aside.append(&mut self.aside);
        aside.retain(|(identity, kept)| kept.is_used(now) && !goes_on(*identity, kept));
        while aside.len() > MAX_DETACHED {
            let ends: Vec<Int> = aside.iter().map(|aside| aside.1.recovers(now)).collect();
            let soonest = ends.iter().min();
            // Of equal ones the oldest leaves.
            let Some(index) = ends.iter().rposition(|end| Some(end) == soonest) else { break };
            aside.remove(index);
        }
        self.aside = aside;
        self.form = limits.to_vec();
    }

    /// Charges what stands aside of a limit as the limit itself was.
    fn charge_aside(&mut self, limit: &Limited, now: Int) {
        let is_charged = |identity: Identity, kept: &Kept| {
            let counts = !limit.charged_denied || kept.counts_denied();
            limit.charged > 0 && identity == limit.identity && counts
        };
        for (identity, kept) in &mut self.aside {
            if is_charged(*identity, kept) {
                kept.charge(limit.charged, now);
            }
        }
    }

    fn see(&mut self, now: Int) {
        let aside = self.aside.iter_mut().map(|aside| &mut aside.1);
        for kept in self.own.values_mut().chain(aside) {
            kept.see(now);
        }
        for reservation in self.reservations.values_mut() {
            reservation.lapsed |= now >= reservation.acts_at;
        }
    }

    /// Whether something that had lapsed counts again, or a reservation is of a key that is as
    /// good as unknown.
    fn is_unsure(&self, now: Int) -> bool {
        let unused = !self.kept().any(|x| x.is_used(now));
        let lapsed =
            |reservation: &Reservation| now < reservation.acts_at && (reservation.lapsed || unused);
        self.kept().any(|x| x.is_unsure(now)) || self.reservations.values().any(lapsed)
    }
}

impl Model {
    /// Notes what has lapsed by now, of any key.
    pub(super) fn see(&mut self, now: Int) {
        self.keys.values_mut().for_each(|value| value.see(now));
        self.blocks.values_mut().for_each(|value| value.lapsed |= !value.in_force(now));
        self.memory.see(now);
    }

    /// Whether the answer to this request is anyone's guess: a clock that has stepped back has
    /// made something count again that had lapsed, and so may or may not have been dropped.
    #[must_use]
    pub fn is_unsure(&self, request: &Request<'_>, now: Timestamp) -> bool {
        let now = Int::from(now.as_micros());
        let of_a_key = request.checks.iter().any(|check| {
            let key = self.keys.get(&place(check)).is_some_and(|key| key.is_unsure(now));
            let block = self.blocks.get(&place(check));
            // Numbers that have changed may see what had lapsed by the old ones.
            let limits = self.read(check, now).unwrap_or_default();
            let lapsed = |limited: &Limited| limited.used() > 0 && limited.had_lapsed;
            key || limits.iter().any(lapsed)
                || block.is_some_and(|block| block.lapsed && block.in_force(now))
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
            let kept = key.and_then(|key| key.found(limit, identity));
            Limited::new(limit, identity, entries, kept, now)
        });
        limited.collect()
    }

    /// Keeps the limits if any of them has changed: all of them, in the numbers of the check's
    /// policy, if these are not those by which they were found.
    pub(super) fn write(&mut self, check: &Check<'_>, limits: &[Limited], now: Int) {
        if !limits.iter().any(|limit| limit.touched) {
            return;
        }
        let key = self.keys.entry(place(check)).or_default();
        if key.form != check.policy.limits() {
            key.turn_to(check.policy.limits(), now);
        }
        for limit in limits {
            if let Some(kept) = limit.kept() {
                key.own.insert(limit.identity, kept);
            }
        }
        if limits.iter().any(|limit| limit.charged > 0) {
            key.aside.retain(|aside| aside.1.is_used(now));
            limits.iter().for_each(|limit| key.charge_aside(limit, now));
        }
    }

    /// A reservation that has not been acted on, and was made under the same limits.
    pub(super) fn reservation(&self, check: &Check<'_>, id: Id, now: Int) -> Option<Reservation> {
        let key = self.keys.get(&place(check))?;
        let found =
            key.reservations.get(&id).filter(|reservation| now < reservation.acts_at).cloned();
        found.filter(|found| found.made_under == check.policy.limits())
    }

    /// The block that is in force.
    pub(super) fn blocked(&self, check: &Check<'_>, now: Int) -> Option<Block> {
        let block = self.blocks.get(&place(check)).copied();
        block.filter(|block| block.in_force(now))
    }
}
