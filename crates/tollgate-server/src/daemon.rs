//! What all connections share.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arc_swap::{ArcSwap, Guard};
use tollgate::Limiter;
use tollgate_store::Clock;

use crate::live::Live;
use crate::metrics::{Listener, Metrics};
use crate::reload::Standing;

/// The most connections of those who read metrics.
const MOST_SCRAPERS: usize = 64;

/// What all connections share.
#[derive(Debug)]
pub(crate) struct Daemon {
    limiter: Limiter,
    live: ArcSwap<Live>,
    pub(crate) metrics: Metrics,
    /// What became of the last reload.
    pub(crate) reloads: Standing,
    /// Whose time connections are held to; decisions have the limiter's.
    pub(crate) clock: Clock,
    draining: AtomicBool,
    /// Whether every place for a connection is taken.
    crowded: AtomicBool,
}

impl Daemon {
    pub(crate) fn new(live: Live, limiter: Limiter) -> Self {
        let clock = Clock::system();
        let metrics = Metrics::new(clock.now());
        let tallies = metrics.tallies_of(&live.policies);
        let live = Live { tallies, ..live };
        Daemon {
            limiter,
            live: ArcSwap::from_pointee(live),
            reloads: Standing::default(),
            metrics,
            clock,
            draining: AtomicBool::new(false),
            crowded: AtomicBool::new(false),
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
        let tallies = self.metrics.tallies_of(&live.policies);
        self.live.store(Arc::new(Live { tallies, ..live }));
    }

    /// The most connections of a listener at a time.
    pub(crate) fn most_connections(&self, listener: Listener) -> usize {
        match listener {
            Listener::Http => self.live().bounds.connections,
            Listener::Metrics => MOST_SCRAPERS,
        }
    }

    /// Whether it was told to stop.
    pub(crate) fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Relaxed)
    }

    pub(crate) fn drain(&self) {
        self.draining.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_crowded(&self) -> bool {
        self.crowded.load(Ordering::Relaxed)
    }

    pub(crate) fn set_crowded(&self, crowded: bool) {
        self.crowded.store(crowded, Ordering::Relaxed);
    }
}
