//! The shards of several keys, locked together.

use super::shard::Shard;
use super::table::{Address, MAX_SHARDS, Table};
use crate::sync::MutexGuard;

/// The maximum number of checks in a group, whose keys are looked up together under the locks of
/// their shards.
pub(super) const MAX_GROUP: usize = 16;

/// The locked shards of a group of checks, or of the first of them.
pub(super) struct LockedShards<'a> {
    /// The guards, each at the position of a check of its shard.
    guards: [Option<MutexGuard<'a, Shard>>; MAX_GROUP],
    /// The position of the guard of each check.
    owners: [usize; MAX_GROUP],
    /// The number of checks whose shards are locked.
    pub(super) count: usize,
}

impl<'a> LockedShards<'a> {
    const fn none() -> Self {
        LockedShards { guards: [const { None }; MAX_GROUP], owners: [0; MAX_GROUP], count: 0 }
    }

    /// Locks the shards of all checks in ascending order, as every request that waits for a lock while it holds
    /// another one does.
    pub(super) fn all(table: &'a Table, addresses: &[Address]) -> Self {
        let mut order: [usize; MAX_GROUP] = std::array::from_fn(|index| index);
        let order = &mut order[..addresses.len()];
        order.sort_unstable_by_key(|index| addresses[*index].shard);
        let (mut shards, mut last) = (LockedShards::none(), None);
        for index in order {
            let shard = addresses[*index].shard;
            let owner = match last {
                Some((locked, owner)) if locked == shard => owner,
                _ => {
                    shards.guards[*index] = Some(table.lock(shard));
                    *index
                }
            };
            shards.owners[*index] = owner;
            last = Some((shard, owner));
        }
        shards.count = addresses.len();
        shards
    }

    /// Locks the shard of the first check, and those of the next ones up to one that is locked by
    /// another thread: waiting for it with other locks held could deadlock, and would hold up others.
    pub(super) fn first(table: &'a Table, addresses: &[Address]) -> Self {
        let mut shards = LockedShards::none();
        // The position of the first check of each shard.
        let mut first_checks = [u8::MAX; MAX_SHARDS];
        for (index, Address { shard, .. }) in (0..).zip(addresses) {
            let first_check = &mut first_checks[*shard];
            *first_check = index.min(*first_check);
            let (index, owner) = (usize::from(index), usize::from(*first_check));
            if owner == index {
                let guard = match index {
                    0 => Some(table.lock(*shard)),
                    _ => table.try_lock(*shard),
                };
                if guard.is_none() {
                    break;
                }
                shards.guards[index] = guard;
            }
            shards.owners[index] = owner;
            shards.count = index + 1;
        }
        shards
    }

    #[expect(clippy::expect_used, reason = "callers pass the position of a check that is locked")]
    pub(super) fn get(&self, check: usize) -> &Shard {
        self.guards[self.owners[check]].as_deref().expect("the shard is locked")
    }

    #[expect(clippy::expect_used, reason = "callers pass the position of a check that is locked")]
    pub(super) fn get_mut(&mut self, check: usize) -> &mut Shard {
        self.guards[self.owners[check]].as_deref_mut().expect("the shard is locked")
    }
}
