//! The bound of the store in bytes.
//!
//! The bytes are those that the store has requested from the allocator, computed from capacities:
//! the table's entries, index and free slots, the texts of keys, states that are not stored inline,
//! and the records of request ids. For blocks, which are in B-trees, they are an estimate.
//!
//! A check that needs more memory than is left is refused. Before that, above 63/64 of the bound, an
//! operation evicts an eighth of the entries of one shard after another, so that checks are refused
//! only if little can be evicted.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Bytes by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    pub(crate) keys: usize,
    pub(crate) blocks: usize,
    pub(crate) request_ids: usize,
}

/// The bytes that the parts of a store use, and the bound of their sum.
#[derive(Debug)]
pub(crate) struct Budget {
    max: usize,
    keys: AtomicUsize,
    blocks: AtomicUsize,
    request_ids: AtomicUsize,
}

impl Budget {
    pub(crate) fn new(max: usize) -> Self {
        let [keys, blocks, request_ids] = [0; 3].map(AtomicUsize::new);
        Budget { max, keys, blocks, request_ids }
    }

    pub(crate) const fn max(&self) -> usize {
        self.max
    }

    pub(crate) fn usage(&self) -> Usage {
        let read = |counter: &AtomicUsize| counter.load(Ordering::Relaxed);
        let (keys, blocks) = (read(&self.keys), read(&self.blocks));
        Usage { keys, blocks, request_ids: read(&self.request_ids) }
    }

    fn used(&self) -> usize {
        let Usage { keys, blocks, request_ids } = self.usage();
        keys.saturating_add(blocks).saturating_add(request_ids)
    }

    /// Returns whether that many more bytes are left.
    pub(crate) fn has_room(&self, bytes: usize) -> bool {
        self.used().saturating_add(bytes) <= self.max
    }

    /// Returns whether entries should be evicted before more are inserted.
    pub(crate) fn is_nearly_used_up(&self) -> bool {
        self.used() > self.max - self.max / 64
    }

    /// Replaces what a part used before by what it uses now.
    pub(crate) fn update(&self, before: &mut Usage, now: Usage) {
        let update = |counter: &AtomicUsize, before: usize, now: usize| {
            if before != now {
                // Wraps around to the difference if it is negative.
                counter.fetch_add(now.wrapping_sub(before), Ordering::Relaxed);
            }
        };
        update(&self.keys, before.keys, now.keys);
        update(&self.blocks, before.blocks, now.blocks);
        update(&self.request_ids, before.request_ids, now.request_ids);
        *before = now;
    }
}
