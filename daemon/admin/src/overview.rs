//! `GET /api/overview` and the event stream: the whole daemon at a glance.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use tollgate::{MemoryStats, NodeStats, Policy, RedisStore};
use tollgate_config::Privacy;
use tollgate_engine::{Engine, ReloadCounters, StoreStatus, Surface};
use tollgate_transport::Lifecycle;

use crate::counts::Counts;
use crate::histogram::Percentiles;
use crate::history::{History, Series};
use crate::number::Decimal;

/// The seconds that rates are averaged over.
const RATE_SECONDS: u64 = 5;
/// The seconds that percentiles are computed from.
const LATENCY_SECONDS: u64 = 60;

#[derive(Debug, Serialize)]
pub(crate) struct Overview {
    version: &'static str,
    time: Decimal,
    started: Decimal,
    draining: bool,
    /// How keys are shown: only plain ones can be looked up.
    privacy: &'static str,
    configuration: Reload,
    store: Store,
    rate_seconds: u64,
    rates: Counts<Decimal>,
    totals: Counts,
    latency_seconds: u64,
    latency: Vec<Latency>,
    policies: Vec<PolicyRow>,
    /// The samples since the last event, or all that are kept.
    history: Series,
}

/// The last reload.
#[derive(Debug, Serialize)]
pub(crate) struct Reload {
    /// Whether it was accepted.
    accepted: bool,
    /// When it ended; absent before the first.
    last: Option<Decimal>,
    /// When the active configuration was loaded.
    active_since: Decimal,
    reloads: u64,
    rejected: u64,
}

#[derive(Debug, Serialize)]
struct Latency {
    surface: &'static str,
    #[serde(flatten)]
    percentiles: Percentiles,
}

/// A policy of the configuration, or one that requests used.
#[derive(Debug, Serialize)]
struct PolicyRow {
    name: Box<str>,
    /// Empty for counters that several policies share.
    limits: Vec<String>,
    shadow: bool,
    /// Whether its keys are counted, so that `/api/keys` lists them.
    tracked: bool,
    rates: Counts<Decimal>,
    totals: Counts,
}

#[derive(Debug, Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
enum Store {
    Memory {
        status: &'static str,
        keys: usize,
        max_keys: usize,
        bytes: usize,
        max_bytes: usize,
        evicted: u64,
        refused: u64,
    },
    Redis {
        status: &'static str,
        /// Why it is not reachable.
        problem: Option<String>,
        /// The processes that share the limits.
        members: Option<usize>,
        /// Keys that this process decides alone.
        pending_keys: usize,
        latency: Percentiles,
        nodes: Vec<Node>,
    },
}

#[derive(Debug, Serialize)]
struct Node {
    address: Box<str>,
    up: bool,
    connections: u32,
    outages: u64,
    last_outage: Option<Decimal>,
    /// Why the last outage began.
    failure: Option<String>,
    in_flight: usize,
    queued: usize,
    breaker: &'static str,
    breaker_opened: u64,
    breaker_rejected: u64,
    breaker_cause: Option<Box<str>>,
}

impl Overview {
    /// The current state, with this many samples.
    pub(crate) fn new(
        engine: &Engine,
        lifecycle: &Lifecycle,
        history: &History,
        samples: usize,
    ) -> Self {
        let surfaces = Surface::ALL.into_iter().enumerate();
        Overview {
            version: env!("CARGO_PKG_VERSION"),
            time: engine.clock().now().into(),
            started: engine.started().into(),
            draining: lifecycle.is_draining(),
            privacy: match engine.active().privacy() {
                Privacy::Plain => "plain",
                Privacy::Masked => "masked",
                Privacy::Hashed => "hashed",
            },
            configuration: Reload::new(&engine.counters.reloads),
            store: Store::new(engine, history),
            rate_seconds: RATE_SECONDS,
            rates: history.rates(None),
            totals: history.total(),
            latency_seconds: LATENCY_SECONDS,
            latency: surfaces
                .map(|(index, surface)| Latency {
                    surface: surface.as_str(),
                    percentiles: history.latency(index),
                })
                .filter(|latency| latency.percentiles.requests > 0)
                .collect(),
            policies: policies(engine, history),
            history: history.series(None, samples),
        }
    }
}

fn policies(engine: &Engine, history: &History) -> Vec<PolicyRow> {
    let active = engine.active();
    let domain_policies = active.domains.policies().map(|(_, policy)| policy);
    let all: BTreeMap<_, _> = domain_policies
        .chain(active.policies.iter())
        .map(|policy| (policy.name(), policy))
        .collect();
    let tracked = engine.insight().tracked();
    let tracked = tracked.iter().filter(|policy| policy.track.usage);
    let tracked: BTreeSet<_> = tracked.map(|policy| &*policy.name).collect();
    let rows = history.policies().filter_map(|(name, totals)| {
        let policy = all.get(&**name).copied();
        // Counters that several policies share are left out until they are used.
        let is_shown = policy.is_some() || totals != Counts::default();
        is_shown.then(|| PolicyRow {
            name: (&**name).into(),
            limits: policy.map(limits).unwrap_or_default(),
            shadow: policy.is_some_and(Policy::is_shadow),
            tracked: tracked.contains(&**name),
            rates: history.rates(Some(name)),
            totals,
        })
    });
    rows.collect()
}

pub(crate) fn limits(policy: &Policy) -> Vec<String> {
    policy.limits().iter().map(ToString::to_string).collect()
}

impl Reload {
    pub(crate) fn new(reloads: &ReloadCounters) -> Self {
        let [(_, accepted), (_, rejected)] = reloads.by_result();
        Reload {
            accepted: reloads.is_last_accepted() == 1,
            last: reloads.last().map(Decimal::from),
            active_since: tollgate::Timestamp::from_micros(reloads.active_since_micros()).into(),
            reloads: accepted.saturating_add(rejected),
            rejected,
        }
    }
}

impl Store {
    fn new(engine: &Engine, history: &History) -> Self {
        let status = match engine.store_status() {
            StoreStatus::Reachable => "reachable",
            StoreStatus::NeverReached => "never_reached",
            StoreStatus::Lost => "lost",
        };
        match engine.limiter().as_redis() {
            Some(redis) => Store::redis(status, engine, redis, history),
            None => {
                let memory = engine.limiter().as_memory();
                let stats = memory.map(tollgate::MemoryLimiter::stats).unwrap_or_default();
                Store::memory(status, &stats)
            }
        }
    }

    fn memory(status: &'static str, stats: &MemoryStats) -> Self {
        Store::Memory {
            status,
            keys: stats.keys,
            max_keys: stats.max_keys,
            bytes: stats.key_bytes + stats.block_bytes + stats.request_id_bytes,
            max_bytes: stats.max_bytes,
            evicted: stats.evicted,
            refused: stats.full,
        }
    }

    fn redis(status: &'static str, engine: &Engine, redis: &RedisStore, history: &History) -> Self {
        let stats = engine.limiter().stats();
        Store::Redis {
            status,
            problem: engine.store_problem().map(|problem| problem.as_ref().to_owned()),
            members: stats.members,
            pending_keys: stats.pending_keys,
            latency: history.store_latency(),
            nodes: redis.nodes().into_iter().map(Node::from).collect(),
        }
    }
}

impl From<NodeStats> for Node {
    fn from(node: NodeStats) -> Self {
        Node {
            up: node.is_up(),
            connections: node.connections,
            outages: node.outages,
            last_outage: node.last_outage.map(|length| tollgate::Micros::from(length).into()),
            failure: node.failure.map(|failure| failure.to_string()),
            in_flight: node.in_flight,
            queued: node.queued,
            breaker: node.breaker.state.as_str(),
            breaker_opened: node.breaker.opened,
            breaker_rejected: node.breaker.rejected,
            breaker_cause: Some(node.breaker.cause).filter(|cause| !cause.is_empty()),
            address: node.address,
        }
    }
}
