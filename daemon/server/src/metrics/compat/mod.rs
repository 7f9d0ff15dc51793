//! The metrics of envoyproxy/ratelimit, under the names that its dashboards use.
//!
//! That project sends statistics to StatsD and maps their names to metrics of Prometheus. This module
//! writes the metrics of its default mapping. They are untyped, because counters would need other names.

mod names;

use std::collections::BTreeMap;

use self::names::{labels, sanitize};
use super::families::{Family, FamilyKind};
use super::page::{Page, Value};
use crate::services::Services;
use tollgate_engine::Surface;
use tollgate_envoy::RuleCounts;

/// A metric of each rule.
struct RuleMetric {
    /// The last part of its name in StatsD.
    name: &'static str,
    family: Family,
    count: fn(&RuleCounts) -> u64,
}

const fn untyped(
    name: &'static str,
    labels: &'static [&'static str],
    help: &'static str,
) -> Family {
    Family { name, kind: FamilyKind::Unknown, labels, help }
}

const fn rule_metric(
    name: &'static str,
    family: &'static str,
    help: &'static str,
    count: fn(&RuleCounts) -> u64,
) -> RuleMetric {
    RuleMetric { name, family: untyped(family, &["domain", "key1", "key2"], help), count }
}

static RULE_METRICS: [RuleMetric; 6] = [
    rule_metric(
        "total_hits",
        "ratelimit_service_rate_limit_total_hits",
        "Hits on a limit.",
        |counts| counts.total_hits,
    ),
    rule_metric(
        "over_limit",
        "ratelimit_service_rate_limit_over_limit",
        "Hits over a limit.",
        |counts| counts.over_limit,
    ),
    rule_metric(
        "near_limit",
        "ratelimit_service_rate_limit_near_limit",
        "Hits within a limit and near it.",
        |counts| counts.near_limit,
    ),
    rule_metric(
        "over_limit_with_local_cache",
        "ratelimit_service_rate_limit_over_limit_with_local_cache",
        "Hits over a limit according to a local cache; always 0.",
        |counts| counts.over_limit_with_local_cache,
    ),
    rule_metric(
        "within_limit",
        "ratelimit_service_rate_limit_within_limit",
        "Hits within a limit.",
        |counts| counts.within_limit,
    ),
    rule_metric(
        "shadow_mode",
        "ratelimit_service_rate_limit_shadow_mode",
        "Hits over a limit in shadow mode.",
        |counts| counts.shadow_mode,
    ),
];

static DOMAIN_NOT_FOUND: Family = untyped(
    "ratelimit_service_rate_limit_domain_not_found",
    &["domain"],
    "Descriptors of unknown domains.",
);
static ERRORS: Family = untyped(
    "ratelimit_service_should_rate_limit_error",
    &["err_type"],
    "Rejected requests (service_error), and requests that the store did not answer (redis_error).",
);
static REQUESTS: Family =
    untyped("ratelimit_service_total_requests", &["grpc_method"], "Calls over gRPC.");
static RESPONSE_TIME: Family = Family {
    name: "ratelimit_service_response_time_seconds",
    kind: FamilyKind::Histogram,
    labels: &["grpc_method"],
    help: "Duration of a request's decision.",
};
static LOADED: Family =
    untyped("ratelimit_service_config_load_success", &[], "Configurations that were applied.");
static REJECTED: Family =
    untyped("ratelimit_service_config_load_error", &[], "Configurations that were rejected.");
static GLOBAL_SHADOW: Family = untyped(
    "ratelimit_service_global_shadow_mode",
    &[],
    "Requests over a limit that global shadow mode admitted.",
);

/// The method of the rate limit service.
const METHOD: &str = "ShouldRateLimit";

/// Writes all metrics.
pub(super) fn write(page: &mut Page, services: &Services) {
    let snapshot = services.envoy.stats.snapshot();
    for RuleMetric { family, count, .. } in &RULE_METRICS {
        for (name, count) in sum_by_labels(&snapshot.rules, *count) {
            let (domain, key1, key2) = labels(&name);
            // The rule of a single key has no label for a second one.
            let labels: Vec<_> = [domain, key1].into_iter().chain(key2).collect();
            page.sample(family, &labels, Value::Whole(count));
        }
    }
    for (domain, count) in &snapshot.domains_not_found {
        page.sample(&DOMAIN_NOT_FOUND, &[&sanitize(domain)], Value::Whole(*count));
    }
    for (kind, count) in
        [("redis_error", snapshot.store_errors), ("service_error", snapshot.service_errors)]
    {
        page.sample(&ERRORS, &[kind], Value::Whole(count));
    }
    page.sample(&REQUESTS, &[METHOD], Value::Whole(snapshot.calls));
    page.latency(&RESPONSE_TIME, &[METHOD], services.engine.counters.latency(Surface::Envoy));
    let (loaded, rejected) = loads(services);
    page.sample(&LOADED, &[], Value::Whole(loaded));
    page.sample(&REJECTED, &[], Value::Whole(rejected));
    page.sample(&GLOBAL_SHADOW, &[], Value::Whole(snapshot.global_shadow));
}

/// The counts of rules, summed by the part of their names that becomes labels.
fn sum_by_labels(rules: &[RuleCounts], count: fn(&RuleCounts) -> u64) -> BTreeMap<String, u64> {
    let mut sums = BTreeMap::new();
    for rule in rules {
        let name = sanitize(&rule.stat);
        let parts: Vec<_> = name.split('.').take(3).collect();
        *sums.entry(parts.join(".")).or_default() += count(rule);
    }
    sums
}

/// The numbers of applied configurations, including the initial one, and of rejected ones.
fn loads(services: &Services) -> (u64, u64) {
    let [(_, reloaded), (_, failed)] = services.engine.counters.reloads.by_result();
    let [(_, updated), (_, invalid)] = services.envoy.discovery.by_result();
    // The initial configuration is neither a reload nor an update of a control plane.
    let initial = u64::from(services.envoy.discovery.error().is_none());
    (reloaded + updated + initial, failed + invalid)
}

/// All counters by their StatsD names, sorted.
pub(crate) fn statsd(services: &Services) -> BTreeMap<String, u64> {
    const SERVICE: &str = "ratelimit.service";
    let snapshot = services.envoy.stats.snapshot();
    let mut all = BTreeMap::new();
    for rule in &snapshot.rules {
        let stat = sanitize(&rule.stat);
        for RuleMetric { name, count, .. } in &RULE_METRICS {
            *all.entry(format!("{SERVICE}.rate_limit.{stat}.{name}")).or_default() += count(rule);
        }
    }
    for (domain, count) in &snapshot.domains_not_found {
        let domain = sanitize(domain);
        all.insert(format!("{SERVICE}.rate_limit.{domain}.domain_not_found"), *count);
    }
    let (loaded, rejected) = loads(services);
    for (name, count) in [
        ("call.should_rate_limit.redis_error", snapshot.store_errors),
        ("call.should_rate_limit.service_error", snapshot.service_errors),
        ("config_load_error", rejected),
        ("config_load_success", loaded),
        ("global_shadow_mode", snapshot.global_shadow),
    ] {
        all.insert(format!("{SERVICE}.{name}"), count);
    }
    all.insert(format!("ratelimit_server.{METHOD}.total_requests"), snapshot.calls);
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(stat: &str, total_hits: u64) -> RuleCounts {
        RuleCounts { stat: stat.to_owned(), total_hits, ..RuleCounts::default() }
    }

    #[test]
    fn rules_with_the_same_labels_are_one_series() {
        let rules = [rule("d.k.l.m", 1), rule("d.k.l.n", 2), rule("d.k", 4), rule("d.k.l", 8)];
        let sums: Vec<_> = sum_by_labels(&rules, |counts| counts.total_hits).into_iter().collect();
        assert_eq!(sums, [("d.k".to_owned(), 4), ("d.k.l".to_owned(), 11)]);
    }

    #[test]
    fn names_are_unique_and_have_the_prefix() {
        let more = [
            &DOMAIN_NOT_FOUND,
            &ERRORS,
            &REQUESTS,
            &RESPONSE_TIME,
            &LOADED,
            &REJECTED,
            &GLOBAL_SHADOW,
        ];
        let all: Vec<_> = RULE_METRICS.iter().map(|metric| &metric.family).chain(more).collect();
        for (index, family) in all.iter().enumerate() {
            assert!(family.name.starts_with("ratelimit_service_"), "{}", family.name);
            assert!(family.help.ends_with('.'), "{}", family.name);
            assert!(!all[..index].iter().any(|other| other.name == family.name), "{}", family.name);
        }
    }
}
