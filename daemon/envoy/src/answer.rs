//! Answering a request.

use envoy_types::pb::envoy::service::ratelimit::v3::rate_limit_response::Code;
use envoy_types::pb::envoy::service::ratelimit::v3::{RateLimitRequest, RateLimitResponse};

use super::descriptor::{self, Descriptor, Target};
use super::descriptor_status::{DescriptorReply, reply};
use super::error::EnvoyError;
use super::execution;
use super::headers::headers;
use super::metadata::metadata;
use super::{EnvoyContext, bounded};
use tollgate_config::{Charging, Scope};
use tollgate_http::Problem;

/// Answers a request of an authenticated client.
///
/// # Errors
/// No decision was made. By default Envoy then admits its client.
pub(crate) async fn answer(
    context: &EnvoyContext<'_>,
    request: &RateLimitRequest,
) -> Result<RateLimitResponse, EnvoyError> {
    answer_with_descriptors(context, request).await.map(|(response, _)| response)
}

/// As [`answer`], with the limit of each descriptor.
pub(crate) async fn answer_with_descriptors<'a>(
    context: &EnvoyContext<'a>,
    request: &RateLimitRequest,
) -> Result<(RateLimitResponse, Vec<Descriptor<'a>>), EnvoyError> {
    let result = decide(context, request).await;
    match result {
        // A failure of the store has a counter of its own.
        Ok(_) | Err(EnvoyError::StoreUnavailable) => {}
        Err(_) => context.state.stats.service_errors.increment(),
    }
    result
}

async fn decide<'a>(
    context: &EnvoyContext<'a>,
    request: &RateLimitRequest,
) -> Result<(RateLimitResponse, Vec<Descriptor<'a>>), EnvoyError> {
    context.request.principal.authorize(&[Scope::Check], "ShouldRateLimit")?;
    validate(context, request)?;
    context.state.discovery.check_limits()?;
    let descriptors = descriptor::find_all(context, request)?;
    let outcomes = execution::execute(context, &descriptors).await?;
    let replies: Vec<_> = descriptors
        .iter()
        .zip(&outcomes)
        .map(|(descriptor, outcome)| reply(descriptor, outcome))
        .collect();
    context.state.stats.count_request(context, request, &descriptors, &outcomes, &replies);
    report_unknown_domain(context, request, &descriptors);
    let envoy = &context.request.active.envoy;
    let response = RateLimitResponse {
        overall_code: overall_code(context, &descriptors, &replies).into(),
        response_headers_to_add: headers(context, &descriptors, &outcomes, &replies),
        dynamic_metadata: envoy.dynamic_metadata.then(|| metadata(request, &descriptors, &replies)),
        statuses: replies.into_iter().map(|reply| reply.status).collect(),
        ..RateLimitResponse::default()
    };
    Ok((response, descriptors))
}

/// Rejects the requests that envoyproxy/ratelimit rejects.
fn validate(context: &EnvoyContext<'_>, request: &RateLimitRequest) -> Result<(), EnvoyError> {
    let (reference, detail) = if request.domain.is_empty() {
        let detail = "domain is empty; send that of a file of limits, or the name of a policy";
        ("rate limit domain must not be empty", detail)
    } else if request.descriptors.is_empty() {
        let detail = "descriptors is empty; send at least one";
        ("rate limit descriptor list must not be empty", detail)
    } else {
        return Ok(());
    };
    Err(match context.request.active.envoy.charging {
        Charging::Atomic => Problem::bad_request(detail).into(),
        Charging::Reference => EnvoyError::Compat(reference),
    })
}

/// The code of the request as a whole.
fn overall_code(
    context: &EnvoyContext<'_>,
    descriptors: &[Descriptor<'_>],
    replies: &[DescriptorReply],
) -> Code {
    let envoy = &context.request.active.envoy;
    if !is_over(descriptors, replies, envoy.compat.quota_mode) {
        return Code::Ok;
    }
    if envoy.shadow {
        context.state.stats.global_shadow.increment();
        return Code::Ok;
    }
    Code::OverLimit
}

/// Whether one of the descriptors is over its limit, or all quotas are.
fn is_over(descriptors: &[Descriptor<'_>], replies: &[DescriptorReply], quota_mode: bool) -> bool {
    let (mut quotas, mut quotas_over) = (0, 0);
    for (descriptor, reply) in descriptors.iter().zip(replies) {
        if descriptor.is_quota(quota_mode) {
            quotas += 1;
            quotas_over += u32::from(reply.denies());
        } else if reply.denies() {
            return true;
        }
    }
    quotas > 0 && quotas == quotas_over
}

/// Logs, at most every few seconds, requests of a domain without limits.
fn report_unknown_domain(
    context: &EnvoyContext<'_>,
    request: &RateLimitRequest,
    descriptors: &[Descriptor<'_>],
) {
    if !descriptors.iter().any(|descriptor| matches!(descriptor.target, Target::UnknownDomain)) {
        return;
    }
    let now = context.request.engine.clock().now();
    if let Some((requests, all)) = context.state.unknown_domains.count(now) {
        let domain = bounded(&request.domain);
        tracing::warn!(
            domain,
            requests,
            all,
            "domain without limits: neither in a file of limits nor the name of a policy"
        );
    }
}
