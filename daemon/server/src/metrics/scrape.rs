//! The samples of a page, read at the time of the scrape.

use super::families::{
    AUDIT, BUILD, CONNECTIONS, CONNECTIONS_ACCEPTED, CONNECTIONS_CUT, CONNECTIONS_MAX, DECISIONS,
    DEGRADED, DRAINING, DURATION, KEY_EVICTIONS, KEYS, KEYS_MAX, KEYS_REFUSED, NO_RULE, POLICIES,
    RELOAD_GOOD, RELOAD_TIME, RELOADS, REQUESTS, STORE_BATCH, STORE_DURATION, STORE_ERRORS,
    STORE_RECONNECTS, STORE_REDIRECTIONS, STORE_UNKNOWN, STORE_UP, XDS_CONNECTED, XDS_UPDATES,
};
use super::page::{Bucket, Format, Page, Value};
use super::{compat, process};
use crate::services::Services;
use tollgate_engine::{ListenerKind, StoreStatus, Surface};

/// The whole page.
pub(super) fn text(services: &Services, format: Format) -> String {
    let mut page = Page::new(format);
    decisions(&mut page, services);
    store(&mut page, services);
    memory(&mut page, services);
    connections(&mut page, services);
    operation(&mut page, services);
    if services.engine.active().envoy.reference_metrics {
        compat::write(&mut page, services);
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
        page.latency(&DURATION, &[surface.as_str()], counters.latency(surface));
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

fn store(page: &mut Page, services: &Services) {
    let Some(redis) = services.engine.limiter().as_redis() else {
        return page.sample(&STORE_UP, &[], Value::Whole(1));
    };
    let is_reachable = u64::from(services.engine.store_status() == StoreStatus::Reachable);
    page.sample(&STORE_UP, &[], Value::Whole(is_reachable));
    let stats = services.engine.limiter().stats();
    let bucket = |bound: Option<Value>, count| Bucket { bound, count, exemplar: None };
    let latencies = stats.latency_buckets.into_iter();
    let latencies: Vec<_> =
        latencies.map(|(bound, count)| bucket(bound.map(Value::Micros), count)).collect();
    page.histogram(&STORE_DURATION, &[], &latencies, Value::Micros(stats.latency_sum_us));
    for (kind, count) in stats.errors {
        page.sample(&STORE_ERRORS, &[kind.as_str()], Value::Whole(count));
    }
    let stats = redis.stats();
    let batches = stats.batches.into_iter();
    let batches = batches.map(|(bound, count)| bucket(Some(Value::Whole(bound)), count));
    let batches: Vec<_> = batches.chain([bucket(None, 0)]).collect();
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
    let usage = memory.usage();
    for (family, count) in [
        (&KEYS, Value::count(usage.keys)),
        (&KEYS_MAX, Value::count(usage.max_keys)),
        (&KEY_EVICTIONS, Value::Whole(usage.evicted)),
        (&KEYS_REFUSED, Value::Whole(usage.full)),
    ] {
        page.sample(family, &[], count);
    }
}

fn connections(page: &mut Page, services: &Services) {
    for kind in ListenerKind::ALL {
        let count = Value::count(services.connections.get(kind).count());
        page.sample(&CONNECTIONS, &[kind.as_str()], count);
    }
    let max = Value::count(services.engine.active().bounds.connections);
    for kind in ListenerKind::ALL {
        page.sample(&CONNECTIONS_MAX, &[kind.as_str()], max);
    }
    for kind in ListenerKind::ALL {
        let totals = services.connections.get(kind).totals();
        page.sample(&CONNECTIONS_ACCEPTED, &[kind.as_str()], Value::Whole(totals.accepted));
    }
    for kind in ListenerKind::ALL {
        let totals = services.connections.get(kind).totals();
        let more = [("handshake", totals.failed_handshakes), ("crowded", totals.evicted)];
        for (reason, count) in
            services.engine.counters.listener(kind).closures().into_iter().chain(more)
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
    let policies = Value::count(services.engine.active().policies.iter().count());
    page.sample(&POLICIES, &[], policies);
    page.sample(&DRAINING, &[], Value::Whole(services.lifecycle.is_draining().into()));
}
