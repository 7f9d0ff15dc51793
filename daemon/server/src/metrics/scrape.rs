//! The samples of a page, read at the time of the scrape.

use std::fs;
use std::sync::atomic::Ordering;

use super::compat;
use super::families::*;
use super::page::{Bucket, Format, Page, Value};
use crate::services::Services;
use tollgate::{BreakerState, LimiterStats, NodeStats, RedisStats};
use tollgate_engine::{ListenerKind, StoreStatus, Surface};
use tollgate_envoy::{Comparison, QuotaStats};

/// The length of a tick in `/proc`, in µs. Linux reports 100 ticks a second there on every kernel.
const TICK: u64 = 10_000;

/// The whole page.
pub(super) fn text(services: &Services, format: Format) -> String {
    let mut page = Page::new(format);
    decisions(&mut page, services);
    store(&mut page, services);
    memory(&mut page, services);
    tracking(&mut page, services);
    connections(&mut page, services);
    operation(&mut page, services);
    if services.engine.active().envoy.reference_metrics {
        compat::write(&mut page, services);
    }
    page.sample(&BUILD, &[env!("CARGO_PKG_VERSION")], Value::Whole(1));
    process(&mut page);
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
    let latencies = latencies(&stats.latency_buckets);
    page.histogram(&STORE_DURATION, &[], &latencies, Value::Micros(stats.latency_sum_us));
    for (kind, count) in &stats.errors {
        page.sample(&STORE_ERRORS, &[kind.as_str()], Value::Whole(*count));
    }
    shares(page, &stats);
    let stats = redis.stats();
    page.histogram(&STORE_BATCH, &[], &batches(&stats), Value::Whole(stats.requests));
    for (family, count) in [
        (&STORE_RECONNECTS, stats.reconnects),
        (&STORE_REDIRECTIONS, stats.redirections),
        (&STORE_UNKNOWN, stats.unknown_outcomes),
        (&STORE_DIALS, stats.dials),
        (&STORE_RECONCILED, stats.reconciled),
        (&STORE_OVERSHOOT, stats.overshoot),
    ] {
        page.sample(family, &[], Value::Whole(count));
    }
    for (result, count) in
        [("accepted", stats.replaced_passwords), ("rejected", stats.rejected_passwords)]
    {
        page.sample(&STORE_PASSWORDS, &[result], Value::Whole(count));
    }
    nodes(page, &redis.nodes());
}

/// What this process decides without the store.
fn shares(page: &mut Page, stats: &LimiterStats) {
    page.sample(&STORE_MEMBERS, &[], Value::count(stats.members.unwrap_or(0)));
    page.sample(&STORE_PENDING_KEYS, &[], Value::count(stats.pending_keys));
    for (result, cost) in [("charged", stats.charged_back), ("lost", stats.not_charged_back)] {
        page.sample(&STORE_CHARGED_BACK, &[result], Value::Whole(cost));
    }
    page.sample(&STORE_REMEMBERED, &[], Value::Whole(stats.denied_from_memory));
    for (result, count) in [("allowed", stats.leased_allowed), ("denied", stats.leased_denied)] {
        page.sample(&LEASED, &[result], Value::Whole(count));
    }
    page.sample(&LEASE_REQUESTS, &[], Value::Whole(stats.lease_requests));
}

/// The state of each node of the Redis store.
fn nodes(page: &mut Page, nodes: &[NodeStats]) {
    let up = |node: &NodeStats| Value::Whole(node.is_up().into());
    sample_each(page, &STORE_NODE_UP, nodes, up);
    sample_each(page, &STORE_NODE_CONNECTIONS, nodes, |node| Value::Whole(node.connections.into()));
    sample_each(page, &STORE_NODE_OUTAGES, nodes, |node| Value::Whole(node.outages));
    for NodeStats { address, breaker, .. } in nodes {
        for state in BreakerState::ALL {
            let is_current = Value::Whole((breaker.state == state).into());
            page.sample(&STORE_NODE_BREAKER, &[address, state.as_str()], is_current);
        }
    }
    sample_each(page, &STORE_NODE_BREAKER_OPENED, nodes, |node| Value::Whole(node.breaker.opened));
    let rejected = |node: &NodeStats| Value::Whole(node.breaker.rejected);
    sample_each(page, &STORE_NODE_BREAKER_REJECTED, nodes, rejected);
    sample_each(page, &STORE_NODE_IN_FLIGHT, nodes, |node| Value::count(node.in_flight));
    sample_each(page, &STORE_NODE_QUEUED, nodes, |node| Value::count(node.queued));
    for NodeStats { address, counters, .. } in nodes {
        let sum = Value::Micros(counters.round_trip_sum_us);
        let round_trips = latencies(&counters.round_trips);
        page.histogram(&STORE_NODE_ROUND_TRIP, &[address], &round_trips, sum);
    }
    for NodeStats { address, counters, .. } in nodes {
        let sum = Value::Whole(counters.requests);
        page.histogram(&STORE_NODE_BATCH, &[address], &batches(counters), sum);
    }
    for NodeStats { address, counters, .. } in nodes {
        for (kind, count) in &counters.errors {
            page.sample(&STORE_NODE_ERRORS, &[address, kind.as_str()], Value::Whole(*count));
        }
    }
    sample_each(page, &STORE_NODE_LATE, nodes, |node| Value::Whole(node.counters.late));
    let redirections = |node: &NodeStats| Value::Whole(node.counters.redirections);
    sample_each(page, &STORE_NODE_REDIRECTIONS, nodes, redirections);
    sample_each(page, &STORE_NODE_DIALS, nodes, |node| Value::Whole(node.counters.dials));
    let script_times = nodes.iter().filter_map(|node| Some((&node.address, node.script_time?)));
    let script_times: Vec<_> = script_times.collect();
    for (address, time) in &script_times {
        page.sample(&STORE_NODE_SCRIPTS, &[address], Value::Whole(time.calls));
    }
    for (address, time) in &script_times {
        page.sample(&STORE_NODE_SCRIPT_TIME, &[address], Value::Micros(time.sum_us));
    }
}

/// One value of each node.
fn sample_each(
    page: &mut Page,
    family: &'static Family,
    nodes: &[NodeStats],
    value: impl Fn(&NodeStats) -> Value,
) {
    for node in nodes {
        page.sample(family, &[&node.address], value(node));
    }
}

/// The buckets of a histogram in µs.
fn latencies(buckets: &[(Option<u64>, u64)]) -> Vec<Bucket> {
    let buckets = buckets.iter();
    buckets.map(|(bound, count)| bucket(bound.map(Value::Micros), *count)).collect()
}

/// The buckets of the requests per call.
fn batches(stats: &RedisStats) -> Vec<Bucket> {
    let batches = stats.batches.iter();
    let batches = batches.map(|(bound, count)| bucket(Some(Value::Whole(*bound)), *count));
    batches.chain([bucket(None, 0)]).collect()
}

fn bucket(bound: Option<Value>, count: u64) -> Bucket {
    Bucket { bound, count, exemplar: None }
}

fn memory(page: &mut Page, services: &Services) {
    let Some(memory) = services.engine.limiter().as_memory() else { return };
    let stats = memory.stats();
    for (family, count) in [
        (&KEYS, Value::count(stats.keys)),
        (&KEYS_MAX, Value::count(stats.max_keys)),
        (&KEY_EVICTIONS, Value::Whole(stats.evicted)),
        (&KEYS_REFUSED, Value::Whole(stats.full)),
        (&MEMORY_STORE_BYTES_MAX, Value::count(stats.max_bytes)),
    ] {
        page.sample(family, &[], count);
    }
    for (kind, bytes) in [
        ("keys", stats.key_bytes),
        ("blocks", stats.block_bytes),
        ("request_ids", stats.request_id_bytes),
    ] {
        page.sample(&MEMORY_STORE_BYTES, &[kind], Value::count(bytes));
    }
}

fn tracking(page: &mut Page, services: &Services) {
    let stats = services.engine.insight().stats();
    for (reason, count) in stats.dropped {
        page.sample(&TRACKED_DROPPED, &[reason], Value::Whole(count));
    }
    for (family, count) in [
        (&TRACKED_FORGOTTEN, stats.evicted),
        (&TRACKED_KEYS, stats.keys),
        (&TRACKED_BYTES, stats.bytes),
        (&TRACKED_PENDING, stats.pending_keys),
    ] {
        page.sample(family, &[], Value::Whole(count));
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
        let more = [
            ("handshake", totals.failed_handshakes),
            ("crowded", totals.evicted),
            ("peer", totals.refused),
        ];
        for (reason, count) in
            services.engine.counters.listener(kind).closures().into_iter().chain(more)
        {
            page.sample(&CONNECTIONS_CUT, &[kind.as_str(), reason], Value::Whole(count));
        }
    }
    page.sample(&BUFFERS, &[], Value::count(services.buffers.used()));
    page.sample(&BUFFERS_MAX, &[], Value::count(services.engine.active().bounds.buffers));
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
    quota(page, &services.envoy.quota);
    comparison(page, &services.envoy.comparison);
    let policies = Value::count(services.engine.active().policies.iter().count());
    page.sample(&POLICIES, &[], policies);
    page.sample(&DRAINING, &[], Value::Whole(services.lifecycle.is_draining().into()));
}

fn quota(page: &mut Page, quota: &QuotaStats) {
    page.sample(&QUOTA_STREAMS, &[], Value::Whole(quota.streams.load(Ordering::Relaxed)));
    page.sample(&QUOTA_BUCKETS, &[], Value::Whole(quota.buckets.load(Ordering::Relaxed)));
    page.sample(&QUOTA_REPORTS, &[], Value::Whole(quota.reports.get()));
    page.sample(&QUOTA_RESPONSES, &[], Value::Whole(quota.responses.get()));
    page.sample(&QUOTA_SILENT, &[], Value::Whole(quota.silent.get()));
    for (reason, count) in
        [("store", &quota.store_errors), ("late", &quota.late), ("refused", &quota.refused)]
    {
        page.sample(&QUOTA_FAILED, &[reason], Value::Whole(count.get()));
    }
}

fn comparison(page: &mut Page, comparison: &Comparison) {
    let requests = comparison.requests();
    for (result, count) in [
        ("same", requests.same),
        ("different", requests.different),
        ("other_failed", requests.other_failed),
        ("tollgate_failed", requests.tollgate_failed),
    ] {
        page.sample(&COMPARED_REQUESTS, &[result], Value::Whole(count));
    }
    for policy in comparison.policies() {
        for (result, count) in [
            ("same", policy.same),
            ("only_other_denied", policy.only_other_denied),
            ("only_tollgate_denied", policy.only_tollgate_denied),
        ] {
            page.sample(&COMPARED, &[&policy.name, result], Value::Whole(count));
        }
    }
}

/// The metrics of this process. Those whose file in `/proc` cannot be read are left out.
fn process(page: &mut Page) {
    let read = |file| fs::read_to_string(file).ok();
    let [status, stat, limits, boot] =
        ["/proc/self/status", "/proc/self/stat", "/proc/self/limits", "/proc/stat"].map(read);
    let status = |word| number_after(status.as_deref()?, word);
    let stat = |number| stat_field(stat.as_deref()?, number);
    let bytes = |word| status(word).map(|kib| Value::Whole(kib * 1024));
    let max_files = limits.and_then(|limits| number_after(&limits, "Max open files"));
    let started = boot.and_then(|boot| number_after(&boot, "btime ")).zip(stat(22));
    // Without the file descriptor that lists them.
    let files = fs::read_dir("/proc/self/fd").map(|files| files.count().saturating_sub(1));
    for (family, value) in [
        (&CPU, stat(14).zip(stat(15)).map(|(user, system)| Value::Micros((user + system) * TICK))),
        (&MEMORY, bytes("VmRSS:")),
        (&VIRTUAL_MEMORY, bytes("VmSize:")),
        (&OPEN_FILES, files.ok().map(Value::count)),
        (&MAX_FILES, max_files.map(Value::Whole)),
        (&THREADS, status("Threads:").map(Value::Whole)),
        (&START, started.map(|(boot, ticks)| Value::Micros(boot * 1_000_000 + ticks * TICK))),
    ] {
        if let Some(value) = value {
            page.sample(family, &[], value);
        }
    }
}

/// The number after a word at the beginning of a line.
fn number_after(text: &str, word: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(word))?;
    line.split_whitespace().next()?.parse().ok()
}

/// A field of `/proc/self/stat`, numbered as in proc(5): from 1; the second is the name of the
/// program in brackets, which may contain spaces and brackets.
fn stat_field(stat: &str, number: usize) -> Option<u64> {
    let (_, after_name) = stat.rsplit_once(") ")?;
    after_name.split(' ').nth(number.checked_sub(3)?)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_the_program_may_contain_brackets() {
        let stat = "7 (a) b) R 1 2 3 4 5 6 7 8 9 10 120 30 0 0 20 0 4 0 5000 1 2";
        assert_eq!([14, 15, 22].map(|field| stat_field(stat, field)), [120, 30, 5000].map(Some));
        assert_eq!(stat_field("", 14), None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn all_metrics_of_this_process_are_written() {
        let mut page = Page::new(Format::Classic);
        process(&mut page);
        let page = page.finish();
        for family in [&CPU, &MEMORY, &VIRTUAL_MEMORY, &OPEN_FILES, &MAX_FILES, &THREADS, &START] {
            let line = page.lines().find(|line| line.starts_with(&format!("{} ", family.name)));
            let value: f64 = line.unwrap().rsplit_once(' ').unwrap().1.parse().unwrap();
            assert!(value > 0.0 || family.name == CPU.name, "{line:?}");
        }
    }
}
