//! What is copied out of a shard under its lock, to be written once that is free.

use std::collections::HashMap;

use tollgate_core::codec::put_bytes;
use tollgate_core::{Block, KeyState, Policy, Timestamp};

use super::FOREVER;
use crate::memory::Step;

/// Records of keys or blocks; what its time has passed at `now` is left out.
#[derive(Debug)]
pub(super) struct Copied {
    now: Timestamp,
    /// Kept from step to step, so that little is allocated under a lock.
    pub(super) records: Vec<u8>,
    pub(super) count: u64,
    policies: Policies,
}

impl Copied {
    pub(super) fn new(now: Timestamp) -> Self {
        let records = Vec::with_capacity(2 * Step::SHORT.bytes);
        Copied { now, records, count: 0, policies: Policies::default() }
    }

    pub(super) fn clear(&mut self) {
        self.records.clear();
        self.count = 0;
    }

    /// The policies of its keys that have not been written yet.
    pub(super) fn new_policies(&mut self) -> Vec<Policy> {
        std::mem::take(&mut self.policies.new)
    }

    /// Copies a key; how many bytes there are now.
    pub(super) fn key(&mut self, key: &[u8], state: &KeyState) -> usize {
        if let Some(policy) = state.policy().filter(|_| !state.is_untouched(self.now)) {
            let policy = self.policies.number_of(policy);
            self.record(|out| {
                out.extend_from_slice(&policy.to_le_bytes());
                state.encode(out);
                out.extend_from_slice(key);
            });
        }
        self.records.len()
    }

    /// Copies a block; how many bytes there are now.
    pub(super) fn block(&mut self, policy: &str, key: &[u8], block: Block) -> usize {
        if block.holds(self.now) {
            let until = match block {
                Block::Until(end) => end.as_micros(),
                Block::Forever => FOREVER,
            };
            self.record(|out| {
                put_bytes(out, policy.as_bytes());
                out.extend_from_slice(&until.to_le_bytes());
                out.extend_from_slice(key);
            });
        }
        self.records.len()
    }

    /// Appends what `put` appends, behind its length.
    fn record(&mut self, put: impl FnOnce(&mut Vec<u8>)) {
        let at = self.records.len();
        self.records.extend_from_slice(&[0; 4]);
        put(&mut self.records);
        // A section above 4 GiB is not written, so one with a longer record is not.
        let length = u32::try_from(self.records.len() - at - 4).unwrap_or(u32::MAX);
        self.records[at..at + 4].copy_from_slice(&length.to_le_bytes());
        self.count += 1;
    }
}

/// The policies that were met, and their numbers in the file.
#[derive(Debug, Default)]
struct Policies {
    /// By the hash of the name, which few share.
    by_name: HashMap<u64, Vec<(Policy, u32)>>,
    count: u32,
    /// The one that was met last: mostly the next one, too.
    last: Option<(Policy, u32)>,
    /// Those that have not been written yet.
    new: Vec<Policy>,
}

impl Policies {
    fn number_of(&mut self, policy: &Policy) -> u32 {
        if let Some((last, number)) = &self.last
            && last.is(policy)
        {
            return *number;
        }
        let known = self.by_name.entry(policy.name_hash()).or_default();
        // Those that differ in nothing that is written are one.
        let same = |p: &Policy| p.name() == policy.name() && p.limits() == policy.limits();
        let found = known.iter().find(|(x, _)| x.is(policy) || same(x)).map(|x| x.1);
        let number = found.unwrap_or_else(|| {
            known.push((policy.clone(), self.count));
            self.new.push(policy.clone());
            self.count += 1;
            self.count - 1
        });
        self.last = Some((policy.clone(), number));
        number
    }
}
