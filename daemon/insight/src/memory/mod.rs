//! Records in the memory of this process. They start empty.

mod records;

use std::hash::BuildHasher;
use std::hint::black_box;
use std::sync::{Mutex, MutexGuard, PoisonError};

use foldhash::fast::RandomState;
use tollgate::Timestamp;

use crate::query::{KeysQuery, Order, Position};
use crate::record::{KeyRecord, KeyUsage, Usage};
use crate::recorder::{BATCH, Log, TrackedDecision};
use crate::stats::Counters;
use crate::tracked::{TrackTable, Tracked};
use records::Records;

/// The records of all policies.
#[derive(Debug, Default)]
pub(crate) struct MemoryStorage {
    /// By the number of the policy.
    records: Mutex<Vec<Records>>,
    hasher: RandomState,
}

/// A decision that is being added.
#[derive(Debug)]
struct Step<'s> {
    tracked: &'s Tracked,
    decision: TrackedDecision<'s>,
    hash: u64,
    /// Where the record of the key probably is.
    position: Option<usize>,
}

/// The rank of a key in an order; absent if the key is left out.
pub(crate) fn rank(order: Order, usage: &Usage) -> Option<u64> {
    match order {
        Order::Newest | Order::Oldest => Some(usage.last_seen.as_micros()),
        Order::MostUsed => Some(usage.allowed.saturating_add(usage.denied)),
        Order::MostDenied => (usage.denied > 0).then_some(usage.denied),
    }
}

/// Compares two ranks with their keys: the first in the order is the least.
pub(crate) fn compare(order: Order, a: (u64, &[u8]), b: (u64, &[u8])) -> std::cmp::Ordering {
    if order.is_descending() { b.cmp(&a) } else { a.cmp(&b) }
}

impl MemoryStorage {
    fn lock(&self) -> MutexGuard<'_, Vec<Records>> {
        // Records are valid after every single update.
        self.records.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds decisions.
    pub(crate) fn add(&self, table: &TrackTable, log: &Log, counters: &Counters) {
        let mut all = self.lock();
        let len = all.len().max(table.ids());
        all.resize_with(len, Records::default);
        let mut evicted = 0;
        let mut steps = Vec::with_capacity(BATCH);
        for batch in log.batches() {
            steps.clear();
            // Decisions of policies that were reloaded without `track` since are left out.
            steps.extend(batch.filter_map(|(id, decision)| {
                let (tracked, hash) = (table.by_id(id)?, self.hasher.hash_one(decision.key));
                Some(Step { tracked, decision, hash, position: None })
            }));
            for step in &mut steps {
                step.position = all[step.tracked.index()].probable_position(step.hash);
            }
            let touch = |step: &Step<'_>| all[step.tracked.index()].touch(step.position);
            black_box(steps.iter().map(touch).fold(0, |all, one| all ^ one));
            for Step { tracked, decision, hash, position } in &steps {
                evicted += all[tracked.index()].add(tracked, decision, *hash, *position);
            }
        }
        counters.evicted.add(evicted);
    }

    /// Forgets expired keys and those of policies that track nothing, and counts the others.
    pub(crate) fn sweep(&self, table: &TrackTable, now: Timestamp, counters: &Counters) {
        let mut all = self.lock();
        let (mut keys, mut bytes) = (0, 0);
        for (id, records) in (0..).zip(all.iter_mut()) {
            let Some(tracked) = table.by_id(id) else {
                *records = Records::default();
                continue;
            };
            counters.evicted.add(records.sweep(tracked, now.as_micros()));
            keys += u64::try_from(records.len()).unwrap_or(u64::MAX);
            bytes += u64::try_from(records.bytes()).unwrap_or(u64::MAX);
        }
        counters.keys.set(keys);
        counters.bytes.set(bytes);
    }

    /// A page of the keys of a policy after a position, and the position of its end if there are more.
    pub(crate) fn keys(
        &self,
        tracked: &Tracked,
        query: &KeysQuery<'_>,
        after: Option<&Position>,
        now: Timestamp,
    ) -> (Vec<KeyUsage>, Option<Position>) {
        let all = self.lock();
        let Some(records) = all.get(tracked.index()) else { return (Vec::new(), None) };
        let expiry = tracked.expiry(now.as_micros());
        let order = query.order;
        let candidates = records.iter().filter(|(key, usage)| {
            key.starts_with(query.prefix) && usage.last_seen.as_micros() >= expiry
        });
        let candidates =
            candidates.filter_map(|(key, usage)| Some((rank(order, &usage)?, key, usage)));
        let mut candidates: Vec<_> = candidates
            .filter(|(rank, key, _)| {
                after.is_none_or(|after| {
                    compare(order, (*rank, key), (after.rank, &after.key)).is_gt()
                })
            })
            .collect();
        let by_order = |a: &(u64, &[u8], Usage), b: &(u64, &[u8], Usage)| {
            compare(order, (a.0, a.1), (b.0, b.1))
        };
        let len = query.limit + 1;
        if candidates.len() > len {
            candidates.select_nth_unstable_by(len - 1, by_order);
            candidates.truncate(len);
        }
        candidates.sort_unstable_by(by_order);
        let has_more = candidates.len() > query.limit;
        candidates.truncate(query.limit);
        let end = candidates.last().filter(|_| has_more);
        let end = end.map(|(rank, key, _)| Position { rank: *rank, key: (*key).into() });
        let keys =
            candidates.iter().map(|(_, key, usage)| KeyUsage { key: (*key).into(), usage: *usage });
        (keys.collect(), end)
    }

    /// The record of a key.
    pub(crate) fn key(&self, tracked: &Tracked, key: &[u8], now: Timestamp) -> Option<KeyRecord> {
        let hash = self.hasher.hash_one(key);
        self.lock().get(tracked.index())?.get(tracked, hash, key, now.as_micros())
    }
}
