//! Responses that the client has not read.

use std::sync::Arc;

use crate::buffers::{BufferBudget, BufferLease};
use crate::idle::IdleTracker;

/// A response that waits until the client reads it.
#[derive(Debug)]
pub struct Unsent {
    tracker: Arc<IdleTracker>,
    len: usize,
    /// Returned with the response.
    _lease: BufferLease,
}

impl Unsent {
    /// Counts a response. If the buffers of all connections exceed `limit`, it is not counted, and
    /// the connection is closed.
    pub fn new(
        tracker: Arc<IdleTracker>,
        budget: &Arc<BufferBudget>,
        len: usize,
        limit: usize,
    ) -> Option<Self> {
        let mut lease = BufferLease::new(Arc::clone(budget));
        if !lease.resize(len, limit) {
            tracker.close_without_buffers();
            return None;
        }
        tracker.add_unsent(len);
        Some(Unsent { tracker, len, _lease: lease })
    }

    /// The client has read a part of it.
    pub fn record_progress(&self) {
        self.tracker.record_sent();
    }
}

impl Drop for Unsent {
    fn drop(&mut self) {
        self.tracker.remove_unsent(self.len);
    }
}
