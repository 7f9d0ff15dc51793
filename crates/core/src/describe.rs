//! Putting a decision into words: what the limits said, and what their state then is.

use alloc::borrow::Cow;
use core::cmp::Reverse;

use crate::decide::Block;
use crate::decision::{Decision, Details, LimitDecision, Reason};
use crate::key_state::KeyState;
use crate::limit::Limit;
use crate::meter::span;
use crate::policy::Policy;
use crate::state::Effects;
use crate::time::{Micros, Timestamp};

/// What the limits of a policy said to a cost before anything was charged; a bit for each limit
/// in canonical order.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Said {
    cost: u64,
    fits: u16,
    never: u16,
    all: u16,
    /// Whether the request was denied, by this check or another one.
    pub(crate) denied: bool,
    /// How long an admitted request waits.
    pub(crate) delay: Micros,
}

impl Said {
    /// Asks each limit.
    pub(crate) fn of(
        policy: &Policy,
        state: &KeyState,
        cost: u64,
        now: Timestamp,
        seen: &mut Effects,
    ) -> Self {
        let state = state.in_form_of(policy);
        let mut said = Said { cost, fits: 0, never: 0, all: 0, denied: false, delay: Micros::ZERO };
        for (index, limit) in policy.limits().iter().enumerate() {
            let bit = 1 << index;
            said.all |= bit;
            if cost > limit.capacity() {
                said.never |= bit;
                continue;
            }
            let settled = limit.settle(state.limit(index), now, seen);
            if limit.fits(&settled, cost) {
                said.fits |= bit;
                said.delay = said.delay.max(span(now, limit.acts_at(&settled, cost)));
            }
        }
        said
    }

    /// What is said where nothing was asked: all is well.
    pub(crate) fn nothing(policy: &Policy) -> Self {
        let all = policy.limits().iter().fold(0, |bits, _| bits << 1 | 1);
        Said { cost: 0, fits: all, never: 0, all, denied: false, delay: Micros::ZERO }
    }

    pub(crate) fn set_fits(&mut self, index: usize, fits: bool) {
        let bit = 1 << index;
        self.fits = if fits { self.fits | bit } else { self.fits & !bit };
    }

    /// The same, once it is known whether the whole request is denied.
    pub(crate) const fn denied_if(self, denied: bool) -> Self {
        Said { denied, ..self }
    }

    pub(crate) const fn all_fit(&self) -> bool {
        self.fits == self.all
    }

    pub(crate) const fn any_never(&self) -> bool {
        self.never != 0
    }
}

impl KeyState {
    /// The states as `policy` reads them; a copy only where they are of another form of it.
    #[inline]
    pub(crate) fn in_form_of(&self, policy: &Policy) -> Cow<'_, KeyState> {
        if self.policy().is_none() || self.is_of(policy) {
            Cow::Borrowed(self)
        } else {
            Cow::Owned(self.converted(policy))
        }
    }
}

/// The decision in words. What remains is read from `state`; when to retry a denied request,
/// from `after`, which differs only where a peek says what a denial would charge.
pub(crate) fn describe(
    policy: &Policy,
    state: &KeyState,
    after: &KeyState,
    said: &Said,
    now: Timestamp,
) -> Decision {
    let state = state.in_form_of(policy);
    let after = after.in_form_of(policy);
    let limits = policy.limits();
    let at = |index: usize, limit: &Limit| describe_limit(limit, index, &state, &after, said, now);
    let mut decision = match limits {
        [limit] => {
            let only = at(0, limit);
            Decision { details: Details::Single, ..Decision::of(&only, 0) }
        }
        limits if limits.len() <= 4 => {
            let mut few = [LimitDecision::default(); 4];
            for (index, limit) in limits.iter().enumerate() {
                few[index] = at(index, limit);
            }
            let mut decision = Decision::of_limits(&mut few[..limits.len()]);
            let len = u8::try_from(limits.len()).unwrap_or(4);
            decision.details = Details::Few(len, few);
            decision
        }
        limits => {
            let mut many: alloc::boxed::Box<[_]> =
                limits.iter().enumerate().map(|(index, limit)| at(index, limit)).collect();
            let mut decision = Decision::of_limits(&mut many);
            decision.details = Details::Many(many);
            decision
        }
    };
    decision.allowed = said.all_fit();
    decision.never = said.any_never();
    decision.reason = if decision.never { Reason::Never } else { Reason::Limit };
    if decision.never {
        decision.retry_after = None;
    }
    if decision.allowed && !said.denied {
        decision.delay = said.delay;
    }
    decision.time = now;
    decision
}

#[inline]
fn describe_limit(
    limit: &Limit,
    index: usize,
    state: &KeyState,
    after: &KeyState,
    said: &Said,
    now: Timestamp,
) -> LimitDecision {
    let bit = 1 << index;
    let mut seen = Effects::default();
    let (state, after) = (state.limit(index), after.limit(index));
    let settled = limit.settle(state, now, &mut seen);
    let mut retry_after = None;
    if said.denied && said.never & bit == 0 {
        let then = limit.settle(after, now, &mut seen);
        if !limit.fits(&then, said.cost) {
            retry_after = Some(span(now, limit.fits_at(after, &then, said.cost)));
        }
    }
    LimitDecision {
        allowed: said.fits & bit != 0,
        never: said.never & bit != 0,
        binding: false,
        capacity: limit.capacity(),
        remaining: limit.remaining(&settled),
        retry_after,
        reset_after: span(now, limit.recovers_at(state, &settled)),
    }
}

impl Decision {
    /// What a limit that speaks alone says for the policy.
    fn of(it: &LimitDecision, binding: usize) -> Decision {
        Decision {
            capacity: it.capacity,
            remaining: it.remaining,
            retry_after: it.retry_after,
            reset_after: Some(it.reset_after),
            binding,
            ..Decision::default()
        }
    }

    /// What several limits say together, and which of them is binding: never before the longest
    /// retry, else the least remaining, then the least capacity, then canonical order.
    fn of_limits(limits: &mut [LimitDecision]) -> Decision {
        let rank = |(index, x): &(usize, &LimitDecision)| {
            (Reverse(x.never), Reverse(x.retry_after), x.remaining, x.capacity, *index)
        };
        let binding = limits.iter().enumerate().min_by_key(rank).map_or(0, |(index, _)| index);
        let mut decision = Decision { binding, ..Decision::default() };
        decision.remaining = u64::MAX;
        for (index, value) in limits.iter_mut().enumerate() {
            value.binding = index == binding;
            if value.binding {
                decision.capacity = value.capacity;
            }
            decision.remaining = decision.remaining.min(value.remaining);
            decision.retry_after = decision.retry_after.max(value.retry_after);
            decision.reset_after = decision.reset_after.max(Some(value.reset_after));
        }
        decision
    }

    /// Lets each limit say when it would accept what was asked, where that is not its usual retry.
    pub(crate) fn retry_with(&mut self, retries: &[Option<Micros>]) {
        self.detach();
        let limits = match &mut self.details {
            Details::Few(len, all) => &mut all[..usize::from(*len)],
            Details::Many(all) => &mut all[..],
            Details::Single => &mut [],
        };
        for (limit, retry) in limits.iter_mut().zip(retries) {
            limit.retry_after = *retry;
        }
        let together = Decision::of_limits(limits);
        self.binding = together.binding;
        self.capacity = together.capacity;
        self.retry_after = together.retry_after;
    }

    /// Writes out what the only limit said, before the top fields come to say something else.
    fn detach(&mut self) {
        if matches!(self.details, Details::Single) {
            let mut few = [LimitDecision::default(); 4];
            few[0] = self.only_limit();
            self.details = Details::Few(1, few);
        }
    }

    /// Lets the reset cover a block.
    pub(crate) fn cover_block(&mut self, block: Block, now: Timestamp) {
        self.detach();
        self.reset_after = match block {
            Block::Until(end) => self.reset_after.max(Some(end.since(now))),
            Block::Forever => None,
        };
    }

    /// Denies because of a block; the retry is the block's end, or the limits' if that is later.
    pub(crate) fn deny_as_blocked(&mut self, block: Block, now: Timestamp) {
        self.detach();
        self.allowed = false;
        self.reason = Reason::Blocked;
        self.granted = 0;
        self.delay = Micros::ZERO;
        self.retry_after = match block {
            Block::Until(end) if !self.never => self.retry_after.max(Some(end.since(now))),
            _ => None,
        };
    }

    /// A shadow policy's limits say what they would; the fields above them ignore it.
    pub(crate) fn in_shadow_of(mut self, policy: &Policy, granted: u64) -> Decision {
        if policy.is_shadow() {
            self.detach();
            self.allowed = true;
            self.reason = Reason::Limit;
            self.never = false;
            self.retry_after = None;
            self.delay = Micros::ZERO;
            self.granted = granted;
            self.shadow = true;
        }
        self
    }
}
