//! Migration of a key's state when the limits of its policy change.
//!
//! While a change is rolled out, processes with different versions of a policy may charge the same
//! key in turn. Token buckets, queues and sliding window counters keep the state of each version
//! that has charged the key, in the numbers of that version, and all of them are charged. Other
//! limits share one state.

use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::vec::Vec;

use super::{DetachedState, KeyState};
use crate::algorithm::{Algorithm, Anomalies, LimitState, Usage};
use crate::limit::{Identity, Limit};
use crate::policy::Policy;
use crate::time::Timestamp;

pub(crate) const MAX_DETACHED_STATES: usize = 8;

impl KeyState {
    /// The state as `policy` reads it; a copy only if it is in the numbers of another version.
    #[inline]
    pub(crate) fn as_read_by(&self, policy: &Policy) -> Cow<'_, KeyState> {
        if self.policy().is_none() || self.is_of(policy) {
            Cow::Borrowed(self)
        } else {
            Cow::Owned(self.converted(policy))
        }
    }

    /// The same use in the numbers of another policy, as [`KeyState::converted`] describes. States
    /// that no limit of that policy continues are detached until they would have recovered.
    pub(crate) fn migrate(mut self, policy: &Policy, now: Timestamp) -> KeyState {
        let mut migrated = self.converted(policy);
        let mut detached = self.take_all_limits();
        detached.retain(|state| {
            !state.is_continued_by(policy) && state.recovers_at(now) > now.as_micros()
        });
        drop_soonest(&mut detached, now);
        migrated.attach(policy, detached, self.take_reservations());
        migrated.set_ban(policy, self.ban());
        migrated
    }

    /// The states of another policy's limits, without detached states, reservations and bans.
    ///
    /// Each limit continues its own state. If it has none, it converts the state of the version
    /// that was charged last: the limit of the same identity and the same rank.
    fn converted(&self, policy: &Policy) -> KeyState {
        let mut converted = KeyState::default();
        let limits = policy.limits();
        for (index, state) in converted.limits_mut(policy).iter_mut().enumerate() {
            *state = self.converted_limit(limits, index);
        }
        converted
    }

    fn converted_limit(&self, limits: &[Limit], index: usize) -> LimitState {
        let (limit, identity, rank) =
            (&limits[index], limits[index].identity(), rank(limits, index));
        let current = self.policy().and_then(|policy| {
            let index = index_of(policy.limits(), identity, rank)?;
            Some((&policy.limits()[index], self.limit(index)))
        });
        let detached = self.detached().iter().filter(|state| state.has_identity(identity, rank));
        // The version that was charged last comes first.
        let versions = || {
            let detached = detached.clone().map(|detached| (&detached.limit, &detached.state));
            current.into_iter().chain(detached)
        };
        let exact = versions().find(|(version, _)| *version == limit);
        let newest = || versions().find(|(_, state)| **state != LimitState::Untouched);
        match exact.or_else(newest) {
            None => LimitState::Untouched,
            Some((version, state)) if version == limit => state.clone(),
            Some((version, state)) => limit.algorithm.migrate(state, &version.algorithm),
        }
    }

    /// Takes the states of all limits: those of the policy, then the detached ones, newest first.
    fn take_all_limits(&mut self) -> Vec<DetachedState> {
        let limits = self.policy().map_or(&[][..], |policy| policy.limits());
        let state = |(index, limit): (usize, &Limit)| DetachedState {
            limit: *limit,
            rank: rank(limits, index),
            state: self.limit(index).clone(),
        };
        let mut all: Vec<_> = limits.iter().enumerate().map(state).collect();
        all.retain(|state| state.state != LimitState::Untouched);
        all.append(&mut self.take_detached());
        all
    }

    /// Charges detached states of limits that were charged. `cost` returns the cost for the index
    /// of a limit and a detached state of it. States that have recovered are dropped.
    pub(crate) fn charge_detached(
        &mut self,
        policy: &Policy,
        now: Timestamp,
        cost: impl Fn(usize, &DetachedState) -> u64,
    ) {
        self.change_detached(policy, now, |index, state| state.charge(cost(index, state), now));
    }

    /// Charges the detached states of one limit a cost that was admitted at `time`.
    pub(crate) fn backfill_detached(
        &mut self,
        policy: &Policy,
        limit: usize,
        cost: u64,
        time: Timestamp,
        now: Timestamp,
    ) {
        self.change_detached(policy, now, |index, state| {
            if index == limit {
                state.backfill(cost, time, now);
            }
        });
    }

    /// Changes the detached states of the policy's limits. States that have recovered are dropped.
    fn change_detached(
        &mut self,
        policy: &Policy,
        now: Timestamp,
        change: impl Fn(usize, &mut DetachedState),
    ) {
        if self.detached().is_empty() {
            return;
        }
        let mut detached = self.take_detached();
        detached.retain(|state| state.recovers_at(now) > now.as_micros());
        for state in &mut detached {
            let index = index_of(policy.limits(), state.limit.identity(), state.rank);
            if let Some(index) = index {
                change(index, state);
            }
        }
        self.put_detached(detached);
    }
}

impl DetachedState {
    pub(crate) fn has_identity(&self, identity: Identity, rank: usize) -> bool {
        self.rank == rank && self.limit.identity() == identity
    }

    /// Whether a limit of the policy continues this state, so that it is not detached.
    pub(crate) fn is_continued_by(&self, policy: &Policy) -> bool {
        let index = index_of(policy.limits(), self.limit.identity(), self.rank);
        let limit = index.map(|index| &policy.limits()[index]);
        limit.is_some_and(|limit| !limit.has_state_per_version() || *limit == self.limit)
    }

    fn usage(&self, now: Timestamp) -> Usage {
        self.limit.algorithm.advance_to(&self.state, now, &mut Anomalies::default())
    }

    fn recovers_at(&self, now: Timestamp) -> u64 {
        self.limit.algorithm.recovers_at(&self.state, &self.usage(now))
    }

    /// Charges the cost, or as much of it as keeps the use within twice the capacity.
    fn charge(&mut self, cost: u64, now: Timestamp) {
        if cost == 0 {
            return;
        }
        match (&self.limit.algorithm, self.usage(now)) {
            (Algorithm::TokenBucket(bucket), Usage::TokenBucket(level)) => {
                self.state = LimitState::TokenBucket(bucket.charge_at_most(level, cost));
            }
            (Algorithm::SlidingWindow(window), Usage::SlidingWindow(usage)) => {
                let counts = window.charge(usage.counts, cost);
                self.state = LimitState::SlidingWindow(Box::new(counts));
            }
            // Versions of other limits share one state.
            _ => {}
        }
    }

    /// Charges a cost that was admitted at `time`, as far as the time counts here.
    fn backfill(&mut self, cost: u64, time: Timestamp, now: Timestamp) {
        match (&self.limit.algorithm, self.usage(now)) {
            (Algorithm::SlidingWindow(window), Usage::SlidingWindow(usage)) => {
                let (counts, charged) = window.backfill(&usage, cost, time, now);
                if charged > 0 {
                    self.state = LimitState::SlidingWindow(Box::new(counts));
                }
            }
            _ => self.charge(cost, now),
        }
    }
}

impl Limit {
    /// Whether each version of the limit keeps its own state: its use drains or fades, so that no
    /// single number describes it for all versions.
    pub(crate) const fn has_state_per_version(&self) -> bool {
        matches!(self.algorithm, Algorithm::TokenBucket(_) | Algorithm::SlidingWindow(_))
    }
}

/// Drops the states that recover soonest, and of equal ones the oldest, down to the maximum number.
fn drop_soonest(detached: &mut Vec<DetachedState>, now: Timestamp) {
    while detached.len() > MAX_DETACHED_STATES {
        let oldest_first = detached.iter().enumerate().rev();
        let soonest = oldest_first.min_by_key(|(_, state)| state.recovers_at(now));
        let Some((index, _)) = soonest else { unreachable!("there are more than the maximum") };
        detached.remove(index);
    }
}

impl Policy {
    /// Returns the limits that start unused for every key if this policy replaces another of its name:
    /// those of which the other has none of the same kind, window and precision. The other limits keep
    /// what each key has used.
    pub fn unused_limits<'a>(&'a self, replaced: &'a Policy) -> impl Iterator<Item = &'a Limit> {
        let limits = self.limits();
        let is_unused = move |index: usize| {
            index_of(replaced.limits(), limits[index].identity(), rank(limits, index)).is_none()
        };
        limits
            .iter()
            .enumerate()
            .filter_map(move |(index, limit)| is_unused(index).then_some(limit))
    }
}

/// The index of a limit among those of the same identity.
fn rank(limits: &[Limit], index: usize) -> usize {
    let identity = limits[index].identity();
    limits[..index].iter().filter(|limit| limit.identity() == identity).count()
}

/// The index of the limit with this identity and rank.
fn index_of(limits: &[Limit], identity: Identity, rank: usize) -> Option<usize> {
    let mut same = limits.iter().enumerate().filter(|(_, limit)| limit.identity() == identity);
    same.nth(rank).map(|(index, _)| index)
}
