//! What this process knows about keys of policies, in shards.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hasher};
use std::sync::{Mutex, MutexGuard, PoisonError};

use foldhash::{fast, quality::RandomState};
use tollgate_algorithms::{Check, Policy};

pub(super) const SHARDS: usize = 16;
/// The maximum number of keys in a shard.
pub(super) const MAX_SHARD_LEN: usize = 4_096;
/// The maximum length of a key.
pub(super) const MAX_KEY_LEN: usize = 256;

type Shard<V> = HashMap<u64, V, fast::RandomState>;

/// Values by the hash of a policy's name and a key.
#[derive(Debug)]
pub(super) struct KeyTable<V> {
    shards: [Mutex<Shard<V>>; SHARDS],
    hasher: RandomState,
}

impl<V> Default for KeyTable<V> {
    fn default() -> Self {
        KeyTable {
            shards: std::array::from_fn(|_| Mutex::default()),
            hasher: RandomState::default(),
        }
    }
}

impl<V> KeyTable<V> {
    pub(super) fn hash(&self, check: &Check<'_>) -> u64 {
        let mut hasher = self.hasher.build_hasher();
        hasher.write_u64(check.policy.name_hash());
        hasher.write(check.key);
        hasher.finish()
    }

    /// Locks the shard of a hash.
    pub(super) fn lock(&self, hash: u64) -> MutexGuard<'_, Shard<V>> {
        #[expect(clippy::expect_used, reason = "a remainder of a small number fits usize")]
        let index = usize::try_from(hash >> 60).expect("four bits fit usize") % SHARDS;
        lock(&self.shards[index])
    }

    /// Locks each shard in turn.
    pub(super) fn lock_each(&self) -> impl Iterator<Item = MutexGuard<'_, Shard<V>>> {
        self.shards.iter().map(lock)
    }
}

fn lock<V>(shard: &Mutex<Shard<V>>) -> MutexGuard<'_, Shard<V>> {
    shard.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A policy and a key.
#[derive(Clone, Debug)]
pub(super) struct PolicyKey {
    pub(super) policy: Policy,
    pub(super) key: Box<[u8]>,
}

impl PolicyKey {
    pub(super) fn new(check: &Check<'_>) -> Self {
        PolicyKey { policy: check.policy.clone(), key: check.key.into() }
    }

    /// Whether a check is of this policy, in this version, and of this key.
    pub(super) fn matches(&self, check: &Check<'_>) -> bool {
        self.key[..] == *check.key
            && (self.policy.ptr_eq(check.policy) || self.policy == *check.policy)
    }

    /// Whether a check uses the same state, perhaps under another version of the policy.
    pub(super) fn shares_state(&self, check: &Check<'_>) -> bool {
        self.key[..] == *check.key && self.policy.shares_name(check.policy)
    }
}
