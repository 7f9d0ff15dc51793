//! The decision about a request.

use std::sync::Arc;
use std::time::Duration;

use http::request::Parts;
use tollgate::task::Completed;
use tollgate::{Cost, Id, Operation, Outcome, Request, random_id};

use crate::admission::{Admission, InFlight};
use crate::layer::{Charging, Config};
use crate::rejection::{Denial, Rejection};
use crate::rule::{KeyFailure, RuleCheck};

/// The result of a decision.
pub(crate) enum Verdict {
    /// No rule applies.
    Unchecked,
    /// The request may proceed after this delay.
    Admitted(InFlight, Duration),
    Rejected(Rejection),
}

/// Checks the head of a request with the rules of a layer.
pub(crate) async fn decide(config: Arc<Config>, parts: &Parts) -> Verdict {
    let outer = parts.extensions.get::<Admission>();
    let mut checks = Vec::with_capacity(config.rules.len());
    for rule in &config.rules {
        let check = match rule.check(parts).await {
            Ok(Some(check)) => check,
            Ok(None) => continue,
            Err(KeyFailure::Missing) => return Verdict::Rejected(Rejection::MissingKey),
            Err(KeyFailure::Invalid(error)) => {
                return Verdict::Rejected(Rejection::Invalid(error));
            }
        };
        if !outer.is_some_and(|outer| outer.has_checked(&config.limiter, &check)) {
            checks.push(check);
        }
    }
    if checks.is_empty() {
        return Verdict::Unchecked;
    }
    let outer = outer.cloned();
    let takes_lease = !matches!(config.charging, Charging::ChargeIf(_))
        && checks.iter().any(|check| check.policy.has_concurrent() && check.cost > Cost::ZERO);
    if takes_lease {
        // If the client disconnects, the lease must be known to be released.
        Completed::new(execute(config, checks, outer, Some(random_id()))).await
    } else {
        execute(config, checks, outer, None).await
    }
}

async fn execute(
    config: Arc<Config>,
    checks: Vec<RuleCheck>,
    outer: Option<Admission>,
    lease: Option<Id>,
) -> Verdict {
    let request_id = matches!(config.charging, Charging::Settle(_)).then(random_id);
    let answer = {
        let checks: Vec<_> = checks.iter().map(RuleCheck::borrow).collect();
        let operation = match config.charging {
            Charging::ChargeIf(_) => Operation::Peek,
            _ => Operation::Check { lease },
        };
        let id = request_id.map(|id| id.to_string());
        let request_id = id.as_ref().map(|id| id.as_bytes());
        config.limiter.decide(&Request { operation, checks: &checks, request_id }).await
    };
    let answer = match answer {
        Ok(answer) => answer,
        Err(error) => return Verdict::Rejected(Rejection::Failed(error)),
    };
    let Outcome::Allowed { delay } = answer.outcome() else {
        return Verdict::Rejected(Rejection::Denied(Denial::new(checks, answer)));
    };
    let too_long = delay.checked_sub(config.max_delay).filter(|x| !x.is_zero());
    let denied =
        too_long.map(|time| Denial::too_long(checks.clone(), answer.decisions.clone(), time));
    let in_flight = InFlight::new(Admission::new(&config, checks, answer, outer, request_id));
    match denied {
        // The request in flight is dropped before the inner service is called, and so refunded.
        Some(denial) => Verdict::Rejected(Rejection::Denied(denial)),
        None => Verdict::Admitted(in_flight, delay),
    }
}
