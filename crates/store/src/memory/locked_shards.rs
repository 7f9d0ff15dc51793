//! The shards of several keys, locked together.

use super::shard::Shard;
use super::table::{Address, MAX_SHARDS, Table};
use crate::sync::MutexGuard;

/// The locked shards of up to `N` checks, or of the first of them.
pub(super) struct LockedShards<'a, const N: usize> {
    /// The guards, each at the position of a check of its shard.
    guards: [Option<MutexGuard<'a, Shard>>; N],
    /// The position of the guard of each check.
    owners: [usize; N],
}

impl<'a, const N: usize> LockedShards<'a, N> {
    const fn empty() -> Self {
        LockedShards { guards: [const { None }; N], owners: [0; N] }
    }

    /// Locks the shards of all checks in ascending order: that of [`lock_groups`](super::transaction), so that
    /// two requests cannot deadlock.
    pub(super) fn lock_all(table: &'a Table, addresses: &[Address]) -> Self {
        let mut order: [usize; N] = std::array::from_fn(|index| index);
        let order = &mut order[..addresses.len()];
        order.sort_unstable_by_key(|index| addresses[*index].shard);
        let (mut shards, mut last) = (LockedShards::empty(), None);
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
        shards
    }

    /// Locks the shard of the first check, and those of the next ones up to one that is locked by
    /// another thread: waiting for it with other locks held could deadlock, and would hold up others.
    /// Returns also the number of checks whose shards are locked.
    pub(super) fn try_lock_first(table: &'a Table, addresses: &[Address]) -> (Self, usize) {
        let (mut shards, mut count) = (LockedShards::empty(), 0);
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
            count = index + 1;
        }
        (shards, count)
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
