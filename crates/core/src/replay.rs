//! A lease id that comes again: a key that holds it already answers as the first time.

use alloc::vec::Vec;

use crate::decide::Slot;
use crate::decision::Decision;
use crate::request::Id;
use crate::time::Timestamp;
use crate::verbs;

/// Whether a check would take a lease at all. One of cost 0 does not.
fn acquires(slot: &Slot<'_>) -> bool {
    slot.cost > 0 && slot.policy.has_concurrent()
}

/// Whether the check would take a lease that its key holds.
pub(crate) fn holds(slot: &Slot<'_>, lease: Id, now: Timestamp) -> bool {
    acquires(slot) && verbs::lease_cost(slot, lease, now).is_some()
}

/// Which checks of a request are answered as the first time: those whose keys hold the lease and,
/// where that is so of all that would take it, the others with them.
pub(crate) fn held(slots: &[Slot<'_>], lease: Option<Id>, now: Timestamp) -> Vec<bool> {
    let holds = |slot: &Slot<'_>| lease.is_some_and(|id| holds(slot, id, now));
    let mut held: Vec<bool> = slots.iter().map(holds).collect();
    let whole = slots.iter().zip(&held).all(|(slot, held)| *held || !acquires(slot));
    if whole && held.contains(&true) {
        held.fill(true);
    }
    held
}

/// The answer of the first time; nothing is charged.
pub(crate) fn answer(slot: &Slot<'_>, lease: Option<Id>, now: Timestamp) -> Decision {
    let cost = lease.filter(|_| slot.cost > 0).and_then(|id| verbs::lease_cost(slot, id, now));
    let mut decision = verbs::describe_now(slot, now);
    decision.replayed = true;
    decision.granted = cost.unwrap_or(slot.cost);
    decision.lease = lease.filter(|_| slot.policy.has_concurrent());
    let granted = decision.granted;
    decision.in_shadow_of(slot.policy, granted)
}
