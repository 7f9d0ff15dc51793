//! Shards by hash, each under its own lock.

use std::hash::{BuildHasher, Hasher};
use std::sync::atomic::{AtomicUsize, Ordering};

#[cfg(loom)]
pub(crate) use foldhash::fast::FixedState as HashState;
#[cfg(not(loom))]
pub(crate) use foldhash::fast::RandomState as HashState;
use tollgate_core::{Policy, Timestamp};

use super::shard::{Counts, Shard, Tag};
use crate::sync::{Mutex, MutexGuard, lock};

/// The most shards of a table.
const MAX_SHARDS: usize = 256;
/// The fewest keys that a shard is made for.
const KEYS_PER_SHARD: usize = 64;

/// A lock on a cache line of its own.
#[derive(Debug)]
#[repr(align(128))]
struct Padded(Mutex<Shard>);

/// A bounded table of keys.
#[derive(Debug)]
pub(crate) struct Table {
    /// Seeded at random, so that nobody can choose keys of one shard; loom needs the same each time.
    hasher: HashState,
    shards: Box<[Padded]>,
    bound: AtomicUsize,
}

/// Where a (policy, key) is to be looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Address {
    pub(crate) shard: usize,
    pub(crate) tag: Tag,
}

impl Table {
    pub(crate) fn new(bound: usize) -> Self {
        let count = (bound / KEYS_PER_SHARD).clamp(1, MAX_SHARDS);
        // A power of two at or below.
        let count = 1 << count.ilog2();
        let shard = |index| Padded(Mutex::new(Shard::new(share(bound, count, index))));
        Table {
            hasher: HashState::default(),
            shards: (0..count).map(shard).collect(),
            bound: AtomicUsize::new(bound),
        }
    }

    /// Bounds the table anew, if that is another bound; the number of its shards stays.
    pub(crate) fn set_bound(&self, bound: usize) {
        if self.bound() == bound {
            return;
        }
        let count = self.shards.len();
        (0..count).for_each(|index| self.lock(index).set_bound(share(bound, count, index)));
        self.bound.store(bound, Ordering::Relaxed);
    }

    #[inline]
    pub(crate) fn address(&self, policy: &Policy, key: &[u8]) -> Address {
        self.address_under(policy.name_hash(), key)
    }

    /// As [`Table::address`], by the hash of the policy's name.
    #[inline]
    pub(crate) fn address_under(&self, name_hash: u64, key: &[u8]) -> Address {
        let mut hasher = self.hasher.build_hasher();
        hasher.write(key);
        let hash = hasher.finish() ^ name_hash;
        let hash = hash.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let high = usize::try_from(hash >> 32).unwrap_or(0);
        let low = hash.rotate_left(20) & u64::from(Tag::MAX);
        Address { shard: high & (self.shards.len() - 1), tag: Tag::try_from(low).unwrap_or(0) }
    }

    #[inline]
    pub(crate) fn lock(&self, shard: usize) -> MutexGuard<'_, Shard> {
        lock(&self.shards[shard].0)
    }

    pub(crate) fn shard_count(&self) -> usize {
        self.shards.len()
    }

    pub(crate) fn bound(&self) -> usize {
        self.bound.load(Ordering::Relaxed)
    }

    pub(crate) fn keys(&self) -> usize {
        (0..self.shards.len()).map(|n| self.lock(n).len()).sum()
    }

    pub(crate) fn bytes(&self) -> usize {
        let shards = self.shards.len() * size_of::<Padded>();
        shards + (0..self.shards.len()).map(|n| self.lock(n).bytes()).sum::<usize>()
    }

    pub(crate) fn counts(&self) -> Counts {
        (0..self.shards.len()).map(|n| self.lock(n).counts).fold(Counts::default(), Counts::plus)
    }

    /// Gives back what has recovered in one shard, a bounded number of places at a time.
    pub(crate) fn sweep(&self, shard: usize, now: Timestamp, places: usize) {
        let mut shard = self.lock(shard);
        shard.sweep(now, places);
        shard.blocks.sweep(now);
    }
}

/// How many of `bound` keys one of so many shards holds.
fn share(bound: usize, shards: usize, index: usize) -> usize {
    bound / shards + usize::from(index < bound % shards)
}

impl Counts {
    pub(crate) fn plus(self, other: Counts) -> Counts {
        Counts {
            evicted: self.evicted + other.evicted,
            full: self.full + other.full,
            effects: self.effects.plus(other.effects),
        }
    }
}
