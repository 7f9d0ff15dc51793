//! The records of a policy.

use hashbrown::HashTable;
use tollgate::Timestamp;

use crate::record::{InlineKey, KeyRecord, Timeline, Usage, allocated_bytes};
use crate::recorder::TrackedDecision;
use crate::tally::Tally;
use crate::tracked::Tracked;

/// How many keys are compared to find one to evict.
const SAMPLES: usize = 8;
/// How many keys a sweep visits.
const SWEEP_KEYS: usize = 256;
/// The size of a record without what it has allocated, with its share of the index, which is at most
/// 7/8 and at least 7/16 full.
const RECORD_BYTES: usize = size_of::<Record>() + 2 * (size_of::<usize>() + 1);

/// The record of a key, in two cache lines.
#[derive(Debug)]
#[repr(align(64))]
struct Record {
    hash: u64,
    key: InlineKey,
    tally: Tally,
}

const _: () = assert!(size_of::<Record>() == 128);

/// The records of a policy, bounded in keys and bytes.
#[derive(Debug, Default)]
pub(super) struct Records {
    records: Vec<Record>,
    /// Where the record of each key is.
    index: HashTable<usize>,
    bytes: usize,
    /// Where the next sweep or search for an old key begins.
    cursor: usize,
    /// The length of the intervals in µs.
    interval: u64,
}

impl Record {
    #[inline]
    fn is_of(&self, hash: u64, key: &[u8]) -> bool {
        self.hash == hash && *self.key == *key
    }

    #[inline]
    fn bytes(&self) -> usize {
        RECORD_BYTES + allocated_bytes(&self.key) + self.tally.bytes()
    }
}

impl Records {
    pub(super) fn len(&self) -> usize {
        self.records.len()
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&[u8], Usage)> {
        self.records.iter().map(|record| (&*record.key, record.tally.usage()))
    }

    /// Where the record of a key probably is: the index has only a part of its hash.
    #[inline]
    pub(super) fn probable_position(&self, hash: u64) -> Option<usize> {
        self.index.find(hash, |_| true).copied()
    }

    /// Reads what a decision at this position will read, so that it is in the cache.
    #[inline]
    pub(super) fn touch(&self, position: Option<usize>) -> u64 {
        let Some(record) = position.and_then(|position| self.records.get(position)) else {
            return 0;
        };
        record.tally.touch() ^ record.key.first().copied().map_or(0, u64::from)
    }

    fn position(&self, hash: u64, key: &[u8]) -> Option<usize> {
        let is_of = |position: &usize| self.records[*position].is_of(hash, key);
        self.index.find(hash, is_of).copied()
    }

    fn insert(&mut self, hash: u64, key: &[u8], time: u64) -> usize {
        let position = self.records.len();
        let record = Record { hash, key: InlineKey::from_slice(key), tally: Tally::new(time) };
        self.bytes += record.bytes();
        self.records.push(record);
        let records = &self.records;
        self.index.insert_unique(hash, position, |position| records[*position].hash);
        position
    }

    /// Empties the timelines if a reload has changed their interval.
    #[inline]
    fn set_interval(&mut self, interval: u64) {
        if std::mem::replace(&mut self.interval, interval) == interval {
            return;
        }
        for record in &mut self.records {
            self.bytes -= record.bytes();
            record.tally.clear_timeline();
            self.bytes += record.bytes();
        }
    }

    /// Adds a decision to the record at the probable position, if it is that of the key. Returns the
    /// number of evicted keys.
    #[inline]
    pub(super) fn add(
        &mut self,
        tracked: &Tracked,
        decision: &TrackedDecision<'_>,
        hash: u64,
        probable: Option<usize>,
    ) -> u64 {
        self.set_interval(tracked.interval);
        let key = decision.key;
        let is_of = |position: &usize| {
            self.records.get(*position).is_some_and(|record| record.is_of(hash, key))
        };
        let known = probable.filter(is_of).or_else(|| self.position(hash, key));
        let position = known.unwrap_or_else(|| self.insert(hash, key, decision.time));
        self.records[position].tally.add(tracked, decision, &mut self.bytes);
        self.evict(tracked, Some(position))
    }

    /// Evicts keys until the policy is within `max_keys` and `max_bytes`. The key at the position
    /// `newest` stays.
    #[inline]
    fn evict(&mut self, tracked: &Tracked, mut newest: Option<usize>) -> u64 {
        let mut evicted = 0;
        while self.records.len() > tracked.track.max_keys
            || self.bytes > tracked.track.max_bytes && self.records.len() > 1
        {
            let Some(position) = self.eviction_candidate(newest) else { return evicted };
            let last = self.records.len() - 1;
            self.remove(position);
            if newest == Some(last) {
                newest = Some(position);
            }
            evicted += 1;
        }
        evicted
    }

    /// The next key to evict: of a sample, the one with the fewest denials, then the oldest last request.
    fn eviction_candidate(&mut self, except: Option<usize>) -> Option<usize> {
        let len = self.records.len();
        let candidates = (0..SAMPLES.min(len)).map(|offset| (self.cursor + offset) % len);
        let candidates = candidates.filter(|position| Some(*position) != except);
        let rank = |position: &usize| {
            let usage = self.records[*position].tally.usage();
            (usage.denied, usage.last_seen)
        };
        let least = candidates.min_by_key(rank);
        self.cursor = (self.cursor + SAMPLES) % len;
        least.or_else(|| (0..len).find(|position| Some(*position) != except))
    }

    /// Removes a record. The last one takes its position.
    fn remove(&mut self, position: usize) {
        let last = self.records.len() - 1;
        let moved = self.records[last].hash;
        let record = self.records.swap_remove(position);
        self.bytes -= record.bytes();
        if let Ok(entry) = self.index.find_entry(record.hash, |other| *other == position) {
            entry.remove();
        }
        if let Some(other) = self.index.find_mut(moved, |other| *other == last) {
            *other = position;
        }
    }

    /// Removes some expired keys, and evicts those beyond bounds that a reload has lowered. Returns the
    /// number of evicted keys.
    pub(super) fn sweep(&mut self, tracked: &Tracked, now: u64) -> u64 {
        self.set_interval(tracked.interval);
        let expiry = tracked.expiry(now);
        for _ in 0..SWEEP_KEYS.min(self.records.len()) {
            if self.cursor >= self.records.len() {
                self.cursor = 0;
            }
            match self.records.get(self.cursor) {
                Some(record) if record.tally.last_seen().as_micros() < expiry => {
                    self.remove(self.cursor);
                }
                _ => self.cursor += 1,
            }
        }
        self.evict(tracked, None)
    }

    /// The record of a key, unless it has expired.
    pub(super) fn get(
        &self,
        tracked: &Tracked,
        hash: u64,
        key: &[u8],
        now: u64,
    ) -> Option<KeyRecord> {
        let tally = &self.records[self.position(hash, key)?].tally;
        let usage = tally.usage();
        if usage.last_seen.as_micros() < tracked.expiry(now) {
            return None;
        }
        let horizon = Timestamp::from_micros(tracked.horizon(now));
        let track = &tracked.track;
        let timeline = track.timeline.map(|timeline| Timeline {
            interval: timeline.interval,
            intervals: tally.intervals().filter(|i| i.start >= horizon).collect(),
        });
        let recent = tally.notes().into_iter().rev().take(track.recent).collect();
        Some(KeyRecord { usage: track.usage.then_some(usage), recent, timeline })
    }
}
