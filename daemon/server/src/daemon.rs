//! What all connections share.

use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::{ArcSwap, Guard};
use tokio::sync::watch;
use tollgate::Limiter;
use tollgate_store::Clock;

use crate::access::Failures;
use crate::listener::Places;
use crate::live::Live;
use crate::metrics::Metrics;
use crate::ratelimit::Domains;
use crate::reload::Standing;
use crate::resp;
use crate::rls;
use crate::role::Role;
use crate::seldom::Seldom;
use crate::xds::Discovery;

/// How it stands with the store.
const NEVER_THERE: u8 = 0;
const THERE: u8 = 1;
const GONE: u8 = 2;

/// What all connections share.
#[derive(Debug)]
pub(crate) struct Daemon {
    limiter: Limiter,
    live: ArcSwap<Live>,
    /// The domains that a control plane sent; they hold in place of those of files.
    discovered: Mutex<Option<Arc<Domains>>>,
    /// How it stands with that control plane.
    pub(crate) discovery: Discovery,
    pub(crate) metrics: Metrics,
    /// What became of the last reload.
    pub(crate) reloads: Standing,
    /// Whose time connections are held to; decisions have the limiter's.
    pub(crate) clock: Clock,
    draining: AtomicBool,
    /// Whether it wants requests.
    healthy: watch::Sender<bool>,
    /// Whether the store was there at the last look, and whether it ever was.
    store: AtomicU8,
    closing: AtomicBool,
    places: [Arc<Places>; Role::ALL.len()],
    /// Who brought no token that is known.
    pub(crate) failures: Failures,
    /// What envoyproxy/ratelimit counts.
    pub(crate) rls: rls::Stats,
    /// Requests of domains that there are not.
    pub(crate) unknown_domains: Seldom,
    /// Gateways that got no decision.
    pub(crate) undecided: Seldom,
    /// What clients of Redis share.
    pub(crate) resp: resp::Shared,
}

impl Daemon {
    pub(crate) fn new(mut live: Live, limiter: Limiter) -> Self {
        let clock = Clock::system();
        let started = clock.now();
        let metrics = Metrics::new(started);
        live.tallies = metrics.tallies_of(&live.policies, &live.domains);
        let daemon = Daemon {
            limiter,
            live: ArcSwap::from_pointee(live),
            discovered: Mutex::default(),
            discovery: Discovery::default(),
            reloads: Standing::default(),
            metrics,
            clock,
            draining: AtomicBool::new(false),
            healthy: watch::Sender::new(false),
            store: AtomicU8::new(NEVER_THERE),
            closing: AtomicBool::new(false),
            places: Default::default(),
            failures: Failures::default(),
            rls: rls::Stats::default(),
            unknown_domains: Seldom::default(),
            undecided: Seldom::default(),
            resp: resp::Shared::new(started),
        };
        daemon.review();
        daemon
    }

    pub(crate) fn limiter(&self) -> &Limiter {
        &self.limiter
    }

    /// What holds now; whoever keeps it is not touched by a reload.
    pub(crate) fn live(&self) -> Guard<Arc<Live>> {
        self.live.load()
    }

    /// Lets something else hold for all requests that come from now on.
    pub(crate) fn apply(&self, live: Live) {
        self.change(|discovered| match discovered {
            Some(domains) => live.with_domains(Arc::clone(domains)),
            None => live,
        });
    }

    /// Lets the domains that a control plane sent hold from now on, in place of all others.
    pub(crate) fn discover(&self, domains: Arc<Domains>) {
        self.change(|discovered| {
            *discovered = Some(Arc::clone(&domains));
            Live::clone(&self.live()).with_domains(domains)
        });
    }

    /// Makes one change after the other, so that neither loses what the other has brought.
    fn change(&self, change: impl FnOnce(&mut Option<Arc<Domains>>) -> Live) {
        let mut discovered = self.discovered.lock().unwrap_or_else(PoisonError::into_inner);
        let mut live = change(&mut discovered);
        live.tallies = self.metrics.tallies_of(&live.policies, &live.domains);
        self.live.store(Arc::new(live));
        self.review();
    }

    /// Whether it was told to stop.
    pub(crate) fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Relaxed)
    }

    pub(crate) fn drain(&self) {
        self.draining.store(true, Ordering::Relaxed);
        self.review();
    }

    /// Notes whether the store is there.
    pub(crate) fn store_seen(&self, is_there: bool) {
        self.metrics.store_seen(is_there);
        let before = self.store.load(Ordering::Relaxed);
        let now = match (is_there, before) {
            (true, _) => THERE,
            (false, NEVER_THERE) => NEVER_THERE,
            (false, _) => GONE,
        };
        self.store.store(now, Ordering::Relaxed);
        if now != before {
            self.review();
        }
    }

    /// What tells whether it wants requests, as gateways ask it.
    pub(crate) fn healthy(&self) -> watch::Receiver<bool> {
        self.healthy.subscribe()
    }

    /// Looks again whether it wants requests: something that it depends on has changed.
    pub(crate) fn review(&self) {
        let is_healthy = self.is_healthy();
        self.healthy
            .send_if_modified(|current| std::mem::replace(current, is_healthy) != is_healthy);
    }

    fn is_healthy(&self) -> bool {
        if self.is_draining() {
            return false;
        }
        let live = self.live();
        let has_limits = self.discovery.known().is_ok();
        let Some(health) = &live.envoy.compat.health else { return has_limits };
        let store = self.store.load(Ordering::Relaxed);
        let has_store = self.limiter.as_memory().is_some()
            || store == THERE
            || (store == GONE && !health.needs_store);
        has_store
            && (has_limits || health.starts_without_limits)
            && (!health.needs_domains || !live.domains.is_empty())
    }

    /// Whether each connection is to end after the request that is under way on it.
    pub(crate) fn is_closing(&self) -> bool {
        self.closing.load(Ordering::Relaxed)
    }

    pub(crate) fn close(&self) {
        self.closing.store(true, Ordering::Relaxed);
    }

    /// The connections of a listener. Each has as many places as `limits.connections` says, so
    /// that one can be asked while the other is full.
    pub(crate) fn places(&self, role: Role) -> &Arc<Places> {
        let [http, grpc, resp, metrics, debug] = &self.places;
        match role {
            Role::Http => http,
            Role::Grpc => grpc,
            Role::Resp => resp,
            Role::Metrics => metrics,
            Role::Debug => debug,
        }
    }
}
