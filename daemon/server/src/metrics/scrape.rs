//! The page as it is when it is asked for.

use super::families::{
    AUDIT, BUILD, CONNECTIONS, CONNECTIONS_ACCEPTED, CONNECTIONS_CUT, CONNECTIONS_MAX, DECISIONS,
    DEGRADED, DRAINING, DURATION, KEY_EVICTIONS, KEYS, KEYS_MAX, KEYS_REFUSED, NO_RULE, POLICIES,
    RELOAD_GOOD, RELOAD_TIME, RELOADS, REQUESTS, STORE_BATCH, STORE_DURATION, STORE_ERRORS,
    STORE_RECONNECTS, STORE_REDIRECTIONS, STORE_UNKNOWN, STORE_UP, XDS_CONNECTED, XDS_UPDATES,
};
use super::page::{Class, Form, Page, Value};
use super::tally::Surface;
use super::{lock, process, reference};
use crate::daemon::Daemon;
use crate::role::Role;

/// The whole page.
pub(super) fn text(daemon: &Daemon, form: Form) -> String {
    let mut page = Page::new(form);
    decisions(&mut page, daemon);
    store(&mut page, daemon);
    memory(&mut page, daemon);
    connections(&mut page, daemon);
    operation(&mut page, daemon);
    if daemon.live().envoy.reference_metrics {
        reference::write(&mut page, daemon);
    }
    page.sample(&BUILD, &[env!("CARGO_PKG_VERSION")], Value::Whole(1));
    process::write(&mut page);
    page.finish()
}

fn decisions(page: &mut Page, daemon: &Daemon) {
    let metrics = &daemon.metrics;
    let tallies = lock(&metrics.tallies).clone();
    let tallies = tallies.all();
    for tally in &tallies {
        for surface in Surface::ALL {
            for (answer, count) in tally.answers(surface).counts().into_iter().flatten() {
                let labels = [&*tally.policy, answer, surface.as_str()];
                page.sample(&DECISIONS, &labels, Value::Whole(count));
            }
        }
    }
    for surface in Surface::ALL {
        let latency = metrics.latency(surface);
        page.histogram(&DURATION, &[surface.as_str()], &latency.classes(), latency.sum());
    }
    for tally in &tallies {
        for (answer, count) in tally.degraded().into_iter().flatten() {
            page.sample(&DEGRADED, &[&*tally.policy, answer], Value::Whole(count));
        }
    }
    for (outcome, count) in [("pass", &metrics.no_rule_passed), ("deny", &metrics.no_rule_denied)] {
        page.sample(&NO_RULE, &[outcome], Value::Whole(count.get()));
    }
}

fn store(page: &mut Page, daemon: &Daemon) {
    let Some(redis) = daemon.limiter().as_redis() else {
        return page.sample(&STORE_UP, &[], Value::Whole(1));
    };
    page.sample(&STORE_UP, &[], Value::Whole(daemon.metrics.store_up.get()));
    let stats = daemon.limiter().stats();
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

fn memory(page: &mut Page, daemon: &Daemon) {
    let Some(memory) = daemon.limiter().as_memory() else { return };
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

fn connections(page: &mut Page, daemon: &Daemon) {
    let whole = |n: usize| Value::Whole(u64::try_from(n).unwrap_or(u64::MAX));
    for role in Role::ALL {
        page.sample(&CONNECTIONS, &[role.as_str()], whole(daemon.places(role).count()));
    }
    let most = daemon.live().bounds.connections;
    for role in Role::ALL {
        page.sample(&CONNECTIONS_MAX, &[role.as_str()], whole(most));
    }
    for role in Role::ALL {
        let totals = daemon.places(role).totals();
        page.sample(&CONNECTIONS_ACCEPTED, &[role.as_str()], Value::Whole(totals.accepted));
    }
    for role in Role::ALL {
        let totals = daemon.places(role).totals();
        let refused = [("handshake", totals.failed_handshakes), ("crowded", totals.evicted)];
        for (reason, count) in
            daemon.metrics.traffic(role).cut_by_reason().into_iter().chain(refused)
        {
            page.sample(&CONNECTIONS_CUT, &[role.as_str(), reason], Value::Whole(count));
        }
    }
    for role in [Role::Http, Role::Grpc] {
        for (class, count) in daemon.metrics.traffic(role).answered_by_class() {
            page.sample(&REQUESTS, &[role.as_str(), class], Value::Whole(count));
        }
    }
}

fn operation(page: &mut Page, daemon: &Daemon) {
    let metrics = &daemon.metrics;
    for (verb, count) in lock(&metrics.audits).iter() {
        page.sample(&AUDIT, &[verb], Value::Whole(*count));
    }
    for (result, count) in metrics.reloads.by_result() {
        page.sample(&RELOADS, &[result], Value::Whole(count));
    }
    page.sample(&RELOAD_GOOD, &[], Value::Whole(metrics.reloads.is_good()));
    page.sample(&RELOAD_TIME, &[], Value::Micros(metrics.reloads.held_since()));
    for (result, count) in daemon.discovery.by_result() {
        page.sample(&XDS_UPDATES, &[result], Value::Whole(count));
    }
    let is_connected = u64::from(daemon.discovery.is_connected());
    page.sample(&XDS_CONNECTED, &[], Value::Whole(is_connected));
    let policies = u64::try_from(daemon.live().policies.iter().count()).unwrap_or(u64::MAX);
    page.sample(&POLICIES, &[], Value::Whole(policies));
    page.sample(&DRAINING, &[], Value::Whole(u64::from(daemon.is_draining())));
}
