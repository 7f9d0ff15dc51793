//! The statistics of envoyproxy/ratelimit, under its names.

mod split;

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

pub(super) use self::split::Before;
use self::split::Split;
use tollgate_config::NearLimit;
use tollgate_engine::Counter;

/// The most domains that are counted by their names, and the most series of each: values may enter
/// the names of series, and who asks chooses values.
const MAX_NAMES: usize = 1_000;
/// The longest name of a series.
const MAX_NAME_LEN: usize = 1_024;
/// What the others are counted under.
const OTHER: &str = "_other";

/// What is counted of a rule. An over limit is never known without the store here, so that nothing
/// counts as known by a local cache.
#[derive(Debug, Default)]
struct Counters {
    total_hits: Counter,
    over_limit: Counter,
    near_limit: Counter,
    within_limit: Counter,
    shadow_mode: Counter,
}

/// The rules of a domain by the names that they are measured under.
type Series = HashMap<Box<str>, Arc<Counters>>;

/// What envoyproxy/ratelimit counts.
#[derive(Debug, Default)]
pub struct Stats {
    series: RwLock<HashMap<Box<str>, Series>>,
    unknown_domains: RwLock<HashMap<Box<str>, Arc<Counter>>>,
    calls: Counter,
    service_errors: Counter,
    store_errors: Counter,
    global_shadow: Counter,
}

/// One descriptor, as it is counted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Counted {
    /// How much it spends.
    pub(super) hits: u64,
    pub(super) limit: u64,
    pub(super) before: Before,
    pub(super) is_shadow: bool,
}

/// What was counted of a rule.
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
    /// Hits that a local cache knew to be over the limit; always 0.
    pub over_limit_with_local_cache: u64,
    /// Hits within the limit.
    pub within_limit: u64,
    /// Hits that were over the limit of a rule in shadow mode.
    pub shadow_mode: u64,
}

/// All that was counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// By domain, then by name.
    pub rules: Vec<RuleCounts>,
    /// The descriptors of domains that there are not, by domain.
    pub domains_not_found: Vec<(String, u64)>,
    /// The calls over gRPC, refused ones too.
    pub calls: u64,
    /// The requests that were refused.
    pub service_errors: u64,
    /// The requests that the store had no part in.
    pub store_errors: u64,
    /// The requests that passed for no other reason than that all pass.
    pub global_shadow: u64,
}

impl Stats {
    /// Counts a descriptor under the name of its rule.
    pub(super) fn count(&self, domain: &str, stat: &str, near: NearLimit, counted: Counted) {
        let split =
            Split::of(counted.limit, near.threshold(counted.limit), counted.before, counted.hits);
        let counters = self.counters(domain, stat);
        counters.total_hits.add(counted.hits);
        counters.over_limit.add(split.over);
        counters.near_limit.add(split.near);
        counters.within_limit.add(split.within);
        if counted.is_shadow {
            counters.shadow_mode.add(split.over);
        }
    }

    /// Counts a descriptor of a domain that there is not.
    pub(super) fn count_unknown(&self, domain: &str) {
        let known = read(&self.unknown_domains).get(domain).cloned();
        let counter = known.unwrap_or_else(|| {
            let mut all = self.unknown_domains.write().unwrap_or_else(PoisonError::into_inner);
            let name = within_bounds(all.len(), domain);
            Arc::clone(all.entry(name.into()).or_default())
        });
        counter.increment();
    }

    pub(super) fn count_call(&self) {
        self.calls.increment();
    }

    pub(super) fn count_service_error(&self) {
        self.service_errors.increment();
    }

    pub(super) fn count_store_error(&self) {
        self.store_errors.increment();
    }

    pub(super) fn count_global_shadow(&self) {
        self.global_shadow.increment();
    }

    fn counters(&self, domain: &str, stat: &str) -> Arc<Counters> {
        let known = read(&self.series).get(domain).and_then(|x| x.get(stat)).cloned();
        known.unwrap_or_else(|| self.add(domain, stat))
    }

    fn add(&self, domain: &str, stat: &str) -> Arc<Counters> {
        let mut all = self.series.write().unwrap_or_else(PoisonError::into_inner);
        let is_known = all.contains_key(domain);
        let domain = if is_known { domain } else { within_bounds(all.len(), domain) };
        let series = all.entry(domain.into()).or_default();
        let stat = if domain == OTHER { OTHER } else { within_bounds(series.len(), stat) };
        let name = if stat == OTHER { format!("{domain}.{OTHER}") } else { stat.to_owned() };
        Arc::clone(series.entry(name.into()).or_default())
    }

    /// All that was counted until now.
    pub fn snapshot(&self) -> Snapshot {
        let mut rules: Vec<_> = read(&self.series)
            .iter()
            .flat_map(|(domain, series)| series.iter().map(|(stat, x)| x.counts(domain, stat)))
            .collect();
        rules.sort_unstable_by(|a, b| (&a.domain, &a.stat).cmp(&(&b.domain, &b.stat)));
        let unknown = read(&self.unknown_domains);
        let mut domains_not_found: Vec<_> =
            unknown.iter().map(|(domain, x)| (domain.to_string(), x.get())).collect();
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

/// The name, unless it is too long or there are as many as may be.
fn within_bounds(many: usize, name: &str) -> &str {
    if many < MAX_NAMES && name.len() <= MAX_NAME_LEN { name } else { OTHER }
}

/// Counts are never half done.
fn read<T>(lock: &RwLock<T>) -> std::sync::RwLockReadGuard<'_, T> {
    lock.read().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: Counted = Counted { hits: 1, limit: 10, before: Before::Used(0), is_shadow: false };

    #[test]
    fn values_make_a_bounded_number_of_series() {
        let stats = Stats::default();
        for value in 0..1_500 {
            stats.count("d", &format!("d.k_{value}"), NearLimit::default(), ONE);
        }
        stats.count("e", &"x".repeat(2_000), NearLimit::default(), ONE);
        for domain in 0..1_500 {
            stats.count_unknown(&format!("u{domain}"));
        }
        let snapshot = stats.snapshot();
        let hits = |stat| snapshot.rules.iter().find(|rule| rule.stat == stat).unwrap().total_hits;
        assert_eq!((hits("d.k_0"), hits("d.k_999"), hits("d._other")), (1, 1, 500));
        assert_eq!(hits("e._other"), 1);
        assert_eq!(snapshot.rules.len(), MAX_NAMES + 2);
        assert_eq!(snapshot.domains_not_found.len(), MAX_NAMES + 1);
        assert_eq!(snapshot.domains_not_found[0], (OTHER.to_owned(), 500));
    }

    #[test]
    fn domains_are_bounded_too() {
        let stats = Stats::default();
        for domain in 0..1_200 {
            stats.count(&format!("d{domain}"), &format!("d{domain}.k"), NearLimit::default(), ONE);
        }
        let snapshot = stats.snapshot();
        assert_eq!(snapshot.rules.len(), MAX_NAMES + 1);
        assert_eq!(
            (&*snapshot.rules[0].stat, snapshot.rules[0].total_hits),
            ("_other._other", 200)
        );
    }

    #[test]
    fn what_a_shadow_lets_pass_is_counted_by_itself() {
        let stats = Stats::default();
        let over = Counted { hits: 1, limit: 15, before: Before::Used(15), is_shadow: true };
        stats.count("d", "d.k", NearLimit::default(), over);
        stats.count("d", "d.k", NearLimit::default(), Counted { before: Before::Used(14), ..over });
        let counts = stats.snapshot().rules.remove(0);
        assert_eq!((counts.total_hits, counts.over_limit, counts.shadow_mode), (2, 1, 1));
        assert_eq!((counts.within_limit, counts.near_limit), (1, 1));
    }
}
