//! Checks and peeks: one or several keys, all charged or none.

use alloc::vec::Vec;

use super::context::CheckContext;
use super::evaluate::{Evaluation, describe};
use super::{idempotency, operations};
use crate::algorithm::{Anomalies, Charge};
use crate::decision::Decision;
use crate::id::Id;
use crate::limit::Limit;
use crate::request::Operation;
use crate::time::Timestamp;

/// Decides a request that [`Request::validate`](crate::Request::validate) accepts. Returns a decision
/// for each check, in order.
pub fn decide(
    operation: &Operation,
    contexts: &mut [CheckContext<'_>],
    now: Timestamp,
    anomalies: &mut Anomalies,
) -> Vec<Decision> {
    match *operation {
        Operation::Check { lease } => check_all(contexts, lease, now, anomalies),
        Operation::Acquire { lease } => check_all(contexts, Some(lease), now, anomalies),
        Operation::Peek => peek_all(contexts, now, anomalies),
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
        Operation::Check { lease } => check_one(context, lease, now, anomalies),
        Operation::Acquire { lease } => check_one(context, Some(lease), now, anomalies),
        Operation::Peek => {
            let verdict = Verdict::new(context, now, anomalies);
            peek(context, &verdict, verdict.outcome(), now, anomalies)
        }
        _ => operations::execute(operation, context, now, anomalies),
    }
}

/// The result of the limits and the block of one check, before anything is charged.
struct Verdict {
    evaluation: Evaluation,
    blocked: bool,
}

impl Verdict {
    fn new(context: &CheckContext<'_>, now: Timestamp, anomalies: &mut Anomalies) -> Self {
        let evaluation =
            Evaluation::new(context.policy, context.state, context.cost, now, anomalies);
        Verdict { evaluation, blocked: context.is_blocked(now) }
    }

    fn admits(&self) -> bool {
        self.evaluation.all_fit() && !self.blocked
    }

    /// The outcome of a check that is decided alone.
    fn outcome(&self) -> Outcome {
        let charged = self.admits();
        Outcome { charged, counted: !charged && self.can_be_counted() }
    }

    /// Whether `count-denied` limits count a denial: it is due to use, not to the cost or a block.
    fn can_be_counted(&self) -> bool {
        !self.evaluation.exceeds_capacity() && !self.blocked
    }
}

/// What happens to a check once its whole request is decided.
#[derive(Clone, Copy)]
struct Outcome {
    /// Its cost is charged.
    charged: bool,
    /// Its cost is charged to its `count-denied` limits.
    counted: bool,
}

fn check_one(
    context: &mut CheckContext<'_>,
    lease: Option<Id>,
    now: Timestamp,
    anomalies: &mut Anomalies,
) -> Decision {
    if lease.is_some_and(|id| idempotency::holds(context, id, now)) {
        return idempotency::repeat(context, lease, now);
    }
    let verdict = Verdict::new(context, now, anomalies);
    finish_check(context, &verdict, verdict.outcome(), lease, now, anomalies)
}

fn check_all(
    contexts: &mut [CheckContext<'_>],
    lease: Option<Id>,
    now: Timestamp,
    anomalies: &mut Anomalies,
) -> Vec<Decision> {
    let repeated = idempotency::find_repeated(contexts, lease, now);
    let new = contexts.iter_mut().zip(&repeated).filter(|(_, repeated)| !**repeated);
    let mut new: Vec<_> = new.map(|(context, _)| context).collect();
    let resolved = resolve(&new, now, anomalies);
    let mut decided = Vec::with_capacity(new.len());
    for (context, (verdict, outcome)) in new.iter_mut().zip(resolved) {
        decided.push(finish_check(context, &verdict, outcome, lease, now, anomalies));
    }
    let mut decided = decided.into_iter();
    let decisions = contexts.iter().zip(repeated).map(|(context, repeated)| {
        if repeated {
            return idempotency::repeat(context, lease, now);
        }
        let Some(decision) = decided.next() else { unreachable!("each new check was decided") };
        decision
    });
    decisions.collect()
}

/// The verdict and the outcome of each check. Shadow policies are decided alone.
fn resolve(
    contexts: &[&mut CheckContext<'_>],
    now: Timestamp,
    anomalies: &mut Anomalies,
) -> Vec<(Verdict, Outcome)> {
    let verdicts: Vec<_> =
        contexts.iter().map(|context| Verdict::new(context, now, anomalies)).collect();
    let enforced = || {
        let checks = contexts.iter().zip(&verdicts);
        checks.filter(|(context, _)| !context.policy.is_shadow()).map(|(_, verdict)| verdict)
    };
    let charged = enforced().all(Verdict::admits);
    let counted = !charged && enforced().all(Verdict::can_be_counted);
    let shared = Outcome { charged, counted };
    let outcome = |(context, verdict): (&&mut CheckContext<'_>, Verdict)| {
        let outcome = if context.policy.is_shadow() { verdict.outcome() } else { shared };
        (verdict, outcome)
    };
    contexts.iter().zip(verdicts).map(outcome).collect()
}

fn finish_check(
    context: &mut CheckContext<'_>,
    verdict: &Verdict,
    outcome: Outcome,
    lease: Option<Id>,
    now: Timestamp,
    anomalies: &mut Anomalies,
) -> Decision {
    let charge = Charge { lease, ..context.charge(context.cost) };
    let changed = context.cost > 0
        && if outcome.charged {
            context.charge_limits(&charge, now, anomalies);
            true
        } else {
            outcome.counted && context.charge_denied(&charge, now, anomalies)
        };
    let evaluation = verdict.evaluation.denied_if(!outcome.charged);
    let mut decision = describe(context.policy, context.state, context.state, &evaluation, now);
    decision.changed = changed;
    if outcome.charged {
        decision.granted = context.cost;
        decision.lease = lease.filter(|_| context.policy.has_concurrent() && context.cost > 0);
    }
    context.apply_block(&mut decision, now);
    decision.shadowed_by(context.policy, context.cost)
}

fn peek_all(
    contexts: &mut [CheckContext<'_>],
    now: Timestamp,
    anomalies: &mut Anomalies,
) -> Vec<Decision> {
    let contexts: Vec<_> = contexts.iter_mut().collect();
    let resolved = resolve(&contexts, now, anomalies);
    let peek = |(context, (verdict, outcome)): (&&mut CheckContext<'_>, (Verdict, Outcome))| {
        peek(context, &verdict, outcome, now, anomalies)
    };
    contexts.iter().zip(resolved).map(peek).collect()
}

/// The decision that a check would get. Its retry includes what a denial would charge; what remains
/// is that of the current state.
fn peek(
    context: &CheckContext<'_>,
    verdict: &Verdict,
    outcome: Outcome,
    now: Timestamp,
    anomalies: &mut Anomalies,
) -> Decision {
    let mut after = None;
    if outcome.counted && context.policy.limits().iter().any(Limit::counts_denied) {
        let state = after.insert(context.state.clone());
        let (policy, cost) = (context.policy, context.cost);
        let mut copy = CheckContext { policy, state, block: &mut None, cost };
        copy.charge_denied(&context.charge(cost), now, anomalies);
    }
    let evaluation = verdict.evaluation.denied_if(!outcome.charged);
    let after = after.as_ref().unwrap_or(context.state);
    let mut decision = describe(context.policy, context.state, after, &evaluation, now);
    context.apply_block(&mut decision, now);
    decision.shadowed_by(context.policy, 0)
}
