//! Counting a request as envoyproxy/ratelimit does.

use envoy_types::pb::envoy::service::ratelimit::v3::RateLimitRequest;
use tollgate::Decision;

use super::EnvoyContext;
use super::descriptor::{Descriptor, Hits, Target};
use super::descriptor_status::DescriptorReply;
use super::execution::DescriptorOutcome;
use super::stats::{Before, Counted};

/// Counts a request that was answered.
pub(super) fn count(
    context: &EnvoyContext<'_>,
    request: &RateLimitRequest,
    descriptors: &[Descriptor<'_>],
    outcomes: &[DescriptorOutcome],
    replies: &[DescriptorReply],
) {
    let stats = &context.state.stats;
    let envoy = &context.request.active.envoy;
    for ((descriptor, outcome), reply) in descriptors.iter().zip(outcomes).zip(replies) {
        match &descriptor.target {
            Target::UnknownDomain => stats.count_unknown(&request.domain),
            Target::Rule(rule) if !rule.rule.is_unlimited() => {
                let Hits::Charge(cost) = descriptor.hits else { continue };
                let (limit, before) = used(outcome, reply);
                let is_shadow = rule.rule.shadow;
                let counted = Counted { hits: cost.get(), limit, before, is_shadow };
                stats.count(&request.domain, &rule.stat, envoy.compat.near_limit, counted);
            }
            Target::Unlimited | Target::Rule(_) | Target::Policy(_) => {}
        }
    }
    if outcomes.iter().any(DescriptorOutcome::is_degraded) {
        stats.count_store_error();
    }
}

/// The limit of a descriptor, and its usage before.
fn used(outcome: &DescriptorOutcome, reply: &DescriptorReply) -> (u64, Before) {
    let DescriptorOutcome::Decided { decision, remaining_before, .. } = outcome else {
        return (0, Before::Over);
    };
    let Decision { capacity, remaining, degraded, .. } = *decision;
    let before = match (remaining_before, reply.is_over) {
        (Some(before), _) => Before::Used(capacity.saturating_sub(*before)),
        // The usage is unknown; the policy admitted it without the store.
        (None, false) if degraded => return (u64::MAX, Before::Used(0)),
        (None, false) => {
            let left = remaining.saturating_add(decision.granted);
            Before::Used(capacity.saturating_sub(left))
        }
        // Charged all or nothing: no hit of a denied descriptor was within the limit.
        (None, true) => Before::Over,
    };
    (capacity, before)
}
