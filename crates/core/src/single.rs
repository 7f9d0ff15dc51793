//! The straight path: a check of a policy with one limit, on a key that is not blocked. It
//! decides what the general path would, with the state read once.

use crate::decision::{Decision, Reason};
use crate::key_state::KeyState;
use crate::limit::{Limit, Rule};
use crate::meter::{Level, Meter, span};
use crate::policy::Policy;
use crate::state::{Charge, Effects, LimitState};
use crate::time::{Micros, Timestamp};

/// Decides and charges a check of a policy that [is plain](Policy::is_plain), on a key that is not
/// blocked, whose state [is of it alone](KeyState::is_plain): [`decide_one`](crate::decide_one)
/// would say the same. A denial leaves the state of a known key as it is.
#[inline]
pub fn check_plain(
    policy: &Policy,
    state: &mut KeyState,
    cost: u64,
    now: Timestamp,
    seen: &mut Effects,
) -> Decision {
    let ([limit, ..], Some(state)) = (policy.limits(), state.only_limit_mut()) else {
        return Decision::blank(now);
    };
    if let (Rule::Meter(rule), LimitState::Meter(level)) = (&limit.rule, &mut *state) {
        return check_meter(rule, level, cost, now, seen);
    }
    let charge = Charge { cost, lease: None, log_entries: policy.log_entries() };
    check_limit(limit, state, &charge, now, seen)
}

/// The same for the meter of a known key, without the choice of an algorithm at each step: a third
/// of the instructions of a check in memory.
#[inline]
fn check_meter(
    rule: &Meter,
    level: &mut Level,
    cost: u64,
    now: Timestamp,
    seen: &mut Effects,
) -> Decision {
    let settled = rule.settle(Some(level), now, seen);
    let never = cost > rule.capacity();
    let allowed = !never && rule.fits(&settled, cost);
    let mut after = settled;
    let mut delay = Micros::ZERO;
    let mut retry_after = None;
    if allowed {
        if rule.is_queue() {
            delay = span(now, rule.acts_at(&settled, cost));
        }
        if cost > 0 {
            after = rule.charge(settled, cost);
            *level = after;
        }
    } else if !never {
        retry_after = Some(span(now, rule.fits_at(&settled, cost)));
    }
    Decision {
        allowed,
        reason: if never { Reason::Never } else { Reason::Limit },
        never,
        capacity: rule.capacity(),
        remaining: rule.remaining(&after),
        retry_after,
        reset_after: Some(span(now, rule.recovers_at(&after))),
        delay,
        granted: if allowed { cost } else { 0 },
        changed: allowed && cost > 0,
        ..Decision::blank(now)
    }
}

fn check_limit(
    limit: &Limit,
    state: &mut LimitState,
    charge: &Charge,
    now: Timestamp,
    seen: &mut Effects,
) -> Decision {
    let cost = charge.cost;
    let settled = limit.settle(state, now, seen);
    let never = cost > limit.capacity();
    let allowed = !never && limit.fits(&settled, cost);
    let counted = !allowed && !never && limit.counts_denied();
    let mut delay = Micros::ZERO;
    let mut after = settled;
    if allowed {
        delay = span(now, limit.acts_at(&settled, cost));
        after = limit.charge(state, settled, charge, now, seen);
    } else if counted {
        after = limit.charge_denied(state, settled, charge, now, seen);
    }
    let mut retry_after = None;
    if !allowed && !never {
        retry_after = Some(span(now, limit.fits_at(state, &after, cost)));
    }
    Decision {
        allowed,
        reason: if never { Reason::Never } else { Reason::Limit },
        never,
        capacity: limit.capacity(),
        remaining: limit.remaining(&after),
        retry_after,
        reset_after: Some(span(now, limit.recovers_at(state, &after))),
        delay,
        granted: if allowed { cost } else { 0 },
        changed: cost > 0 && (allowed || counted),
        ..Decision::blank(now)
    }
}
