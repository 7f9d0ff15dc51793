//! Descriptors whose domain is the name of a policy, and of no file.

use envoy_types::pb::envoy::extensions::common::ratelimit::v3::RateLimitDescriptor;
use envoy_types::pb::envoy::extensions::common::ratelimit::v3::rate_limit_descriptor::RateLimitOverride;
use std::borrow::Cow;

use tollgate::{Cost, Kind, Limit, Micros, Policy, Spec};
use tollgate_engine::PolicySelector;

use super::EnvoyContext;
use super::descriptor::{Hits, hits, too_long, unit_of, unknown_unit};
use super::error::EnvoyError;
use tollgate_descriptors::{Unit, key};
use tollgate_http::Problem;

/// A policy that limits a descriptor, and the key.
#[derive(Debug)]
pub(super) struct PolicyTarget<'a> {
    limits: Limits<'a>,
    key: String,
}

/// The limits of the key.
#[derive(Debug)]
enum Limits<'a> {
    /// Those of the policy, or of the request in their place, under the policy's name.
    Policy(Cow<'a, Policy>),
    /// The limit of the request admits nothing in this unit.
    Zero(Cow<'a, Policy>, Unit),
}

impl<'a> PolicyTarget<'a> {
    /// Resolves the policy; absent if there is none of that name.
    pub(super) fn find(
        context: &EnvoyContext<'a>,
        domain: &str,
        entries: &[(&str, &str)],
        descriptor: &RateLimitDescriptor,
        index: usize,
    ) -> Result<Option<Self>, EnvoyError> {
        let policies = &context.request.active.policies;
        if policies.get(domain).is_err() {
            return Ok(None);
        }
        let key = key_of(context, entries, index)?;
        let selector = PolicySelector { policy: Some(domain), ..PolicySelector::default() };
        let policy = context.request.resolve(selector, key.as_bytes())?;
        if policy.has_concurrent() && hits(descriptor, 0) != Hits::Charge(Cost::ZERO) {
            let detail = format!(
                "{domain} limits requests in flight, which this service cannot release; use \
                 /v1/acquire and /v1/release"
            );
            return Err(Problem::bad_request(detail).into());
        }
        let limits = match &descriptor.limit {
            None => Limits::Policy(policy),
            Some(limit) => with_limit(policy, limit, index)?,
        };
        Ok(Some(PolicyTarget { limits, key }))
    }

    pub(super) fn key(&self) -> &str {
        &self.key
    }

    /// The policy that decides, unless nothing is admitted.
    pub(super) fn policy(&self) -> Option<&Policy> {
        match &self.limits {
            Limits::Policy(policy) => Some(policy),
            Limits::Zero(..) => None,
        }
    }

    /// The policy, whether or not it decides.
    pub(super) fn named(&self) -> &Policy {
        match &self.limits {
            Limits::Policy(policy) | Limits::Zero(policy, _) => policy,
        }
    }

    /// The unit of a limit that admits nothing.
    pub(super) fn zero_unit(&self) -> Option<Unit> {
        match self.limits {
            Limits::Zero(_, unit) => Some(unit),
            Limits::Policy(_) => None,
        }
    }
}

/// The key of the entries.
fn key_of(
    context: &EnvoyContext<'_>,
    entries: &[(&str, &str)],
    index: usize,
) -> Result<String, EnvoyError> {
    if entries.is_empty() {
        let detail = format!("descriptors[{index}] has no entries; send at least one");
        return Err(Problem::bad_request(detail).into());
    }
    let most = context.request.active.bounds.key_bytes;
    match key(None, entries, &[], None) {
        Ok(key) if key.len() <= most => Ok(key),
        Ok(key) => Err(too_long(context, index, key.len()).into()),
        Err(bytes) => Err(too_long(context, index, bytes).into()),
    }
}

/// The policy with the limit of the request in place of its own.
fn with_limit<'a>(
    policy: Cow<'a, Policy>,
    limit: &RateLimitOverride,
    index: usize,
) -> Result<Limits<'a>, EnvoyError> {
    let unit = unit_of(limit).ok_or_else(|| unknown_unit(index, limit))?;
    if limit.requests_per_unit == 0 {
        return Ok(Limits::Zero(policy, unit));
    }
    let invalid =
        |error: String| Problem::bad_request(format!("descriptors[{index}].limit: {error}"));
    let kind = Kind::Fixed { offset: Micros::ZERO };
    let limit: Limit = Spec::new(limit.requests_per_unit.into(), unit.window(), kind)
        .build()
        .map_err(|error| invalid(error.to_string()))?;
    let made = Policy::new(policy.name(), [limit]).map_err(|error| invalid(error.to_string()))?;
    Ok(Limits::Policy(Cow::Owned(policy.with_limits_of(&made))))
}
