//! Executing single requests.

use std::borrow::Cow;
use std::time::Duration;

use tollgate::{Key, Operation, Policy, Request, ResolveError, StoreError};

use crate::active::ActiveConfig;
use crate::call::{Call, CheckRequest, Checks, Outcome, PolicySelector};
use crate::config::Scope;
use crate::counters::{RequestMeter, Surface};
use crate::engine::Engine;
use crate::error::{Error, ErrorKind, ErrorValue};
use crate::operation::{Action, Parameter};
use crate::{Principal, batch};

/// What a request is executed with.
#[derive(Clone, Copy, Debug)]
pub struct RequestContext<'a> {
    /// The engine.
    pub engine: &'a Engine,
    /// The configuration that was active when the request arrived.
    pub active: &'a ActiveConfig,
    /// Its originator.
    pub principal: Principal<'a>,
    /// The interface on which it arrived.
    pub surface: Surface,
    /// Its header `traceparent`.
    pub traceparent: Option<&'a str>,
}

impl<'a> RequestContext<'a> {
    /// Resolves a policy for a key: the named policy with its tier or the key's override, or the
    /// policy of inline limits. Checks the principal's rights first.
    ///
    /// # Errors
    /// The principal may not use it, or there is no such policy or tier.
    #[inline]
    pub fn resolve(
        &self,
        selector: PolicySelector<'_>,
        key: &[u8],
    ) -> Result<Cow<'a, Policy>, Error> {
        resolve(self.engine, self.active, self.principal, selector, key)
    }

    /// Executes a call: counts its decisions and ends its audit record.
    ///
    /// # Errors
    /// The store rejects the call, or is unavailable and the policy does not decide without it.
    pub async fn execute(&self, call: &mut Call<'_, '_>) -> Result<Outcome, Error> {
        call.begin_audit();
        let meter = RequestMeter::start(*self);
        let result = execute(self.engine, call).await;
        meter.count(call.counted(&result));
        call.end(result)
    }

    /// Executes independent calls of one request, each as a whole, within a deadline. One latency
    /// is recorded for all of them.
    pub async fn execute_each(
        &self,
        calls: &mut [Call<'_, '_>],
        deadline: Duration,
    ) -> Vec<Result<Outcome, Error>> {
        let meter = RequestMeter::start(*self);
        let results = batch::execute_operations(self.engine, calls, deadline).await;
        meter.count(calls.iter().zip(&results).flat_map(|(call, result)| call.counted(result)));
        calls.iter_mut().zip(results).map(|(call, result)| call.end(result)).collect()
    }
}

/// As [`RequestContext::resolve`].
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
                Ok(resolved) => Ok(Cow::Borrowed(resolved)),
                Err(error) => Err(unresolved(error, policy, tier, active)),
            }
        }
        PolicySelector { policy: None, limit: Some(limit), tier: None } => {
            inline(engine, principal, limit).map(Cow::Owned)
        }
        _ => Err(ambiguous(selector, active)),
    }
}

fn inline(engine: &Engine, principal: Principal<'_>, limit: &str) -> Result<Policy, Error> {
    let of_limit = |error: Error| error.with_parameter(Parameter::Limit);
    principal.authorize(&[Scope::Operate], "a limit in place of a policy").map_err(of_limit)?;
    let policy = engine.limiter().limit(limit).map_err(|error| {
        of_limit(Error::bad_request(error.to_string()))
            .with_value(ErrorValue::Text(limit.to_owned()))
    })?;
    principal.authorize_policy(policy.name()).map_err(of_limit)?;
    Ok(policy)
}

#[cold]
fn unresolved(
    error: ResolveError,
    policy: &str,
    tier: Option<&str>,
    active: &ActiveConfig,
) -> Error {
    let value = match (&error, tier) {
        (ResolveError::Tier(_), Some(tier)) => tier,
        _ => policy,
    };
    let value = ErrorValue::Text(value.to_owned());
    if policy.is_empty()
        && let Some(names) = active.policy_names()
    {
        let detail = format!("{error}; the policies are {names}");
        let error = Error::new(ErrorKind::UnknownPolicy, detail);
        return error.with_parameter(Parameter::Policy).with_value(value);
    }
    Error::from(error).with_value(value)
}

#[cold]
fn ambiguous(selector: PolicySelector<'_>, active: &ActiveConfig) -> Error {
    let (detail, parameter) = match selector {
        PolicySelector { policy: Some(_), .. } => (
            "policy and limit are mutually exclusive; leave one of them out".to_owned(),
            Parameter::Limit,
        ),
        PolicySelector { limit: Some(_), tier, .. } => {
            let error = Error::bad_request(
                "limit and tier are mutually exclusive; only a policy has tiers",
            )
            .with_parameter(Parameter::Tier);
            return match tier {
                Some(tier) => error.with_value(ErrorValue::Text(tier.to_owned())),
                None => error,
            };
        }
        _ => {
            let detail = match active.policy_names() {
                Some(names) => {
                    format!("policy is missing; send one of {names}, or limit in its place")
                }
                None => {
                    "policy is missing; none is configured, so send limit in its place".to_owned()
                }
            };
            (detail, Parameter::Policy)
        }
    };
    Error::bad_request(detail).with_parameter(parameter)
}

/// Executes a call without counting it.
pub(crate) async fn execute(engine: &Engine, call: &Call<'_, '_>) -> Result<Outcome, StoreError> {
    let limiter = engine.limiter();
    let request_id = call.request_id.as_ref().map(|id| id.as_bytes());
    match (call.action, &call.checks) {
        (Action::Inspect, checks) => {
            let check = inspected(checks);
            let key = Key::new(&check.key).map_err(StoreError::Request)?;
            limiter.inspect(&check.policy, key).await.map(Outcome::Inspection)
        }
        // The fast path: nearly all calls are plain checks.
        (Action::Execute(Operation::Check { lease: None }), Checks::One(check))
            if request_id.is_none() =>
        {
            let key = Key::new(&check.key).map_err(StoreError::Request)?;
            limiter.check_cost(&check.policy, key, check.cost).await.map(Outcome::Decision)
        }
        (Action::Execute(operation), Checks::One(check)) => {
            let request = Request { operation, checks: &[check.as_check()], request_id };
            limiter.decide(&request).await.map(Outcome::from_single)
        }
        (Action::Execute(operation), Checks::Several(checks)) => {
            let checks: Vec<_> = checks.iter().map(CheckRequest::as_check).collect();
            let request = Request { operation, checks: &checks, request_id };
            limiter.decide(&request).await.map(Outcome::Decisions)
        }
    }
}

/// The check that names the key to inspect.
pub(crate) fn inspected<'c, 'a>(checks: &'c Checks<'a>) -> &'c CheckRequest<'a> {
    match checks {
        Checks::One(check) => check,
        Checks::Several(_) => unreachable!("inspect does not accept the parameter checks"),
    }
}

impl Call<'_, '_> {
    /// Notes what the audit records of the request.
    pub(crate) fn begin_audit(&mut self) {
        if let (Some(audit), Action::Execute(operation)) = (&mut self.audit, self.action) {
            let cost = self.checks.as_slice().first().map_or(0, |check| check.cost.get());
            audit.set_operation(&operation, cost);
        }
    }

    /// Ends the audit record, and maps the store's error.
    pub(crate) fn end(&mut self, result: Result<Outcome, StoreError>) -> Result<Outcome, Error> {
        let result = result.map_err(|error| match &self.checks {
            Checks::One(check) => Error::from(error).with_policy(&check.policy),
            Checks::Several(_) => error.into(),
        });
        if let Some(audit) = self.audit.take() {
            match &result {
                Ok(outcome) => audit.complete(outcome.decision(0)),
                Err(error) => audit.fail_with(error),
            }
        }
        result
    }
}
