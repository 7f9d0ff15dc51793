//! Blocks by (policy, key), stored separately and not counted towards `max_keys`.

use std::collections::BTreeMap;
use std::ops::Bound::{Excluded, Unbounded};

use tollgate_core::{Block, Policy, Timestamp};

/// The blocks of a shard, sorted, so that a snapshot can resume after the last block copied.
#[derive(Debug, Default)]
pub(crate) struct Blocks(BTreeMap<Box<str>, BTreeMap<Box<[u8]>, Block>>);

/// The policy and key of a block.
pub(crate) type BlockKey = (Box<str>, Box<[u8]>);

impl Blocks {
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    #[inline]
    pub(crate) fn get(&self, policy: &Policy, key: &[u8]) -> Option<Block> {
        if self.is_empty() {
            return None;
        }
        self.0.get(policy.name())?.get(key).copied()
    }

    /// Sets or lifts a block; returns the previous one.
    pub(crate) fn set(&mut self, policy: &str, key: &[u8], block: Option<Block>) -> Option<Block> {
        let Some(block) = block else {
            let of_policy = self.0.get_mut(policy)?;
            let known = of_policy.remove(key);
            if of_policy.is_empty() {
                self.0.remove(policy);
            }
            return known;
        };
        self.0.entry(policy.into()).or_default().insert(key.into(), block)
    }

    /// Removes the blocks that have ended.
    pub(crate) fn sweep(&mut self, now: Timestamp) {
        self.0.retain(|_, of_policy| {
            of_policy.retain(|_, block| block.is_active(now));
            !of_policy.is_empty()
        });
    }

    /// Returns the blocks after this policy and key, in order; all blocks if there is none.
    pub(crate) fn after(
        &self,
        last: Option<&BlockKey>,
    ) -> impl Iterator<Item = (&str, &[u8], Block)> {
        let of_last = last.and_then(|(policy, key)| {
            let (policy, of_policy) = self.0.get_key_value(policy)?;
            Some((policy, of_policy.range::<[u8], _>((Excluded(&**key), Unbounded))))
        });
        let policies = last.map_or(Unbounded, |(policy, _)| Excluded(&**policy));
        let others = self.0.range::<str, _>((policies, Unbounded));
        let others = others.map(|(policy, blocks)| (policy, blocks.range::<[u8], _>(..)));
        of_last.into_iter().chain(others).flat_map(|(policy, blocks)| {
            blocks.map(move |(key, block)| (&**policy, &**key, *block))
        })
    }

    pub(crate) fn bytes(&self) -> usize {
        self.after(None).map(|(_, key, _)| key.len() + 64).sum()
    }
}
