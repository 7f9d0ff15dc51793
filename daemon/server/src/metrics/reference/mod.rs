//! The metrics of envoyproxy/ratelimit, by the names that its dashboards and its users know.
//!
//! That project counts for StatsD and maps what it counts to metrics of Prometheus; here they are
//! written as its own mapping gives them. Their kind is told as unknown, for the names are none that
//! counters may have.

mod names;

use std::collections::BTreeMap;

use self::names::{labels, sanitized};
use super::families::{Family, FamilyKind};
use super::page::{Page, Value};
use super::scrape::classes;
use crate::services::Services;
use tollgate_engine::Surface;

use tollgate_envoy::RuleCounts;

/// What is counted of a rule, each by its name as StatsD is told it.
struct OfRule {
    name: &'static str,
    family: Family,
    count: fn(&RuleCounts) -> u64,
}

const fn unknown(
    name: &'static str,
    labels: &'static [&'static str],
    help: &'static str,
) -> Family {
    Family { name, kind: FamilyKind::Unknown, labels, help }
}

const OF_RULE: &[&str] = &["domain", "key1", "key2"];

static OF_RULES: &[OfRule] = &[
    OfRule {
        name: "total_hits",
        family: unknown("ratelimit_service_rate_limit_total_hits", OF_RULE, "Hits on a limit."),
        count: |x| x.total_hits,
    },
    OfRule {
        name: "over_limit",
        family: unknown("ratelimit_service_rate_limit_over_limit", OF_RULE, "Hits over a limit."),
        count: |x| x.over_limit,
    },
    OfRule {
        name: "near_limit",
        family: unknown(
            "ratelimit_service_rate_limit_near_limit",
            OF_RULE,
            "Hits within a limit that were near it.",
        ),
        count: |x| x.near_limit,
    },
    OfRule {
        name: "over_limit_with_local_cache",
        family: unknown(
            "ratelimit_service_rate_limit_over_limit_with_local_cache",
            OF_RULE,
            "Hits over a limit that were known to be without asking the store.",
        ),
        count: |x| x.over_limit_with_local_cache,
    },
    OfRule {
        name: "within_limit",
        family: unknown(
            "ratelimit_service_rate_limit_within_limit",
            OF_RULE,
            "Hits within a limit.",
        ),
        count: |x| x.within_limit,
    },
    OfRule {
        name: "shadow_mode",
        family: unknown(
            "ratelimit_service_rate_limit_shadow_mode",
            OF_RULE,
            "Hits over a limit in shadow mode.",
        ),
        count: |x| x.shadow_mode,
    },
];

static NOT_FOUND: Family = unknown(
    "ratelimit_service_rate_limit_domain_not_found",
    &["domain"],
    "Descriptors of domains that there are not.",
);
static ERRORS: Family = unknown(
    "ratelimit_service_should_rate_limit_error",
    &["err_type"],
    "Requests that were refused (service_error), and those that the store gave no answer to (redis_error).",
);
static REQUESTS: Family =
    unknown("ratelimit_service_total_requests", &["grpc_method"], "Calls over gRPC.");
static TIMES: Family = Family {
    name: "ratelimit_service_response_time_seconds",
    kind: FamilyKind::Histogram,
    labels: &["grpc_method"],
    help: "How long requests waited for their decision.",
};
static LOADED: Family = unknown(
    "ratelimit_service_config_load_success",
    &[],
    "Configurations that were read and hold or held.",
);
static NOT_LOADED: Family =
    unknown("ratelimit_service_config_load_error", &[], "Configurations that were refused.");
static SHADOW: Family = unknown(
    "ratelimit_service_global_shadow_mode",
    &[],
    "Requests that passed for no other reason than that all pass.",
);

/// The one method of gRPC that is counted.
const METHOD: &str = "ShouldRateLimit";

/// Writes all of them.
pub(super) fn write(page: &mut Page, services: &Services) {
    let counted = services.envoy.stats.snapshot();
    for OfRule { family, count, .. } in OF_RULES {
        for (name, count) in summed(&counted.rules, *count) {
            let (domain, key1, key2) = labels(&name);
            let all = [domain, key1, key2.unwrap_or_default()];
            // A limit of one key has no second, and so no label for it.
            let labels = if key2.is_some() { &all[..] } else { &all[..2] };
            page.sample(family, labels, Value::Whole(count));
        }
    }
    for (domain, count) in &counted.domains_not_found {
        page.sample(&NOT_FOUND, &[&sanitized(domain)], Value::Whole(*count));
    }
    for (kind, count) in
        [("redis_error", counted.store_errors), ("service_error", counted.service_errors)]
    {
        page.sample(&ERRORS, &[kind], Value::Whole(count));
    }
    page.sample(&REQUESTS, &[METHOD], Value::Whole(counted.calls));
    let latency = services.engine.counters.latency(Surface::Envoy);
    let sum = Value::Micros(latency.sum_micros());
    page.histogram(&TIMES, &[METHOD], &classes(latency), sum);
    let (loaded, not_loaded) = loads(services);
    page.sample(&LOADED, &[], Value::Whole(loaded));
    page.sample(&NOT_LOADED, &[], Value::Whole(not_loaded));
    page.sample(&SHADOW, &[], Value::Whole(counted.global_shadow));
}

/// The counts of rules by what their labels are made of, which several rules may have in common.
fn summed(rules: &[RuleCounts], count: fn(&RuleCounts) -> u64) -> BTreeMap<String, u64> {
    let mut sums = BTreeMap::new();
    for rule in rules {
        let name = sanitized(&rule.stat);
        let parts: Vec<_> = name.split('.').take(3).collect();
        *sums.entry(parts.join(".")).or_default() += count(rule);
    }
    sums
}

/// How many configurations were read well, the first among them, and how many badly.
fn loads(services: &Services) -> (u64, u64) {
    let [(_, good), (_, bad)] = services.engine.counters.reloads.by_result();
    let [(_, discovered), (_, refused)] = services.envoy.discovery.by_result();
    // The initial configuration is neither a reload nor an update of a control plane.
    let first = u64::from(services.envoy.discovery.error().is_none());
    (good + discovered + first, bad + refused)
}

/// What is counted, by the names that StatsD would be told, in their order.
pub(crate) fn statsd(services: &Services) -> BTreeMap<String, u64> {
    const SERVICE: &str = "ratelimit.service";
    let counted = services.envoy.stats.snapshot();
    let mut all = BTreeMap::new();
    for rule in &counted.rules {
        let stat = sanitized(&rule.stat);
        for OfRule { name, count, .. } in OF_RULES {
            *all.entry(format!("{SERVICE}.rate_limit.{stat}.{name}")).or_default() += count(rule);
        }
    }
    for (domain, count) in &counted.domains_not_found {
        let domain = sanitized(domain);
        all.insert(format!("{SERVICE}.rate_limit.{domain}.domain_not_found"), *count);
    }
    let (loaded, not_loaded) = loads(services);
    for (name, count) in [
        ("call.should_rate_limit.redis_error", counted.store_errors),
        ("call.should_rate_limit.service_error", counted.service_errors),
        ("config_load_error", not_loaded),
        ("config_load_success", loaded),
        ("global_shadow_mode", counted.global_shadow),
    ] {
        all.insert(format!("{SERVICE}.{name}"), count);
    }
    all.insert(format!("ratelimit_server.{METHOD}.total_requests"), counted.calls);
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(stat: &str, total_hits: u64) -> RuleCounts {
        RuleCounts { stat: stat.to_owned(), total_hits, ..RuleCounts::default() }
    }

    #[test]
    fn rules_whose_labels_are_the_same_are_one_series() {
        let rules = [rule("d.k.l.m", 1), rule("d.k.l.n", 2), rule("d.k", 4), rule("d.k.l", 8)];
        let sums: Vec<_> = summed(&rules, |x| x.total_hits).into_iter().collect();
        assert_eq!(sums, [("d.k".to_owned(), 4), ("d.k.l".to_owned(), 11)]);
    }

    #[test]
    fn no_name_is_one_of_our_own_or_there_twice() {
        let more = [&NOT_FOUND, &ERRORS, &REQUESTS, &TIMES, &LOADED, &NOT_LOADED, &SHADOW];
        let all: Vec<_> = OF_RULES.iter().map(|rule| &rule.family).chain(more).collect();
        for (at, family) in all.iter().enumerate() {
            assert!(family.name.starts_with("ratelimit_service_"), "{}", family.name);
            assert!(family.help.ends_with('.'), "{}", family.name);
            assert!(!all[..at].iter().any(|it| it.name == family.name), "{}", family.name);
        }
    }
}
