//! A request's descriptors: what each is limited by, and how much it spends.

use std::collections::HashSet;

use envoy_types::pb::envoy::extensions::common::ratelimit::v3::RateLimitDescriptor;
use envoy_types::pb::envoy::extensions::common::ratelimit::v3::rate_limit_descriptor::RateLimitOverride;
use envoy_types::pb::envoy::service::ratelimit::v3::RateLimitRequest;
use envoy_types::pb::envoy::r#type::v3::RateLimitUnit;
use tollgate::{Cost, Kind, Limit, Micros, Policy, Spec};

use super::key::key;
use super::refusal::Refusal;
use crate::http::{Exchange, Problem};
use crate::ratelimit::{Lookup, Matched, Unit};

/// A descriptor.
#[derive(Debug)]
pub(super) struct Asked<'a> {
    pub(super) target: Target<'a>,
    pub(super) hits: Hits,
}

/// What a descriptor is limited by.
#[derive(Debug)]
pub(super) enum Target<'a> {
    /// Nothing.
    Free,
    /// Nothing, for no file and no policy is of the domain.
    Unknown,
    /// A rule of a domain.
    Rule(Matched<'a>),
    /// A policy of our own, whose name is the domain.
    Own { policy: Own<'a>, key: String },
}

/// A policy of our own, or one that has its name and the limit that the request brought.
#[derive(Debug)]
pub(super) enum Own<'a> {
    Configured(&'a Policy),
    Brought(Policy),
    /// The request brought that nothing passes in this unit.
    Nothing(&'a Policy, Unit),
}

/// How much a descriptor spends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hits {
    /// This much; of nothing it is only asked whether there is anything.
    Charge(Cost),
    /// It gives this much back.
    Refund(Cost),
}

impl Asked<'_> {
    /// Whether it stops only where all such do; the reference can have all of them so.
    pub(super) fn is_quota(&self, all: bool) -> bool {
        let is_of_quota = matches!(&self.target, Target::Rule(it) if it.rule.quota);
        !self.target.is_unlimited() && (all || is_of_quota)
    }
}

impl Target<'_> {
    /// The policy that decides, if one does: a rule may pass everything, or nothing.
    pub(super) fn policy(&self) -> Option<&Policy> {
        match self {
            Target::Free | Target::Unknown => None,
            Target::Rule(it) => it.rule.policy(),
            Target::Own { policy: Own::Configured(it), .. } => Some(it),
            Target::Own { policy: Own::Brought(it), .. } => Some(it),
            Target::Own { policy: Own::Nothing(..), .. } => None,
        }
    }

    pub(super) fn key(&self) -> &str {
        match self {
            Target::Free | Target::Unknown => "",
            Target::Rule(it) => &it.key,
            Target::Own { key, .. } => key,
        }
    }

    /// The name that Envoy is told.
    pub(super) fn name(&self) -> &str {
        match self {
            Target::Free | Target::Unknown => "",
            Target::Rule(it) => it.rule.name.as_deref().unwrap_or_default(),
            Target::Own { policy, .. } => policy.it().name(),
        }
    }

    /// Whether it stops nobody.
    pub(super) fn is_shadow(&self) -> bool {
        match self {
            Target::Free | Target::Unknown => false,
            Target::Rule(it) => it.rule.shadow,
            Target::Own { policy, .. } => policy.it().is_shadow(),
        }
    }

    pub(super) fn is_unlimited(&self) -> bool {
        matches!(self, Target::Rule(it) if it.rule.is_unlimited())
    }

    pub(super) fn is_always_over(&self) -> bool {
        match self {
            Target::Rule(it) => it.rule.is_always_over(),
            Target::Own { policy, .. } => matches!(policy, Own::Nothing(..)),
            Target::Free | Target::Unknown => false,
        }
    }
}

impl Own<'_> {
    fn it(&self) -> &Policy {
        match self {
            Own::Configured(it) | Own::Nothing(it, _) => it,
            Own::Brought(it) => it,
        }
    }
}

/// The descriptors of a request, in order.
pub(super) fn all<'a>(
    exchange: &Exchange<'a>,
    request: &RateLimitRequest,
) -> Result<Vec<Asked<'a>>, Refusal> {
    let (domains, domain) = (&exchange.live.domains, &*request.domain);
    let mut asked = Vec::with_capacity(request.descriptors.len());
    for (index, descriptor) in request.descriptors.iter().enumerate() {
        let entries: Vec<_> = descriptor.entries.iter().map(|it| (&*it.key, &*it.value)).collect();
        let lookup = match &descriptor.limit {
            Some(brought) => {
                let unit = unit_of(brought).ok_or_else(|| unknown_unit(index, brought))?;
                domains.find_with_override(domain, &entries, brought.requests_per_unit, unit)
            }
            None => domains.find(domain, &entries),
        };
        let target = match lookup {
            Lookup::Rule(it) => Target::Rule(it),
            Lookup::NoRule => Target::Free,
            Lookup::KeyTooLong(bytes) => return Err(too_long(exchange, index, bytes).into()),
            Lookup::UnknownDomain => own(exchange, domain, &entries, descriptor, index)?,
        };
        must_be_for(exchange, &target)?;
        asked.push(Asked { target, hits: hits(descriptor, request.hits_addend) });
    }
    replace(&mut asked);
    Ok(asked)
}

/// A descriptor of a domain that no file is of: it may be a policy's name.
fn own<'a>(
    exchange: &Exchange<'a>,
    domain: &str,
    entries: &[(&str, &str)],
    descriptor: &RateLimitDescriptor,
    index: usize,
) -> Result<Target<'a>, Refusal> {
    let key = key(entries);
    let policies = &exchange.live.policies;
    let Ok(policy) = policies.resolve(domain, key.as_bytes(), None) else {
        return Ok(Target::Unknown);
    };
    let most = exchange.live.bounds.key_bytes;
    if key.is_empty() {
        let detail = format!(
            "descriptors[{index}] has no entries; send at least one, which names who is limited"
        );
        return Err(Problem::bad(detail).into());
    }
    if key.len() > most {
        return Err(too_long(exchange, index, key.len()).into());
    }
    let policy = match &descriptor.limit {
        None => Own::Configured(policy),
        Some(brought) => with_limit(policy, brought, index)?,
    };
    Ok(Target::Own { policy, key })
}

/// The policy with the limit that a request brings in place of its own.
fn with_limit<'a>(
    policy: &'a Policy,
    brought: &RateLimitOverride,
    index: usize,
) -> Result<Own<'a>, Refusal> {
    let unit = unit_of(brought).ok_or_else(|| unknown_unit(index, brought))?;
    if brought.requests_per_unit == 0 {
        return Ok(Own::Nothing(policy, unit));
    }
    let kind = Kind::Fixed { offset: Micros::ZERO };
    let made = Spec::new(brought.requests_per_unit.into(), unit.window(), kind).build();
    let of = |limit: Limit| Policy::new(policy.name(), [limit]).map_err(|it| it.to_string());
    let made = made.map_err(|it| it.to_string()).and_then(of);
    let made = made.map_err(|it| Problem::bad(format!("descriptors[{index}].limit: {it}")))?;
    Ok(Own::Brought(policy.with_limits_of(&made)))
}

fn unit_of(brought: &RateLimitOverride) -> Option<Unit> {
    match RateLimitUnit::try_from(brought.unit).ok()? {
        RateLimitUnit::Unknown => None,
        RateLimitUnit::Second => Some(Unit::Second),
        RateLimitUnit::Minute => Some(Unit::Minute),
        RateLimitUnit::Hour => Some(Unit::Hour),
        RateLimitUnit::Day => Some(Unit::Day),
        RateLimitUnit::Month => Some(Unit::Month),
        RateLimitUnit::Year => Some(Unit::Year),
    }
}

fn unknown_unit(index: usize, brought: &RateLimitOverride) -> Problem {
    Problem::bad(format!(
        "descriptors[{index}].limit.unit: {} is no unit; send SECOND, MINUTE, HOUR, DAY, MONTH or \
         YEAR",
        brought.unit
    ))
}

fn too_long(exchange: &Exchange<'_>, index: usize, bytes: usize) -> Problem {
    let most = exchange.live.bounds.key_bytes;
    Problem::bad(format!(
        "descriptors[{index}] makes a key of {bytes} bytes; at most {most} are taken, so send \
         hashes of long values"
    ))
}

/// Refuses a policy that the caller's token is not for.
fn must_be_for(exchange: &Exchange<'_>, target: &Target<'_>) -> Result<(), Refusal> {
    let policy = match target {
        Target::Own { policy, .. } => Some(policy.it()),
        other => other.policy(),
    };
    match policy {
        Some(policy) => Ok(exchange.caller.must_be_for(policy.name())?),
        None => Ok(()),
    }
}

/// A descriptor's own number counts, also if it is 0; the request's is 1 where it is 0.
fn hits(descriptor: &RateLimitDescriptor, of_request: u32) -> Hits {
    let of_request = u64::from(of_request.max(1));
    let hits = descriptor.hits_addend.map_or(of_request, |it| it.value);
    // More than a cost can be is more than any limit holds.
    let cost = Cost::new(hits).unwrap_or(Cost::MAX);
    if descriptor.is_negative_hits && cost > Cost::ZERO {
        Hits::Refund(cost)
    } else {
        Hits::Charge(cost)
    }
}

/// Lets rules that others of the request replace limit nothing.
fn replace(asked: &mut [Asked<'_>]) {
    let mut replaced = HashSet::new();
    for it in asked.iter() {
        if let Target::Rule(it) = &it.target {
            replaced.extend(it.rule.replaces.iter().cloned());
        }
    }
    if replaced.is_empty() {
        return;
    }
    for it in asked.iter_mut().filter(|it| !it.target.is_unlimited()) {
        if replaced.contains(it.target.name()) && matches!(it.target, Target::Rule(_)) {
            it.target = Target::Free;
        }
    }
}
