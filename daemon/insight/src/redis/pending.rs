//! Decisions that wait to be written.

use std::collections::{HashMap, VecDeque};

use crate::record::{Interval, Note, NoteAnswer, Usage, add_interval};
use crate::recorder::Delta;
use crate::tracked::Tracked;

/// The most keys that wait, and the size of their records: an outage of the store must not fill the
/// memory of the daemon.
const MAX_KEYS: usize = 65_536;
const MAX_BYTES: usize = 64 * 1024 * 1024;

/// The decisions for which one key may be written, and the keys that may be written in any case.
const DECISIONS_PER_WRITE: u64 = 32;
const MIN_WRITES: usize = 256;

/// What waits for a key.
#[derive(Debug)]
pub(crate) struct PendingKey {
    usage: Usage,
    /// By ascending time.
    intervals: VecDeque<Interval>,
    notes: VecDeque<Note>,
    /// The number of writes before the key began to wait.
    since: u64,
    state: Option<StateChange>,
}

/// The state of an observer in a record before and after a write. The server rejects the write if the
/// record has another state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StateChange {
    pub(crate) expected: Vec<u8>,
    pub(crate) new: Vec<u8>,
}

/// What waits for all keys, by the number of the policy and the key.
#[derive(Debug, Default)]
pub(super) struct Pending {
    keys: HashMap<(u32, Box<[u8]>), PendingKey, foldhash::fast::RandomState>,
    bytes: usize,
    /// The decisions since the last write.
    new_decisions: u64,
    writes: u64,
}

impl Pending {
    pub(super) fn len(&self) -> usize {
        self.keys.len()
    }

    /// The decisions that wait.
    pub(super) fn decisions(&self) -> u64 {
        self.keys.values().map(PendingKey::decisions).sum()
    }

    /// Adds decisions, unless there is no space for them.
    pub(super) fn add(&mut self, tracked: &Tracked, delta: &Delta<'_>) -> bool {
        let key = (tracked.id, Box::from(delta.key()));
        let is_known = self.keys.contains_key(&key);
        if self.bytes > MAX_BYTES || !is_known && self.keys.len() >= MAX_KEYS {
            return false;
        }
        let key_bytes = delta.key().len();
        let since = self.writes;
        let record = self.keys.entry(key).or_insert_with(|| PendingKey::new(delta.usage(), since));
        let before = if is_known { record.bytes(key_bytes) } else { 0 };
        record.add(tracked, delta);
        self.bytes = self.bytes - before + record.bytes(key_bytes);
        self.new_decisions += delta.usage().allowed + delta.usage().denied;
        true
    }

    /// How many keys the next write may have: a write of a key costs the server as much as two or three
    /// decisions, and all writes together must cost it a small part of what decisions do.
    pub(super) fn budget(&self) -> usize {
        let share = usize::try_from(self.new_decisions / DECISIONS_PER_WRITE).unwrap_or(usize::MAX);
        share.max(MIN_WRITES)
    }

    /// Removes and returns at most as many keys as the budget, of those that have a group: first those
    /// with denials, then those that have waited longest. The others wait, and add up meanwhile.
    pub(super) fn take<G>(
        &mut self,
        budget: usize,
        group: impl Fn(u32, &[u8]) -> Option<G>,
    ) -> Vec<(G, Box<[u8]>, PendingKey)> {
        let rank = |record: &PendingKey| (record.usage.denied == 0, record.since);
        let last = if self.keys.len() > budget {
            // Keys of a server that is unavailable must not take the budget of the others.
            let ready = self.keys.iter().filter(|((policy, key), _)| group(*policy, key).is_some());
            let mut ranks: Vec<_> = ready.map(|(_, record)| rank(record)).collect();
            (ranks.len() > budget).then(|| *ranks.select_nth_unstable(budget.saturating_sub(1)).1)
        } else {
            None
        };
        let mut groups = Vec::new();
        let mut taken = 0;
        let extracted = self.keys.extract_if(|(policy, key), record| {
            if taken >= budget || last.is_some_and(|last| rank(record) > last) {
                return false;
            }
            let Some(group) = group(*policy, key) else { return false };
            taken += 1;
            groups.push(group);
            true
        });
        let extracted: Vec<_> = extracted.collect();
        (self.new_decisions, self.writes) = (0, self.writes + 1);
        self.bytes -= extracted.iter().map(|((_, key), r)| r.bytes(key.len())).sum::<usize>();
        let keys = extracted.into_iter().map(|((_, key), record)| (key, record));
        groups.into_iter().zip(keys).map(|(group, (key, record))| (group, key, record)).collect()
    }
}

impl PendingKey {
    fn new(usage: Usage, since: u64) -> Self {
        let (intervals, notes) = (VecDeque::new(), VecDeque::new());
        PendingKey { usage: usage.without_totals(), intervals, notes, since, state: None }
    }

    /// What an observer has counted for a key.
    pub(crate) fn observed(
        usage: Usage,
        intervals: VecDeque<Interval>,
        state: StateChange,
    ) -> Self {
        PendingKey { usage, intervals, notes: VecDeque::new(), since: 0, state: Some(state) }
    }

    pub(super) fn has_state(&self) -> bool {
        self.state.is_some()
    }

    fn bytes(&self, key: usize) -> usize {
        let texts = self.notes.iter().filter_map(|note| note.text.as_ref());
        size_of::<((u32, Box<[u8]>), PendingKey)>()
            + key
            + self.intervals.capacity() * size_of::<Interval>()
            + self.notes.capacity() * size_of::<Note>()
            + texts.map(|text| text.len()).sum::<usize>()
    }

    pub(super) fn decisions(&self) -> u64 {
        self.usage.allowed + self.usage.denied
    }

    fn add(&mut self, tracked: &Tracked, delta: &Delta<'_>) {
        self.usage.merge(&delta.usage());
        if tracked.interval > 0 {
            let horizon = tracked.horizon(self.usage.last_seen.as_micros());
            add_interval(&mut self.intervals, delta.interval(), horizon);
        }
        for note in delta.notes() {
            let at = self.notes.partition_point(|other| other.time <= note.time);
            self.notes.insert(at, note);
        }
        let excess = self.notes.len().saturating_sub(tracked.track.recent);
        drop(self.notes.drain(..excess));
    }

    /// Appends the arguments of the script.
    pub(crate) fn write(&self, arguments: &mut Vec<Vec<u8>>) {
        let mut put = |number: u64| arguments.push(number.to_string().into());
        let count = |len: usize| u64::try_from(len).unwrap_or(u64::MAX);
        put(self.usage.first_seen.as_micros());
        put(self.usage.last_seen.as_micros());
        put(self.usage.allowed);
        put(self.usage.denied);
        put(self.usage.cost);
        put(count(self.intervals.len()));
        put(count(self.notes.len()));
        if let Some(StateChange { expected, new }) = &self.state {
            arguments.extend([expected.clone(), new.clone()]);
        }
        let mut put = |number: u64| arguments.push(number.to_string().into());
        for Interval { start, allowed, denied, cost } in &self.intervals {
            put(start.as_micros() / 1_000_000);
            put(*allowed);
            put(*denied);
            put(*cost);
        }
        for note in &self.notes {
            arguments.push(write_note(note).into());
        }
    }
}

/// A note as one text: time in µs, cost, answer, and the client's note after a colon if there is one.
fn write_note(note: &Note) -> String {
    let mut text = format!("{}:{}:{}", note.time.as_micros(), note.cost, note.answer.as_str());
    if let Some(note) = &note.text {
        text.push(':');
        text.push_str(note);
    }
    text
}

/// Parses what [`write_note`] has written.
pub(super) fn parse_note(text: &str) -> Option<Note> {
    let mut parts = text.splitn(4, ':');
    let time = tollgate::Timestamp::from_micros(parts.next()?.parse().ok()?);
    let cost = parts.next()?.parse().ok()?;
    let answer = NoteAnswer::from_name(parts.next()?)?;
    Some(Note { time, cost, answer, text: parts.next().map(Into::into) })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The keys of a server that is unavailable wait longest.
    #[test]
    fn keys_without_a_group_leave_the_budget_to_the_others() {
        let usage = Usage {
            first_seen: tollgate::Timestamp::EPOCH,
            last_seen: tollgate::Timestamp::EPOCH,
            allowed: 1,
            denied: 1,
            cost: 1,
        };
        let mut pending = Pending::default();
        for (number, since) in (0..20_u32).zip([0, 1].into_iter().cycle()) {
            let key = Box::from(number.to_be_bytes());
            let record = PendingKey { usage, ..PendingKey::new(usage, since) };
            pending.bytes += record.bytes(4);
            pending.keys.insert((u32::try_from(since).unwrap(), key), record);
        }
        let taken = pending.take(6, |policy, _| (policy == 1).then_some(policy));
        assert_eq!((taken.len(), pending.len()), (6, 14));
        assert!(taken.iter().all(|(policy, _, _)| *policy == 1));
    }

    #[test]
    fn a_note_is_parsed_as_it_was_written() {
        for text in [None, Some(""), Some(":"), Some("user:7 \n ü")] {
            for answer in NoteAnswer::ALL {
                let time = tollgate::Timestamp::from_micros(1_763_650_000_123_456);
                let note =
                    Note { time, cost: 9_007_199_254_740_991, answer, text: text.map(Into::into) };
                assert_eq!(parse_note(&write_note(&note)), Some(note));
            }
        }
        for text in ["", "1", "1:2", "1:2:maybe", "x:2:allowed", "1:-2:allowed"] {
            assert_eq!(parse_note(text), None, "{text}");
        }
    }
}
