//! Blocks: entries of their own by (policy, key), outside the table's bound.

use std::collections::HashMap;

use tollgate_core::{Block, Policy, Timestamp};

/// The blocks of a shard.
#[derive(Debug, Default)]
pub(crate) struct Blocks(HashMap<Box<str>, HashMap<Box<[u8]>, Block>>);

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

    pub(crate) fn set(&mut self, policy: &str, key: &[u8], block: Option<Block>) {
        match block {
            Some(block) => {
                let of_policy = self.0.entry(policy.into()).or_default();
                of_policy.insert(key.into(), block);
            }
            None => {
                let Some(of_policy) = self.0.get_mut(policy) else { return };
                of_policy.remove(key);
                if of_policy.is_empty() {
                    self.0.remove(policy);
                }
            }
        }
    }

    /// Forgets the blocks that have ended.
    pub(crate) fn sweep(&mut self, now: Timestamp) {
        self.0.retain(|_, of_policy| {
            of_policy.retain(|_, it| it.holds(now));
            !of_policy.is_empty()
        });
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &[u8], Block)> {
        self.0.iter().flat_map(|(policy, of_policy)| {
            of_policy.iter().map(move |(key, block)| (&**policy, &**key, *block))
        })
    }

    pub(crate) fn bytes(&self) -> usize {
        self.iter().map(|(_, key, _)| key.len() + 64).sum()
    }
}
