//! Blocks by (policy, key), stored separately and not counted towards `max_keys`.

use std::collections::BTreeMap;
use std::ops::Bound::{Excluded, Unbounded};

use tollgate_algorithms::{Block, Policy, Timestamp};

use super::stored_key::{EncodedKey, StoredKey};

/// The blocks of a shard by policy and [`EncodedKey`], sorted, so that a snapshot can resume after
/// the last block copied.
#[derive(Debug, Default)]
pub(crate) struct Blocks {
    policies: BTreeMap<Box<str>, BTreeMap<Box<[u8]>, Block>>,
    bytes: usize,
}

/// The bytes of a block, besides its key: its part of a node that is half full.
const BLOCK_BYTES: usize = 80;
/// The bytes of a policy with blocks, besides its name: a node, and its part of another.
const POLICY_BYTES: usize = 512;

/// The policy and [`EncodedKey`] of a block.
pub(crate) type BlockKey = (Box<str>, Box<[u8]>);

impl Blocks {
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.policies.is_empty()
    }

    /// Returns whether a key has a block, which may have ended.
    #[inline]
    pub(crate) fn contains(&self, policy: &Policy, key: &StoredKey<'_>) -> bool {
        !self.is_empty() && self.get(policy, key).is_some()
    }

    pub(crate) fn get(&self, policy: &Policy, key: &StoredKey<'_>) -> Option<Block> {
        self.policies.get(policy.name())?.get(EncodedKey::new(key).as_bytes()).copied()
    }

    /// Sets or lifts a block; returns the previous one.
    pub(crate) fn set(
        &mut self,
        policy: &str,
        key: &StoredKey<'_>,
        block: Option<Block>,
    ) -> Option<Block> {
        let key = EncodedKey::new(key);
        let key = key.as_bytes();
        let Some(block) = block else {
            let of_policy = self.policies.get_mut(policy)?;
            let known = of_policy.remove(key)?;
            self.bytes -= BLOCK_BYTES + key.len();
            if of_policy.is_empty() {
                self.policies.remove(policy);
                self.bytes -= POLICY_BYTES + policy.len();
            }
            return Some(known);
        };
        if !self.policies.contains_key(policy) {
            self.bytes += POLICY_BYTES + policy.len();
        }
        let known = self.policies.entry(policy.into()).or_default().insert(key.into(), block);
        if known.is_none() {
            self.bytes += BLOCK_BYTES + key.len();
        }
        known
    }

    /// Removes the blocks that have ended.
    pub(crate) fn sweep(&mut self, now: Timestamp) {
        let mut freed = 0;
        self.policies.retain(|policy, of_policy| {
            of_policy.retain(|key, block| {
                let is_active = block.is_active(now);
                freed += if is_active { 0 } else { BLOCK_BYTES + key.len() };
                is_active
            });
            freed += if of_policy.is_empty() { POLICY_BYTES + policy.len() } else { 0 };
            !of_policy.is_empty()
        });
        self.bytes -= freed;
    }

    /// Returns the blocks after this policy and key, in order; all blocks if there is none.
    pub(crate) fn after(
        &self,
        last: Option<&BlockKey>,
    ) -> impl Iterator<Item = (&str, &[u8], Block)> {
        let of_last = last.and_then(|(policy, key)| {
            let (policy, of_policy) = self.policies.get_key_value(policy)?;
            Some((policy, of_policy.range::<[u8], _>((Excluded(&**key), Unbounded))))
        });
        let policies = last.map_or(Unbounded, |(policy, _)| Excluded(&**policy));
        let others = self.policies.range::<str, _>((policies, Unbounded));
        let others = others.map(|(policy, blocks)| (policy, blocks.range::<[u8], _>(..)));
        of_last.into_iter().chain(others).flat_map(|(policy, blocks)| {
            blocks.map(move |(key, block)| (&**policy, &**key, *block))
        })
    }

    pub(crate) const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns at most how many bytes a block of this key adds.
    pub(crate) fn bytes_of(policy: &str, key: &StoredKey<'_>) -> usize {
        POLICY_BYTES + policy.len() + BLOCK_BYTES + 1 + key.bytes().len()
    }
}
