//! The descriptors of a request: the limit of each, and its hits.

use std::collections::HashSet;

use envoy_types::pb::envoy::extensions::common::ratelimit::v3::RateLimitDescriptor;
use envoy_types::pb::envoy::extensions::common::ratelimit::v3::rate_limit_descriptor::RateLimitOverride;
use envoy_types::pb::envoy::service::ratelimit::v3::RateLimitRequest;
use envoy_types::pb::envoy::r#type::v3::RateLimitUnit;
use tollgate::{Cost, Policy};
use tollgate_config::{RefundsAndLimits, Scope};
use tollgate_engine::Error;

use super::EnvoyContext;
use super::error::EnvoyError;
use super::policy_target::PolicyTarget;
use tollgate_descriptors::{Lookup, Matched, Unit};
use tollgate_http::Problem;

/// A descriptor, with the limit that applies to it.
#[derive(Debug)]
pub(super) struct Descriptor<'a> {
    pub(super) target: Target<'a>,
    pub(super) hits: Hits,
    /// Whether the request has a limit in place of the configured one.
    pub(super) has_limit: bool,
}

/// The limit of a descriptor.
#[derive(Debug)]
pub(super) enum Target<'a> {
    /// There is none.
    Unlimited,
    /// There is none, because neither a file nor a policy has the domain.
    UnknownDomain,
    /// A rule of a file or a control plane.
    Rule(Matched<'a>),
    /// A policy, whose name is the domain.
    Policy(PolicyTarget<'a>),
}

/// The hits of a descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hits {
    /// Charge this cost; a cost of zero peeks.
    Charge(Cost),
    /// Give this cost back.
    Refund(Cost),
}

impl Descriptor<'_> {
    /// Whether a rule limits it, not a policy.
    pub(super) fn has_rule(&self) -> bool {
        matches!(self.target, Target::Rule(_))
    }

    /// Whether it is a quota, which denies the request only if all quotas do. In quota mode, `all`
    /// descriptors are quotas.
    pub(super) fn is_quota(&self, all: bool) -> bool {
        let is_quota = matches!(&self.target, Target::Rule(rule) if rule.rule.quota);
        !self.target.is_unlimited() && (all || is_quota)
    }
}

impl Target<'_> {
    /// The policy that decides; a rule may admit everything, or nothing.
    pub(super) fn policy(&self) -> Option<&Policy> {
        match self {
            Target::Unlimited | Target::UnknownDomain => None,
            Target::Rule(rule) => rule.rule.policy(),
            Target::Policy(target) => target.zero_unit.is_none().then_some(&*target.policy),
        }
    }

    pub(super) fn key(&self) -> &str {
        match self {
            Target::Unlimited | Target::UnknownDomain => "",
            Target::Rule(rule) => &rule.key,
            Target::Policy(target) => &target.key,
        }
    }

    pub(super) fn note(&self) -> Option<&str> {
        match self {
            Target::Policy(target) => target.note.as_deref(),
            Target::Rule(_) | Target::Unlimited | Target::UnknownDomain => None,
        }
    }

    /// The name in the response.
    pub(super) fn name(&self) -> &str {
        match self {
            Target::Unlimited | Target::UnknownDomain => "",
            // A rule without a name has an empty one in the response.
            Target::Rule(rule) => rule.rule.name.as_deref().unwrap_or_default(),
            Target::Policy(target) => target.policy.name(),
        }
    }

    /// The name in statistics; empty if there is no limit.
    pub(super) fn counted_name(&self) -> &str {
        match self {
            Target::Unlimited | Target::UnknownDomain => "",
            Target::Rule(rule) => &rule.stat,
            Target::Policy(target) => target.policy.name(),
        }
    }

    /// Whether it only records.
    pub(super) fn is_shadow(&self) -> bool {
        match self {
            Target::Unlimited | Target::UnknownDomain => false,
            Target::Rule(rule) => rule.rule.shadow,
            Target::Policy(target) => target.policy.is_shadow(),
        }
    }

    pub(super) fn is_unlimited(&self) -> bool {
        matches!(self, Target::Rule(rule) if rule.rule.is_unlimited())
    }

    pub(super) fn is_always_over(&self) -> bool {
        match self {
            Target::Rule(rule) => rule.rule.is_always_over(),
            Target::Policy(target) => target.zero_unit.is_some(),
            Target::Unlimited | Target::UnknownDomain => false,
        }
    }
}

/// Logs a descriptor that no rule matches, with its values as keys are shown.
fn log_unmatched(context: &EnvoyContext<'_>, domain: &str, entries: &[(&str, &str)]) {
    if !tracing::enabled!(tracing::Level::DEBUG) {
        return;
    }
    let entry = |(key, value): &(&str, &str)| {
        format!("{key}={}", context.request.active.display_key(value.as_bytes()))
    };
    let descriptor = entries.iter().map(entry).collect::<Vec<_>>().join(", ");
    tracing::debug!(domain, descriptor, "no rule matches the descriptor");
}

/// Finds the limits of all descriptors of a request, in order.
pub(super) fn find_all<'a>(
    context: &EnvoyContext<'a>,
    request: &RateLimitRequest,
) -> Result<Vec<Descriptor<'a>>, EnvoyError> {
    let mut descriptors = Vec::with_capacity(request.descriptors.len());
    for index in 0..request.descriptors.len() {
        descriptors.push(find(context, request, index)?);
    }
    apply_replacements(&mut descriptors);
    Ok(descriptors)
}

/// Checks the rights that each descriptor needs, also if another one is invalid.
pub(super) fn authorize_all(
    context: &EnvoyContext<'_>,
    request: &RateLimitRequest,
) -> Result<(), EnvoyError> {
    let indices = 0..request.descriptors.len();
    let mut errors = indices.filter_map(|index| find(context, request, index).err());
    errors.find(EnvoyError::is_forbidden).map_or(Ok(()), Err)
}

/// Finds the limit of the descriptor with this index.
fn find<'a>(
    context: &EnvoyContext<'a>,
    request: &RateLimitRequest,
    index: usize,
) -> Result<Descriptor<'a>, EnvoyError> {
    let (domains, domain) = (&context.request.active.domains, &*request.domain);
    let descriptor = &request.descriptors[index];
    let entries: Vec<_> =
        descriptor.entries.iter().map(|entry| (&*entry.key, &*entry.value)).collect();
    let lookup = match &descriptor.limit {
        Some(limit) => {
            let unit = parse_unit(limit).ok_or_else(|| unknown_unit(index, limit))?;
            domains.find_with_override(domain, &entries, limit.requests_per_unit, unit)
        }
        None => domains.find(domain, &entries),
    };
    let target = match lookup {
        Lookup::Rule(rule) => {
            authorize_changes(context, descriptor, true)?;
            if rule.key.len() > context.request.active.bounds.key_bytes {
                return Err(too_long(context, index, rule.key.len()).into());
            }
            if let Some(policy) = rule.rule.policy() {
                context.request.principal.authorize_policy(policy.name())?;
            }
            Target::Rule(rule)
        }
        Lookup::NoRule => {
            log_unmatched(context, domain, &entries);
            Target::Unlimited
        }
        Lookup::KeyTooLong(bytes) => return Err(too_long(context, index, bytes).into()),
        Lookup::UnknownDomain => {
            let policy = PolicyTarget::find(context, domain, &entries, descriptor, index)?;
            policy.map_or(Target::UnknownDomain, Target::Policy)
        }
    };
    let hits = hits(descriptor, request.hits_addend);
    Ok(Descriptor { has_limit: descriptor.limit.is_some(), target, hits })
}

/// Checks that the client may give hits back, or send a limit, if the descriptor does.
pub(super) fn authorize_changes(
    context: &EnvoyContext<'_>,
    descriptor: &RateLimitDescriptor,
    is_rule: bool,
) -> Result<(), Error> {
    let is_open = match context.request.active.envoy.refunds_and_limits {
        RefundsAndLimits::All => true,
        RefundsAndLimits::Rules => is_rule,
        RefundsAndLimits::Operators => false,
    };
    if is_open {
        return Ok(());
    }
    let authorize = |what| context.request.principal.authorize(&[Scope::Operate], what);
    if descriptor.limit.is_some() {
        authorize("a limit in a descriptor")?;
    }
    match hits(descriptor, 0) {
        Hits::Refund(_) => authorize("giving hits back"),
        Hits::Charge(_) => Ok(()),
    }
}

pub(super) fn parse_unit(limit: &RateLimitOverride) -> Option<Unit> {
    match RateLimitUnit::try_from(limit.unit).ok()? {
        RateLimitUnit::Unknown => None,
        RateLimitUnit::Second => Some(Unit::Second),
        RateLimitUnit::Minute => Some(Unit::Minute),
        RateLimitUnit::Hour => Some(Unit::Hour),
        RateLimitUnit::Day => Some(Unit::Day),
        RateLimitUnit::Month => Some(Unit::Month),
        RateLimitUnit::Year => Some(Unit::Year),
    }
}

pub(super) fn unknown_unit(index: usize, limit: &RateLimitOverride) -> Problem {
    Problem::bad_request(format!(
        "descriptors[{index}].limit.unit: unknown unit {}; send SECOND, MINUTE, HOUR, DAY, MONTH \
         or YEAR",
        limit.unit
    ))
}

pub(super) fn too_long(context: &EnvoyContext<'_>, index: usize, bytes: usize) -> Problem {
    let most = context.request.active.bounds.key_bytes;
    Problem::bad_request(format!(
        "descriptors[{index}] has a key of {bytes} bytes, more than the maximum of {most}; \
         send hashes of long values"
    ))
}

/// The hits of a descriptor: its own, which may be 0, or those of the request, where 0 means 1.
pub(super) fn hits(descriptor: &RateLimitDescriptor, request_hits: u32) -> Hits {
    let request_hits = u64::from(request_hits.max(1));
    let hits = descriptor.hits_addend.map_or(request_hits, |hits_addend| hits_addend.value);
    // More than the maximum cost exceeds every limit.
    let cost = Cost::new(hits).unwrap_or(Cost::MAX);
    if descriptor.is_negative_hits && cost > Cost::ZERO {
        Hits::Refund(cost)
    } else {
        Hits::Charge(cost)
    }
}

/// Lifts the limits of rules that other rules of the request replace.
fn apply_replacements(descriptors: &mut [Descriptor<'_>]) {
    let mut replaced = HashSet::new();
    for descriptor in descriptors.iter() {
        if let Target::Rule(rule) = &descriptor.target {
            replaced.extend(rule.rule.replaces.iter().cloned());
        }
    }
    if replaced.is_empty() {
        return;
    }
    for descriptor in descriptors.iter_mut().filter(|descriptor| !descriptor.target.is_unlimited())
    {
        if replaced.contains(descriptor.target.name())
            && matches!(descriptor.target, Target::Rule(_))
        {
            descriptor.target = Target::Unlimited;
        }
    }
}
