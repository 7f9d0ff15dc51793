//! The straight path: a check of a policy with one limit, on a key that is not blocked. It
//! decides what the general path would, with the state read once.

use crate::decide::Slot;
use crate::decision::{Decision, Details, Reason, Source};
use crate::limit::Limit;
use crate::meter::span;
use crate::policy::Policy;
use crate::state::{Charge, Effects, LimitState};
use crate::time::{Micros, Timestamp};

/// The only limit of the slot's policy with its state, if this is the path.
#[inline]
pub(crate) fn path<'a>(slot: &'a mut Slot<'_>) -> Option<(&'a Limit, &'a mut LimitState)> {
    let policy: &Policy = slot.policy;
    let limit = policy.only_limit()?;
    if slot.block.is_some() {
        return None;
    }
    Some((limit, slot.state.only_limit_mut(policy)?))
}

/// Decides and charges.
#[inline]
pub(crate) fn check(
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
    let changed = cost > 0 && (allowed || counted);
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
        changed,
        source: Source::Store,
        degraded: false,
        replayed: false,
        shadow: false,
        time: now,
        lease: None,
        reservation: None,
        binding: 0,
        details: Details::Single,
    }
}
