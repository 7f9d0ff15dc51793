//! All that a store keeps of one (policy, key): a state for each limit, and what follows it when
//! the policy changes.

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::forms::Stray;
use crate::limit::Limit;
use crate::meter::Level;
use crate::policy::Policy;
use crate::request::Id;
use crate::state::{Effects, LimitState};
use crate::time::Timestamp;

/// The most reservations of a key that can still be cancelled.
pub(crate) const MAX_RESERVATIONS: usize = 10_000;

/// All counters, leases and reservations of one (policy, key). The default is an unknown key's.
#[derive(Clone, Debug, Default)]
pub struct KeyState {
    /// Under which policy it was last charged; none while untouched.
    policy: Option<Policy>,
    states: States,
}

#[derive(Clone, Debug)]
enum States {
    /// Of a policy's only limit, and nothing else.
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
    /// One for each limit of the policy, in canonical order.
    limits: Vec<LimitState>,
    /// Of limits that other forms of the policy have, newest first.
    strays: Vec<Stray>,
    /// Soonest to act first.
    reservations: Vec<Reservation>,
}

/// A charge made for later, which can be cancelled until then.
#[derive(Clone, Debug)]
pub(crate) struct Reservation {
    pub(crate) id: Id,
    pub(crate) cost: u64,
    pub(crate) acts_at: u64,
    /// Under whose limits it was made.
    pub(crate) policy: Policy,
    /// The level of each of these limits just after the charge.
    pub(crate) marks: Box<[Level]>,
}

impl Reservation {
    /// Whether it can be cancelled under this policy.
    pub(crate) fn is_of(&self, policy: &Policy) -> bool {
        self.policy.is(policy) || self.policy.limits() == policy.limits()
    }
}

impl KeyState {
    /// Whether state is kept in the form of this policy.
    #[inline]
    pub(crate) fn is_of(&self, policy: &Policy) -> bool {
        self.policy.as_ref().is_some_and(|p| p.is(policy) || p.limits() == policy.limits())
    }

    /// Under which policy it was last charged.
    #[must_use]
    pub fn policy(&self) -> Option<&Policy> {
        self.policy.as_ref()
    }

    /// The states in the canonical order of the policy they are of; empty if untouched.
    #[inline]
    pub(crate) fn limits(&self) -> &[LimitState] {
        match (&self.policy, &self.states) {
            (None, _) => &[],
            (_, States::One(one)) => core::slice::from_ref(one),
            (_, States::Many(many)) => &many.limits,
        }
    }

    /// The state of the limit at this place.
    #[inline]
    pub(crate) fn limit(&self, index: usize) -> &LimitState {
        self.limits().get(index).unwrap_or(&LimitState::Untouched)
    }

    /// The states to change, in the form of `policy`, which they are of or become of.
    #[inline]
    pub(crate) fn limits_mut(&mut self, policy: &Policy) -> &mut [LimitState] {
        match &self.policy {
            Some(value) if value.is(policy) => {}
            // The same limits under another address, as after a restart or a reload: comparing them
            // anew for each check would take four times as long as the check.
            Some(_) => self.policy = Some(policy.clone()),
            None => {
                self.policy = Some(policy.clone());
                let count = policy.limits().len();
                self.states = if count == 1 {
                    States::default()
                } else {
                    States::Many(Box::new(Many::of(count)))
                };
            }
        }
        match &mut self.states {
            States::One(one) => core::slice::from_mut(one),
            States::Many(many) => &mut many.limits,
        }
    }

    /// Whether it is a state of this policy's only limit and nothing else.
    #[must_use]
    #[inline]
    pub fn is_plain(&self, policy: &Policy) -> bool {
        matches!(self.states, States::One(_)) && self.policy.as_ref().is_some_and(|p| p.is(policy))
    }

    /// The state of the only limit, if nothing else is kept.
    #[inline]
    pub(crate) fn only_limit_mut(&mut self) -> Option<&mut LimitState> {
        match &mut self.states {
            States::One(one) => Some(one),
            States::Many(_) => None,
        }
    }

    /// State of these parts, one of `limits` for each of the policy's.
    pub(crate) fn of_parts(
        policy: &Policy,
        mut limits: Vec<LimitState>,
        strays: Vec<Stray>,
        reservations: Vec<Reservation>,
    ) -> KeyState {
        let states = match limits.pop() {
            Some(only) if limits.len() + strays.len() + reservations.len() == 0 => {
                States::One(only)
            }
            last => {
                limits.extend(last);
                States::Many(Box::new(Many { limits, strays, reservations }))
            }
        };
        KeyState { policy: Some(policy.clone()), states }
    }

    /// The states of limits that the policy lacks, or has in another form; newest first.
    pub(crate) fn strays(&self) -> &[Stray] {
        if let States::Many(many) = &self.states { &many.strays } else { &[] }
    }

    /// The reservations, those that have acted among them.
    pub(crate) fn all_reservations(&self) -> &[Reservation] {
        if let States::Many(many) = &self.states { &many.reservations } else { &[] }
    }

    fn many_mut(&mut self, policy: &Policy) -> &mut Many {
        self.limits_mut(policy);
        if let States::One(one) = &mut self.states {
            let limits = alloc::vec![core::mem::take(one)];
            self.states = States::Many(Box::new(Many { limits, ..Many::default() }));
        }
        let States::Many(many) = &mut self.states else { unreachable!("it was just made many") };
        many
    }

    /// The reservations that have not acted yet.
    pub(crate) fn reservations(&self, now: Timestamp) -> &[Reservation] {
        let all = self.all_reservations();
        &all[all.partition_point(|x| x.acts_at <= now.as_micros())..]
    }

    pub(crate) fn add_reservation(&mut self, policy: &Policy, it: Reservation, now: Timestamp) {
        let all = &mut self.many_mut(policy).reservations;
        all.retain(|other| other.acts_at > now.as_micros() && other.id != it.id);
        if all.len() >= MAX_RESERVATIONS {
            all.remove(0);
        }
        let index = all.partition_point(|other| other.acts_at <= it.acts_at);
        all.insert(index, it);
    }

    pub(crate) fn remove_reservation(&mut self, id: Id) {
        if let States::Many(many) = &mut self.states {
            many.reservations.retain(|reservation| reservation.id != id);
        }
        self.settle_down();
    }

    pub(crate) fn take_reservations(&mut self) -> Vec<Reservation> {
        match &mut self.states {
            States::One(_) => Vec::new(),
            States::Many(many) => core::mem::take(&mut many.reservations),
        }
    }

    pub(crate) fn take_strays(&mut self) -> Vec<Stray> {
        match &mut self.states {
            States::One(_) => Vec::new(),
            States::Many(many) => core::mem::take(&mut many.strays),
        }
    }

    /// Puts back what was taken, or is left of it.
    pub(crate) fn put_strays(&mut self, strays: Vec<Stray>) {
        if let States::Many(many) = &mut self.states {
            many.strays = strays;
        }
        self.settle_down();
    }

    /// Adds what else is kept beside the states of the policy's limits.
    pub(crate) fn keep_aside(
        &mut self,
        policy: &Policy,
        strays: Vec<Stray>,
        reservations: Vec<Reservation>,
    ) {
        if !strays.is_empty() || !reservations.is_empty() {
            let many = self.many_mut(policy);
            (many.strays, many.reservations) = (strays, reservations);
        }
    }

    /// An only limit beside which nothing is kept any more has the straight path again.
    fn settle_down(&mut self) {
        if let States::Many(many) = &mut self.states
            && many.strays.is_empty()
            && many.reservations.is_empty()
            && let [only] = &mut many.limits[..]
        {
            self.states = States::One(core::mem::take(only));
        }
    }

    /// When it is as an unknown key's, in µs since the epoch; now or earlier if it is already.
    #[must_use]
    pub fn recovers_at(&self, now: Timestamp) -> u64 {
        self.recovery(now, &mut Effects::default())
    }

    /// Whether it is as an unknown key's, and stays so. State that is not believed may be again,
    /// once the clock has come to its time.
    #[must_use]
    pub fn is_untouched(&self, now: Timestamp) -> bool {
        let mut seen = Effects::default();
        self.recovery(now, &mut seen) <= now.as_micros() && seen.disbelieved == 0
    }

    fn recovery(&self, now: Timestamp, seen: &mut Effects) -> u64 {
        let Some(policy) = &self.policy else { return 0 };
        let mut recovers_at = |(limit, state): (&Limit, &LimitState)| match state {
            LimitState::Untouched => 0,
            state => limit.recovers_at(state, &limit.settle(state, now, seen)),
        };
        let limits = policy.limits().iter().zip(self.limits());
        let own = limits.map(&mut recovers_at).max().unwrap_or(0);
        let strays =
            self.strays().iter().map(|stray| recovers_at((&stray.limit, &stray.state))).max();
        own.max(strays.unwrap_or(0))
    }

    /// Whether leases are held under it.
    #[must_use]
    pub fn has_leases(&self) -> bool {
        self.limits().iter().any(|limit| matches!(limit, LimitState::Leases(_)))
    }

    /// When a check of cost 1 is admitted, in µs since the epoch; now or earlier if it is now.
    #[must_use]
    pub fn admits_at(&self, now: Timestamp) -> u64 {
        let Some(policy) = &self.policy else { return 0 };
        let mut seen = Effects::default();
        let admits_at = |(limit, state): (&Limit, &LimitState)| {
            let settled = limit.settle(state, now, &mut seen);
            if limit.fits(&settled, 1) { 0 } else { limit.fits_at(state, &settled, 1) }
        };
        policy.limits().iter().zip(self.limits()).map(admits_at).max().unwrap_or(0)
    }

    /// The bytes it keeps outside its own place.
    #[must_use]
    pub fn heap_bytes(&self) -> usize {
        let States::Many(many) = &self.states else {
            return heap_bytes(self.limit(0));
        };
        let strays = many.strays.iter().map(|stray| size_of::<Stray>() + heap_bytes(&stray.state));
        let limits = many.limits.iter().map(|limit| size_of::<LimitState>() + heap_bytes(limit));
        let reservation =
            |reservation: &Reservation| size_of_val(reservation) + size_of_val(&*reservation.marks);
        let reservations = many.reservations.iter().map(reservation);
        size_of::<Many>() + strays.chain(limits).chain(reservations).sum::<usize>()
    }
}

impl Many {
    fn of(count: usize) -> Self {
        let limits = core::iter::repeat_with(LimitState::default).take(count).collect();
        Many { limits, ..Many::default() }
    }
}

fn heap_bytes(state: &LimitState) -> usize {
    match state {
        LimitState::Untouched | LimitState::Meter(_) | LimitState::Window(_) => 0,
        LimitState::Weighted(weighted) => size_of_val(&**weighted),
        LimitState::Log(log) => size_of_val(&**log) + 16 * log.entries.capacity(),
        LimitState::Leases(leases) => size_of_val(&**leases) + 32 * leases.leases.capacity(),
    }
}
