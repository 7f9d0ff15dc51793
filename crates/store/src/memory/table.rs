//! A bounded table of keys: shards selected by hash, each under its own lock.

use std::hash::{BuildHasher, Hasher};
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};
use std::thread;

use tollgate_algorithms::{Policy, Timestamp};

use super::budget::{Budget, Usage};
use super::entry::Tag;
use super::shard::{Counts, Shard};
use super::stored_key::StoredKey;
use crate::sync::{HashState, Mutex, MutexGuard, lock, try_lock};

/// The maximum number of shards of a table.
pub(super) const MAX_SHARDS: usize = 256;
/// The maximum number of shards per CPU: so many that threads seldom wait for each other, and so few that on
/// small machines the shards stay in the first-level cache.
const SHARDS_PER_CPU: usize = 32;
/// The minimum number of keys per shard.
const KEYS_PER_SHARD: usize = 64;

/// A lock on a cache line of its own.
#[derive(Debug)]
#[repr(align(128))]
struct Padded(Mutex<Shard>);

/// A bounded table of keys.
#[derive(Debug)]
pub(crate) struct Table {
    /// Randomly seeded, so that a client cannot choose keys of one shard. Loom needs a fixed seed.
    hasher: HashState,
    shards: Box<[Padded]>,
    bound: AtomicUsize,
}

/// The shard of a (policy, key), and its tag there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Address {
    pub(crate) shard: usize,
    pub(crate) tag: Tag,
}

impl Table {
    pub(crate) fn new(bound: usize, budget: &Arc<Budget>) -> Self {
        static MAX_COUNT: LazyLock<usize> = LazyLock::new(|| {
            let of_cpus = |cpus: NonZeroUsize| cpus.get().saturating_mul(SHARDS_PER_CPU);
            thread::available_parallelism().map_or(MAX_SHARDS, of_cpus).min(MAX_SHARDS)
        });
        let count = (bound / KEYS_PER_SHARD).clamp(1, *MAX_COUNT);
        // Round down to a power of two.
        let count = 1 << count.ilog2();
        let shard =
            |index| Padded(Mutex::new(Shard::new(share(bound, count, index), Arc::clone(budget))));
        let shards: Box<[_]> = (0..count).map(shard).collect();
        let usage = Usage { keys: size_of_val(&*shards), ..Usage::default() };
        budget.update(&mut Usage::default(), usage);
        Table { hasher: HashState::default(), shards, bound: AtomicUsize::new(bound) }
    }

    /// Changes the bound; the number of shards stays.
    pub(crate) fn set_bound(&self, bound: usize) {
        if self.bound() == bound {
            return;
        }
        let count = self.shards.len();
        (0..count).for_each(|index| self.lock(index).set_bound(share(bound, count, index)));
        self.bound.store(bound, Ordering::Relaxed);
    }

    #[inline]
    pub(crate) fn address(&self, policy: &Policy, key: &StoredKey<'_>) -> Address {
        self.address_under(policy.name_hash(), key)
    }

    /// As [`Table::address`], with the hash of the policy's name.
    #[inline]
    pub(crate) fn address_under(&self, name_hash: u64, key: &StoredKey<'_>) -> Address {
        let mut hasher = self.hasher.build_hasher();
        hasher.write(key.bytes());
        let hash = hasher.finish() ^ name_hash;
        let hash = hash.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let shard = high_half(hash);
        #[expect(clippy::expect_used, reason = "32 bits fit usize")]
        let shard = usize::try_from(shard).expect("32 bits fit usize") & (self.shards.len() - 1);
        Address { shard, tag: high_half(hash.rotate_left(52)) }
    }

    #[inline]
    pub(crate) fn lock(&self, shard: usize) -> MutexGuard<'_, Shard> {
        lock(&self.shards[shard].0)
    }

    /// Locks a shard, unless it is locked.
    #[inline]
    pub(crate) fn try_lock(&self, shard: usize) -> Option<MutexGuard<'_, Shard>> {
        try_lock(&self.shards[shard].0)
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

    pub(crate) fn counts(&self) -> Counts {
        (0..self.shards.len()).map(|n| self.lock(n).counts).fold(Counts::default(), Counts::plus)
    }

    /// Removes recovered entries among the next slots of a shard, and blocks that have ended.
    pub(crate) fn sweep(&self, shard: usize, now: Timestamp, slots: usize) {
        let mut shard = self.lock(shard);
        shard.sweep(now, slots);
        shard.blocks.sweep(now);
        shard.record_usage();
    }
}

/// Returns how many of `bound` keys the shard with this index holds.
fn share(bound: usize, shards: usize, index: usize) -> usize {
    bound / shards + usize::from(index < bound % shards)
}

impl Counts {
    pub(crate) fn plus(self, other: Counts) -> Counts {
        Counts {
            evicted: self.evicted + other.evicted,
            anomalies: self.anomalies.plus(other.anomalies),
        }
    }
}

#[inline]
const fn high_half(hash: u64) -> u32 {
    let [a, b, c, d, ..] = hash.to_be_bytes();
    u32::from_be_bytes([a, b, c, d])
}
