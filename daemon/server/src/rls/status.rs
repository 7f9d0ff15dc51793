//! A descriptor's status: what its decision says, in Envoy's words.

use envoy_types::pb::envoy::service::ratelimit::v3::rate_limit_response::rate_limit::Unit as WireUnit;
use envoy_types::pb::envoy::service::ratelimit::v3::rate_limit_response::{
    Code, DescriptorStatus, RateLimit,
};
use envoy_types::pb::google::protobuf::Duration;
use tollgate::{Decision, Limit, Micros, Policy, Reason};

use super::asked::{Asked, Hits, Target};
use super::batch::Said;
use crate::ratelimit::Unit;

/// What is said of one descriptor.
#[derive(Clone, Debug)]
pub(super) struct Spoken {
    /// Whether it is over, which its status does not say where that stops nobody.
    pub(super) is_over: bool,
    pub(super) status: DescriptorStatus,
}

impl Spoken {
    /// Whether its status says that it is over.
    pub(super) fn denies(&self) -> bool {
        self.status.code == i32::from(Code::OverLimit)
    }
}

pub(super) fn speak(asked: &Asked<'_>, said: &Said) -> Spoken {
    match (said, asked.target.policy()) {
        (Said::Decided { decision, is_penalty, .. }, Some(policy)) => {
            of_decision(asked, policy, decision, *is_penalty)
        }
        // The store did not say what came of a refund or of a charge.
        (Said::Failed, Some(policy)) => of_failure(asked, policy),
        _ if asked.target.is_unlimited() => {
            Spoken { is_over: false, status: status(Code::Ok, None, u64::MAX, None) }
        }
        _ if asked.target.is_always_over() => {
            let limit = asked.target.zero_limit();
            spoken(asked, true, limit, 0, None)
        }
        _ => Spoken { is_over: false, status: status(Code::Ok, None, 0, None) },
    }
}

fn of_decision(
    asked: &Asked<'_>,
    policy: &Policy,
    decision: &Decision,
    is_penalty: bool,
) -> Spoken {
    let mut limits = decision.each_limit();
    if limits.clone().next().is_none() {
        return without_limits(asked, policy, decision);
    }
    let limit = policy.limits().get(decision.binding).map(|limit| told(limit, asked.target.name()));
    if matches!(asked.hits, Hits::Refund(_)) {
        return spoken(asked, false, limit, decision.remaining, decision.reset_after);
    }
    let is_blocked = decision.reason == Reason::Blocked;
    let is_over = !decision.allowed || limits.any(|limit| !limit.allowed);
    let remaining = if is_blocked || is_penalty { 0 } else { decision.remaining };
    let wait = match is_over && !is_penalty && !asked.target.is_shadow() {
        true if decision.shadow => longest(decision),
        true => decision.retry_after,
        false => decision.reset_after,
    };
    spoken(asked, is_over, limit, remaining, wait)
}

/// A list decided, or the policy in the place of a store that was away.
fn without_limits(asked: &Asked<'_>, policy: &Policy, decision: &Decision) -> Spoken {
    let is_over = !decision.allowed;
    let limit = policy.limits().first().filter(|_| is_over && decision.degraded);
    let limit = limit.map(|limit| told(limit, asked.target.name()));
    let is_listed = decision.reason == Reason::AllowList;
    spoken(asked, is_over, limit, if is_listed { u64::MAX } else { 0 }, decision.retry_after)
}

/// A charge of what never passes is over whether it was charged or not.
fn of_failure(asked: &Asked<'_>, policy: &Policy) -> Spoken {
    let is_over = matches!(asked.hits, Hits::Charge(_));
    let limit = policy.limits().first().map(|limit| told(limit, asked.target.name()));
    spoken(asked, is_over, limit, 0, None)
}

/// When all limits would let it pass; none if one never does.
fn longest(decision: &Decision) -> Option<Micros> {
    let is_never = decision.each_limit().any(|each_limit| each_limit.never);
    decision
        .each_limit()
        .filter_map(|each_limit| each_limit.retry_after)
        .max()
        .filter(|_| !is_never)
}

fn spoken(
    asked: &Asked<'_>,
    is_over: bool,
    limit: Option<RateLimit>,
    remaining: u64,
    wait: Option<Micros>,
) -> Spoken {
    let code = if is_over && !asked.target.is_shadow() { Code::OverLimit } else { Code::Ok };
    Spoken { is_over, status: status(code, limit, remaining, wait) }
}

fn status(
    code: Code,
    current_limit: Option<RateLimit>,
    remaining: u64,
    wait: Option<Micros>,
) -> DescriptorStatus {
    DescriptorStatus {
        code: code.into(),
        current_limit,
        limit_remaining: u32::try_from(remaining).unwrap_or(u32::MAX),
        duration_until_reset: wait.map(seconds),
        quota: None,
    }
}

/// Whole seconds, rounded up, for Envoy cuts what is less than one.
fn seconds(wait: Micros) -> Duration {
    let seconds = i64::try_from(wait.secs_rounded_up()).unwrap_or(i64::MAX);
    Duration { seconds, nanos: 0 }
}

/// A limit as Envoy is told of it; a window that is not one of its units has none.
fn told(limit: &Limit, name: &str) -> RateLimit {
    let spec = limit.spec();
    let unit = if limit.is_concurrent() { None } else { Unit::from_window(spec.window) };
    RateLimit {
        name: name.to_owned(),
        requests_per_unit: u32::try_from(spec.count).unwrap_or(u32::MAX),
        unit: unit.map_or(WireUnit::Unknown, wire).into(),
    }
}

fn wire(unit: Unit) -> WireUnit {
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
    /// The limit of a rule that lets nothing pass.
    fn zero_limit(&self) -> Option<RateLimit> {
        let unit = match self {
            Target::Rule(rule) => rule.rule.unit,
            Target::Own(value) => value.nothing_in(),
            Target::Free | Target::Unknown => return None,
        };
        let unit = unit.map_or(WireUnit::Unknown, wire);
        let name = self.name().to_owned();
        Some(RateLimit { name, requests_per_unit: 0, unit: unit.into() })
    }
}
