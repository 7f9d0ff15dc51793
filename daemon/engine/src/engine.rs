//! The engine's shared state.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arc_swap::{ArcSwap, Guard};
use tollgate::{Limiter, Timestamp};
use tollgate_descriptors::Domains;
use tollgate_insight::Insight;
use tollgate_state::Clock;

use crate::access::Principal;
use crate::active::ActiveConfig;
use crate::audit::AuditRecord;
use crate::connection::Remote;
use crate::counters::Counters;
use crate::log_throttle::LogThrottle;

/// Whether the store is reachable, as of the last probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreStatus {
    /// It has not been reached since the start.
    NeverReached,
    /// It is reachable.
    Reachable,
    /// It was reachable, and is not now.
    Lost,
}

/// The state of the store, from which every page, metric and log line derives.
#[derive(Clone, Debug)]
struct StoreState {
    status: StoreStatus,
    /// Why it is not reachable.
    problem: Option<Arc<str>>,
}

/// The state that all connections share: the limiter, the active configuration and counters.
#[derive(Debug)]
pub struct Engine {
    limiter: Limiter,
    active: ArcSwap<ActiveConfig>,
    /// Domains of a control plane, which replace those of files.
    domains: Mutex<Option<Arc<Domains>>>,
    /// The counters.
    pub counters: Counters,
    insight: Insight,
    clock: Clock,
    started: Timestamp,
    store_state: Mutex<StoreState>,
    /// Requests without a valid token.
    unauthenticated: LogThrottle,
}

impl Engine {
    /// An engine that decides with this limiter, under this configuration.
    #[must_use]
    pub fn new(mut active: ActiveConfig, limiter: Limiter) -> Self {
        let clock = Clock::system();
        let started = clock.now();
        let counters = Counters::new(started);
        active.counters = counters.policies(&active.policies, &active.domains);
        let insight = Insight::new(&limiter);
        active.tracking = insight.configure(active.tracks());
        let (status, problem) = match limiter.as_memory() {
            Some(_) => (StoreStatus::Reachable, None),
            None => (StoreStatus::NeverReached, Some("it is not connected yet".into())),
        };
        Engine {
            limiter,
            active: ArcSwap::from_pointee(active),
            domains: Mutex::default(),
            counters,
            insight,
            clock,
            started,
            store_state: Mutex::new(StoreState { status, problem }),
            unauthenticated: LogThrottle::default(),
        }
    }

    /// The limiter.
    #[inline]
    #[must_use]
    pub fn limiter(&self) -> &Limiter {
        &self.limiter
    }

    /// What policies track about their keys.
    #[inline]
    #[must_use]
    pub fn insight(&self) -> &Insight {
        &self.insight
    }

    /// The clock that requests and connections are timed with. Decisions use the store's.
    #[inline]
    #[must_use]
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// When the engine was created.
    #[must_use]
    pub fn started(&self) -> Timestamp {
        self.started
    }

    /// The active configuration. A request that keeps it is not affected by a reload.
    #[inline]
    #[must_use]
    pub fn active(&self) -> Guard<Arc<ActiveConfig>> {
        self.active.load()
    }

    /// Activates a configuration for all requests from now on. Domains of a control plane stay.
    pub fn activate(&self, active: ActiveConfig) {
        self.update(|domains| match domains {
            Some(domains) => active.with_domains(Arc::clone(domains)),
            None => active,
        });
    }

    /// Activates the domains of a control plane in place of all others.
    pub fn activate_domains(&self, new: Arc<Domains>) {
        self.update(|domains| {
            *domains = Some(Arc::clone(&new));
            ActiveConfig::clone(&self.active()).with_domains(new)
        });
    }

    /// Serialises updates, so that none overwrites another.
    fn update(&self, update: impl FnOnce(&mut Option<Arc<Domains>>) -> ActiveConfig) {
        let mut domains = self.domains.lock().unwrap_or_else(PoisonError::into_inner);
        let mut active = update(&mut domains);
        active.counters = self.counters.policies(&active.policies, &active.domains);
        active.tracking = self.insight.configure(active.tracks());
        self.active.store(Arc::new(active));
    }

    /// Records whether the store is reachable, or why not.
    pub fn set_store_state(&self, result: Result<(), Arc<str>>) {
        let mut state = self.lock_store_state();
        state.status = match (&result, state.status) {
            (Ok(()), _) => StoreStatus::Reachable,
            (Err(_), StoreStatus::NeverReached) => StoreStatus::NeverReached,
            (Err(_), StoreStatus::Reachable | StoreStatus::Lost) => StoreStatus::Lost,
        };
        state.problem = result.err();
    }

    /// Whether the store is reachable, as of the last probe. The memory store always is.
    #[must_use]
    pub fn store_status(&self) -> StoreStatus {
        self.lock_store_state().status
    }

    /// Why the store is not reachable, as of the last probe; `None` if it is.
    #[must_use]
    pub fn store_problem(&self) -> Option<Arc<str>> {
        self.lock_store_state().problem.clone()
    }

    fn lock_store_state(&self) -> MutexGuard<'_, StoreState> {
        self.store_state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins the audit record of an operator's request, and counts it. `principal` is absent if
    /// its originator has no valid token.
    #[must_use]
    pub fn audit<'a>(
        &self,
        operation: &'static str,
        principal: Option<Principal<'a>>,
        remote: &'a Remote,
    ) -> AuditRecord<'a> {
        const UNAUTHENTICATED: &str = "unauthenticated";
        self.counters.count_audit(operation);
        let name = principal.map_or(UNAUTHENTICATED, |principal| principal.name());
        AuditRecord::new(operation, name, remote)
    }

    /// Counts a request without a valid token, and logs it at most every few seconds. The log
    /// contains nothing that the client sent.
    pub fn report_unauthenticated(&self, remote: &Remote) {
        if let Some((requests, total)) = self.unauthenticated.count(self.clock.now()) {
            tracing::warn!(peer = %remote, requests, all = total, "no valid token");
        }
    }
}
