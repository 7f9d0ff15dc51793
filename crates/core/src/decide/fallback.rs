//! Decisions while the store is unavailable.

use alloc::vec::Vec;

use crate::decision::{Decision, Details, Reason, Source};
use crate::policy::OnStoreError;
use crate::request::{Check, Cost, Operation, Request};
use crate::time::Timestamp;

/// Decides a request that the store did not answer: one decision for each check, or `None` for an
/// operation that does not decide.
///
/// All checks get the strictest answer of their policies, because they are decided together. Shadow
/// policies do not count and never deny. A policy that answers [`Local`](OnStoreError::Local) denies
/// here, because this function knows no limits.
///
/// # Example
/// ```
/// use tollgate_algorithms::{Check, Cost, OnStoreError, Policy, Request, Timestamp, Operation, fall_back};
/// let api: Policy = "10/s".parse()?;
/// let open = api.clone().with_on_store_error(OnStoreError::Allow);
/// let answer = |policies: &[&Policy]| {
///     let checks = policies.iter().map(|policy| Check { policy, key: b"k", cost: Cost::ONE });
///     let checks: Vec<_> = checks.collect();
///     let request =
///         Request { operation: Operation::Check { lease: None }, checks: &checks, request_id: None };
///     let decisions = fall_back(&request, Timestamp::EPOCH).expect("a check decides");
///     decisions.iter().map(|decision| decision.allowed).collect::<Vec<_>>()
/// };
/// assert_eq!(answer(&[&open]), [true]);
/// assert_eq!(answer(&[&open, &api]), [false, false]);
/// # Ok::<(), tollgate_algorithms::NotationError>(())
/// ```
#[must_use]
pub fn fall_back(request: &Request<'_>, now: Timestamp) -> Option<Vec<Decision>> {
    if !request.operation.decides() {
        return None;
    }
    let enforced = request.checks.iter().filter(|check| !check.policy.is_shadow());
    let mut answers = enforced.map(|check| check.policy.on_store_error());
    let allowed = answers.all(|answer| answer == OnStoreError::Allow);
    let decide = |check: &Check<'_>| {
        let is_shadow = check.policy.is_shadow();
        decision(&request.operation, check, allowed || is_shadow, is_shadow, now)
    };
    Some(request.checks.iter().map(decide).collect())
}

fn decision(
    operation: &Operation,
    check: &Check<'_>,
    allowed: bool,
    shadow: bool,
    time: Timestamp,
) -> Decision {
    let charges = allowed && !matches!(operation, Operation::Peek);
    // If the outcome is unknown, the store may hold the lease or the reservation, so the caller
    // gets its id to release it.
    let may_hold = charges && check.cost > Cost::ZERO;
    let lease = match *operation {
        Operation::Check { lease } if check.policy.has_concurrent() => lease,
        Operation::Acquire { lease } => Some(lease),
        _ => None,
    };
    let reservation = match *operation {
        Operation::Reserve { id, .. } => Some(id),
        _ => None,
    };
    Decision {
        allowed,
        reason: Reason::Store,
        granted: if charges { check.cost.get() } else { 0 },
        source: Source::Fallback,
        degraded: true,
        shadow,
        lease: lease.filter(|_| may_hold),
        reservation: reservation.filter(|_| may_hold),
        // No limit was checked.
        details: Details::Few(0, Default::default()),
        ..Decision::denied(time)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::Id;
    use crate::policy::Policy;
    use crate::time::Micros;

    const NOW: Timestamp = Timestamp::from_micros(7);

    fn policy(limits: &str, answer: OnStoreError) -> Policy {
        limits.parse::<Policy>().unwrap().with_on_store_error(answer)
    }

    fn decide(operation: Operation, policies: &[&Policy]) -> Option<Vec<Decision>> {
        let checks = policies.iter().map(|policy| Check { policy, key: b"k", cost: Cost::from(3) });
        let checks: Vec<_> = checks.collect();
        fall_back(&Request { operation, checks: &checks, request_id: None }, NOW)
    }

    #[test]
    fn the_default_denies_here_and_decisions_are_marked_as_degraded() {
        let check = Operation::Check { lease: None };
        let closed: Policy = "10/s".parse().unwrap();
        assert_eq!(closed.on_store_error(), OnStoreError::Local);
        let open = policy("10/s", OnStoreError::Allow);
        for (policy, allowed) in [(&closed, false), (&open, true)] {
            let decision = decide(check, &[policy]).unwrap().remove(0);
            assert_eq!((decision.allowed, decision.granted), (allowed, 3 * u64::from(allowed)));
            assert_eq!((decision.reason, decision.source), (Reason::Store, Source::Fallback));
            assert!(decision.degraded && !decision.changed && !decision.never);
            assert_eq!((decision.time, decision.retry_after), (NOW, None));
            assert_eq!(decision.limits(), []);
        }
    }

    #[test]
    fn the_strictest_answer_applies_and_shadow_policies_do_not_count() {
        let (open, closed) =
            (policy("10/s", OnStoreError::Allow), policy("10/s", OnStoreError::Deny));
        let shadow = closed.clone().shadow();
        for (policies, expected) in [
            (&[&open, &open][..], &[true, true][..]),
            (&[&open, &closed], &[false, false]),
            (&[&open, &shadow], &[true, true]),
            (&[&closed, &shadow], &[false, true]),
            (&[&shadow], &[true]),
        ] {
            let decisions = decide(Operation::Peek, policies).unwrap();
            assert!(decisions.iter().map(|decision| decision.allowed).eq(expected.iter().copied()));
            assert!(
                decisions.iter().all(|decision| decision.granted == 0),
                "a peek is granted nothing"
            );
        }
    }

    #[test]
    fn leases_and_reservations_that_may_be_held_are_reported() {
        let (lease, id) = (Id::from_u128(1), Id::from_u128(2));
        let slots = policy("2 concurrent lease 60s", OnStoreError::Allow);
        let bucket = policy("10/s", OnStoreError::Allow);
        let max_wait = Micros::ZERO;
        for (operation, policy, expected) in [
            (Operation::Check { lease: Some(lease) }, &slots, (Some(lease), None)),
            (Operation::Check { lease: Some(lease) }, &bucket, (None, None)),
            (Operation::Acquire { lease }, &slots, (Some(lease), None)),
            (Operation::Reserve { id, max_wait }, &bucket, (None, Some(id))),
            (Operation::Take, &bucket, (None, None)),
        ] {
            let decision = decide(operation, &[policy]).unwrap().remove(0);
            assert_eq!((decision.lease, decision.reservation), expected, "{operation:?}");
        }
        for operation in
            [Operation::Reset, Operation::Release { lease }, Operation::Refund { time: None }]
        {
            assert_eq!(decide(operation, &[&slots]), None, "{operation:?} does not decide");
        }
    }
}
