//! The page as it is when it is asked for.

use super::families::{
    AUDIT, BUILD, CONNECTIONS, CONNECTIONS_ACCEPTED, CONNECTIONS_CUT, CONNECTIONS_MAX, DECISIONS,
    DEGRADED, DRAINING, DURATION, KEY_EVICTIONS, KEYS, KEYS_MAX, KEYS_REFUSED, NO_RULE, POLICIES,
    RELOAD_GOOD, RELOAD_TIME, RELOADS, REQUESTS, STORE_BATCH, STORE_DURATION, STORE_ERRORS,
    STORE_RECONNECTS, STORE_REDIRECTIONS, STORE_UNKNOWN, STORE_UP, XDS_CONNECTED, XDS_UPDATES,
};
use super::page::{Class, Form, Page, Value};
use tollgate_engine::{LatencyHistogram, ListenerKind, StoreStatus, Surface};

use super::{process, reference};
use crate::services::Services;

/// The whole page.
pub(super) fn text(services: &Services, form: Form) -> String {
    let mut page = Page::new(form);
    decisions(&mut page, services);
    store(&mut page, services);
    memory(&mut page, services);
    connections(&mut page, services);
    operation(&mut page, services);
    if services.engine.active().envoy.reference_metrics {
        reference::write(&mut page, services);
    }
    page.sample(&BUILD, &[env!("CARGO_PKG_VERSION")], Value::Whole(1));
    process::write(&mut page);
    page.finish()
}

fn decisions(page: &mut Page, services: &Services) {
    let counters = &services.engine.counters;
    let policies = counters.by_policy();
    // Series without any decision are left out.
    let is_used = |counts: &[(&str, u64)]| counts.iter().any(|(_, count)| *count > 0);
    for policy in &policies {
        for (surface, counts) in policy.surfaces.iter().filter(|(_, counts)| is_used(counts)) {
            for (answer, count) in counts {
                let labels = [&*policy.policy, answer, surface.as_str()];
                page.sample(&DECISIONS, &labels, Value::Whole(*count));
            }
        }
    }
    for surface in Surface::ALL {
        let latency = counters.latency(surface);
        let sum = Value::Micros(latency.sum_micros());
        page.histogram(&DURATION, &[surface.as_str()], &classes(latency), sum);
    }
    for policy in policies.iter().filter(|policy| is_used(&policy.degraded)) {
        for (answer, count) in policy.degraded {
            page.sample(&DEGRADED, &[&*policy.policy, answer], Value::Whole(count));
        }
    }
    let no_rule = [("pass", &counters.no_rule_allowed), ("deny", &counters.no_rule_denied)];
    for (outcome, count) in no_rule {
        page.sample(&NO_RULE, &[outcome], Value::Whole(count.get()));
    }
}

/// The buckets of a histogram, as the page has them.
pub(super) fn classes(latency: &LatencyHistogram) -> Vec<Class> {
    latency
        .buckets()
        .into_iter()
        .map(|bucket| Class {
            most: bucket.bound.map(|bound| Value::Micros(bound.get())),
            count: bucket.count,
            exemplar: bucket.exemplar,
        })
        .collect()
}

fn store(page: &mut Page, services: &Services) {
    let Some(redis) = services.engine.limiter().as_redis() else {
        return page.sample(&STORE_UP, &[], Value::Whole(1));
    };
    let is_reachable = u64::from(services.engine.store_status() == StoreStatus::Reachable);
    page.sample(&STORE_UP, &[], Value::Whole(is_reachable));
    let stats = services.engine.limiter().stats();
    let class = |(most, count): (Option<u64>, u64)| Class {
        most: most.map(Value::Micros),
        count,
        exemplar: None,
    };
    let times: Vec<_> = stats.latency_buckets.into_iter().map(class).collect();
    page.histogram(&STORE_DURATION, &[], &times, Value::Micros(stats.latency_sum_us));
    for (kind, count) in stats.errors {
        page.sample(&STORE_ERRORS, &[kind.as_str()], Value::Whole(count));
    }
    let stats = redis.stats();
    let class = |(most, count)| Class { most: Some(Value::Whole(most)), count, exemplar: None };
    let end = Class { most: None, count: 0, exemplar: None };
    let batches: Vec<_> = stats.batches.into_iter().map(class).chain([end]).collect();
    page.histogram(&STORE_BATCH, &[], &batches, Value::Whole(stats.requests));
    for (family, count) in [
        (&STORE_RECONNECTS, stats.reconnects),
        (&STORE_REDIRECTIONS, stats.redirections),
        (&STORE_UNKNOWN, stats.unknown_outcomes),
    ] {
        page.sample(family, &[], Value::Whole(count));
    }
}

fn memory(page: &mut Page, services: &Services) {
    let Some(memory) = services.engine.limiter().as_memory() else { return };
    let occupancy = memory.usage();
    let whole = |n: usize| u64::try_from(n).unwrap_or(u64::MAX);
    for (family, count) in [
        (&KEYS, whole(occupancy.keys)),
        (&KEYS_MAX, whole(occupancy.max_keys)),
        (&KEY_EVICTIONS, occupancy.evicted),
        (&KEYS_REFUSED, occupancy.full),
    ] {
        page.sample(family, &[], Value::Whole(count));
    }
}

fn connections(page: &mut Page, services: &Services) {
    let whole = |n: usize| Value::Whole(u64::try_from(n).unwrap_or(u64::MAX));
    for kind in ListenerKind::ALL {
        page.sample(&CONNECTIONS, &[kind.as_str()], whole(services.connections.get(kind).count()));
    }
    let most = services.engine.active().bounds.connections;
    for kind in ListenerKind::ALL {
        page.sample(&CONNECTIONS_MAX, &[kind.as_str()], whole(most));
    }
    for kind in ListenerKind::ALL {
        let totals = services.connections.get(kind).totals();
        page.sample(&CONNECTIONS_ACCEPTED, &[kind.as_str()], Value::Whole(totals.accepted));
    }
    for kind in ListenerKind::ALL {
        let totals = services.connections.get(kind).totals();
        let refused = [("handshake", totals.failed_handshakes), ("crowded", totals.evicted)];
        for (reason, count) in
            services.engine.counters.listener(kind).closures().into_iter().chain(refused)
        {
            page.sample(&CONNECTIONS_CUT, &[kind.as_str(), reason], Value::Whole(count));
        }
    }
    for kind in [ListenerKind::Http, ListenerKind::Grpc] {
        for (class, count) in services.engine.counters.listener(kind).responses() {
            page.sample(&REQUESTS, &[kind.as_str(), class], Value::Whole(count));
        }
    }
}

fn operation(page: &mut Page, services: &Services) {
    let counters = &services.engine.counters;
    for (operation, count) in counters.audits() {
        page.sample(&AUDIT, &[operation], Value::Whole(count));
    }
    for (result, count) in counters.reloads.by_result() {
        page.sample(&RELOADS, &[result], Value::Whole(count));
    }
    page.sample(&RELOAD_GOOD, &[], Value::Whole(counters.reloads.is_last_accepted()));
    page.sample(&RELOAD_TIME, &[], Value::Micros(counters.reloads.active_since_micros()));
    for (result, count) in services.envoy.discovery.by_result() {
        page.sample(&XDS_UPDATES, &[result], Value::Whole(count));
    }
    let is_connected = u64::from(services.envoy.discovery.is_connected());
    page.sample(&XDS_CONNECTED, &[], Value::Whole(is_connected));
    let policies =
        u64::try_from(services.engine.active().policies.iter().count()).unwrap_or(u64::MAX);
    page.sample(&POLICIES, &[], Value::Whole(policies));
    page.sample(&DRAINING, &[], Value::Whole(u64::from(services.lifecycle.is_draining())));
}
