//! The state that a store keeps of one key under one policy.

mod migration;
mod retention;

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::mem;

use crate::algorithm::{Anomalies, Lease, LimitState, LogEntry, TokenBucketState};
use crate::id::Id;
use crate::limit::Limit;
use crate::policy::{BanState, Policy};
use crate::time::Timestamp;
pub(crate) use migration::MAX_DETACHED_STATES;
pub use retention::Retention;

/// The most reservations of a key that can still be cancelled.
pub(crate) const MAX_RESERVATIONS: usize = 10_000;

/// How long a key is blocked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Block {
    /// Until this time, exclusive.
    Until(Timestamp),
    /// Until an operator unblocks the key.
    Forever,
}

impl Block {
    /// Whether the block applies at this time.
    #[must_use]
    pub fn is_active(self, now: Timestamp) -> bool {
        match self {
            Block::Until(end) => now < end,
            Block::Forever => true,
        }
    }
}

/// The counters, leases and reservations of one key under one policy. The default is the state of
/// an unknown key.
#[derive(Clone, Debug, Default)]
pub struct KeyState {
    /// The policy that the key was last charged under; `None` while untouched.
    policy: Option<Policy>,
    states: States,
}

#[derive(Clone, Debug)]
enum States {
    /// The state of a policy's only limit, and nothing else.
    One(LimitState),
    Many(Box<Many>),
}

impl Default for States {
    fn default() -> Self {
        States::One(LimitState::Untouched)
    }
}

#[derive(Clone, Debug, Default)]
struct Many {
    /// One state for each limit of the policy, in canonical order.
    limits: Vec<LimitState>,
    /// States of limits of other versions of the policy, newest first.
    detached: Vec<DetachedState>,
    /// Reservations, soonest first.
    reservations: Vec<Reservation>,
    ban: BanState,
}

impl Many {
    /// Whether a check reads or changes the states of several limits, and nothing else: reservations do not
    /// matter to it.
    fn has_limits_only(&self) -> bool {
        self.limits.len() > 1 && self.detached.is_empty() && self.ban == BanState::Clear
    }
}

/// The state of a limit that the policy, as it was last charged, lacks or has with other numbers.
#[derive(Clone, Debug)]
pub struct DetachedState {
    /// The limit.
    pub limit: Limit,
    /// The index of the limit among those of the same identity, in canonical order.
    pub rank: usize,
    /// The state.
    pub state: LimitState,
}

/// A charge for a later time, which can be cancelled until then.
#[derive(Clone, Debug)]
pub struct Reservation {
    /// The id of the reservation.
    pub id: Id,
    /// The cost that was charged.
    pub cost: u64,
    /// When the request may proceed, in µs since the epoch.
    pub acts_at: u64,
    /// The policy under whose limits it was made.
    pub policy: Policy,
    /// The level of each of these limits just after the charge.
    pub marks: Box<[TokenBucketState]>,
}

impl Reservation {
    /// Whether the reservation can be cancelled under this policy.
    pub(crate) fn is_of(&self, policy: &Policy) -> bool {
        self.policy.ptr_eq(policy) || self.policy.limits() == policy.limits()
    }
}

impl KeyState {
    /// Whether the state is in the numbers of this policy.
    #[inline]
    pub(crate) fn is_of(&self, policy: &Policy) -> bool {
        self.policy.as_ref().is_some_and(|p| p.ptr_eq(policy) || p.limits() == policy.limits())
    }

    /// Whether the key was last charged under this very policy, not only an equal one.
    #[inline]
    fn is_of_version(&self, policy: &Policy) -> bool {
        self.policy.as_ref().is_some_and(|p| p.ptr_eq(policy))
    }

    /// The policy that the key was last charged under.
    #[must_use]
    pub fn policy(&self) -> Option<&Policy> {
        self.policy.as_ref()
    }

    /// The states of the limits of [`KeyState::policy`], in canonical order; empty if untouched.
    #[inline]
    pub(crate) fn limits(&self) -> &[LimitState] {
        match (&self.policy, &self.states) {
            (None, _) => &[],
            (_, States::One(one)) => core::slice::from_ref(one),
            (_, States::Many(many)) => &many.limits,
        }
    }

    #[inline]
    pub(crate) fn limit(&self, index: usize) -> &LimitState {
        // An unknown key has no states.
        self.limits().get(index).unwrap_or(&LimitState::Untouched)
    }

    /// The states to change. They are in the numbers of `policy`, or the key is untouched.
    #[inline]
    pub(crate) fn limits_mut(&mut self, policy: &Policy) -> &mut [LimitState] {
        match &self.policy {
            Some(value) if value.ptr_eq(policy) => {}
            // Equal limits at another address, as after a restart or a reload. Comparing them for
            // each check would take four times as long as the check.
            Some(_) => self.policy = Some(policy.clone()),
            None => {
                self.policy = Some(policy.clone());
                let count = policy.limits().len();
                if count != 1 {
                    let limits = alloc::vec![LimitState::Untouched; count];
                    self.states = States::Many(Box::new(Many { limits, ..Many::default() }));
                }
            }
        }
        match &mut self.states {
            States::One(one) => core::slice::from_mut(one),
            States::Many(many) => &mut many.limits,
        }
    }

    /// Whether this is the state of this very policy's only limit, with nothing else: the state
    /// that [`check_single_limit`](crate::check_single_limit) takes.
    #[must_use]
    #[inline]
    pub fn is_single_limit_of(&self, policy: &Policy) -> bool {
        matches!(self.states, States::One(_)) && self.is_of_version(policy)
    }

    /// The state of the only limit, if there is nothing else.
    #[inline]
    pub(crate) fn only_limit_mut(&mut self) -> Option<&mut LimitState> {
        if let States::One(one) = &mut self.states { Some(one) } else { None }
    }

    /// Whether this is the state of this very [plain policy](Policy::is_plain), and a check reads or changes
    /// only the states of its limits.
    #[must_use]
    pub fn is_plain_of(&self, policy: &Policy) -> bool {
        self.is_of_version(policy)
            && match &self.states {
                States::One(_) => true,
                States::Many(many) => many.has_limits_only(),
            }
    }

    /// The states of this policy's limits, if they are several and a check reads or changes nothing else.
    #[inline]
    pub(crate) fn few_limits_mut(&mut self, policy: &Policy) -> Option<&mut [LimitState]> {
        let is_own = self.is_of_version(policy);
        match &mut self.states {
            States::Many(many) if is_own && many.has_limits_only() => Some(&mut many.limits),
            _ => None,
        }
    }

    /// Builds the state of a key that was last charged under `policy`.
    ///
    /// A state that [`Limit::can_hold`] rejects must not be passed.
    ///
    /// # Panics
    /// There is not one state for each of the policy's limits.
    #[must_use]
    pub fn from_parts(
        policy: &Policy,
        mut limits: Vec<LimitState>,
        detached: Vec<DetachedState>,
        reservations: Vec<Reservation>,
    ) -> KeyState {
        assert_eq!(limits.len(), policy.limits().len(), "one state for each limit");
        let states = match limits.pop() {
            Some(only) if limits.len() + detached.len() + reservations.len() == 0 => {
                States::One(only)
            }
            last => {
                limits.extend(last);
                States::Many(Box::new(Many {
                    limits,
                    detached,
                    reservations,
                    ban: BanState::Clear,
                }))
            }
        };
        KeyState { policy: Some(policy.clone()), states }
    }

    /// The states of limits that the policy lacks or has with other numbers, newest first.
    pub(crate) fn detached(&self) -> &[DetachedState] {
        if let States::Many(many) = &self.states { &many.detached } else { &[] }
    }

    /// All reservations, also those that have acted.
    pub(crate) fn all_reservations(&self) -> &[Reservation] {
        if let States::Many(many) = &self.states { &many.reservations } else { &[] }
    }

    /// The denials that are counted, or the ban, also if it has ended.
    #[must_use]
    #[inline]
    pub fn ban(&self) -> BanState {
        if let States::Many(many) = &self.states { many.ban } else { BanState::Clear }
    }

    /// Sets the denials that are counted, or the ban. The limits keep their numbers; those of an unknown
    /// key become those of `policy`.
    pub fn set_ban(&mut self, policy: &Policy, ban: BanState) {
        if ban != BanState::Clear {
            let version = self.policy.as_ref().unwrap_or(policy).clone();
            self.make_many(&version).ban = ban;
        } else if let Some(many) = self.many_mut() {
            many.ban = ban;
            self.shrink();
        }
    }

    /// Removes counted denials or a ban that have ended.
    pub(crate) fn drop_ended_ban(&mut self, now: Timestamp) {
        if let Some(many) = self.many_mut()
            && many.ban != many.ban.at(now)
        {
            many.ban = BanState::Clear;
            self.shrink();
        }
    }

    fn many_mut(&mut self) -> Option<&mut Many> {
        if let States::Many(many) = &mut self.states { Some(many) } else { None }
    }

    /// As [`KeyState::many_mut`], for a state in the numbers of `policy`.
    fn make_many(&mut self, policy: &Policy) -> &mut Many {
        self.limits_mut(policy);
        if let States::One(one) = &mut self.states {
            let limits = alloc::vec![mem::take(one)];
            self.states = States::Many(Box::new(Many { limits, ..Many::default() }));
        }
        let States::Many(many) = &mut self.states else { unreachable!("it was just made many") };
        many
    }

    /// The reservations that have not acted yet.
    pub(crate) fn reservations(&self, now: Timestamp) -> &[Reservation] {
        let all = self.all_reservations();
        &all[all.partition_point(|reservation| reservation.acts_at <= now.as_micros())..]
    }

    /// Adds a reservation to a state in the numbers of `policy`.
    pub fn add_reservation(&mut self, policy: &Policy, reservation: Reservation, now: Timestamp) {
        let all = &mut self.make_many(policy).reservations;
        all.retain(|other| other.acts_at > now.as_micros() && other.id != reservation.id);
        if all.len() >= MAX_RESERVATIONS {
            all.remove(0);
        }
        let index = all.partition_point(|other| other.acts_at <= reservation.acts_at);
        all.insert(index, reservation);
    }

    pub(crate) fn remove_reservation(&mut self, id: Id) {
        if let Some(many) = self.many_mut() {
            many.reservations.retain(|reservation| reservation.id != id);
        }
        self.shrink();
    }

    pub(crate) fn take_reservations(&mut self) -> Vec<Reservation> {
        self.many_mut().map_or_else(Vec::new, |many| mem::take(&mut many.reservations))
    }

    pub(crate) fn take_detached(&mut self) -> Vec<DetachedState> {
        self.many_mut().map_or_else(Vec::new, |many| mem::take(&mut many.detached))
    }

    pub(crate) fn put_detached(&mut self, detached: Vec<DetachedState>) {
        if let Some(many) = self.many_mut() {
            many.detached = detached;
        }
        self.shrink();
    }

    /// Adds detached states and reservations to a state that has none.
    pub(crate) fn attach(
        &mut self,
        policy: &Policy,
        detached: Vec<DetachedState>,
        reservations: Vec<Reservation>,
    ) {
        if !detached.is_empty() || !reservations.is_empty() {
            let many = self.make_many(policy);
            (many.detached, many.reservations) = (detached, reservations);
        }
    }

    /// Returns to the inline form, which the fast path takes, once only one limit is left.
    fn shrink(&mut self) {
        if let Some(many) = self.many_mut()
            && many.detached.is_empty()
            && many.reservations.is_empty()
            && many.ban == BanState::Clear
            && let [only] = &mut many.limits[..]
        {
            self.states = States::One(mem::take(only));
        }
    }

    /// When the state equals that of an unknown key, in µs since the epoch; now or earlier if it
    /// already does.
    #[must_use]
    pub fn recovers_at(&self, now: Timestamp) -> u64 {
        self.recovery(now, &mut Anomalies::default())
    }

    /// Whether the state equals that of an unknown key and will not change. State that is too far
    /// in the future counts again once the clock has reached its time.
    #[must_use]
    pub fn is_untouched(&self, now: Timestamp) -> bool {
        let mut anomalies = Anomalies::default();
        self.recovery(now, &mut anomalies) <= now.as_micros() && anomalies.implausible == 0
    }

    fn recovery(&self, now: Timestamp, anomalies: &mut Anomalies) -> u64 {
        let Some(policy) = &self.policy else { return 0 };
        let mut recovers_at = |(limit, state): (&Limit, &LimitState)| match state {
            LimitState::Untouched => 0,
            state => {
                let usage = limit.algorithm.advance_to(state, now, anomalies);
                limit.algorithm.recovers_at(state, &usage)
            }
        };
        let limits = policy.limits().iter().zip(self.limits());
        let detached = self.detached().iter().map(|detached| (&detached.limit, &detached.state));
        let of_limits = limits.chain(detached).map(&mut recovers_at).fold(0, u64::max);
        // A reservation can be cancelled until it acts, also if a refund has drained what it charged.
        let acts_at = self.all_reservations().last().map_or(0, |last| last.acts_at);
        let ban_ends_at = self.ban().end().map_or(0, Timestamp::as_micros);
        of_limits.max(acts_at).max(ban_ends_at)
    }

    /// Whether the state is stored without an allocation, and a charge does not allocate.
    #[must_use]
    #[inline]
    pub fn is_inline(&self) -> bool {
        matches!(self.states, States::One(LimitState::TokenBucket(_) | LimitState::FixedWindow(_)))
    }

    /// The size of its heap allocations in bytes.
    #[must_use]
    pub fn heap_bytes(&self) -> usize {
        let States::Many(many) = &self.states else {
            return heap_bytes(self.limit(0));
        };
        let detached = many.detached.iter().map(|detached| heap_bytes(&detached.state));
        let limits = many.limits.iter().map(heap_bytes);
        let marks = many.reservations.iter().map(|one| size_of_val(&*one.marks));
        let tables = many.limits.capacity() * size_of::<LimitState>()
            + many.detached.capacity() * size_of::<DetachedState>()
            + many.reservations.capacity() * size_of::<Reservation>();
        size_of::<Many>() + tables + detached.chain(limits).chain(marks).sum::<usize>()
    }
}

fn heap_bytes(state: &LimitState) -> usize {
    match state {
        LimitState::Untouched | LimitState::TokenBucket(_) | LimitState::FixedWindow(_) => 0,
        LimitState::SlidingWindow(counts) => size_of_val(&**counts),
        LimitState::SlidingLog(log) => {
            size_of_val(&**log) + size_of::<LogEntry>() * log.entries.capacity()
        }
        LimitState::Concurrency(set) => {
            size_of_val(&**set) + size_of::<Lease>() * set.leases.capacity()
        }
    }
}
