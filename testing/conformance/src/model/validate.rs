//! Validates requests.

use tollgate_algorithms::{Check, Limit, Operation, Request, RequestError};

const MAX_CHECKS: usize = 32;
const MAX_KEY_LEN: usize = 65_536;
const MAX_REQUEST_ID_LEN: usize = 256;

pub(super) fn validate(request: &Request<'_>) -> Result<(), RequestError> {
    let several = matches!(
        request.operation,
        Operation::Check { .. } | Operation::Peek | Operation::Acquire { .. } | Operation::Settle
    );
    match request.checks.len() {
        0 => return Err(RequestError::NoCheck),
        many if many > MAX_CHECKS => return Err(RequestError::TooManyChecks(many)),
        many if many > 1 && !several => {
            return Err(RequestError::OneCheck(request.operation.as_str()));
        }
        _ => {}
    }
    if let Some(id) = request.request_id
        && (id.is_empty() || id.len() > MAX_REQUEST_ID_LEN)
    {
        return Err(RequestError::RequestId);
    }
    if request.operation == Operation::Settle && request.request_id.is_none() {
        return Err(RequestError::NoRequestId);
    }
    for check in request.checks {
        validate_key(check)?;
        validate_check(&request.operation, check)?;
    }
    Ok(())
}

fn validate_key(check: &Check<'_>) -> Result<(), RequestError> {
    match check.key.len() {
        0 => Err(RequestError::EmptyKey),
        long if long > MAX_KEY_LEN => Err(RequestError::LongKey(long)),
        _ => Ok(()),
    }
}

fn validate_check(operation: &Operation, check: &Check<'_>) -> Result<(), RequestError> {
    let limits = check.policy.limits();
    let any_concurrent = limits.iter().any(Limit::is_concurrent);
    let all_concurrent = limits.iter().all(Limit::is_concurrent);
    let zero = check.cost.get() == 0;
    let name = operation.as_str();
    match operation {
        Operation::Take
        | Operation::Refund { .. }
        | Operation::Penalize
        | Operation::Backfill { .. }
            if zero =>
        {
            Err(RequestError::ZeroAmount(name))
        }
        Operation::Backfill { limit, .. } if usize::from(*limit) >= limits.len() => {
            Err(RequestError::NoSuchLimit { limit: *limit, count: limits.len() })
        }
        Operation::Backfill { limit, .. } if limits[usize::from(*limit)].is_concurrent() => {
            Err(RequestError::Concurrent(name))
        }
        Operation::Take if any_concurrent => Err(RequestError::Concurrent(name)),
        Operation::Refund { .. } | Operation::Penalize if all_concurrent => {
            Err(RequestError::Concurrent(name))
        }
        Operation::Reserve { .. } | Operation::Cancel { .. }
            if !limits.iter().all(Limit::can_reserve) =>
        {
            Err(RequestError::NotReservable(name))
        }
        Operation::Acquire { .. } | Operation::Renew { .. } | Operation::Release { .. }
            if !any_concurrent =>
        {
            Err(RequestError::NotConcurrent(name))
        }
        Operation::Check { lease: None } if any_concurrent && !zero => {
            Err(RequestError::NeedsLease)
        }
        _ => Ok(()),
    }
}
