//! Checks and peeks: one or several keys, all charged or none.

use alloc::vec::Vec;

use super::context::CheckContext;
use super::evaluate::{Evaluation, describe};
use super::fast_path::check_few_limits;
use super::operations;
use crate::algorithm::{Anomalies, Charge};
use crate::decision::Decision;
use crate::id::Id;
use crate::policy::BanState;
use crate::request::Operation;
use crate::time::Timestamp;

/// Decides a request that [`Request::validate`](crate::Request::validate) accepts. Returns a
/// decision for each check, in order.
pub fn decide(
    operation: &Operation,
    contexts: &mut [CheckContext<'_>],
    now: Timestamp,
    anomalies: &mut Anomalies,
) -> Vec<Decision> {
    match *operation {
        Operation::Check { lease } => check_all(contexts, lease, now, anomalies),
        Operation::Acquire { lease } => check_all(contexts, Some(lease), now, anomalies),
        Operation::Peek => {
            let contexts: Vec<_> = contexts.iter().collect();
            let checks = contexts.iter().zip(resolve(&contexts, now, anomalies));
            checks.map(|(context, verdict)| peek(context, &verdict, now, anomalies)).collect()
        }
        _ => contexts
            .iter_mut()
            .map(|context| operations::execute(operation, context, now, anomalies))
            .collect(),
    }
}

/// Decides an operation on one key, as [`decide`] does, without an allocation.
pub fn decide_one(
    operation: &Operation,
    context: &mut CheckContext<'_>,
    now: Timestamp,
    anomalies: &mut Anomalies,
) -> Decision {
    match *operation {
        Operation::Check { lease } => {
            if context.block.is_none()
                && context.policy.is_plain()
                && let Some(states) = context.state.few_limits_mut(context.policy)
            {
                return check_few_limits(context.policy, states, context.cost, now, anomalies);
            }
            check_one(context, lease, now, anomalies)
        }
        Operation::Acquire { lease } => check_one(context, Some(lease), now, anomalies),
        Operation::Peek => {
            let verdict = Verdict::new(context, now, anomalies);
            peek(context, &verdict, now, anomalies)
        }
        _ => operations::execute(operation, context, now, anomalies),
    }
}

/// The result of one check, before anything is charged.
struct Verdict {
    evaluation: Evaluation,
    /// The ban of the key, or its counted denials.
    ban: BanState,
    /// Whether the key is blocked or banned.
    blocked: bool,
    /// Whether a denial is counted: for a ban, and by the `count-denied` limits.
    counted: bool,
}

impl Verdict {
    /// The verdict about a check that is decided alone.
    fn new(context: &CheckContext<'_>, now: Timestamp, anomalies: &mut Anomalies) -> Self {
        let evaluation =
            Evaluation::new(context.policy, context.state, context.cost, now, anomalies);
        let ban = context.ban(now, anomalies);
        let blocked = context.is_locked_out(ban, now);
        let mut verdict = Verdict { evaluation, ban, blocked, counted: false };
        verdict.set_outcome(verdict.admits(), verdict.can_be_counted());
        verdict
    }

    fn set_outcome(&mut self, charged: bool, counted: bool) {
        self.evaluation.denied = !charged;
        self.counted = !charged && counted;
    }

    fn admits(&self) -> bool {
        self.evaluation.all_fit() && !self.blocked
    }

    /// Whether a denial is counted: it is due to use, not to the cost, a block or a ban.
    fn can_be_counted(&self) -> bool {
        !self.evaluation.exceeds_capacity() && !self.blocked
    }

    /// Counts a denial. Returns whether that changes the state.
    fn count(
        &self,
        context: &mut CheckContext<'_>,
        charge: &Charge,
        now: Timestamp,
        anomalies: &mut Anomalies,
    ) -> bool {
        let is_charged = self.counted && context.charge_denied(charge, now, anomalies);
        // A key that only shares a denied request is not to blame for it.
        let is_own = self.counted && !self.evaluation.all_fit();
        is_charged | (is_own && context.count_denial(now))
    }
}

fn check_one(
    context: &mut CheckContext<'_>,
    lease: Option<Id>,
    now: Timestamp,
    anomalies: &mut Anomalies,
) -> Decision {
    if holds(context, lease, now) {
        return repeat(context, lease, now);
    }
    let verdict = Verdict::new(context, now, anomalies);
    finish_check(context, &verdict, lease, now, anomalies)
}

fn check_all(
    contexts: &mut [CheckContext<'_>],
    lease: Option<Id>,
    now: Timestamp,
    anomalies: &mut Anomalies,
) -> Vec<Decision> {
    let repeated = find_repeated(contexts, lease, now);
    let new = contexts.iter().zip(&repeated).filter(|(_, repeated)| !**repeated);
    let new: Vec<_> = new.map(|(context, _)| context).collect();
    let mut verdicts = resolve(&new, now, anomalies).into_iter();
    let decisions = contexts.iter_mut().zip(repeated).map(|(context, repeated)| {
        if repeated {
            return repeat(context, lease, now);
        }
        let Some(verdict) = verdicts.next() else { unreachable!("each new check has a verdict") };
        finish_check(context, &verdict, lease, now, anomalies)
    });
    decisions.collect()
}

/// Whether a check acquires a lease if it is admitted. A check of cost 0 does not.
fn acquires(context: &CheckContext<'_>) -> bool {
    context.cost > 0 && context.policy.has_concurrent()
}

/// Whether the check would acquire a lease that its key already holds.
fn holds(context: &CheckContext<'_>, lease: Option<Id>, now: Timestamp) -> bool {
    lease.is_some_and(|id| acquires(context) && context.lease_cost(id, now).is_some())
}

/// The checks of a request that repeat their first decision: those whose keys hold the lease. If
/// these are all checks that acquire it, the other checks of the request are repeated too.
fn find_repeated(contexts: &[CheckContext<'_>], lease: Option<Id>, now: Timestamp) -> Vec<bool> {
    let mut repeated: Vec<bool> =
        contexts.iter().map(|context| holds(context, lease, now)).collect();
    let all =
        contexts.iter().zip(&repeated).all(|(context, repeated)| *repeated || !acquires(context));
    if all && repeated.contains(&true) {
        repeated.fill(true);
    }
    repeated
}

/// The first decision, without a charge.
fn repeat(context: &CheckContext<'_>, lease: Option<Id>, now: Timestamp) -> Decision {
    let cost = lease.filter(|_| context.cost > 0).and_then(|id| context.lease_cost(id, now));
    // A check that takes no lease was granted its own cost.
    let granted = cost.unwrap_or(context.cost);
    let lease = lease.filter(|_| context.policy.has_concurrent());
    let decision = Decision { replayed: true, granted, lease, ..context.report(now) };
    decision.shadowed_by(context.policy, granted)
}

/// The verdict about each check. Shadow policies are decided alone.
fn resolve(
    contexts: &[&CheckContext<'_>],
    now: Timestamp,
    anomalies: &mut Anomalies,
) -> Vec<Verdict> {
    let mut verdicts: Vec<_> =
        contexts.iter().map(|context| Verdict::new(context, now, anomalies)).collect();
    let enforced = || {
        let checks = contexts.iter().zip(&verdicts);
        checks.filter(|(context, _)| !context.policy.is_shadow()).map(|(_, verdict)| verdict)
    };
    let charged = enforced().all(Verdict::admits);
    let counted = !charged && enforced().all(Verdict::can_be_counted);
    for (context, verdict) in contexts.iter().zip(&mut verdicts) {
        if !context.policy.is_shadow() {
            verdict.set_outcome(charged, counted);
        }
    }
    verdicts
}

fn finish_check(
    context: &mut CheckContext<'_>,
    verdict: &Verdict,
    lease: Option<Id>,
    now: Timestamp,
    anomalies: &mut Anomalies,
) -> Decision {
    let charge = Charge { lease, ..context.charge(context.cost) };
    let charged = !verdict.evaluation.denied;
    let changed = context.cost > 0
        && if charged {
            context.charge_limits(&charge, now, anomalies);
            true
        } else {
            verdict.count(context, &charge, now, anomalies)
        };
    let mut decision =
        describe(context.policy, context.state, context.state, &verdict.evaluation, now);
    decision.changed = changed;
    if charged {
        decision.granted = context.cost;
        decision.lease = lease.filter(|_| context.policy.has_concurrent() && context.cost > 0);
    }
    let after = context.ban(now, &mut Anomalies::default());
    context.apply_ban(&mut decision, verdict.ban, after, now);
    context.apply_block(&mut decision, now);
    decision.shadowed_by(context.policy, context.cost)
}

/// The decision that a check would get. Its retry includes what a denial would charge; what remains
/// is that of the current state.
fn peek(
    context: &CheckContext<'_>,
    verdict: &Verdict,
    now: Timestamp,
    anomalies: &mut Anomalies,
) -> Decision {
    let (mut after, mut ban) = (None, verdict.ban);
    if context.cost > 0 && verdict.counted && context.policy.counts_denials() {
        let state = after.insert(context.state.clone());
        let (policy, cost) = (context.policy, context.cost);
        let mut copy = CheckContext { policy, state, block: &mut None, cost };
        verdict.count(&mut copy, &context.charge(cost), now, anomalies);
        ban = copy.ban(now, &mut Anomalies::default());
    }
    let after = after.as_ref().unwrap_or(context.state);
    let mut decision = describe(context.policy, context.state, after, &verdict.evaluation, now);
    context.apply_ban(&mut decision, verdict.ban, ban, now);
    context.apply_block(&mut decision, now);
    decision.shadowed_by(context.policy, 0)
}
