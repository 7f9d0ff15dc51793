//! The operations on a single key: take, reserve and cancel, refund, penalize and backfill, reset,
//! block and unblock, renew and release.

use alloc::boxed::Box;
use alloc::vec::Vec;

use super::context::CheckContext;
use super::evaluate::{Evaluation, describe};
use crate::algorithm::{Algorithm, Anomalies, Charge, LimitState, Refund, TokenBucketState, Usage};
use crate::decision::Decision;
use crate::id::Id;
use crate::key::{Block, KeyState, Reservation};
use crate::policy::{BanState, MAX_LIMITS};
use crate::request::Operation;
use crate::time::{Micros, Timestamp, duration_until};

pub(super) fn execute(
    operation: &Operation,
    context: &mut CheckContext<'_>,
    now: Timestamp,
    anomalies: &mut Anomalies,
) -> Decision {
    match *operation {
        Operation::Take => take(context, now, anomalies),
        Operation::Reserve { id, max_wait } => reserve(context, id, max_wait, now, anomalies),
        Operation::Cancel { id } => cancel(context, id, now, anomalies),
        Operation::Refund { time } => {
            let refund = Refund { count: context.cost, time, recovers_at: None };
            change_each(context, now, anomalies, |algorithm, state, usage, _| {
                algorithm.refund(state, usage, &refund)
            })
        }
        Operation::Penalize => penalize(context, context.cost, now, anomalies),
        Operation::Backfill { limit, time } => {
            backfill(context, usize::from(limit), time, now, anomalies)
        }
        Operation::Reset => reset(context, now),
        Operation::Block { span } => block(context, span, now),
        Operation::Unblock => unblock(context, now),
        Operation::Renew { lease } => {
            change_lease(context, lease, now, anomalies, |algorithm, state, usage, _| {
                u64::from(algorithm.renew(state, usage, lease))
            })
        }
        Operation::Release { lease } => {
            change_lease(context, lease, now, anomalies, |algorithm, state, usage, _| {
                algorithm.release(state, usage, lease)
            })
        }
        Operation::Check { .. } | Operation::Acquire { .. } | Operation::Peek => {
            unreachable!("checks and peeks are decided elsewhere")
        }
        Operation::Settle => unreachable!("a settlement needs the charge that the store recorded"),
    }
}

fn take(context: &mut CheckContext<'_>, now: Timestamp, anomalies: &mut Anomalies) -> Decision {
    let remaining = context.report(now).remaining;
    let wanted = context.cost;
    let ban = context.ban(now, anomalies);
    let is_blocked = context.is_locked_out(ban, now);
    let granted = if is_blocked { 0 } else { wanted.min(remaining) };
    let mut evaluation =
        Evaluation::new(context.policy, context.state, granted.max(1), now, anomalies);
    evaluation.denied = granted == 0;
    let changed = if granted > 0 {
        context.charge_limits(&context.charge(granted), now, anomalies);
        true
    } else {
        let is_charged = !is_blocked && context.charge_denied(&context.charge(1), now, anomalies);
        is_charged | (!is_blocked && context.count_denial(now))
    };
    let mut decision = describe(context.policy, context.state, context.state, &evaluation, now);
    decision.granted = granted;
    decision.changed = changed;
    context.apply_ban(&mut decision, ban, context.ban(now, &mut Anomalies::default()), now);
    context.apply_block(&mut decision, now);
    decision.shadowed_by(context.policy, wanted)
}

fn reserve(
    context: &mut CheckContext<'_>,
    id: Id,
    max_wait: Micros,
    now: Timestamp,
    anomalies: &mut Anomalies,
) -> Decision {
    if let Some(decision) = repeat_reservation(context, id, now) {
        return decision;
    }
    let cost = context.cost;
    let wait = Wait::new(context, max_wait, now, anomalies);
    let ban = context.ban(now, anomalies);
    let is_blocked = context.is_locked_out(ban, now);
    let admitted = wait.evaluation.all_fit() && !is_blocked;
    let is_charged = admitted && cost > 0;
    let is_own_denial = !admitted && !is_blocked && !wait.evaluation.exceeds_capacity();
    let is_counted = is_own_denial && cost > 0 && context.count_denial(now);
    if is_charged {
        context.charge_limits(&context.charge(cost), now, anomalies);
        if wait.acts_at > now.as_micros() {
            let (marks, policy) = (levels(context.state), context.policy.clone());
            let reservation = Reservation { id, cost, acts_at: wait.acts_at, policy, marks };
            context.state.add_reservation(context.policy, reservation, now);
        }
    }
    let mut decision =
        describe(context.policy, context.state, context.state, &wait.evaluation, now);
    if admitted {
        decision.granted = cost;
        decision.reservation = Some(id);
    } else {
        decision.set_retries(&wait.retries);
        decision.retry_after = decision.retry_after.filter(|_| !decision.never);
    }
    decision.changed = is_charged || is_counted;
    context.apply_ban(&mut decision, ban, context.ban(now, &mut Anomalies::default()), now);
    context.apply_block(&mut decision, now);
    decision.shadowed_by(context.policy, cost)
}

/// The result of the limits for a reservation.
struct Wait {
    evaluation: Evaluation,
    /// When the request may proceed, in µs since the epoch.
    acts_at: u64,
    /// When each limit would accept the reservation.
    retries: [Option<Micros>; MAX_LIMITS],
}

impl Wait {
    fn new(
        context: &CheckContext<'_>,
        max_wait: Micros,
        now: Timestamp,
        anomalies: &mut Anomalies,
    ) -> Wait {
        let state = context.state.as_read_by(context.policy);
        let cost = context.cost;
        let mut evaluation = Evaluation::new(context.policy, context.state, cost, now, anomalies);
        let (mut last_acts_at, mut retries) = (now.as_micros(), [None; MAX_LIMITS]);
        for (index, limit) in context.policy.limits().iter().enumerate() {
            if cost > limit.capacity() {
                continue;
            }
            let usage = limit.algorithm.advance_to(state.limit(index), now, anomalies);
            let acts_at = limit.algorithm.acts_at(&usage, cost);
            let soon_enough_at = acts_at.saturating_sub(max_wait.get());
            let accepted_at = limit.algorithm.reserves_at(&usage, cost).max(soon_enough_at);
            let fits = accepted_at <= now.as_micros();
            evaluation.set_fits(index, fits);
            last_acts_at = last_acts_at.max(acts_at);
            retries[index] = Some(duration_until(now, accepted_at)).filter(|_| !fits);
        }
        evaluation.delay = duration_until(now, last_acts_at);
        evaluation.denied = !evaluation.all_fit();
        Wait { evaluation, acts_at: last_acts_at, retries }
    }
}

/// The levels of the token buckets and queues of a policy that takes reservations.
fn levels(state: &KeyState) -> Box<[TokenBucketState]> {
    let level = |state: &LimitState| {
        let Some(level) = level_of(state) else { unreachable!("the limit was just charged") };
        level
    };
    state.limits().iter().map(level).collect()
}

fn level_of(state: &LimitState) -> Option<TokenBucketState> {
    if let LimitState::TokenBucket(level) = state { Some(*level) } else { None }
}

/// The first decision about a reservation that the key already holds.
fn repeat_reservation(context: &CheckContext<'_>, id: Id, now: Timestamp) -> Option<Decision> {
    let reservation = find_reservation(context, id, now)?;
    let granted = reservation.cost;
    let delay = duration_until(now, reservation.acts_at);
    let report = context.report(now);
    let decision = Decision { replayed: true, granted, delay, reservation: Some(id), ..report };
    Some(decision.shadowed_by(context.policy, granted))
}

/// The reservation of this id, if it was made under the policy's limits.
fn find_reservation<'a>(
    context: &'a CheckContext<'_>,
    id: Id,
    now: Timestamp,
) -> Option<&'a Reservation> {
    let mut reservations = context.state.reservations(now).iter();
    let reservation = reservations.find(|reservation| reservation.id == id);
    reservation.filter(|reservation| reservation.is_of(context.policy))
}

fn cancel(
    context: &mut CheckContext<'_>,
    id: Id,
    now: Timestamp,
    anomalies: &mut Anomalies,
) -> Decision {
    let reservation = find_reservation(context, id, now).cloned();
    let mut decision = match &reservation {
        None => context.report(now),
        Some(reservation) => {
            let mut marks = reservation.marks.iter();
            change_each(context, now, anomalies, |algorithm, state, usage, _| {
                let Some(mark) = marks.next() else { unreachable!("each limit has a mark") };
                algorithm.cancel(state, usage, mark, reservation.cost)
            })
        }
    };
    if reservation.is_some() {
        context.state.remove_reservation(id);
    }
    decision.changed = reservation.is_some();
    decision.reservation = Some(id);
    decision
}

/// Changes the state of every limit. `change` returns by how much; the greatest change is granted.
pub(super) fn change_each(
    context: &mut CheckContext<'_>,
    now: Timestamp,
    anomalies: &mut Anomalies,
    mut change: impl FnMut(&Algorithm, &mut LimitState, &Usage, &mut Anomalies) -> u64,
) -> Decision {
    // State in the numbers of another version is migrated only if something changes.
    let is_other_version = context.state.policy().is_some() && !context.state.is_of(context.policy);
    let original = is_other_version.then(|| context.state.clone());
    context.migrate(now);
    let (mut granted, mut changed) = (0, false);
    let limits = context.policy.limits().iter();
    for (limit, state) in limits.zip(context.state.limits_mut(context.policy)) {
        let usage = limit.algorithm.advance_to(state, now, anomalies);
        let level = level_of(state);
        let amount = change(&limit.algorithm, state, &usage, anomalies);
        // A bucket may have refunded a fraction of a token.
        changed |= amount > 0 || level_of(state) != level;
        granted = granted.max(amount);
    }
    if let Some(original) = original.filter(|_| !changed) {
        *context.state = original;
    }
    Decision { granted, changed, ..context.report(now) }
}

/// Charges `count` to each limit, into a debt of at most one more capacity.
pub(super) fn penalize(
    context: &mut CheckContext<'_>,
    count: u64,
    now: Timestamp,
    anomalies: &mut Anomalies,
) -> Decision {
    let charge = context.charge(0);
    let mut charged = Vec::with_capacity(context.policy.limits().len());
    let decision = change_each(context, now, anomalies, |algorithm, state, usage, anomalies| {
        let cost = count.min(algorithm.max_penalty(usage));
        algorithm.charge(state, *usage, &Charge { cost, ..charge }, now, anomalies);
        charged.push(cost);
        cost
    });
    if decision.granted > 0 {
        context.state.charge_detached(context.policy, now, |index, _| charged[index]);
    }
    decision
}

/// Charges one limit where `time` counts, into a debt of at most one more capacity.
fn backfill(
    context: &mut CheckContext<'_>,
    index: usize,
    time: Timestamp,
    now: Timestamp,
    anomalies: &mut Anomalies,
) -> Decision {
    let charge = context.charge(context.cost);
    let mut indices = 0..;
    let decision = change_each(context, now, anomalies, |algorithm, state, usage, anomalies| {
        if indices.next() != Some(index) {
            return 0;
        }
        algorithm.backfill(state, usage, &charge, time, now, anomalies)
    });
    if decision.granted > 0 {
        context.state.backfill_detached(context.policy, index, decision.granted, time, now);
    }
    decision
}

fn reset(context: &mut CheckContext<'_>, now: Timestamp) -> Decision {
    let changed = context.state.recovers_at(now) > now.as_micros();
    *context.state = KeyState::default();
    Decision { changed, ..context.report(now) }
}

fn block(context: &mut CheckContext<'_>, span: Option<Micros>, now: Timestamp) -> Decision {
    let block = span.map_or(Block::Forever, |span| Block::Until(now.saturating_add(span)));
    let changed = *context.block != Some(block);
    *context.block = Some(block);
    Decision { changed, ..context.report(now) }
}

fn unblock(context: &mut CheckContext<'_>, now: Timestamp) -> Decision {
    let is_banned = context.state.ban().at(now).is_banned();
    let changed = context.is_blocked(now) || is_banned;
    *context.block = None;
    if is_banned {
        context.state.set_ban(context.policy, BanState::Clear);
    }
    Decision { changed, ..context.report(now) }
}

/// Changes a lease in every limit. It grants the cost of the lease, or nothing if it is not held.
fn change_lease(
    context: &mut CheckContext<'_>,
    id: Id,
    now: Timestamp,
    anomalies: &mut Anomalies,
    change: impl FnMut(&Algorithm, &mut LimitState, &Usage, &mut Anomalies) -> u64,
) -> Decision {
    let cost = context.lease_cost(id, now);
    Decision {
        changed: cost.is_some(),
        // A lease that is not held grants nothing.
        granted: cost.unwrap_or(0),
        lease: Some(id),
        ..change_each(context, now, anomalies, change)
    }
}
