//! The status of a descriptor.

use envoy_types::pb::envoy::service::ratelimit::v3::rate_limit_response::rate_limit::Unit as WireUnit;
use envoy_types::pb::envoy::service::ratelimit::v3::rate_limit_response::{
    Code, DescriptorStatus, RateLimit,
};
use envoy_types::pb::google::protobuf::Duration;
use tollgate::{Decision, Limit, Micros, Policy, Reason};

use super::descriptor::{Descriptor, Hits, Target};
use super::execution::DescriptorOutcome;
use tollgate_descriptors::Unit;

/// The reply to one descriptor.
#[derive(Clone, Debug)]
pub(super) struct DescriptorReply {
    /// Whether it is over its limit, which the status of a shadow rule does not show.
    pub(super) is_over: bool,
    pub(super) status: DescriptorStatus,
}

impl DescriptorReply {
    /// Whether its status denies.
    pub(super) fn denies(&self) -> bool {
        self.status.code == i32::from(Code::OverLimit)
    }
}

/// Builds the reply to a descriptor.
pub(super) fn reply(descriptor: &Descriptor<'_>, outcome: &DescriptorOutcome) -> DescriptorReply {
    match (outcome, descriptor.target.policy()) {
        (DescriptorOutcome::Decided { decision, is_penalty, .. }, Some(policy)) => {
            from_decision(descriptor, policy, decision, *is_penalty)
        }
        // The result of the refund or charge is unknown.
        (DescriptorOutcome::Failed, Some(policy)) => from_failure(descriptor, policy),
        _ if descriptor.target.is_unlimited() => new_reply(descriptor, false, None, u64::MAX, None),
        _ if descriptor.target.is_always_over() => {
            new_reply(descriptor, true, descriptor.target.zero_limit(), 0, None)
        }
        _ => new_reply(descriptor, false, None, 0, None),
    }
}

fn from_decision(
    descriptor: &Descriptor<'_>,
    policy: &Policy,
    decision: &Decision,
    is_penalty: bool,
) -> DescriptorReply {
    let mut limits = decision.each_limit();
    if limits.clone().next().is_none() {
        return without_limits(descriptor, policy, decision);
    }
    let limit = policy.limits().get(decision.binding).map(|limit| rate_limit(limit, descriptor));
    if matches!(descriptor.hits, Hits::Refund(_)) {
        return new_reply(descriptor, false, limit, decision.remaining, decision.reset_after);
    }
    let is_blocked = matches!(decision.reason, Reason::Blocked | Reason::Banned);
    let is_over = !decision.allowed || limits.any(|limit| !limit.allowed);
    let remaining = if is_blocked || is_penalty { 0 } else { decision.remaining };
    let wait = match is_over && !is_penalty && !descriptor.target.is_shadow() {
        true if decision.shadow => longest(decision),
        true => decision.retry_after,
        false => decision.reset_after,
    };
    new_reply(descriptor, is_over, limit, remaining, wait)
}

/// A list decided, or the policy without the store.
fn without_limits(
    descriptor: &Descriptor<'_>,
    policy: &Policy,
    decision: &Decision,
) -> DescriptorReply {
    let is_over = !decision.allowed;
    let limit = policy.limits().first().filter(|_| is_over && decision.degraded);
    let limit = limit.map(|limit| rate_limit(limit, descriptor));
    new_reply(descriptor, is_over, limit, decision.remaining, decision.retry_after)
}

/// A failed charge counts as over its limit.
fn from_failure(descriptor: &Descriptor<'_>, policy: &Policy) -> DescriptorReply {
    let is_over = matches!(descriptor.hits, Hits::Charge(_));
    let limit = policy.limits().first().map(|limit| rate_limit(limit, descriptor));
    new_reply(descriptor, is_over, limit, 0, None)
}

/// The time until all limits would admit; absent if one never does.
fn longest(decision: &Decision) -> Option<Micros> {
    let mut limits = decision.each_limit();
    let longest = limits.clone().filter_map(|limit| limit.retry_after).max();
    if limits.any(|limit| limit.never) { None } else { longest }
}

fn new_reply(
    descriptor: &Descriptor<'_>,
    is_over: bool,
    current_limit: Option<RateLimit>,
    remaining: u64,
    wait: Option<Micros>,
) -> DescriptorReply {
    let code = if is_over && !descriptor.target.is_shadow() { Code::OverLimit } else { Code::Ok };
    let status = DescriptorStatus {
        code: code.into(),
        current_limit,
        // Envoy's numbers have 32 bits.
        limit_remaining: u32::try_from(remaining).unwrap_or(u32::MAX),
        duration_until_reset: wait.map(seconds),
        quota: None,
    };
    DescriptorReply { is_over, status }
}

/// Seconds rounded up: Envoy truncates fractions.
#[expect(clippy::expect_used, reason = "u64::MAX µs are fewer seconds than i64::MAX")]
fn seconds(wait: Micros) -> Duration {
    let seconds = i64::try_from(wait.secs_rounded_up()).expect("seconds fit");
    Duration { seconds, nanos: 0 }
}

/// A limit in Envoy's message. A window that Envoy has no unit for has the unit `UNKNOWN`.
fn rate_limit(limit: &Limit, descriptor: &Descriptor<'_>) -> RateLimit {
    let spec = limit.spec();
    let unit = if limit.is_concurrent() { None } else { Unit::from_window(spec.window) };
    RateLimit {
        name: descriptor.target.name().to_owned(),
        requests_per_unit: u32::try_from(spec.count).unwrap_or(u32::MAX),
        unit: unit.map_or(WireUnit::Unknown, wire_unit).into(),
    }
}

fn wire_unit(unit: Unit) -> WireUnit {
    match unit {
        Unit::Second => WireUnit::Second,
        Unit::Minute => WireUnit::Minute,
        Unit::Hour => WireUnit::Hour,
        Unit::Day => WireUnit::Day,
        Unit::Week => WireUnit::Week,
        Unit::Month => WireUnit::Month,
        Unit::Year => WireUnit::Year,
    }
}

impl Target<'_> {
    /// The limit of a rule that admits nothing.
    fn zero_limit(&self) -> Option<RateLimit> {
        let unit = match self {
            Target::Rule(rule) => rule.rule.unit,
            Target::Policy(target) => target.zero_unit,
            Target::Unlimited | Target::UnknownDomain => return None,
        };
        let unit = unit.map_or(WireUnit::Unknown, wire_unit);
        let name = self.name().to_owned();
        Some(RateLimit { name, requests_per_unit: 0, unit: unit.into() })
    }
}
