//! What all connections share.

use std::sync::atomic::{AtomicBool, Ordering};

use tollgate::{Limiter, Policies};
use tollgate_store::Clock;

use crate::config::{Bounds, Config};

/// What all connections share.
#[derive(Debug)]
pub(crate) struct Daemon {
    limiter: Limiter,
    policies: Policies,
    bounds: Bounds,
    /// Whose time connections are held to; decisions have the limiter's.
    pub(crate) clock: Clock,
    draining: AtomicBool,
    /// Whether every place for a connection is taken.
    crowded: AtomicBool,
}

impl Daemon {
    pub(crate) fn new(config: Config, limiter: Limiter) -> Self {
        Daemon {
            limiter,
            policies: config.policies,
            bounds: config.limits,
            clock: Clock::system(),
            draining: AtomicBool::new(false),
            crowded: AtomicBool::new(false),
        }
    }

    pub(crate) fn limiter(&self) -> &Limiter {
        &self.limiter
    }

    pub(crate) fn policies(&self) -> &Policies {
        &self.policies
    }

    pub(crate) fn bounds(&self) -> &Bounds {
        &self.bounds
    }

    /// The names of the first policies, for whoever named none; nothing if there is none.
    pub(crate) fn names_of_policies(&self) -> Option<String> {
        const MOST_NAMED: usize = 8;
        let mut names: Vec<_> = self.policies.iter().map(|it| it.name()).collect();
        if names.len() > MOST_NAMED {
            names.truncate(MOST_NAMED);
            names.push("…");
        }
        (!names.is_empty()).then(|| names.join(", "))
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
