//! Descriptors whose domain is the name of a policy, and of no file.

use std::borrow::Cow;

use envoy_types::pb::envoy::extensions::common::ratelimit::v3::RateLimitDescriptor;
use envoy_types::pb::envoy::extensions::common::ratelimit::v3::rate_limit_descriptor::RateLimitOverride;
use tollgate::{Cost, Kind, Micros, Policy, Spec};
use tollgate_engine::PolicySelector;

use super::EnvoyContext;
use super::descriptor::{Hits, authorize_changes, hits, parse_unit, too_long, unknown_unit};
use super::error::EnvoyError;
use tollgate_descriptors::{Unit, key};
use tollgate_http::Problem;

/// A policy that limits a descriptor, and the key.
#[derive(Debug)]
pub(super) struct PolicyTarget<'a> {
    /// The policy; with the limit of the request, if that has one, in place of its own.
    pub(super) policy: Cow<'a, Policy>,
    pub(super) key: String,
    /// The value of the entry that is the note, if the descriptor has it.
    pub(super) note: Option<String>,
    /// The unit of the request's limit if that admits nothing, so that the policy does not decide.
    pub(super) zero_unit: Option<Unit>,
}

impl<'a> PolicyTarget<'a> {
    /// Resolves the policy; absent if no policy has the name of the domain.
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
        authorize_changes(context, descriptor, false)?;
        let (entries, note) = split_note(context, entries);
        let key = entries_key(context, &entries, index)?;
        let selector = PolicySelector { policy: Some(domain), ..PolicySelector::default() };
        let policy = context.request.resolve(selector, key.as_bytes())?;
        if policy.has_concurrent() && hits(descriptor, 0) != Hits::Charge(Cost::ZERO) {
            let detail = format!(
                "{domain} limits requests in flight, which this service cannot release; use \
                 /v1/acquire and /v1/release"
            );
            return Err(Problem::bad_request(detail).into());
        }
        let (policy, zero_unit) = match &descriptor.limit {
            None => (policy, None),
            Some(limit) => with_limit(policy, limit, index)?,
        };
        Ok(Some(PolicyTarget { policy, key, note, zero_unit }))
    }
}

/// The key and the value of an entry.
type Entry<'v> = (&'v str, &'v str);

/// The entries of the key, and the note.
fn split_note<'e, 'v>(
    context: &EnvoyContext<'_>,
    entries: &'e [Entry<'v>],
) -> (Cow<'e, [Entry<'v>]>, Option<String>) {
    let note_entry = context.request.active.envoy.note_entry.as_deref();
    let is_note = |(key, _): &Entry<'_>| Some(*key) == note_entry;
    let Some((_, note)) = entries.iter().find(|entry| is_note(entry)) else {
        return (Cow::Borrowed(entries), None);
    };
    let others = entries.iter().copied().filter(|entry| !is_note(entry));
    (Cow::Owned(others.collect()), Some((*note).to_owned()))
}

/// The key of the entries.
fn entries_key(
    context: &EnvoyContext<'_>,
    entries: &[(&str, &str)],
    index: usize,
) -> Result<String, EnvoyError> {
    if entries.is_empty() {
        let detail = format!("descriptors[{index}] has no entries for its key; send at least one");
        return Err(Problem::bad_request(detail).into());
    }
    let most = context.request.active.bounds.key_bytes;
    match key(None, entries, &[], None) {
        Ok(key) if key.len() <= most => Ok(key),
        Ok(key) => Err(too_long(context, index, key.len()).into()),
        Err(bytes) => Err(too_long(context, index, bytes).into()),
    }
}

/// The policy with the limit of the request in place of its own, and the unit of a limit of zero.
fn with_limit<'a>(
    policy: Cow<'a, Policy>,
    limit: &RateLimitOverride,
    index: usize,
) -> Result<(Cow<'a, Policy>, Option<Unit>), EnvoyError> {
    let unit = parse_unit(limit).ok_or_else(|| unknown_unit(index, limit))?;
    if limit.requests_per_unit == 0 {
        return Ok((policy, Some(unit)));
    }
    let invalid =
        |error: String| Problem::bad_request(format!("descriptors[{index}].limit: {error}"));
    let kind = Kind::Fixed { offset: Micros::ZERO };
    let limit = Spec::new(limit.requests_per_unit.into(), unit.window(), kind)
        .build()
        .map_err(|error| invalid(error.to_string()))?;
    let limits = Policy::new(policy.name(), [limit]).map_err(|error| invalid(error.to_string()))?;
    Ok((Cow::Owned(policy.with_limits_of(&limits)), None))
}
