//! Configuration: files that it references, and reloads.

mod envoy_files;
mod envoy_reload;
mod programmatic_rules;
mod referenced_files;
mod reload;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::support::eventually;

/// The state of clients that send requests while files change.
#[derive(Clone, Debug, Default)]
struct Load(Arc<LoadState>);

#[derive(Debug, Default)]
struct LoadState {
    is_stopped: AtomicBool,
    responses: AtomicU64,
}

impl Load {
    fn is_running(&self) -> bool {
        !self.0.is_stopped.load(Ordering::Relaxed)
    }

    fn stop(&self) {
        self.0.is_stopped.store(true, Ordering::Relaxed);
    }

    fn count_response(&self) {
        self.0.responses.fetch_add(1, Ordering::Relaxed);
    }

    fn responses(&self) -> u64 {
        self.0.responses.load(Ordering::Relaxed)
    }

    /// Waits until there are more responses than `before`.
    async fn wait_for_response(&self, before: u64) {
        eventually("a response under load", async || self.responses() > before).await;
    }
}
