//! Allow and deny lists, which answer before any store is asked.

use tollgate_core::{Check, Decision, Id, Listed, Request, RequestError, Timestamp, Verb};
use tollgate_store::Answer;

/// 128 random bits for a lease or a reservation.
pub(crate) fn draw_id() -> Id {
    let mut bytes = [0; 16];
    if getrandom::fill(&mut bytes).is_err() {
        // Without the system's randomness the id is still unlike any other of this process.
        static DRAWN: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(1);
        let drawn = DRAWN.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        bytes[..8].copy_from_slice(&drawn.to_le_bytes());
        bytes[8..12].copy_from_slice(&std::process::id().to_le_bytes());
    }
    Id::from_u128(u128::from_le_bytes(bytes))
}

/// Decides a request: what the lists say first, then what `store` says of the checks that are on
/// none. A check that needs a lease and has none gets one drawn.
pub(crate) fn decide(
    request: &Request<'_>,
    now: Timestamp,
    store: impl FnOnce(&Request<'_>) -> Result<Answer, RequestError>,
) -> Result<Answer, RequestError> {
    let concurrent = request.checks.iter().any(|it| it.policy.has_concurrent());
    let verb = match request.verb {
        Verb::Check { lease: None } if concurrent => Verb::Check { lease: Some(draw_id()) },
        verb => verb,
    };
    let request = Request { verb, ..*request };
    let listed: Vec<_> = request.checks.iter().map(|it| it.policy.listed(it.key)).collect();
    if !verb.decides() || listed.iter().all(Option::is_none) {
        return store(&request);
    }
    request.validate()?;
    let denied = request
        .checks
        .iter()
        .zip(&listed)
        .any(|(check, listed)| *listed == Some(Listed::Deny) && !check.policy.is_shadow());
    let on_none = request.checks.iter().zip(&listed).filter(|(_, listed)| listed.is_none());
    let rest: Vec<_> = on_none.map(|(check, _)| *check).collect();
    let mut decided = Vec::new().into_iter();
    if !rest.is_empty() {
        // A denied request charges nothing: the other checks only say what they would.
        let verb = if denied { Verb::Peek } else { verb };
        decided = store(&Request { verb, checks: &rest, ..request })?.decisions.into_iter();
    }
    let answer = |(check, listed): (&Check<'_>, &Option<Listed>)| match listed {
        Some(Listed::Deny) if check.policy.is_shadow() => Decision::of_list(Listed::Allow, now),
        Some(listed) => Decision::of_list(*listed, now),
        None => decided.next().unwrap_or_default(),
    };
    Ok(Answer { decisions: request.checks.iter().zip(&listed).map(answer).collect() })
}
