//! The fast paths: checks of policies with one to four limits and nothing else, on known keys that are not
//! blocked. They decide as the general path does.

use crate::algorithm::{Algorithm, Anomalies, Charge, LimitState, TokenBucket, TokenBucketState};
use crate::decision::{Decision, Details, LimitDecision, MAX_INLINE_LIMITS, Reason};
use crate::key::KeyState;
use crate::limit::Limit;
use crate::policy::Policy;
use crate::time::{Micros, Timestamp, duration_until};

/// Decides and charges a check of a [single-limit policy](Policy::is_single_limit) on a key that is
/// not blocked and has [single-limit state](KeyState::is_single_limit_of). The decision is that of
/// [`decide_one`](crate::decide_one). A denial does not change the state of a known key, unless
/// the limit counts denied requests.
///
/// # Panics
/// The policy or the state has more than one limit.
#[inline(always)]
pub fn check_single_limit(
    policy: &Policy,
    state: &mut KeyState,
    cost: u64,
    now: Timestamp,
    anomalies: &mut Anomalies,
) -> Decision {
    let ([limit], Some(state)) = (policy.limits(), state.only_limit_mut()) else {
        unreachable!("the policy and the state have a single limit");
    };
    let (decided, delay) = match (&limit.algorithm, &mut *state) {
        (Algorithm::TokenBucket(bucket), LimitState::TokenBucket(level)) => {
            check_token_bucket(bucket, level, cost, now, anomalies)
        }
        _ => {
            let charge = Charge { cost, lease: None, log_entries: policy.log_entries() };
            check_limit(limit, state, &charge, now, anomalies)
        }
    };
    let LimitDecision { allowed, never, remaining, retry_after, reset_after, .. } = decided;
    // In one place and from few values, so that the compiler writes it directly to its destination.
    Decision {
        allowed,
        reason: if never { Reason::Never } else { Reason::Limit },
        never,
        capacity: limit.capacity(),
        remaining,
        retry_after,
        reset_after: Some(reset_after),
        delay,
        granted: if allowed { cost } else { 0 },
        changed: cost > 0 && (allowed || !never && limit.counts_denied()),
        ..Decision::denied(now)
    }
}

/// As [`check_limit`], for a token bucket without a dispatch to the algorithm at each step. That takes a third
/// of the instructions of a check in memory.
#[inline(always)]
fn check_token_bucket(
    bucket: &TokenBucket,
    level: &mut TokenBucketState,
    cost: u64,
    now: Timestamp,
    anomalies: &mut Anomalies,
) -> (LimitDecision, Micros) {
    let usage = bucket.advance_to(Some(level), now, anomalies);
    let never = cost > bucket.capacity();
    let allowed = !never && bucket.fits(&usage, cost);
    let mut after = usage;
    let mut delay = Micros::ZERO;
    let mut retry_after = None;
    if allowed {
        if bucket.is_queue() {
            delay = duration_until(now, bucket.acts_at(&usage, cost));
        }
        if cost > 0 {
            after = bucket.charge(usage, cost);
            *level = after;
        }
    } else if !never {
        retry_after = Some(duration_until(now, bucket.fits_at(&usage, cost)));
    }
    let remaining = bucket.remaining(&after);
    let reset_after = duration_until(now, bucket.recovers_at(&after));
    (
        LimitDecision { allowed, never, remaining, retry_after, reset_after, ..Default::default() },
        delay,
    )
}

/// Whether a [plain policy](Policy::is_plain) would admit a check on its own, with [plain
/// state](KeyState::is_plain_of).
#[must_use]
pub fn admits_plain(policy: &Policy, state: &KeyState, cost: u64, now: Timestamp) -> bool {
    policy.limits().iter().zip(state.limits()).all(|(limit, state)| {
        // The check counts the anomalies.
        let usage = limit.algorithm.advance_to(state, now, &mut Anomalies::default());
        cost <= limit.capacity() && limit.algorithm.fits(&usage, cost)
    })
}

/// Decides one of several checks of a request under [plain policies](Policy::is_plain), as
/// [`decide`](crate::decide) does. It is charged if `all_admitted`: if each of them [is
/// admitted](admits_plain) on its own. Otherwise, the caller ensures that none of the policies
/// [counts denials](Policy::counts_denials).
///
/// # Panics
/// The policy or the state is not plain.
#[inline(always)]
pub fn check_plain(
    policy: &Policy,
    state: &mut KeyState,
    cost: u64,
    all_admitted: bool,
    now: Timestamp,
    anomalies: &mut Anomalies,
) -> Decision {
    debug_assert!(all_admitted || !policy.counts_denials());
    // Another check denies the request: this one is decided as without a cost.
    let is_spared = !all_admitted && admits_plain(policy, state, cost, now);
    let cost = if is_spared { 0 } else { cost };
    let mut decision = if policy.is_single_limit() {
        check_single_limit(policy, state, cost, now, anomalies)
    } else {
        let Some(states) = state.few_limits_mut(policy) else {
            unreachable!("the state is that of several limits")
        };
        check_few_limits(policy, states, cost, now, anomalies)
    };
    if is_spared {
        decision.delay = Micros::ZERO;
    }
    decision
}

/// Returns the decision without the capacity, and the delay of an admitted request.
fn check_limit(
    limit: &Limit,
    state: &mut LimitState,
    charge: &Charge,
    now: Timestamp,
    anomalies: &mut Anomalies,
) -> (LimitDecision, Micros) {
    let cost = charge.cost;
    let usage = limit.algorithm.advance_to(state, now, anomalies);
    let never = cost > limit.capacity();
    let allowed = !never && limit.algorithm.fits(&usage, cost);
    let counted = !allowed && !never && limit.counts_denied();
    let mut delay = Micros::ZERO;
    let mut after = usage;
    if allowed {
        delay = duration_until(now, limit.algorithm.acts_at(&usage, cost));
        after = limit.algorithm.charge(state, usage, charge, now, anomalies);
    } else if counted {
        after = limit.algorithm.charge_denied(state, usage, charge, now, anomalies);
    }
    let mut retry_after = None;
    if !allowed && !never {
        retry_after = Some(duration_until(now, limit.algorithm.fits_at(state, &after, cost)));
    }
    let remaining = limit.algorithm.remaining(&after);
    let reset_after = duration_until(now, limit.algorithm.recovers_at(state, &after));
    (
        LimitDecision { allowed, never, remaining, retry_after, reset_after, ..Default::default() },
        delay,
    )
}

/// Decides and charges a check of a [plain policy](Policy::is_plain) with several limits on a known key that is
/// not blocked and has the [states of these limits](KeyState::few_limits_mut) only.
pub(super) fn check_few_limits(
    policy: &Policy,
    states: &mut [LimitState],
    cost: u64,
    now: Timestamp,
    anomalies: &mut Anomalies,
) -> Decision {
    let limits = policy.limits();
    let mut usages = [None; MAX_INLINE_LIMITS];
    let mut few = [LimitDecision::default(); MAX_INLINE_LIMITS];
    let (mut allowed, mut never, mut delay) = (true, false, Micros::ZERO);
    for (index, (limit, state)) in limits.iter().zip(&*states).enumerate() {
        let usage = limit.algorithm.advance_to(state, now, anomalies);
        let decision = &mut few[index];
        decision.capacity = limit.capacity();
        decision.never = cost > decision.capacity;
        decision.allowed = !decision.never && limit.algorithm.fits(&usage, cost);
        if decision.allowed {
            delay = delay.max(duration_until(now, limit.algorithm.acts_at(&usage, cost)));
        }
        allowed &= decision.allowed;
        never |= decision.never;
        usages[index] = Some(usage);
    }
    let charge = Charge { cost, lease: None, log_entries: policy.log_entries() };
    let mut counted = false;
    for (index, (limit, state)) in limits.iter().zip(states).enumerate() {
        let Some(mut usage) = usages[index] else { unreachable!("each limit has a usage") };
        if allowed {
            usage = limit.algorithm.charge(state, usage, &charge, now, anomalies);
        } else if !never && limit.counts_denied() {
            usage = limit.algorithm.charge_denied(state, usage, &charge, now, anomalies);
            counted = true;
        }
        let decision = &mut few[index];
        decision.remaining = limit.algorithm.remaining(&usage);
        decision.reset_after = duration_until(now, limit.algorithm.recovers_at(state, &usage));
        if !allowed && !decision.never && !limit.algorithm.fits(&usage, cost) {
            let fits_at = limit.algorithm.fits_at(state, &usage, cost);
            decision.retry_after = Some(duration_until(now, fits_at));
        }
    }
    let combined = Decision::combine(&mut few[..limits.len()], now);
    Decision {
        allowed,
        reason: if never { Reason::Never } else { Reason::Limit },
        never,
        retry_after: combined.retry_after.filter(|_| !never),
        delay: if allowed { delay } else { Micros::ZERO },
        granted: if allowed { cost } else { 0 },
        changed: cost > 0 && (allowed || counted),
        details: Details::Few(limits.len(), few),
        ..combined
    }
}
