//! Configuration: files that it references, and reloads.

mod envoy_reload;
mod files;
mod programmatic_rules;
mod reload;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::support::eventually;

/// The state of clients that send requests while files change.
#[derive(Clone, Debug, Default)]
struct Load {
    is_stopped: Arc<AtomicBool>,
    responses: Arc<AtomicU64>,
}

impl Load {
    fn is_running(&self) -> bool {
        !self.is_stopped.load(Ordering::Relaxed)
    }

    fn stop(&self) {
        self.is_stopped.store(true, Ordering::Relaxed);
    }

    fn count_response(&self) {
        self.responses.fetch_add(1, Ordering::Relaxed);
    }

    fn responses(&self) -> u64 {
        self.responses.load(Ordering::Relaxed)
    }

    /// Waits until there are more responses than `before`.
    async fn wait_for_response(&self, before: u64) {
        eventually("a response under load", async || self.responses() > before).await;
    }
}

/// A configuration of one domain, in which `k` has a daily limit.
fn domain(name: &str, count: u32) -> String {
    let limit = format!("{{ unit: day, requests_per_unit: {count} }}");
    format!("domain: {name}\ndescriptors: [{{ key: k, rate_limit: {limit} }}]\n")
}
