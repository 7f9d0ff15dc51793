//! A descriptor of a domain that no file is of, and that is the name of a policy of ours.

use envoy_types::pb::envoy::extensions::common::ratelimit::v3::RateLimitDescriptor;
use envoy_types::pb::envoy::extensions::common::ratelimit::v3::rate_limit_descriptor::RateLimitOverride;
use tollgate::{Cost, Kind, Limit, Micros, Policy, Spec};

use super::asked::{Hits, hits, too_long, unit_of, unknown_unit};
use super::refusal::Refusal;
use crate::http::{Exchange, Problem};
use crate::ratelimit::{Unit, key};

/// A key of a policy of ours.
#[derive(Debug)]
pub(super) struct Own<'a> {
    form: Form<'a>,
    key: String,
}

/// The limits that the policy has for the key.
#[derive(Debug)]
enum Form<'a> {
    Configured(&'a Policy),
    /// What the request brought in their place, under the policy's name.
    Brought(Policy),
    /// The request brought that nothing passes in this unit.
    Nothing(&'a Policy, Unit),
}

impl<'a> Own<'a> {
    /// Finds the policy; nothing if there is none of that name.
    pub(super) fn find(
        exchange: &Exchange<'a>,
        domain: &str,
        entries: &[(&str, &str)],
        descriptor: &RateLimitDescriptor,
        index: usize,
    ) -> Result<Option<Self>, Refusal> {
        let policies = &exchange.live.policies;
        if policies.get(domain).is_err() {
            return Ok(None);
        }
        exchange.caller.must_be_for(domain)?;
        let key = key_of(exchange, entries, index)?;
        let Ok(policy) = policies.resolve(domain, key.as_bytes(), None) else { return Ok(None) };
        if policy.has_concurrent() && hits(descriptor, 0) != Hits::Charge(Cost::ZERO) {
            let detail = format!(
                "{domain} limits requests in flight, and nobody would say when this one ends; ask \
                 /v1/acquire and /v1/release"
            );
            return Err(Problem::bad(detail).into());
        }
        let form = match &descriptor.limit {
            None => Form::Configured(policy),
            Some(brought) => with_limit(policy, brought, index)?,
        };
        Ok(Some(Own { form, key }))
    }

    pub(super) fn key(&self) -> &str {
        &self.key
    }

    /// The policy that decides, unless nothing passes.
    pub(super) fn policy(&self) -> Option<&Policy> {
        match &self.form {
            Form::Configured(configured) => Some(configured),
            Form::Brought(brought) => Some(brought),
            Form::Nothing(..) => None,
        }
    }

    /// The policy that was named.
    pub(super) fn named(&self) -> &Policy {
        match &self.form {
            Form::Configured(configured) | Form::Nothing(configured, _) => configured,
            Form::Brought(brought) => brought,
        }
    }

    /// The unit in which nothing passes, if so.
    pub(super) fn nothing_in(&self) -> Option<Unit> {
        match self.form {
            Form::Nothing(_, unit) => Some(unit),
            Form::Configured(_) | Form::Brought(_) => None,
        }
    }
}

/// The key that the entries make.
fn key_of(
    exchange: &Exchange<'_>,
    entries: &[(&str, &str)],
    index: usize,
) -> Result<String, Refusal> {
    if entries.is_empty() {
        let detail = format!(
            "descriptors[{index}] has no entries; send at least one, which names who is limited"
        );
        return Err(Problem::bad(detail).into());
    }
    let most = exchange.live.bounds.key_bytes;
    match key(None, entries, &[], None) {
        Ok(key) if key.len() <= most => Ok(key),
        Ok(key) => Err(too_long(exchange, index, key.len()).into()),
        Err(bytes) => Err(too_long(exchange, index, bytes).into()),
    }
}

/// The policy with the limit that a request brings in place of its own.
fn with_limit<'a>(
    policy: &'a Policy,
    brought: &RateLimitOverride,
    index: usize,
) -> Result<Form<'a>, Refusal> {
    let unit = unit_of(brought).ok_or_else(|| unknown_unit(index, brought))?;
    if brought.requests_per_unit == 0 {
        return Ok(Form::Nothing(policy, unit));
    }
    let kind = Kind::Fixed { offset: Micros::ZERO };
    let made = Spec::new(brought.requests_per_unit.into(), unit.window(), kind).build();
    let of = |limit: Limit| Policy::new(policy.name(), [limit]).map_err(|error| error.to_string());
    let made = made.map_err(|error| error.to_string()).and_then(of);
    let made =
        made.map_err(|error| Problem::bad(format!("descriptors[{index}].limit: {error}")))?;
    Ok(Form::Brought(policy.with_limits_of(&made)))
}
