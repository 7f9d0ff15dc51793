//! The bound on the buffers of all connections together.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tollgate::Timestamp;
use tollgate_engine::LogThrottle;

/// The buffers of all connections.
#[derive(Debug, Default)]
pub struct BufferBudget {
    used: AtomicUsize,
    refused: LogThrottle,
}

impl BufferBudget {
    /// The bytes that connections have reserved.
    pub fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    /// Logs, at most every few seconds, that a connection got no buffer.
    pub fn report_refusal(&self, limit: usize, now: Timestamp) {
        if let Some((refusals, total)) = self.refused.count(now) {
            let remedy = "find the clients that do not read, or raise limits.buffers";
            tracing::warn!(refusals, all = total, limit, "buffers are full; {remedy}");
        }
    }
}

/// The buffers of one connection, returned when it is dropped.
#[derive(Debug)]
pub struct BufferLease {
    budget: Arc<BufferBudget>,
    bytes: usize,
}

impl BufferLease {
    /// A connection without buffers.
    pub fn new(budget: Arc<BufferBudget>) -> Self {
        BufferLease { budget, bytes: 0 }
    }

    /// Reserves as many bytes as the connection's buffers have now. Returns whether the buffers of
    /// all connections stay within `limit`; if not, the reservation is unchanged.
    #[inline]
    pub fn resize(&mut self, bytes: usize, limit: usize) -> bool {
        if bytes <= self.bytes {
            if bytes < self.bytes {
                self.budget.used.fetch_sub(self.bytes - bytes, Ordering::Relaxed);
                self.bytes = bytes;
            }
            return true;
        }
        let more = bytes - self.bytes;
        let before = self.budget.used.fetch_add(more, Ordering::Relaxed);
        if before.saturating_add(more) > limit {
            self.budget.used.fetch_sub(more, Ordering::Relaxed);
            return false;
        }
        self.bytes = bytes;
        true
    }
}

impl Drop for BufferLease {
    fn drop(&mut self) {
        self.budget.used.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_of_all_connections_stay_within_the_limit() {
        let budget = Arc::new(BufferBudget::default());
        let mut first = BufferLease::new(Arc::clone(&budget));
        let mut second = BufferLease::new(Arc::clone(&budget));
        assert!(first.resize(70, 100) && second.resize(30, 100));
        assert!(!first.resize(71, 100), "one byte over the limit");
        assert_eq!(budget.used(), 100);
        assert!(second.resize(10, 100) && first.resize(90, 100));
        drop(first);
        assert_eq!(budget.used(), 10);
        // A limit that a reload has lowered takes nothing away.
        assert!(second.resize(10, 5) && !second.resize(11, 5));
    }
}
