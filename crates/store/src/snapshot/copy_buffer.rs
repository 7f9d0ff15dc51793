//! A buffer for records that are copied under a shard's lock and written after it is released.

use std::collections::HashMap;

use tollgate_algorithms::codec::put_bytes;
use tollgate_algorithms::{Block, KeyState, Policy, Timestamp};

use super::format::FOREVER;
use crate::memory::{Step, StoredKey};

/// Encoded records of keys or blocks, without those that have expired at `now`.
#[derive(Debug)]
pub(super) struct CopyBuffer {
    now: Timestamp,
    /// Reused for every step, so that little is allocated under a lock.
    pub(super) records: Vec<u8>,
    pub(super) count: u64,
    policies: PolicyNumbers,
}

impl CopyBuffer {
    pub(super) fn new(now: Timestamp) -> Self {
        let records = Vec::with_capacity(2 * Step::SHORT.bytes);
        CopyBuffer { now, records, count: 0, policies: PolicyNumbers::default() }
    }

    pub(super) fn clear(&mut self) {
        self.records.clear();
        self.count = 0;
    }

    /// Takes the policies of copied keys that have not been written yet.
    pub(super) fn take_new_policies(&mut self) -> Vec<Policy> {
        std::mem::take(&mut self.policies.new)
    }

    /// Copies a key; returns the number of bytes in the buffer.
    pub(super) fn push_key(&mut self, key: &StoredKey<'_>, state: &KeyState) -> usize {
        if let Some(policy) = state.policy().filter(|_| !state.is_untouched(self.now)) {
            let policy = self.policies.number(policy);
            self.push_record(|out| {
                out.extend_from_slice(&policy.to_le_bytes());
                state.encode(out);
                out.push(key.kind());
                out.extend_from_slice(key.bytes());
            });
        }
        self.records.len()
    }

    /// Copies a block with the kind and bytes of its key; returns the number of bytes in the buffer.
    pub(super) fn push_block(&mut self, policy: &str, key: &[u8], block: Block) -> usize {
        if block.is_active(self.now) {
            let until = match block {
                Block::Until(end) => end.as_micros(),
                Block::Forever => FOREVER,
            };
            self.push_record(|out| {
                put_bytes(out, policy.as_bytes());
                out.extend_from_slice(&until.to_le_bytes());
                out.extend_from_slice(key);
            });
        }
        self.records.len()
    }

    /// Appends a record: its length, then what `put` appends.
    fn push_record(&mut self, put: impl FnOnce(&mut Vec<u8>)) {
        let start = self.records.len();
        self.records.extend_from_slice(&[0; 4]);
        put(&mut self.records);
        // A length that does not fit is not written: the writer rejects a section above 4 GiB.
        let length = u32::try_from(self.records.len() - start - 4).unwrap_or(u32::MAX);
        self.records[start..start + 4].copy_from_slice(&length.to_le_bytes());
        self.count += 1;
    }
}

/// The policies copied so far, and their numbers in the file.
#[derive(Debug, Default)]
struct PolicyNumbers {
    /// By the hash of the name.
    by_name: HashMap<u64, Vec<(Policy, u32)>>,
    count: u32,
    /// The policy of the previous key, which often is that of the next key, too.
    last: Option<(Policy, u32)>,
    /// The policies that have not been written yet.
    new: Vec<Policy>,
}

impl PolicyNumbers {
    fn number(&mut self, policy: &Policy) -> u32 {
        if let Some((last, number)) = &self.last
            && last.ptr_eq(policy)
        {
            return *number;
        }
        let known = self.by_name.entry(policy.name_hash()).or_default();
        // Only the name and the limits are written, so policies that share them share a number.
        let is_same = |other: &Policy| {
            other.ptr_eq(policy)
                || (other.name() == policy.name() && other.limits() == policy.limits())
        };
        let found = known.iter().find(|(other, _)| is_same(other)).map(|(_, number)| *number);
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
