//! The daemon's state between start and stop.

use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::watch;

/// The daemon's state between start and stop.
#[derive(Debug, Default)]
pub struct Lifecycle {
    draining: AtomicBool,
    closing: AtomicBool,
    /// Whether it accepts requests.
    healthy: watch::Sender<bool>,
}

impl Lifecycle {
    /// Whether the daemon drains before it stops.
    pub fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Relaxed)
    }

    /// Starts draining: health checks fail, requests are still answered.
    pub fn drain(&self) {
        self.draining.store(true, Ordering::Relaxed);
    }

    /// Whether each connection ends after its current request.
    pub fn is_closing(&self) -> bool {
        self.closing.load(Ordering::Relaxed)
    }

    /// Asks each connection to end after its current request.
    pub fn close(&self) {
        self.closing.store(true, Ordering::Relaxed);
    }

    /// Whether the daemon accepts requests, as health checks report it.
    pub fn healthy(&self) -> watch::Receiver<bool> {
        self.healthy.subscribe()
    }

    /// Sets whether the daemon accepts requests, and notifies health checks of a change.
    pub fn set_healthy(&self, is_healthy: bool) {
        self.healthy
            .send_if_modified(|current| std::mem::replace(current, is_healthy) != is_healthy);
    }
}
