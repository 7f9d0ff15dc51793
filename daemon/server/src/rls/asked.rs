//! A request's descriptors: what each is limited by, and how much it spends.

use std::collections::HashSet;

use envoy_types::pb::envoy::extensions::common::ratelimit::v3::RateLimitDescriptor;
use envoy_types::pb::envoy::extensions::common::ratelimit::v3::rate_limit_descriptor::RateLimitOverride;
use envoy_types::pb::envoy::service::ratelimit::v3::RateLimitRequest;
use envoy_types::pb::envoy::r#type::v3::RateLimitUnit;
use tollgate::{Cost, Policy};

use super::own::Own;
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
    Own(Own<'a>),
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
    /// Whether a rule limits it, of a file or of a control plane.
    pub(super) fn is_of_rule(&self) -> bool {
        matches!(self.target, Target::Rule(_))
    }

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
            Target::Rule(rule) => rule.rule.policy(),
            Target::Own(value) => value.policy(),
        }
    }

    pub(super) fn key(&self) -> &str {
        match self {
            Target::Free | Target::Unknown => "",
            Target::Rule(rule) => &rule.key,
            Target::Own(value) => value.key(),
        }
    }

    /// The name that Envoy is told.
    pub(super) fn name(&self) -> &str {
        match self {
            Target::Free | Target::Unknown => "",
            Target::Rule(rule) => rule.rule.name.as_deref().unwrap_or_default(),
            Target::Own(value) => value.named().name(),
        }
    }

    /// Whether it stops nobody.
    pub(super) fn is_shadow(&self) -> bool {
        match self {
            Target::Free | Target::Unknown => false,
            Target::Rule(rule) => rule.rule.shadow,
            Target::Own(value) => value.named().is_shadow(),
        }
    }

    pub(super) fn is_unlimited(&self) -> bool {
        matches!(self, Target::Rule(it) if it.rule.is_unlimited())
    }

    pub(super) fn is_always_over(&self) -> bool {
        match self {
            Target::Rule(rule) => rule.rule.is_always_over(),
            Target::Own(value) => value.nothing_in().is_some(),
            Target::Free | Target::Unknown => false,
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
        let entries: Vec<_> =
            descriptor.entries.iter().map(|entry| (&*entry.key, &*entry.value)).collect();
        let lookup = match &descriptor.limit {
            Some(brought) => {
                let unit = unit_of(brought).ok_or_else(|| unknown_unit(index, brought))?;
                domains.find_with_override(domain, &entries, brought.requests_per_unit, unit)
            }
            None => domains.find(domain, &entries),
        };
        let target = match lookup {
            Lookup::Rule(rule) => {
                if let Some(policy) = rule.rule.policy() {
                    exchange.caller.must_be_for(policy.name())?;
                }
                Target::Rule(rule)
            }
            Lookup::NoRule => Target::Free,
            Lookup::KeyTooLong(bytes) => return Err(too_long(exchange, index, bytes).into()),
            Lookup::UnknownDomain => {
                let found = Own::find(exchange, domain, &entries, descriptor, index)?;
                found.map_or(Target::Unknown, Target::Own)
            }
        };
        asked.push(Asked { target, hits: hits(descriptor, request.hits_addend) });
    }
    replace(&mut asked);
    Ok(asked)
}

pub(super) fn unit_of(brought: &RateLimitOverride) -> Option<Unit> {
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

pub(super) fn unknown_unit(index: usize, brought: &RateLimitOverride) -> Problem {
    Problem::bad(format!(
        "descriptors[{index}].limit.unit: {} is no unit; send SECOND, MINUTE, HOUR, DAY, MONTH or \
         YEAR",
        brought.unit
    ))
}

pub(super) fn too_long(exchange: &Exchange<'_>, index: usize, bytes: usize) -> Problem {
    let most = exchange.live.bounds.key_bytes;
    Problem::bad(format!(
        "descriptors[{index}] makes a key of {bytes} bytes; at most {most} are taken, so send \
         hashes of long values"
    ))
}

/// A descriptor's own number counts, also if it is 0; the request's is 1 where it is 0.
pub(super) fn hits(descriptor: &RateLimitDescriptor, of_request: u32) -> Hits {
    let of_request = u64::from(of_request.max(1));
    let hits = descriptor.hits_addend.map_or(of_request, |hits_addend| hits_addend.value);
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
    for value in asked.iter() {
        if let Target::Rule(rule) = &value.target {
            replaced.extend(rule.rule.replaces.iter().cloned());
        }
    }
    if replaced.is_empty() {
        return;
    }
    for value in asked.iter_mut().filter(|x| !x.target.is_unlimited()) {
        if replaced.contains(value.target.name()) && matches!(value.target, Target::Rule(_)) {
            value.target = Target::Free;
        }
    }
}
