//! The state of a key: its limits, its reservations and its block.

use std::collections::BTreeMap;

use tollgate_algorithms::{Check, Id, Limit, Request, Timestamp};

use super::limit::{Identity, LimitUsage};
use super::number::Int;
use super::shape::Shape;
use super::stored::StoredLimit;
use super::{Model, ModelError, place};

/// The state of one policy and key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Key {
    /// The limits of the last charge.
    limits: Vec<Limit>,
    /// Their states.
    own: BTreeMap<Identity, StoredLimit>,
    /// States in the numbers of other limits, newest first.
    detached: Vec<(Identity, StoredLimit)>,
    pub(super) reservations: BTreeMap<Id, Reservation>,
}

/// The most detached states of a key.
const MAX_DETACHED: usize = 8;

/// A charge for a later time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Reservation {
    pub(super) cost: Int,
    pub(super) acts_at: Int,
    /// The limits under which it can be cancelled.
    pub(super) made_under: Vec<Limit>,
    /// Whether its time has passed at some earlier time.
    pub(super) lapsed: bool,
    /// Each limit as it was just after the charge.
    pub(super) marks: BTreeMap<Identity, Shape>,
}

/// A block; without an end it lasts for ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Block {
    pub(super) end: Option<Int>,
    /// Whether its end has passed at some earlier time.
    pub(super) lapsed: bool,
}

impl Block {
    fn is_active(&self, now: Int) -> bool {
        self.end.is_none_or(|end| now < end)
    }
}

impl Key {
    /// Whether there is anything for a reset to remove.
    pub(super) fn is_used(&self, now: Int) -> bool {
        self.states().any(|state| state.is_used(now))
            || self.reservations.values().any(|reservation| now < reservation.acts_at)
    }

    fn states(&self) -> impl Iterator<Item = &StoredLimit> {
        self.own.values().chain(self.detached.iter().map(|detached| &detached.1))
    }

    /// The state that a limit continues: its own, or that of the version that was charged last.
    fn found(&self, limit: &Limit, identity: Identity) -> Option<&StoredLimit> {
        let own = self.own.get(&identity);
        let mut current = self.limits.iter().zip(Identity::for_limits(&self.limits));
        if current.any(|(other, its)| other == limit && its == identity) {
            return own;
        }
        let detached = self
            .detached
            .iter()
            .filter(|detached| detached.0 == identity)
            .map(|detached| &detached.1);
        let versions: Vec<&StoredLimit> =
            own.into_iter().chain(detached).filter(|state| !state.shape.is_nothing()).collect();
        let exact = versions.iter().find(|state| state.spec == *limit.spec());
        exact.or(versions.first()).copied()
    }

    /// Migrates to these limits. States that none of them continues are detached.
    fn migrate_to(&mut self, limits: &[Limit], now: Int) {
        let identities = Identity::for_limits(limits);
        let is_continued = |identity: Identity, stored: &StoredLimit| {
            let mut both = limits.iter().zip(&identities);
            let same = both.find(|(_, other)| **other == identity);
            same.is_some_and(|(limit, _)| {
                !identity.keeps_versions() || stored.spec == *limit.spec()
            })
        };
        let own = std::mem::take(&mut self.own);
        let mut detached: Vec<_> = own.into_iter().collect();
        detached.append(&mut self.detached);
        detached
            .retain(|(identity, stored)| stored.is_used(now) && !is_continued(*identity, stored));
        while detached.len() > MAX_DETACHED {
            let ends: Vec<Int> = detached.iter().map(|detached| detached.1.recovers(now)).collect();
            let soonest = ends.iter().min();
            // Of equal times the oldest state is dropped.
            let Some(index) = ends.iter().rposition(|end| Some(end) == soonest) else { break };
            detached.remove(index);
        }
        self.detached = detached;
        self.limits = limits.to_vec();
    }

    /// Charges the detached states of a limit as the limit itself was charged.
    fn charge_detached(&mut self, limit: &LimitUsage, now: Int) {
        let is_charged = |identity: Identity, stored: &StoredLimit| {
            let counts = !limit.charged_denied || stored.spec.count_denied;
            limit.charged > 0 && identity == limit.identity && counts
        };
        for (identity, stored) in &mut self.detached {
            if !is_charged(*identity, stored) {
                continue;
            }
            match limit.admitted {
                Some(admitted) => stored.backfill(limit.charged, admitted, now),
                None => stored.charge(limit.charged, now),
            }
        }
    }

    fn advance_to(&mut self, now: Int) {
        let detached = self.detached.iter_mut().map(|detached| &mut detached.1);
        for stored in self.own.values_mut().chain(detached) {
            stored.advance_to(now);
        }
        for reservation in self.reservations.values_mut() {
            reservation.lapsed |= now >= reservation.acts_at;
        }
    }

    /// Whether an expired state or reservation counts again.
    fn is_undefined(&self, now: Int) -> bool {
        let lapsed = |reservation: &Reservation| now < reservation.acts_at && reservation.lapsed;
        self.states().any(|state| state.is_undefined(now)) || self.reservations.values().any(lapsed)
    }
}

impl Model {
    /// Records what has expired by now, of any key.
    pub(super) fn advance_to(&mut self, now: Int) {
        self.keys.values_mut().for_each(|value| value.advance_to(now));
        self.blocks.values_mut().for_each(|value| value.lapsed |= !value.is_active(now));
        self.bans.values_mut().for_each(|record| record.lapsed |= !record.is_open(now));
        self.memory.advance_to(now);
    }

    /// Whether the decision is undefined: the clock has stepped back, so that expired state counts again
    /// if the store has not dropped it.
    #[must_use]
    pub fn is_undefined(&self, request: &Request<'_>, now: Timestamp) -> bool {
        let now = Int::from(now.as_micros());
        let has_undefined_check = request.checks.iter().any(|check| {
            let key = self.keys.get(&place(check)).is_some_and(|key| key.is_undefined(now));
            let block = self.blocks.get(&place(check));
            // A changed limit may count a state that had expired under the old numbers.
            let limits = self.read(check, now).unwrap_or_default();
            let lapsed = |limited: &LimitUsage| limited.used() > 0 && limited.had_lapsed;
            let ban = self.bans.get(&place(check));
            key || limits.iter().any(lapsed)
                || ban.is_some_and(|ban| ban.lapsed && ban.is_open(now))
                || block.is_some_and(|block| block.lapsed && block.is_active(now))
        });
        has_undefined_check || self.memory.is_undefined(request, now)
    }

    /// The limits of the check's policy with the use of its key.
    pub(super) fn read(&self, check: &Check<'_>, now: Int) -> Result<Vec<LimitUsage>, ModelError> {
        let key = self.keys.get(&place(check));
        let limits = check.policy.limits();
        let entries = check.policy.log_entries();
        let identities = Identity::for_limits(limits);
        let limited = limits.iter().zip(identities).map(|(limit, identity)| {
            let stored = key.and_then(|key| key.found(limit, identity));
            LimitUsage::new(limit, identity, entries, stored, now)
        });
        limited.collect()
    }

    /// Stores the limits if any of them has changed. If the policy has changed, all of them are stored in
    /// its numbers.
    pub(super) fn write(&mut self, check: &Check<'_>, limits: &[LimitUsage], now: Int) {
        if !limits.iter().any(|limit| limit.touched) {
            return;
        }
        let key = self.keys.entry(place(check)).or_default();
        if key.limits != check.policy.limits() {
            key.migrate_to(check.policy.limits(), now);
        }
        for limit in limits {
            if let Some(stored) = limit.to_stored() {
                key.own.insert(limit.identity, stored);
            }
        }
        if limits.iter().any(|limit| limit.charged > 0) {
            key.detached.retain(|detached| detached.1.is_used(now));
            limits.iter().for_each(|limit| key.charge_detached(limit, now));
        }
    }

    /// A reservation under the same limits that has not acted yet.
    pub(super) fn reservation(&self, check: &Check<'_>, id: Id, now: Int) -> Option<Reservation> {
        let key = self.keys.get(&place(check))?;
        let found =
            key.reservations.get(&id).filter(|reservation| now < reservation.acts_at).cloned();
        found.filter(|found| found.made_under == check.policy.limits())
    }

    /// The active block.
    pub(super) fn blocked(&self, check: &Check<'_>, now: Int) -> Option<Block> {
        let block = self.blocks.get(&place(check)).copied();
        block.filter(|block| block.is_active(now))
    }
}
