//! Events for the feature `tracing`: denials, decisions without the store, and its outages.

use tollgate_algorithms::{Decision, Operation, Policy, Request};
use tollgate_state::Answer;
#[cfg(feature = "redis")]
use tollgate_state::Failure;

/// Records the decisions of a request. Only operations that decide can deny, and the denial of a peek
/// denies nothing.
pub(crate) fn record_answer(request: &Request<'_>, answer: &Answer) {
    if request.operation.decides() && request.operation != Operation::Peek {
        for (check, decision) in request.checks.iter().zip(&answer.decisions) {
            record(check.policy, decision);
        }
    }
}

/// Records a decision. The key is left out, because it may be personal data.
#[inline]
pub(crate) fn record(policy: &Policy, decision: &Decision) {
    if decision.allowed && !decision.degraded && !decision.shadow {
        return;
    }
    emit(policy, decision);
}

fn emit(policy: &Policy, decision: &Decision) {
    let message = match (decision.allowed, decision.is_shadow_denial()) {
        (false, _) => "denied",
        (true, true) => "denied in shadow mode",
        (true, false) if decision.degraded => "admitted without the store",
        (true, false) => return,
    };
    tracing::debug!(
        target: "tollgate",
        policy = policy.name(),
        reason = decision.reason_name(),
        retry_after_us = decision.retry_after.map(|time| time.get()),
        degraded = decision.degraded,
        "{message}",
    );
}

/// Records that the store has become unavailable, or was never reached.
#[cfg(feature = "redis")]
pub(crate) fn record_outage(failure: &Failure) {
    tracing::warn!(
        target: "tollgate",
        %failure,
        "store unavailable: checks that it does not answer are decided by on_store_error",
    );
}

/// Records that the store answers again. The level is that of the outage, so that a log has both or
/// neither.
#[cfg(feature = "redis")]
pub(crate) fn record_recovery() {
    tracing::warn!(target: "tollgate", "store available again");
}
