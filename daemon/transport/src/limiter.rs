//! The limit on the connections of a listener, and eviction of idle ones.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use slab::Slab;
use tokio::sync::Notify;
use tokio::time::timeout;
use tollgate_engine::Counter;

use crate::idle::IdleTracker;

/// The connections that are examined to find one to evict: a client that opens connections quickly
/// must not cause a scan of all of them each time.
const MAX_EXAMINED: usize = 128;
/// The time between attempts to evict a connection: others become evictable meanwhile, and a reload
/// may raise the limit.
const RETRY_INTERVAL: Duration = Duration::from_millis(50);

/// The connections of a listener.
#[derive(Debug, Default)]
pub struct ConnectionLimiter {
    open: Mutex<OpenConnections>,
    closed: Notify,
    /// All connections so far.
    accepted: Counter,
    /// TLS handshakes that failed or timed out.
    failed_handshakes: Counter,
    /// Evicted connections.
    evicted: Counter,
}

#[derive(Debug, Default)]
struct OpenConnections {
    trackers: Slab<Arc<IdleTracker>>,
    /// The index where the next search begins.
    next: usize,
}

/// The numbers of connections so far.
#[derive(Clone, Copy, Debug)]
pub struct ConnectionTotals {
    /// Accepted connections.
    pub accepted: u64,
    /// TLS handshakes that failed or timed out.
    pub failed_handshakes: u64,
    /// Evicted connections.
    pub evicted: u64,
}

/// The permit of a connection, returned when it is dropped.
#[derive(Debug)]
pub struct ConnectionPermit {
    limiter: Arc<ConnectionLimiter>,
    index: usize,
}

impl ConnectionLimiter {
    // The connections are valid after every single update.
    fn lock(&self) -> MutexGuard<'_, OpenConnections> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a connection, whether or not the limit is reached.
    pub fn add(self: &Arc<Self>, tracker: Arc<IdleTracker>) -> ConnectionPermit {
        self.accepted.increment();
        ConnectionPermit { limiter: Arc::clone(self), index: self.lock().trackers.insert(tracker) }
    }

    /// Waits until there are fewer connections than the limit, and evicts idle ones meanwhile.
    pub async fn wait(&self, limit: impl Fn() -> usize) {
        while self.count() >= limit() {
            let is_evicting = self.evict_one();
            tracing::debug!(is_evicting, "connection limit reached");
            // The limit is checked again after a closed connection and after a timeout.
            let _ = timeout(RETRY_INTERVAL, self.closed.notified()).await;
        }
    }

    /// Asks the idle connection with the greatest eviction priority to close, if there is one.
    fn evict_one(&self) -> bool {
        let mut open = self.lock();
        let capacity = open.trackers.capacity().max(1);
        let first = open.next;
        open.next = first.wrapping_add(MAX_EXAMINED) % capacity;
        let candidate = (0..capacity.min(MAX_EXAMINED))
            .filter_map(|n| open.trackers.get(first.wrapping_add(n) % capacity))
            .filter(|tracker| tracker.is_evictable())
            .max_by_key(|tracker| tracker.eviction_priority());
        let Some(tracker) = candidate else { return false };
        self.evicted.increment();
        tracker.evict();
        true
    }

    /// Wakes every connection, to check its timeouts and whether the daemon stops.
    pub fn notify_all(&self) {
        for (_, tracker) in &self.lock().trackers {
            tracker.notify();
        }
    }

    /// Counts a TLS handshake that failed.
    pub fn count_failed_handshake(&self) {
        self.failed_handshakes.increment();
    }

    /// The number of open connections.
    pub fn count(&self) -> usize {
        self.lock().trackers.len()
    }

    /// The numbers of connections so far.
    pub fn totals(&self) -> ConnectionTotals {
        ConnectionTotals {
            accepted: self.accepted.get(),
            failed_handshakes: self.failed_handshakes.get(),
            evicted: self.evicted.get(),
        }
    }
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        self.limiter.lock().trackers.remove(self.index);
        self.limiter.closed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tollgate_store::Clock;

    use super::*;

    #[tokio::test]
    async fn a_connection_waits_until_another_closes_or_the_limit_rises() {
        let limiter = Arc::new(ConnectionLimiter::default());
        let limit = AtomicUsize::new(2);
        let wait = || limiter.wait(|| limit.load(Ordering::Relaxed));
        let add = || limiter.add(Arc::new(IdleTracker::new(Clock::system())));
        wait().await;
        let first = add();
        wait().await;
        let second = add();
        assert!(timeout(RETRY_INTERVAL * 2, wait()).await.is_err(), "the limit is reached");
        drop(first);
        wait().await;
        let third = add();
        limit.store(3, Ordering::Relaxed);
        wait().await;
        drop((second, third));
        assert_eq!((limiter.count(), limiter.totals().accepted), (0, 3));
    }
}
