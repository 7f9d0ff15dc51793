//! The number of entries of each policy in a shard.

use hashbrown::HashMap;
use tollgate_algorithms::{KeyState, Policy, Timestamp};

use crate::sync::HashState;

/// A policy, or all policies without a name. Clients can choose limits, but not names, so that they
/// cannot reduce the share of a policy by inventing policies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct PolicyGroup(u64);

impl PolicyGroup {
    pub(crate) fn new(policy: &Policy) -> Self {
        if policy.name().starts_with('=') {
            PolicyGroup(0)
        } else {
            PolicyGroup(policy.name_hash())
        }
    }

    /// Returns the group of a state that has been charged.
    pub(crate) fn from_state(state: &KeyState) -> Self {
        state.policy().map_or(PolicyGroup(0), PolicyGroup::new)
    }
}

/// The result of a search for an entry to evict that found none.
#[derive(Clone, Copy, Debug)]
struct NoVictim {
    /// The version of the shard.
    version: u64,
    /// When the next entry can be evicted.
    until: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Count {
    entries: usize,
    no_victim: Option<NoVictim>,
}

/// The number of entries of each policy.
#[derive(Debug, Default)]
pub(crate) struct PolicyCounts {
    counts: HashMap<PolicyGroup, Count, HashState>,
    /// The result of a search among all policies.
    no_victim: Option<NoVictim>,
    /// Incremented when an entry may have become evictable sooner than was found.
    version: u64,
}

impl PolicyCounts {
    pub(crate) fn add(&mut self, group: PolicyGroup) {
        self.counts.entry(group).or_default().entries += 1;
    }

    pub(crate) fn remove(&mut self, group: PolicyGroup) {
        self.version += 1;
        let Some(count) = self.counts.get_mut(&group) else { return };
        count.entries -= 1;
        if count.entries == 0 {
            self.counts.remove(&group);
        }
    }

    /// Notes that an entry may be evictable sooner than when it was last charged.
    pub(crate) fn note_refund(&mut self) {
        self.version += 1;
    }

    pub(crate) fn count(&self, group: PolicyGroup) -> usize {
        self.counts.get(&group).map_or(0, |count| count.entries)
    }

    /// Returns the number of entries that each policy is entitled to, once `newcomer` has one.
    pub(crate) fn share(&self, newcomer: PolicyGroup) -> usize {
        let entries: usize = self.counts.values().map(|count| count.entries).sum();
        let policies = self.counts.len() + usize::from(self.count(newcomer) == 0);
        (entries / policies.max(1)).max(1)
    }

    /// Returns until when a search for an entry to evict is known to find none.
    pub(crate) fn no_victim_until(
        &self,
        newcomer: Option<PolicyGroup>,
        now: Timestamp,
    ) -> Option<u64> {
        let known = match newcomer {
            Some(group) => self.counts.get(&group)?.no_victim?,
            None => self.no_victim?,
        };
        let is_current = known.version == self.version && known.until > now.as_micros();
        is_current.then_some(known.until)
    }

    /// Notes that a search for an entry to evict found none.
    pub(crate) fn note_no_victim(&mut self, newcomer: Option<PolicyGroup>, retry_at: Option<u64>) {
        let found = retry_at.map(|until| NoVictim { version: self.version, until });
        match newcomer {
            Some(group) => {
                if let Some(count) = self.counts.get_mut(&group) {
                    count.no_victim = found;
                }
            }
            None => self.no_victim = found,
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        self.counts.allocation_size()
    }
}
