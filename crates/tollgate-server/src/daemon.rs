//! What all connections share.

use std::sync::atomic::{AtomicBool, Ordering};
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
    draining: watch::Sender<bool>,
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
        Daemon {
            limiter,
            live: ArcSwap::from_pointee(live),
            discovered: Mutex::default(),
            discovery: Discovery::default(),
            reloads: Standing::default(),
            metrics,
            clock,
            draining: watch::Sender::new(false),
            closing: AtomicBool::new(false),
            places: Default::default(),
            failures: Failures::default(),
            rls: rls::Stats::default(),
            unknown_domains: Seldom::default(),
            undecided: Seldom::default(),
            resp: resp::Shared::new(started),
        }
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
    }

    /// Whether it was told to stop.
    pub(crate) fn is_draining(&self) -> bool {
        *self.draining.borrow()
    }

    /// What tells of the word to stop.
    pub(crate) fn draining(&self) -> watch::Receiver<bool> {
        self.draining.subscribe()
    }

    pub(crate) fn drain(&self) {
        self.draining.send_replace(true);
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
        let [http, grpc, resp, metrics] = &self.places;
        match role {
            Role::Http => http,
            Role::Grpc => grpc,
            Role::Resp => resp,
            Role::Metrics => metrics,
        }
    }
}
