//! The records of a policy.

use std::collections::VecDeque;

use foldhash::fast::RandomState;
use indexmap::IndexMap;
use tollgate::Timestamp;

use crate::record::{Interval, KeyRecord, Note, Timeline, Usage, add_interval};
use crate::recorder::Delta;
use crate::tracked::Tracked;

/// How many keys are compared to find one to evict.
const SAMPLES: usize = 8;
/// How many keys a sweep visits.
const SWEEP_KEYS: usize = 256;
/// The size of a record in the table, without its parts: the entry, its key's allocation and its share
/// of the index, which is at most 7/8 and at least 7/16 full.
const RECORD_BYTES: usize = size_of::<(u64, Box<[u8]>, Record)>() + 2 * size_of::<usize>() + 16;

/// The record of a key.
#[derive(Debug)]
struct Record {
    usage: Usage,
    /// The last notes, the oldest first.
    recent: VecDeque<Note>,
    /// By ascending time.
    timeline: VecDeque<Interval>,
    /// The size of its notes' texts.
    text_bytes: usize,
}

/// The records of a policy, bounded in keys and bytes.
#[derive(Debug, Default)]
pub(super) struct Records {
    records: IndexMap<Box<[u8]>, Record, RandomState>,
    bytes: usize,
    /// Where the next sweep or search for an old key begins.
    cursor: usize,
    /// The length of the intervals in µs.
    interval: u64,
}

impl Record {
    fn new(usage: Usage) -> Self {
        let (recent, timeline) = (VecDeque::new(), VecDeque::new());
        Record { usage: usage.without_totals(), recent, timeline, text_bytes: 0 }
    }

    fn bytes(&self, key: &[u8]) -> usize {
        RECORD_BYTES
            + key.len()
            + self.recent.capacity() * size_of::<Note>()
            + self.timeline.capacity() * size_of::<Interval>()
            + self.text_bytes
    }

    fn apply(&mut self, tracked: &Tracked, delta: &Delta<'_>) {
        self.usage.merge(&delta.usage());
        for note in delta.notes() {
            self.push_note(note, tracked.track.recent);
        }
        if tracked.interval > 0 {
            let horizon = tracked.horizon(self.usage.last_seen.as_micros());
            add_interval(&mut self.timeline, delta.interval(), horizon);
        }
    }

    /// Notes of several threads arrive out of order.
    fn push_note(&mut self, note: Note, max: usize) {
        let size = |note: &Note| note.text.as_ref().map_or(0, |text| text.len() + 16);
        self.text_bytes += size(&note);
        let at = self.recent.partition_point(|other| other.time <= note.time);
        self.recent.insert(at, note);
        while self.recent.len() > max {
            let oldest = self.recent.pop_front();
            self.text_bytes -= oldest.as_ref().map_or(0, size);
        }
    }
}

impl Records {
    pub(super) fn len(&self) -> usize {
        self.records.len()
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&[u8], &Usage)> {
        self.records.iter().map(|(key, record)| (&**key, &record.usage))
    }

    /// Empties the timelines if a reload has changed their interval.
    fn set_interval(&mut self, interval: u64) {
        if std::mem::replace(&mut self.interval, interval) == interval {
            return;
        }
        for (key, record) in &mut self.records {
            let before = record.bytes(key);
            record.timeline = VecDeque::new();
            self.bytes = self.bytes - before + record.bytes(key);
        }
    }

    /// Adds decisions. Returns the number of evicted keys.
    pub(super) fn apply(&mut self, tracked: &Tracked, delta: &Delta<'_>) -> u64 {
        self.set_interval(tracked.interval);
        let key = delta.key();
        let index = match self.records.get_index_of(key) {
            Some(index) => index,
            None => {
                let record = Record::new(delta.usage());
                self.bytes += record.bytes(key);
                self.records.insert_full(key.into(), record).0
            }
        };
        let Some((_, record)) = self.records.get_index_mut(index) else { return 0 };
        let before = record.bytes(key);
        record.apply(tracked, delta);
        self.bytes = self.bytes - before + record.bytes(key);
        self.evict(tracked, Some(index))
    }

    /// Evicts keys until the policy is within `max_keys` and `max_bytes`. The key at the index `newest`
    /// stays.
    fn evict(&mut self, tracked: &Tracked, mut newest: Option<usize>) -> u64 {
        let mut evicted = 0;
        while self.records.len() > tracked.track.max_keys
            || self.bytes > tracked.track.max_bytes && self.records.len() > 1
        {
            let Some(index) = self.eviction_candidate(newest) else { return evicted };
            let last = self.records.len() - 1;
            self.remove(index);
            if newest == Some(last) {
                newest = Some(index);
            }
            evicted += 1;
        }
        evicted
    }

    /// The next key to evict: of a sample, the one with the fewest denials, then the oldest last request.
    fn eviction_candidate(&mut self, except: Option<usize>) -> Option<usize> {
        let len = self.records.len();
        let candidates = (0..SAMPLES.min(len)).map(|offset| (self.cursor + offset) % len);
        let candidates = candidates.filter(|index| Some(*index) != except);
        let rank = |index: &usize| {
            let usage = self.records.get_index(*index).map(|(_, record)| &record.usage);
            usage.map(|usage| (usage.denied, usage.last_seen))
        };
        let least = candidates.min_by_key(rank);
        self.cursor = (self.cursor + SAMPLES) % len;
        least.or_else(|| (0..len).find(|index| Some(*index) != except))
    }

    fn remove(&mut self, index: usize) {
        if let Some((key, record)) = self.records.swap_remove_index(index) {
            self.bytes -= record.bytes(&key);
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
            match self.records.get_index(self.cursor) {
                Some((_, record)) if record.usage.last_seen.as_micros() < expiry => {
                    self.remove(self.cursor);
                }
                _ => self.cursor += 1,
            }
        }
        self.evict(tracked, None)
    }

    /// The record of a key, unless it has expired.
    pub(super) fn get(&self, tracked: &Tracked, key: &[u8], now: u64) -> Option<KeyRecord> {
        let record = self.records.get(key)?;
        if record.usage.last_seen.as_micros() < tracked.expiry(now) {
            return None;
        }
        let horizon = Timestamp::from_micros(tracked.horizon(now));
        let track = &tracked.track;
        let timeline = track.timeline.map(|timeline| Timeline {
            interval: timeline.interval,
            intervals: record.timeline.iter().filter(|i| i.start >= horizon).copied().collect(),
        });
        let recent = record.recent.iter().rev().take(track.recent).cloned().collect();
        Some(KeyRecord { usage: track.usage.then_some(record.usage), recent, timeline })
    }
}
