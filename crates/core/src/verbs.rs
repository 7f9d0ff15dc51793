//! The verbs that take one check: take, reserve and cancel, refund and penalize, reset, blocks,
//! and what is done with leases.

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::decide::{Block, Slot, adopt, apply_block, charge_denied, charge_limits};
use crate::decision::Decision;
use crate::describe::{Said, describe};
use crate::key_state::{KeyState, Reservation};
use crate::limit::Limit;
use crate::meter::{Level, span};
use crate::request::{Id, Operation};
use crate::state::{Charge, Effects, LimitState, Settled};
use crate::time::{Micros, Timestamp};

pub(crate) fn decide_one(
    verb: &Operation,
    slot: &mut Slot<'_>,
    now: Timestamp,
    seen: &mut Effects,
) -> Decision {
    match *verb {
        Operation::Take => take(slot, now, seen),
        Operation::Reserve { id, max_wait } => reserve(slot, id, max_wait, now, seen),
        Operation::Cancel { id } => cancel(slot, id, now, seen),
        Operation::Refund { time } => refund(slot, time, now, seen),
        Operation::Penalize => penalize(slot, now, seen),
        Operation::Reset => reset(slot, now),
        Operation::Block { span } => block(slot, span, now),
        Operation::Unblock => unblock(slot, now),
        Operation::Renew { lease } => renew(slot, lease, now, seen),
        Operation::Release { lease } => release(slot, lease, now, seen),
        // `decide` has taken these; asked of one slot they would be answered the same.
        Operation::Check { .. } | Operation::Acquire { .. } | Operation::Peek => {
            describe_now(slot, now)
        }
    }
}

/// The state of a key in words, where nothing is asked of its limits.
pub(crate) fn describe_now(slot: &Slot<'_>, now: Timestamp) -> Decision {
    let said = Said::nothing(slot.policy);
    let mut decision = describe(slot.policy, slot.state, slot.state, &said, now);
    if let Some(block) = slot.block.filter(|block| block.holds(now)) {
        decision.cover_block(block, now);
    }
    decision
}

fn charge_of(slot: &Slot<'_>, cost: u64) -> Charge {
    Charge { cost, lease: None, log_entries: slot.policy.log_entries() }
}

/// Grants the lesser of the cost and what remains.
fn take(slot: &mut Slot<'_>, now: Timestamp, seen: &mut Effects) -> Decision {
    let remaining = describe_now(slot, now).remaining;
    let wanted = slot.cost;
    let granted = if slot.is_blocked(now) { 0 } else { wanted.min(remaining) };
    let mut said = Said::of(slot.policy, slot.state, granted.max(1), now, seen);
    said.denied = granted == 0;
    let changed = if granted > 0 {
        charge_limits(slot, &charge_of(slot, granted), now, seen);
        true
    } else {
        !slot.is_blocked(now) && charge_denied(slot, &charge_of(slot, 1), now, seen)
    };
    let mut decision = describe(slot.policy, slot.state, slot.state, &said, now);
    decision.granted = granted;
    decision.changed = changed;
    apply_block(&mut decision, slot, now);
    decision.in_shadow_of(slot.policy, wanted)
}

/// Charges now what may act after a delay of at most `max_wait`.
fn reserve(
    slot: &mut Slot<'_>,
    id: Id,
    max_wait: Micros,
    now: Timestamp,
    seen: &mut Effects,
) -> Decision {
    if let Some(known) = replay_reservation(slot, id, now) {
        return known;
    }
    let cost = slot.cost;
    let wait = Wait::of(slot, max_wait, now, seen);
    let admitted = wait.said.all_fit() && !slot.is_blocked(now);
    let changed = admitted && cost > 0;
    if changed {
        charge_limits(slot, &charge_of(slot, cost), now, seen);
        if wait.acts_at > now.as_micros() {
            let (marks, policy) = (marks(slot.state), slot.policy.clone());
            let reservation = Reservation { id, cost, acts_at: wait.acts_at, policy, marks };
            slot.state.add_reservation(slot.policy, reservation, now);
        }
    }
    let mut decision = describe(slot.policy, slot.state, slot.state, &wait.said, now);
    if admitted {
        decision.granted = cost;
        decision.changed = changed;
        decision.reservation = Some(id);
    } else {
        decision.retry_with(&wait.retries);
        decision.retry_after = decision.retry_after.filter(|_| !decision.never);
    }
    apply_block(&mut decision, slot, now);
    decision.in_shadow_of(slot.policy, cost)
}

/// What each limit says to a charge ahead of time.
struct Wait {
    said: Said,
    acts_at: u64,
    /// When each limit would accept it.
    retries: [Option<Micros>; crate::policy::MAX_LIMITS],
}

impl Wait {
    fn of(slot: &Slot<'_>, max_wait: Micros, now: Timestamp, seen: &mut Effects) -> Wait {
        let state = slot.state.in_form_of(slot.policy);
        let mut said = Said::of(slot.policy, slot.state, slot.cost, now, seen);
        let mut wait = Wait { said, acts_at: now.as_micros(), retries: [None; 16] };
        for (index, limit) in slot.policy.limits().iter().enumerate() {
            if slot.cost > limit.capacity() {
                continue;
            }
            let settled = limit.settle(state.limit(index), now, seen);
            let acts_at = limit.acts_at(&settled, slot.cost);
            let accepted_at =
                limit.reserves_at(&settled, slot.cost).max(acts_at.saturating_sub(max_wait.get()));
            let fits = accepted_at <= now.as_micros();
            said.set_fits(index, fits);
            wait.acts_at = wait.acts_at.max(acts_at);
            wait.retries[index] = Some(span(now, accepted_at)).filter(|_| !fits);
        }
        said.delay = span(now, wait.acts_at);
        said.denied = !said.all_fit();
        Wait { said, ..wait }
    }
}

fn marks(state: &KeyState) -> Box<[Level]> {
    state.limits().iter().map(level_of).collect()
}

/// The level of a meter; an empty one for what is none.
fn level_of(state: &LimitState) -> Level {
    if let LimitState::Meter(meter) = state { *meter } else { Level { at: 0, used: 0 } }
}

/// The answer to a reservation that the key holds already.
fn replay_reservation(slot: &Slot<'_>, id: Id, now: Timestamp) -> Option<Decision> {
    let known = own_reservation(slot, id, now)?;
    let mut decision = describe_now(slot, now);
    decision.replayed = true;
    decision.granted = known.cost;
    decision.delay = span(now, known.acts_at);
    decision.reservation = Some(id);
    let granted = decision.granted;
    Some(decision.in_shadow_of(slot.policy, granted))
}

/// The reservation of this id, if it was made under the slot's limits.
fn own_reservation<'a>(slot: &'a Slot<'_>, id: Id, now: Timestamp) -> Option<&'a Reservation> {
    let found = slot.state.reservations(now).iter().find(|reservation| reservation.id == id);
    found.filter(|found| found.is_of(slot.policy))
}

/// Gives a reservation back, once, before its time.
fn cancel(slot: &mut Slot<'_>, id: Id, now: Timestamp, seen: &mut Effects) -> Decision {
    let found = own_reservation(slot, id, now).cloned();
    let mut decision = if let Some(found) = &found {
        let mut marks = found.marks.iter();
        change_each(slot, now, seen, |limit, state, settled, _| {
            marks.next().map_or(0, |mark| limit.cancel(state, settled, mark, found.cost))
        })
    } else {
        describe_now(slot, now)
    };
    if found.is_some() {
        slot.state.remove_reservation(id);
    }
    decision.changed = found.is_some();
    decision.reservation = Some(id);
    decision
}

/// Changes every limit that has state; says how much in the one that changed most.
fn change_each(
    slot: &mut Slot<'_>,
    now: Timestamp,
    seen: &mut Effects,
    mut change: impl FnMut(&Limit, &mut LimitState, &Settled, &mut Effects) -> u64,
) -> Decision {
    // State of another form of the policy stays in it unless something is changed.
    let other_form = slot.state.policy().is_some() && !slot.state.is_of(slot.policy);
    let kept = other_form.then(|| slot.state.clone());
    adopt(slot, now);
    let (mut granted, mut changed) = (0, false);
    let limits = slot.policy.limits().iter();
    for (limit, state) in limits.zip(slot.state.limits_mut(slot.policy)) {
        let settled = limit.settle(state, now, seen);
        let level = level_of(state);
        let by = change(limit, state, &settled, seen);
        // A bucket may have given back a fraction of a token.
        changed |= by > 0 || level_of(state) != level;
        granted = granted.max(by);
    }
    if let Some(kept) = kept.filter(|_| !changed) {
        *slot.state = kept;
    }
    let mut decision = describe_now(slot, now);
    decision.granted = granted;
    decision.changed = changed;
    decision
}

/// Gives back, in every limit but those of requests in flight.
fn refund(
    slot: &mut Slot<'_>,
    time: Option<Timestamp>,
    now: Timestamp,
    seen: &mut Effects,
) -> Decision {
    let count = slot.cost;
    change_each(slot, now, seen, |limit, state, settled, _| {
        limit.refund(state, settled, count, time)
    })
}

/// Charges whatever the level, into a debt of at most one more capacity.
fn penalize(slot: &mut Slot<'_>, now: Timestamp, seen: &mut Effects) -> Decision {
    let (count, charge) = (slot.cost, charge_of(slot, 0));
    let mut charged = Vec::with_capacity(slot.policy.limits().len());
    let decision = change_each(slot, now, seen, |limit, state, settled, seen| {
        let cost = count.min(limit.debt_room(settled));
        limit.charge(state, *settled, &Charge { cost, ..charge }, now, seen);
        charged.push(cost);
        cost
    });
    if decision.granted > 0 {
        let cost = |index: usize| charged.get(index).copied().unwrap_or(0);
        slot.state.charge_strays(slot.policy, now, |index, _| cost(index));
    }
    decision
}

fn reset(slot: &mut Slot<'_>, now: Timestamp) -> Decision {
    let changed = slot.state.recovers_at(now) > now.as_micros();
    *slot.state = KeyState::default();
    Decision { changed, ..describe_now(slot, now) }
}

fn block(slot: &mut Slot<'_>, span: Option<Micros>, now: Timestamp) -> Decision {
    let block = span.map_or(Block::Forever, |span| Block::Until(now.after(span)));
    let changed = *slot.block != Some(block);
    *slot.block = Some(block);
    Decision { changed, ..describe_now(slot, now) }
}

fn unblock(slot: &mut Slot<'_>, now: Timestamp) -> Decision {
    let changed = slot.is_blocked(now);
    *slot.block = None;
    Decision { changed, ..describe_now(slot, now) }
}

/// Lets a lease that is still held last its whole length from now.
fn renew(slot: &mut Slot<'_>, id: Id, now: Timestamp, seen: &mut Effects) -> Decision {
    let cost = lease_cost(slot, id, now);
    let mut decision = change_each(slot, now, seen, |limit, state, settled, _| {
        u64::from(limit.renew(state, settled, id))
    });
    decision.changed = cost.is_some();
    decision.granted = cost.unwrap_or(0);
    decision.lease = Some(id);
    decision
}

/// Gives a lease's place back, once.
fn release(slot: &mut Slot<'_>, id: Id, now: Timestamp, seen: &mut Effects) -> Decision {
    let cost = lease_cost(slot, id, now);
    let mut decision = change_each(slot, now, seen, |limit, state, settled, _| {
        limit.release(state, settled, id).unwrap_or(0)
    });
    decision.changed = cost.is_some();
    decision.granted = cost.unwrap_or(0);
    decision.lease = Some(id);
    decision
}

/// The cost of a lease that any concurrent limit of the slot still holds.
pub(crate) fn lease_cost(slot: &Slot<'_>, id: Id, now: Timestamp) -> Option<u64> {
    let state = slot.state.in_form_of(slot.policy);
    let mut seen = Effects::default();
    let cost = |(index, limit): (usize, &Limit)| {
        let state = state.limit(index);
        limit.lease_cost(state, &limit.settle(state, now, &mut seen), id)
    };
    slot.policy.limits().iter().enumerate().find_map(cost)
}
