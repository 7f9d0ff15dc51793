//! The metrics of envoyproxy/ratelimit, under the names that its dashboards use.
//!
//! That project sends statistics to StatsD and maps their names to metrics of Prometheus. This
//! module writes the metrics of its default mapping. They are untyped, because counters would need
//! other names.

use std::collections::BTreeMap;

use super::families::{Family, FamilyKind, families};
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

macro_rules! rule_metrics {
    ($($name:ident $help:literal;)*) => {
        [$(RuleMetric {
            name: stringify!($name),
            family: Family {
                name: concat!("ratelimit_service_rate_limit_", stringify!($name)),
                kind: FamilyKind::Unknown,
                labels: &["domain", "key1", "key2"],
                help: $help,
            },
            count: |counts| counts.$name,
        }),*]
    };
}

static RULE_METRICS: [RuleMetric; 6] = rule_metrics! {
    total_hits "Hits on a limit.";
    over_limit "Hits over a limit.";
    near_limit "Hits within a limit and near it.";
    over_limit_with_local_cache "Hits over a limit according to a local cache; always 0.";
    within_limit "Hits within a limit.";
    shadow_mode "Hits over a limit in shadow mode.";
};

families! {
    #[cfg(test)]
    SERVICE_METRICS;
    DOMAIN_NOT_FOUND: Unknown "ratelimit_service_rate_limit_domain_not_found" ["domain"]
        "Descriptors of unknown domains.";
    ERRORS: Unknown "ratelimit_service_should_rate_limit_error" ["err_type"]
        "Rejected requests (service_error), and requests that the store did not answer (redis_error).";
    REQUESTS: Unknown "ratelimit_service_total_requests" ["grpc_method"]
        "Calls over gRPC.";
    RESPONSE_TIME: Histogram "ratelimit_service_response_time_seconds" ["grpc_method"]
        "Duration of a request's decision.";
    LOADED: Unknown "ratelimit_service_config_load_success" []
        "Configurations that were applied.";
    REJECTED: Unknown "ratelimit_service_config_load_error" []
        "Configurations that were rejected.";
    GLOBAL_SHADOW: Unknown "ratelimit_service_global_shadow_mode" []
        "Requests over a limit that global shadow mode admitted.";
}

/// The method of the rate limit service.
const METHOD: &str = "ShouldRateLimit";

/// Writes all metrics.
pub(super) fn write(page: &mut Page, services: &Services) {
    let snapshot = services.envoy.stats.snapshot();
    let groups = group_by_labels(&snapshot.rules);
    for RuleMetric { family, count, .. } in &RULE_METRICS {
        for (name, rules) in &groups {
            let (domain, key1, key2) = labels(name);
            // The rule of a single key has no label for a second one.
            let labels: Vec<_> = [domain, key1].into_iter().chain(key2).collect();
            let count = rules.iter().map(|rule| count(rule)).sum();
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

/// The rules by the part of their names that becomes labels.
fn group_by_labels(rules: &[RuleCounts]) -> BTreeMap<String, Vec<&RuleCounts>> {
    let mut groups: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for rule in rules {
        let name = sanitize(&rule.stat);
        let parts: Vec<_> = name.split('.').take(3).collect();
        groups.entry(parts.join(".")).or_default().push(rule);
    }
    groups
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
pub(super) fn statsd(services: &Services) -> BTreeMap<String, u64> {
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

/// The name in StatsD: characters with a meaning there are replaced, and an IPv4 address is one
/// part.
fn sanitize(name: &str) -> String {
    let mut sanitized = String::with_capacity(name.len());
    let mut rest = name;
    while let Some(letter) = rest.chars().next() {
        let address_len = address_len(rest);
        let (part, after) = rest.split_at(address_len.unwrap_or(letter.len_utf8()));
        match letter {
            _ if address_len.is_some() => sanitized.push_str(&part.replace('.', "_")),
            ':' | '|' => sanitized.push('_'),
            other => sanitized.push(other),
        }
        rest = after;
    }
    sanitized
}

/// The length of the IPv4 address at the beginning of a text: four numbers of at most three digits.
fn address_len(text: &str) -> Option<usize> {
    let mut length = 0;
    for part in 0..4 {
        if part > 0 {
            length += text.get(length..)?.starts_with('.').then_some(1)?;
        }
        let digits = text.get(length..)?.bytes().take(3).take_while(u8::is_ascii_digit).count();
        length += Some(digits).filter(|digits| *digits > 0)?;
    }
    Some(length)
}

/// The labels of a statistic with this name in StatsD: the domain and the first two keys. Further
/// keys have no label; missing ones are empty.
fn labels(name: &str) -> (&str, &str, Option<&str>) {
    let mut parts = name.split('.');
    let mut next = || parts.next();
    (next().unwrap_or_default(), next().unwrap_or_default(), next())
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
        let groups = group_by_labels(&rules);
        let hits = |(name, rules): (&String, &Vec<&RuleCounts>)| {
            (name.clone(), rules.iter().map(|counts| counts.total_hits).sum::<u64>())
        };
        let sums: Vec<(String, u64)> = groups.iter().map(hits).collect();
        assert_eq!(sums, [("d.k".to_owned(), 4), ("d.k.l".to_owned(), 11)]);
    }

    #[test]
    fn names_are_unique_and_have_the_prefix() {
        let rules = RULE_METRICS.iter().map(|metric| &metric.family);
        let all: Vec<_> = rules.chain(SERVICE_METRICS.iter().copied()).collect();
        for (index, family) in all.iter().enumerate() {
            assert!(family.name.starts_with("ratelimit_service_"), "{}", family.name);
            assert!(family.help.ends_with('.'), "{}", family.name);
            assert!(!all[..index].iter().any(|other| other.name == family.name), "{}", family.name);
        }
    }

    #[test]
    fn names_are_sanitized_for_statsd() {
        for (name, expected) in [
            ("d.k_v", "d.k_v"),
            ("d:e|f.k", "d_e_f.k"),
            ("d.ip_10.0.0.1.k", "d.ip_10_0_0_1.k"),
            ("1234.5.6.7", "1234_5_6_7"),
            ("1.2.3", "1.2.3"),
            ("1.2.3.4567.8.9.10", "1_2_3_4567_8_9_10"),
            ("1.2..3.4", "1.2..3.4"),
            ("é.ü", "é.ü"),
            ("", ""),
        ] {
            assert_eq!(sanitize(name), expected);
        }
    }

    #[test]
    fn the_first_two_keys_become_labels() {
        for (name, expected) in [
            ("d.k", ("d", "k", None)),
            ("d.k_v.l", ("d", "k_v", Some("l"))),
            ("d.k.l.m.n", ("d", "k", Some("l"))),
            ("d", ("d", "", None)),
        ] {
            assert_eq!(labels(name), expected);
        }
    }
}
