//! Deciding: a request's checks against the states of their keys, all charged or none.

use alloc::vec::Vec;

use crate::decision::Decision;
use crate::describe::{Said, describe};
use crate::key_state::KeyState;
use crate::policy::Policy;
use crate::replay;
use crate::request::{Id, Operation};
use crate::state::{Charge, Effects};
use crate::time::Timestamp;
use crate::verbs;

/// Until when a key is blocked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Block {
    /// Up to, not including, this moment.
    Until(Timestamp),
    /// Until it is lifted.
    Forever,
}

impl Block {
    /// Whether it still holds.
    #[must_use]
    pub fn holds(self, now: Timestamp) -> bool {
        match self {
            Block::Until(end) => now < end,
            Block::Forever => true,
        }
    }
}

/// A check with what the store keeps of its key. The slots of one request are of different
/// (policy, key) pairs: a store sums the costs of equal ones before it asks.
#[derive(Debug)]
pub struct Slot<'a> {
    /// Under which limits.
    pub policy: &'a Policy,
    /// The counters of the key, the default for an unknown one.
    pub state: &'a mut KeyState,
    /// The block of the key.
    pub block: &'a mut Option<Block>,
    /// The verb's number.
    pub cost: u64,
}

impl Slot<'_> {
    pub(crate) fn is_blocked(&self, now: Timestamp) -> bool {
        self.block.is_some_and(|block| block.holds(now))
    }
}

/// Decides a request that [`Request::validate`](crate::Request::validate) has passed; one answer
/// for each slot, in order.
pub fn decide(
    verb: &Operation,
    slots: &mut [Slot<'_>],
    now: Timestamp,
    seen: &mut Effects,
) -> Vec<Decision> {
    match *verb {
        Operation::Check { lease } => check_all(slots, lease, now, seen),
        Operation::Acquire { lease } => check_all(slots, Some(lease), now, seen),
        Operation::Peek => peek_all(slots, now, seen),
        _ => slots.iter_mut().map(|slot| verbs::decide_one(verb, slot, now, seen)).collect(),
    }
}

/// What a slot's limits say before anything is charged.
struct Verdict {
    said: Said,
    blocked: bool,
}

impl Verdict {
    fn of(slot: &Slot<'_>, now: Timestamp, seen: &mut Effects) -> Self {
        let said = Said::of(slot.policy, slot.state, slot.cost, now, seen);
        Verdict { said, blocked: slot.is_blocked(now) }
    }

    fn admits(&self) -> bool {
        self.said.all_fit() && !self.blocked
    }

    /// What becomes of it where no other check has a say.
    fn alone(&self) -> Outcome {
        let charged = self.admits();
        Outcome { charged, counted: !charged && self.is_of_limits() }
    }

    /// Whether a denial is the limits' own, which is what `count-denied` counts.
    fn is_of_limits(&self) -> bool {
        !self.said.any_never() && !self.blocked
    }
}

/// Decides a verb on one key, as [`decide`] does, without an allocation.
pub fn decide_one(
    verb: &Operation,
    slot: &mut Slot<'_>,
    now: Timestamp,
    seen: &mut Effects,
) -> Decision {
    match *verb {
        Operation::Check { lease } => check_one(slot, lease, now, seen),
        Operation::Acquire { lease } => check_one(slot, Some(lease), now, seen),
        Operation::Peek => {
            let verdict = Verdict::of(slot, now, seen);
            let outcome = verdict.alone();
            peek(slot, &verdict, outcome, now, seen)
        }
        _ => verbs::decide_one(verb, slot, now, seen),
    }
}

fn check_one(
    slot: &mut Slot<'_>,
    lease: Option<Id>,
    now: Timestamp,
    seen: &mut Effects,
) -> Decision {
    if lease.is_some_and(|id| replay::holds(slot, id, now)) {
        return replay::answer(slot, lease, now);
    }
    let verdict = Verdict::of(slot, now, seen);
    let outcome = verdict.alone();
    finish_check(slot, &verdict, outcome, lease, now, seen)
}

fn check_all(
    slots: &mut [Slot<'_>],
    lease: Option<Id>,
    now: Timestamp,
    seen: &mut Effects,
) -> Vec<Decision> {
    let held = replay::held(slots, lease, now);
    let rest = slots.iter_mut().zip(&held).filter(|(_, held)| !**held);
    let mut rest: Vec<_> = rest.map(|(slot, _)| slot).collect();
    let resolved = resolve(&rest, now, seen);
    let finish = |(slot, (verdict, outcome)): (&mut &mut Slot<'_>, (Verdict, Outcome))| {
        finish_check(slot, &verdict, outcome, lease, now, seen)
    };
    let decided: Vec<_> = rest.iter_mut().zip(resolved).map(finish).collect();
    let mut decided = decided.into_iter();
    let answer = |(slot, held): (&Slot<'_>, bool)| match held {
        true => replay::answer(slot, lease, now),
        false => decided.next().unwrap_or_default(),
    };
    slots.iter().zip(held).map(answer).collect()
}

/// What each slot's limits say, and what becomes of it. A shadow policy is decided alone.
fn resolve(slots: &[&mut Slot<'_>], now: Timestamp, seen: &mut Effects) -> Vec<(Verdict, Outcome)> {
    let verdicts: Vec<_> = slots.iter().map(|slot| Verdict::of(slot, now, seen)).collect();
    let enforced = || slots.iter().zip(&verdicts).filter(|(slot, _)| !slot.policy.is_shadow());
    let admitted = enforced().all(|(_, x)| x.admits());
    let counted = !admitted && enforced().all(|(_, x)| x.is_of_limits());
    let together = Outcome { charged: admitted, counted };
    let outcome = |(slot, verdict): (&&mut Slot<'_>, Verdict)| {
        let outcome = if slot.policy.is_shadow() { verdict.alone() } else { together };
        (verdict, outcome)
    };
    slots.iter().zip(verdicts).map(outcome).collect()
}

/// What becomes of a check once its whole request is known.
#[derive(Clone, Copy)]
struct Outcome {
    /// Its cost is charged.
    charged: bool,
    /// Its `count-denied` limits are.
    counted: bool,
}

fn finish_check(
    slot: &mut Slot<'_>,
    verdict: &Verdict,
    outcome: Outcome,
    lease: Option<Id>,
    now: Timestamp,
    seen: &mut Effects,
) -> Decision {
    let charge = Charge { cost: slot.cost, lease, log_entries: slot.policy.log_entries() };
    let changed = slot.cost > 0
        && if outcome.charged {
            charge_limits(slot, &charge, now, seen);
            true
        } else {
            outcome.counted && charge_denied(slot, &charge, now, seen)
        };
    let said = verdict.said.denied_if(!outcome.charged);
    let mut decision = describe(slot.policy, slot.state, slot.state, &said, now);
    decision.changed = changed;
    if outcome.charged {
        decision.granted = slot.cost;
        decision.lease = lease.filter(|_| slot.policy.has_concurrent() && slot.cost > 0);
    }
    apply_block(&mut decision, slot, now);
    decision.in_shadow_of(slot.policy, slot.cost)
}

/// Charges every limit, in each form that is kept of it; the form of the state becomes the
/// policy's.
pub(crate) fn charge_limits(
    slot: &mut Slot<'_>,
    charge: &Charge,
    now: Timestamp,
    seen: &mut Effects,
) {
    adopt(slot, now);
    let limits = slot.policy.limits().iter();
    for (limit, state) in limits.zip(slot.state.limits_mut(slot.policy)) {
        let settled = limit.settle(state, now, seen);
        limit.charge(state, settled, charge, now, seen);
    }
    slot.state.charge_strays(slot.policy, now, |_, _| charge.cost);
}

/// Charges the `count-denied` limits; whether there are any.
pub(crate) fn charge_denied(
    slot: &mut Slot<'_>,
    charge: &Charge,
    now: Timestamp,
    seen: &mut Effects,
) -> bool {
    if charge.cost == 0 || !slot.policy.limits().iter().any(|limit| limit.counts_denied()) {
        return false;
    }
    adopt(slot, now);
    let limits = slot.policy.limits();
    for (limit, state) in limits.iter().zip(slot.state.limits_mut(slot.policy)) {
        if limit.counts_denied() {
            let settled = limit.settle(state, now, seen);
            limit.charge_denied(state, settled, charge, now, seen);
        }
    }
    slot.state.charge_strays(slot.policy, now, |index, stray| {
        let counted = limits[index].counts_denied() && stray.limit.counts_denied();
        if counted { charge.cost } else { 0 }
    });
    true
}

/// Brings the state into the form of the slot's policy, before a change.
pub(crate) fn adopt(slot: &mut Slot<'_>, now: Timestamp) {
    if slot.state.policy().is_some() && !slot.state.is_of(slot.policy) {
        *slot.state = core::mem::take(slot.state).adopted(slot.policy, now);
    }
}

/// A block outweighs what the limits say.
pub(crate) fn apply_block(decision: &mut Decision, slot: &Slot<'_>, now: Timestamp) {
    if let Some(block) = slot.block.filter(|block| block.holds(now)) {
        decision.cover_block(block, now);
        decision.deny_as_blocked(block, now);
    }
}

fn peek_all(slots: &mut [Slot<'_>], now: Timestamp, seen: &mut Effects) -> Vec<Decision> {
    let mut slots: Vec<_> = slots.iter_mut().collect();
    let resolved = resolve(&slots, now, seen);
    let peek = |(slot, (verdict, outcome)): (&mut &mut Slot<'_>, (Verdict, Outcome))| {
        peek(slot, &verdict, outcome, now, seen)
    };
    slots.iter_mut().zip(resolved).map(peek).collect()
}

/// What a check would answer, after what a denial would charge; what remains is of the state as
/// it is.
fn peek(
    slot: &Slot<'_>,
    verdict: &Verdict,
    outcome: Outcome,
    now: Timestamp,
    seen: &mut Effects,
) -> Decision {
    let mut after = None;
    if outcome.counted && slot.policy.limits().iter().any(|limit| limit.counts_denied()) {
        let state = after.insert(slot.state.clone());
        let (policy, cost) = (slot.policy, slot.cost);
        let mut copy = Slot { policy, state, block: &mut None, cost };
        let log_entries = policy.log_entries();
        charge_denied(&mut copy, &Charge { cost, lease: None, log_entries }, now, seen);
    }
    let said = verdict.said.denied_if(!outcome.charged);
    let after = after.as_ref().unwrap_or(slot.state);
    let mut decision = describe(slot.policy, slot.state, after, &said, now);
    apply_block(&mut decision, slot, now);
    decision.in_shadow_of(slot.policy, 0)
}
