//! Repeated lease ids: a key that already holds the lease repeats its first decision.

use alloc::vec::Vec;

use super::context::CheckContext;
use crate::decision::Decision;
use crate::id::Id;
use crate::time::Timestamp;

/// Whether a check acquires a lease if it is admitted. A check of cost 0 does not.
fn acquires(context: &CheckContext<'_>) -> bool {
    context.cost > 0 && context.policy.has_concurrent()
}

/// Whether the check would acquire a lease that its key already holds.
pub(super) fn holds(context: &CheckContext<'_>, lease: Id, now: Timestamp) -> bool {
    acquires(context) && context.lease_cost(lease, now).is_some()
}

/// The checks of a request that repeat their first decision: those whose keys hold the lease. If these
/// are all checks that acquire it, the other checks of the request are repeated too.
pub(super) fn find_repeated(
    contexts: &[CheckContext<'_>],
    lease: Option<Id>,
    now: Timestamp,
) -> Vec<bool> {
    let holds = |context: &CheckContext<'_>| lease.is_some_and(|id| holds(context, id, now));
    let mut repeated: Vec<bool> = contexts.iter().map(holds).collect();
    let all = contexts.iter().zip(&repeated).all(|(context, held)| *held || !acquires(context));
    if all && repeated.contains(&true) {
        repeated.fill(true);
    }
    repeated
}

/// The first decision, without a charge.
pub(super) fn repeat(context: &CheckContext<'_>, lease: Option<Id>, now: Timestamp) -> Decision {
    let cost = lease.filter(|_| context.cost > 0).and_then(|id| context.lease_cost(id, now));
    let mut decision = context.report(now);
    decision.replayed = true;
    // A check that takes no lease was granted its own cost.
    let granted = cost.unwrap_or(context.cost);
    decision.granted = granted;
    decision.lease = lease.filter(|_| context.policy.has_concurrent());
    decision.shadowed_by(context.policy, granted)
}
