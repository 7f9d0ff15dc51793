//! What all connections share.

use std::collections::BTreeSet;
use std::ops::Deref;
use std::sync::{Arc, Mutex, PoisonError};
use std::sync::atomic::{AtomicBool, Ordering};

use arc_swap::{ArcSwap, ArcSwapOption, Guard};
use tokio::sync::watch;
use tollgate::{Limiter, Policy};
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

/// What all connections share.
#[derive(Debug)]
pub(crate) struct Daemon {
    limiter: Limiter,
    live: ArcSwap<Live>,
    /// The domains that a control plane sent; they hold in place of those of files.
    discovered: ArcSwapOption<Domains>,
    pub(crate) metrics: Metrics,
    /// Held while the names that are counted under change.
    tallying: Mutex<()>,
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
    pub(crate) fn new(live: Live, limiter: Limiter) -> Self {
        let clock = Clock::system();
        let started = clock.now();
        let metrics = Metrics::new(started);
        let daemon = Daemon {
            limiter,
            live: ArcSwap::from_pointee(live),
            discovered: ArcSwapOption::empty(),
            reloads: Standing::default(),
            metrics,
            tallying: Mutex::default(),
            clock,
            draining: watch::Sender::new(false),
            closing: AtomicBool::new(false),
            places: Default::default(),
            failures: Failures::default(),
            rls: rls::Stats::default(),
            unknown_domains: Seldom::default(),
            undecided: Seldom::default(),
            resp: resp::Shared::new(started),
        };
        daemon.tally();
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
        self.live.store(Arc::new(live));
        self.tally();
    }

    /// Lets the domains that a control plane sent hold from now on; with none, those of files.
    #[allow(dead_code, reason = "until a control plane is asked")]
    pub(crate) fn discover(&self, domains: Option<Arc<Domains>>) {
        self.discovered.store(domains);
        self.tally();
    }

    /// Has what is decided counted under the names of all policies that hold.
    fn tally(&self) {
        let _one_at_a_time = self.tallying.lock().unwrap_or_else(PoisonError::into_inner);
        let live = self.live();
        let domains = self.domains(&live);
        let mut names: Vec<_> = live.policies.iter().map(Policy::name).collect();
        let of_domains: BTreeSet<_> = domains.policies().map(|(_, it)| it.name()).collect();
        names.extend(of_domains);
        self.metrics.tally(names.into_iter());
    }

    /// The domains that hold now, for whoever has what else holds: those that a control plane sent,
    /// else those of files.
    pub(crate) fn domains<'a>(&self, live: &'a Live) -> Holding<'a> {
        match self.discovered.load_full() {
            Some(discovered) => Holding::Discovered(discovered),
            None => Holding::OfFiles(&live.domains),
        }
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

/// The domains that hold.
#[derive(Debug)]
pub(crate) enum Holding<'a> {
    Discovered(Arc<Domains>),
    OfFiles(&'a Domains),
}

impl Deref for Holding<'_> {
    type Target = Domains;

    fn deref(&self) -> &Domains {
        match self {
            Holding::Discovered(it) => it,
            Holding::OfFiles(it) => it,
        }
    }
}
