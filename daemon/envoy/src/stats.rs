//! The statistics of envoyproxy/ratelimit, under its names.

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

use envoy_types::pb::envoy::service::ratelimit::v3::RateLimitRequest;
use tollgate::Decision;
use tollgate_config::NearLimit;
use tollgate_engine::Counter;

use crate::EnvoyContext;
use crate::descriptor::{Descriptor, Hits, Target};
use crate::descriptor_status::DescriptorReply;
use crate::execution::DescriptorOutcome;

/// The most domains that are counted by their names, and the most series of each: clients choose
/// the values that the names of series may contain.
const MAX_NAMES: usize = 1_000;
/// The longest name of a series.
const MAX_NAME_LEN: usize = 1_024;
/// The name of all others.
const OTHER: &str = "_other";

/// The counters of a rule. There is no local cache, so that no hit counts as found in it.
#[derive(Debug, Default)]
struct Counters {
    total_hits: Counter,
    over_limit: Counter,
    near_limit: Counter,
    within_limit: Counter,
    shadow_mode: Counter,
}

/// The counters of a domain's rules, by the names of their statistics.
type Series = HashMap<Box<str>, Arc<Counters>>;

/// The statistics of envoyproxy/ratelimit.
#[derive(Debug, Default)]
pub struct Stats {
    series: RwLock<HashMap<Box<str>, Series>>,
    unknown_domains: RwLock<HashMap<Box<str>, Arc<Counter>>>,
    pub(crate) calls: Counter,
    pub(crate) service_errors: Counter,
    pub(crate) store_errors: Counter,
    pub(crate) global_shadow: Counter,
}

/// The hits of one descriptor on a limit.
#[derive(Clone, Copy, Debug)]
struct LimitHits {
    hits: u64,
    limit: u64,
    before: Before,
    is_shadow: bool,
}

/// The usage of a limit before some hits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Before {
    /// This much; at least the limit if that was reached.
    Used(u64),
    /// Irrelevant: all hits are over the limit.
    Over,
}

/// How many hits are over a limit, near it and within it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Split {
    over: u64,
    near: u64,
    within: u64,
}

/// The counts of a rule.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RuleCounts {
    /// The domain.
    pub domain: String,
    /// The name of the statistic, which begins with the domain.
    pub stat: String,
    /// Hits of any outcome.
    pub total_hits: u64,
    /// Hits over the limit.
    pub over_limit: u64,
    /// Hits near the limit.
    pub near_limit: u64,
    /// Hits over the limit according to a local cache; always 0.
    pub over_limit_with_local_cache: u64,
    /// Hits within the limit.
    pub within_limit: u64,
    /// Hits over the limit of a rule in shadow mode.
    pub shadow_mode: u64,
}

/// All counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// The rules, by domain and name.
    pub rules: Vec<RuleCounts>,
    /// The descriptors of unknown domains, by domain.
    pub domains_not_found: Vec<(String, u64)>,
    /// Calls over gRPC, including rejected ones.
    pub calls: u64,
    /// Rejected requests.
    pub service_errors: u64,
    /// Requests that were decided without the store.
    pub store_errors: u64,
    /// Requests that only the global shadow mode admitted.
    pub global_shadow: u64,
}

impl Stats {
    /// Counts an answered request.
    pub(crate) fn count_request(
        &self,
        context: &EnvoyContext<'_>,
        request: &RateLimitRequest,
        descriptors: &[Descriptor<'_>],
        outcomes: &[DescriptorOutcome],
        replies: &[DescriptorReply],
    ) {
        let near = context.request.active.envoy.compat.near_limit;
        for ((descriptor, outcome), reply) in descriptors.iter().zip(outcomes).zip(replies) {
            match &descriptor.target {
                Target::UnknownDomain => self.count_unknown(&request.domain),
                Target::Rule(rule) if !rule.rule.is_unlimited() => {
                    let Hits::Charge(cost) = descriptor.hits else { continue };
                    let (limit, before) = usage_before(outcome, reply);
                    let is_shadow = rule.rule.shadow;
                    let hits = LimitHits { hits: cost.get(), limit, before, is_shadow };
                    self.count(&request.domain, &rule.stat, near, hits);
                }
                Target::Unlimited | Target::Rule(_) | Target::Policy(_) => {}
            }
        }
        if outcomes.iter().any(DescriptorOutcome::is_degraded) {
            self.store_errors.increment();
        }
    }

    /// Counts the hits of a descriptor under the name of its rule.
    fn count(&self, domain: &str, stat: &str, near: NearLimit, hits: LimitHits) {
        let LimitHits { hits, limit, before, is_shadow } = hits;
        let split = Split::new(limit, near.threshold(limit), before, hits);
        let counters = self.counters(domain, stat);
        counters.total_hits.add(hits);
        counters.over_limit.add(split.over);
        counters.near_limit.add(split.near);
        counters.within_limit.add(split.within);
        if is_shadow {
            counters.shadow_mode.add(split.over);
        }
    }

    /// Counts a descriptor of an unknown domain.
    fn count_unknown(&self, domain: &str) {
        let known = read(&self.unknown_domains).get(domain).cloned();
        let counter = known.unwrap_or_else(|| {
            let mut all = self.unknown_domains.write().unwrap_or_else(PoisonError::into_inner);
            let name = bounded_name(all.len(), domain);
            Arc::clone(all.entry(name.into()).or_default())
        });
        counter.increment();
    }

    fn counters(&self, domain: &str, stat: &str) -> Arc<Counters> {
        let known = read(&self.series).get(domain).and_then(|series| series.get(stat)).cloned();
        known.unwrap_or_else(|| self.add(domain, stat))
    }

    fn add(&self, domain: &str, stat: &str) -> Arc<Counters> {
        let mut all = self.series.write().unwrap_or_else(PoisonError::into_inner);
        let is_known = all.contains_key(domain);
        let domain = if is_known { domain } else { bounded_name(all.len(), domain) };
        let series = all.entry(domain.into()).or_default();
        let stat = if domain == OTHER { OTHER } else { bounded_name(series.len(), stat) };
        let name = if stat == OTHER { format!("{domain}.{OTHER}") } else { stat.to_owned() };
        Arc::clone(series.entry(name.into()).or_default())
    }

    /// The counts until now.
    pub fn snapshot(&self) -> Snapshot {
        let mut rules: Vec<_> = read(&self.series)
            .iter()
            .flat_map(|(domain, series)| {
                series.iter().map(|(stat, counters)| counters.counts(domain, stat))
            })
            .collect();
        rules.sort_unstable_by(|a, b| (&a.domain, &a.stat).cmp(&(&b.domain, &b.stat)));
        let unknown = read(&self.unknown_domains);
        let mut domains_not_found: Vec<_> =
            unknown.iter().map(|(domain, count)| (domain.to_string(), count.get())).collect();
        domains_not_found.sort_unstable();
        Snapshot {
            rules,
            domains_not_found,
            calls: self.calls.get(),
            service_errors: self.service_errors.get(),
            store_errors: self.store_errors.get(),
            global_shadow: self.global_shadow.get(),
        }
    }
}

impl Counters {
    fn counts(&self, domain: &str, stat: &str) -> RuleCounts {
        RuleCounts {
            domain: domain.to_owned(),
            stat: stat.to_owned(),
            total_hits: self.total_hits.get(),
            over_limit: self.over_limit.get(),
            near_limit: self.near_limit.get(),
            over_limit_with_local_cache: 0,
            within_limit: self.within_limit.get(),
            shadow_mode: self.shadow_mode.get(),
        }
    }
}

impl Split {
    /// Splits hits on a limit; those above `near` are near it. Of hits that exceed the limit
    /// together, those up to the limit count as near, and none as within.
    fn new(limit: u64, near: u64, before: Before, hits: u64) -> Self {
        let before = match before {
            Before::Used(before) if before < limit => before,
            Before::Used(after) if after == limit && hits == 0 => return Split::default(),
            Before::Used(_) | Before::Over => return Split { over: hits, ..Split::default() },
        };
        let after = before.saturating_add(hits);
        if after > limit {
            let near = limit.saturating_sub(near.max(before));
            Split { over: after - limit, near, within: 0 }
        } else {
            Split { over: 0, near: after.saturating_sub(near.max(before)), within: hits }
        }
    }
}

/// The limit of a descriptor, and its usage before.
fn usage_before(outcome: &DescriptorOutcome, reply: &DescriptorReply) -> (u64, Before) {
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

/// The name, or [`OTHER`] if it is too long or `names` exist already.
pub(crate) fn bounded_name(names: usize, name: &str) -> &str {
    if names < MAX_NAMES && name.len() <= MAX_NAME_LEN { name } else { OTHER }
}

/// Counts are valid after every single update.
pub(crate) fn read<T>(lock: &RwLock<T>) -> RwLockReadGuard<'_, T> {
    lock.read().unwrap_or_else(PoisonError::into_inner)
}
