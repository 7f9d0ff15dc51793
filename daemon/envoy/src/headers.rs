//! The headers that Envoy adds to its client's response.
//!
//! They describe one descriptor: the last that denies, or the one with the least remaining.

use envoy_types::pb::envoy::config::core::v3::HeaderValue;
use hyper::header::{HeaderMap, RETRY_AFTER};

use super::EnvoyContext;
use super::descriptor::Descriptor;
use super::descriptor_status::DescriptorReply;
use super::execution::DescriptorOutcome;
use tollgate_config::CompatHeaders;

pub(super) fn headers(
    context: &EnvoyContext<'_>,
    descriptors: &[Descriptor<'_>],
    outcomes: &[DescriptorOutcome],
    replies: &[DescriptorReply],
) -> Vec<HeaderValue> {
    let envoy = &context.request.active.envoy;
    let mut headers = Vec::new();
    if !envoy.response_headers && envoy.compat.headers.is_none() {
        return headers;
    }
    let Some(index) = binding(context, descriptors, replies) else { return headers };
    let reply = &replies[index];
    if envoy.response_headers {
        headers.extend(standard_headers(context, &descriptors[index], &outcomes[index], reply));
    }
    if let Some(names) = &envoy.compat.headers {
        headers.extend(compat_headers(names, reply).into_iter().flatten());
    }
    headers
}

/// The index of the descriptor that the headers describe.
fn binding(
    context: &EnvoyContext<'_>,
    descriptors: &[Descriptor<'_>],
    replies: &[DescriptorReply],
) -> Option<usize> {
    let mut least = None;
    let mut remaining = u32::MAX;
    for (index, (descriptor, reply)) in descriptors.iter().zip(replies).enumerate() {
        let status = &reply.status;
        if status.current_limit.is_some() && status.limit_remaining < remaining {
            (least, remaining) = (Some(index), status.limit_remaining);
        }
        if reply.denies() && !descriptor.is_quota(context.request.active.envoy.compat.quota_mode) {
            (least, remaining) = (Some(index), 0);
        }
    }
    least
}

/// The headers in the styles of the configuration.
fn standard_headers(
    context: &EnvoyContext<'_>,
    descriptor: &Descriptor<'_>,
    outcome: &DescriptorOutcome,
    reply: &DescriptorReply,
) -> Vec<HeaderValue> {
    let mut map = HeaderMap::new();
    if let (Some(policy), DescriptorOutcome::Decided { decision, .. }) =
        (descriptor.target.policy(), outcome)
    {
        tollgate_headers::write(
            &context.request.active.headers,
            &mut map,
            std::iter::once((policy, decision)),
        );
    }
    let wait = reply.status.duration_until_reset.filter(|_| reply.denies());
    if let Some(wait) = wait {
        map.insert(RETRY_AFTER, wait.seconds.into());
    }
    map.iter()
        .filter_map(|(name, value)| Some(header(name.as_str(), value.to_str().ok()?.to_owned())))
        .collect()
}

/// The headers of envoyproxy/ratelimit.
fn compat_headers(names: &CompatHeaders, reply: &DescriptorReply) -> Option<[HeaderValue; 3]> {
    let status = &reply.status;
    let limit = status.current_limit.as_ref()?.requests_per_unit;
    let reset = status.duration_until_reset.map_or(0, |wait| wait.seconds);
    Some([
        header(&names.limit, limit.to_string()),
        header(&names.remaining, status.limit_remaining.to_string()),
        header(&names.reset, reset.to_string()),
    ])
}

fn header(key: &str, value: String) -> HeaderValue {
    HeaderValue { key: key.to_owned(), value, ..HeaderValue::default() }
}
