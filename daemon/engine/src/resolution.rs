//! Resolving the policy of a request.

use std::borrow::Cow;

use tollgate::{Policy, ResolveError};

use crate::access::Principal;
use crate::active::ActiveConfig;
use crate::call::PolicySelector;
use crate::config::Scope;
use crate::engine::Engine;
use crate::error::{Error, ErrorKind, ErrorValue};
use crate::parameter::Parameter;

/// Resolves a policy for a key: the named policy with its tier or the key's override, or the policy
/// of inline limits. Checks the principal's rights first.
///
/// # Errors
/// The principal may not use it, or there is no such policy.
#[inline]
pub(crate) fn resolve<'a>(
    engine: &Engine,
    active: &'a ActiveConfig,
    principal: Principal<'_>,
    selector: PolicySelector<'_>,
    key: &[u8],
) -> Result<Cow<'a, Policy>, Error> {
    match selector {
        PolicySelector { policy: Some(policy), limit: None, tier } => {
            principal.authorize_policy(policy)?;
            match active.policies.resolve(policy, key, tier) {
                // A plan of a customer that the configuration does not know must neither lock the
                // customer out nor lift the limits.
                Err(ResolveError::Tier(_)) => active.policies.resolve(policy, key, None),
                resolved => resolved,
            }
            .map(Cow::Borrowed)
            .map_err(|error| resolve_error(&error, policy, active))
        }
        PolicySelector { policy: None, limit: Some(limit), tier: None } => {
            inline(engine, principal, limit).map(Cow::Owned)
        }
        _ => Err(invalid_selector(selector, active)),
    }
}

fn inline(engine: &Engine, principal: Principal<'_>, limit: &str) -> Result<Policy, Error> {
    let at_limit = |error: Error| error.with_parameter(Parameter::Limit);
    principal.authorize(&[Scope::Operate], "a limit in place of a policy").map_err(at_limit)?;
    let policy = engine.limiter().limit(limit).map_err(|error| {
        at_limit(Error::bad_request(error.to_string()))
            .with_value(ErrorValue::Text(limit.to_owned()))
    })?;
    principal.authorize_policy(policy.name()).map_err(at_limit)?;
    Ok(policy)
}

#[cold]
pub(crate) fn resolve_error(error: &ResolveError, policy: &str, active: &ActiveConfig) -> Error {
    let value = ErrorValue::Text(policy.to_owned());
    if policy.is_empty()
        && let Some(names) = active.policy_names()
    {
        let detail = format!("{error}; the policies are {names}");
        let error = Error::new(ErrorKind::UnknownPolicy, detail);
        return error.with_parameter(Parameter::Policy).with_value(value);
    }
    let detail = if active.domains.domains().any(|domain| domain == policy) {
        format!("{policy:?} is a domain, not a policy; name a domain and a descriptor instead")
    } else {
        error.to_string()
    };
    Error::new(ErrorKind::UnknownPolicy, detail).with_parameter(Parameter::Policy).with_value(value)
}

#[cold]
fn invalid_selector(selector: PolicySelector<'_>, active: &ActiveConfig) -> Error {
    let (detail, parameter, value) = match selector {
        PolicySelector { policy: Some(_), .. } => {
            let detail = "policy and limit are mutually exclusive; leave one of them out";
            (detail.to_owned(), Parameter::Limit, None)
        }
        PolicySelector { limit: Some(_), tier, .. } => {
            let detail = "limit and tier are mutually exclusive; only a policy has tiers";
            (detail.to_owned(), Parameter::Tier, tier)
        }
        _ => {
            let remedy = active.policy_names().map_or_else(
                || "none is configured, so send limit in its place".to_owned(),
                |names| format!("send one of {names}, or limit in its place"),
            );
            (format!("policy is missing; {remedy}"), Parameter::Policy, None)
        }
    };
    let error = Error::bad_request(detail).with_parameter(parameter);
    match value {
        Some(value) => error.with_value(ErrorValue::Text(value.to_owned())),
        None => error,
    }
}
