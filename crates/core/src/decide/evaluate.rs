//! Evaluation of the limits of a policy, and decisions from it.

use alloc::boxed::Box;
use core::cmp::Reverse;

use crate::algorithm::Anomalies;
use crate::decision::{Decision, Details, LimitDecision, MAX_INLINE_LIMITS, Reason};
use crate::key::{Block, KeyState};
use crate::limit::Limit;
use crate::policy::Policy;
use crate::time::{Micros, Timestamp, duration_until};

/// The results of a policy's limits for a cost before anything is charged; one bit for each limit
/// in canonical order.
#[derive(Clone, Copy, Debug)]
pub(super) struct Evaluation {
    cost: u64,
    fits: u16,
    exceeds: u16,
    all: u16,
    /// Whether the request was denied, by this check or by another one.
    pub(super) denied: bool,
    /// The time that an admitted request waits.
    pub(super) delay: Micros,
}

impl Evaluation {
    pub(super) fn new(
        policy: &Policy,
        state: &KeyState,
        cost: u64,
        now: Timestamp,
        anomalies: &mut Anomalies,
    ) -> Self {
        let state = state.as_read_by(policy);
        let mut evaluation =
            Evaluation { cost, fits: 0, exceeds: 0, all: 0, denied: false, delay: Micros::ZERO };
        for (index, limit) in policy.limits().iter().enumerate() {
            let bit = 1 << index;
            evaluation.all |= bit;
            let usage = limit.algorithm.advance_to(state.limit(index), now, anomalies);
            if cost > limit.capacity() {
                evaluation.exceeds |= bit;
            } else if limit.algorithm.fits(&usage, cost) {
                evaluation.fits |= bit;
                let delay = duration_until(now, limit.algorithm.acts_at(&usage, cost));
                evaluation.delay = evaluation.delay.max(delay);
            }
        }
        evaluation
    }

    /// The evaluation of an operation that does not check the limits: all of them fit.
    pub(super) fn unchecked(policy: &Policy) -> Self {
        let all = policy.limits().iter().fold(0, |bits, _| bits << 1 | 1);
        Evaluation { cost: 0, fits: all, exceeds: 0, all, denied: false, delay: Micros::ZERO }
    }

    pub(super) fn set_fits(&mut self, index: usize, fits: bool) {
        let bit = 1 << index;
        self.fits = if fits { self.fits | bit } else { self.fits & !bit };
    }

    pub(super) const fn all_fit(&self) -> bool {
        self.fits == self.all
    }

    pub(super) const fn exceeds_capacity(&self) -> bool {
        self.exceeds != 0
    }
}

/// The decision that follows from an evaluation.
///
/// What remains is read from `state`. When to retry a denied request is read from `after`, which
/// differs only for a peek, from the state after what a denial would charge.
pub(super) fn describe(
    policy: &Policy,
    state: &KeyState,
    after: &KeyState,
    evaluation: &Evaluation,
    now: Timestamp,
) -> Decision {
    let state = state.as_read_by(policy);
    let after = after.as_read_by(policy);
    let limits = policy.limits();
    let describe =
        |index, limit: &Limit| describe_limit(limit, index, &state, &after, evaluation, now);
    let mut decision = match limits {
        [limit] => {
            let limit = describe(0, limit);
            Decision {
                capacity: limit.capacity,
                remaining: limit.remaining,
                retry_after: limit.retry_after,
                reset_after: Some(limit.reset_after),
                ..Decision::denied(now)
            }
        }
        limits if limits.len() <= MAX_INLINE_LIMITS => {
            let mut few = [LimitDecision::default(); MAX_INLINE_LIMITS];
            for (index, limit) in limits.iter().enumerate() {
                few[index] = describe(index, limit);
            }
            let mut decision = Decision::combine(&mut few[..limits.len()], now);
            decision.details = Details::Few(limits.len(), few);
            decision
        }
        limits => {
            let limits = limits.iter().enumerate();
            let mut many: Box<[_]> = limits.map(|(index, limit)| describe(index, limit)).collect();
            let mut decision = Decision::combine(&mut many, now);
            decision.details = Details::Many(many);
            decision
        }
    };
    decision.allowed = evaluation.all_fit();
    decision.never = evaluation.exceeds_capacity();
    decision.reason = if decision.never { Reason::Never } else { Reason::Limit };
    if decision.never {
        decision.retry_after = None;
    }
    if decision.allowed && !evaluation.denied {
        decision.delay = evaluation.delay;
    }
    decision
}

#[inline]
fn describe_limit(
    limit: &Limit,
    index: usize,
    state: &KeyState,
    after: &KeyState,
    evaluation: &Evaluation,
    now: Timestamp,
) -> LimitDecision {
    let bit = 1 << index;
    let algorithm = &limit.algorithm;
    // They were counted by the evaluation.
    let mut anomalies = Anomalies::default();
    let (state, after) = (state.limit(index), after.limit(index));
    let usage = algorithm.advance_to(state, now, &mut anomalies);
    let never = evaluation.exceeds & bit != 0;
    let mut retry_after = None;
    if evaluation.denied && !never {
        let usage = algorithm.advance_to(after, now, &mut anomalies);
        if !algorithm.fits(&usage, evaluation.cost) {
            let fits_at = algorithm.fits_at(after, &usage, evaluation.cost);
            retry_after = Some(duration_until(now, fits_at));
        }
    }
    LimitDecision {
        allowed: evaluation.fits & bit != 0,
        never,
        binding: false,
        capacity: limit.capacity(),
        remaining: algorithm.remaining(&usage),
        retry_after,
        reset_after: duration_until(now, algorithm.recovers_at(state, &usage)),
    }
}

impl Decision {
    /// Combines the decisions of several limits and marks the binding one: the limit whose capacity
    /// the cost exceeds, else the one with the longest retry, the least remaining, the least
    /// capacity, or the first in canonical order.
    pub(super) fn combine(limits: &mut [LimitDecision], now: Timestamp) -> Decision {
        let rank = |limit: &LimitDecision| {
            (Reverse(limit.never), Reverse(limit.retry_after), limit.remaining, limit.capacity)
        };
        let mut binding = 0;
        for index in 1..limits.len() {
            if rank(&limits[index]) < rank(&limits[binding]) {
                binding = index;
            }
        }
        limits.iter_mut().enumerate().for_each(|(index, limit)| limit.binding = index == binding);
        Decision {
            binding,
            capacity: limits[binding].capacity,
            remaining: limits.iter().map(|limit| limit.remaining).fold(u64::MAX, u64::min),
            retry_after: limits.iter().filter_map(|limit| limit.retry_after).max(),
            reset_after: limits.iter().map(|limit| limit.reset_after).max(),
            ..Decision::denied(now)
        }
    }

    /// Replaces the retries of the limits, for a reservation.
    pub(super) fn set_retries(&mut self, retries: &[Option<Micros>]) {
        self.store_limit();
        let limits = match &mut self.details {
            Details::Few(len, all) => &mut all[..*len],
            Details::Many(all) => &mut all[..],
            Details::Single => unreachable!("the limit was just stored"),
        };
        for (limit, retry) in limits.iter_mut().zip(retries) {
            limit.retry_after = *retry;
        }
        let combined = Decision::combine(limits, self.time);
        self.binding = combined.binding;
        self.capacity = combined.capacity;
        self.retry_after = combined.retry_after;
    }

    /// Stores the decision of the only limit, before the fields of the whole decision change.
    fn store_limit(&mut self) {
        if matches!(self.details, Details::Single) {
            let mut few = [LimitDecision::default(); MAX_INLINE_LIMITS];
            few[0] = self.only_limit();
            self.details = Details::Few(1, few);
        }
    }

    /// Extends the reset to the end of a block.
    pub(super) fn extend_reset(&mut self, block: Block, now: Timestamp) {
        self.store_limit();
        self.reset_after = match block {
            Block::Until(end) => self.reset_after.max(Some(end.duration_since(now))),
            Block::Forever => None,
        };
    }

    /// Extends the retry of a denial to a time.
    pub(super) fn extend_retry(&mut self, end: Timestamp, now: Timestamp) {
        self.store_limit();
        self.retry_after = self.retry_after.max(Some(end.duration_since(now)));
    }

    /// Denies because of a block. The retry is the end of the block, or that of the limits if it is
    /// later.
    pub(super) fn deny_blocked(&mut self, block: Block, now: Timestamp) {
        self.store_limit();
        self.allowed = false;
        self.reason = Reason::Blocked;
        self.granted = 0;
        self.delay = Micros::ZERO;
        self.retry_after = match block {
            Block::Until(end) if !self.never => self.retry_after.max(Some(end.duration_since(now))),
            _ => None,
        };
    }

    /// Admits the request if this is a shadow policy. The decisions of its limits stay as they are.
    pub(super) fn shadowed_by(mut self, policy: &Policy, granted: u64) -> Decision {
        if policy.is_shadow() {
            self.store_limit();
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
