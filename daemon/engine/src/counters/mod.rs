//! The daemon's counters.
//!
//! Counting is a few atomic additions; everything expensive happens when the metrics page is
//! rendered. No label contains a key or anything else that a client chooses.

mod counter;
mod event;
mod latency;
mod policy;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;

use tollgate::{Policies, Policy, Timestamp};
use tollgate_descriptors::Domains;

use crate::connection::{ListenerKind, PerListener};

use self::counter::lock;
pub use self::counter::{Closure, Counter, ListenerCounters, ReloadCounters};
pub use self::event::DECISIONS;
pub(crate) use self::event::DecisionEvent;
pub use self::latency::{Exemplar, LatencyBucket, LatencyHistogram, TraceId};
use self::policy::Answer;
pub(crate) use self::policy::{BatchCounters, PolicyCounterTable, PolicyCounters};
pub use self::policy::{PolicyCounts, Surface};

/// Checks during outages of the store, since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChecksWithoutStore {
    /// A policy admitted or denied them.
    pub decided: u64,
    /// The client got an error.
    pub failed: u64,
}

/// The daemon's counters.
#[derive(Debug)]
pub struct Counters {
    /// The counters of the policies of the active configuration.
    policies: Mutex<PolicyCounterTable>,
    latencies: [LatencyHistogram; Surface::ALL.len()],
    listeners: PerListener<ListenerCounters>,
    /// Configurations that were loaded.
    pub reloads: ReloadCounters,
    /// Operators' requests, by operation.
    audits: Mutex<BTreeMap<&'static str, u64>>,
    /// Requests of forward auth that no rule matched and that were admitted.
    pub no_rule_allowed: Counter,
    /// Requests of forward auth that no rule matched and that were denied.
    pub no_rule_denied: Counter,
}

impl Counters {
    /// Counters of a daemon that loaded a valid configuration at this time.
    pub(crate) fn new(started: Timestamp) -> Self {
        Counters {
            policies: Mutex::default(),
            latencies: Default::default(),
            listeners: PerListener::default(),
            reloads: ReloadCounters::new(started),
            audits: Mutex::default(),
            no_rule_allowed: Counter::default(),
            no_rule_denied: Counter::default(),
        }
    }

    /// The counters of these policies. Policies that were counted before keep their counts.
    pub(crate) fn policies(&self, policies: &Policies, domains: &Domains) -> PolicyCounterTable {
        let mut table = lock(&self.policies);
        let of_domains: BTreeSet<_> = domains.policies().map(|(_, policy)| policy.name()).collect();
        *table = table.with_names(policies.iter().map(Policy::name).chain(of_domains));
        table.clone()
    }

    /// The counts of every policy, by name.
    #[must_use]
    pub fn by_policy(&self) -> Vec<PolicyCounts> {
        lock(&self.policies).counts()
    }

    /// The checks that policies have decided without the store, and those that ended in an error.
    #[must_use]
    pub fn without_store(&self) -> ChecksWithoutStore {
        let policies = self.by_policy();
        let sum = |counts: &[(&'static str, u64)], only: Option<&str>| -> u64 {
            let counts = counts.iter().filter(|(name, _)| only.is_none_or(|only| *name == only));
            counts.map(|(_, count)| count).sum()
        };
        let error = Some(Answer::Error.as_str());
        let surfaces = policies.iter().flat_map(|policy| &policy.surfaces);
        ChecksWithoutStore {
            decided: policies.iter().map(|policy| sum(&policy.degraded, None)).sum(),
            failed: surfaces.map(|(_, answers)| sum(answers, error)).sum(),
        }
    }

    /// Counts an operator's request.
    pub(crate) fn count_audit(&self, operation: &'static str) {
        *lock(&self.audits).entry(operation).or_default() += 1;
    }

    /// The number of operators' requests, by operation.
    #[must_use]
    pub fn audits(&self) -> BTreeMap<&'static str, u64> {
        lock(&self.audits).clone()
    }

    /// The counters of a listener.
    #[must_use]
    pub fn listener(&self, kind: ListenerKind) -> &ListenerCounters {
        self.listeners.get(kind)
    }

    /// How long requests on a surface took.
    #[must_use]
    pub fn latency(&self, surface: Surface) -> &LatencyHistogram {
        let [http, forward_auth, envoy, resp] = &self.latencies;
        match surface {
            Surface::Http => http,
            Surface::ForwardAuth => forward_auth,
            Surface::Envoy => envoy,
            Surface::Resp => resp,
        }
    }
}
