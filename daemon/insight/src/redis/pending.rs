//! Decisions that wait to be written.

use std::hash::BuildHasher;
use std::io::Write;

use foldhash::fast::RandomState;
use hashbrown::{HashTable, hash_table};

use super::arguments::Arguments;
use crate::record::{Interval, Note, NoteAnswer};
use crate::recorder::TrackedDecision;
use crate::tally::Tally;
use crate::tracked::Tracked;

/// The most keys that wait, and the size of their records: an outage of the store must not fill the
/// memory of the daemon.
const MAX_KEYS: usize = 131_072;
const MAX_BYTES: usize = 128 * 1024 * 1024;

/// The decisions for which one key may be written, and the keys that may be written in any case.
const DECISIONS_PER_WRITE: u64 = 64;
const MIN_WRITES: usize = 256;

/// What waits for a key.
#[derive(Debug)]
pub(crate) struct PendingKey {
    tally: Tally,
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

/// A key, the number of its policy, and what waits for it.
#[derive(Debug)]
struct Entry {
    hash: u64,
    policy: usize,
    key: Box<[u8]>,
    record: PendingKey,
}

/// What waits for all keys.
#[derive(Debug, Default)]
pub(super) struct Pending {
    keys: HashTable<Entry>,
    hasher: RandomState,
    bytes: usize,
    /// The decisions since the last write.
    new_decisions: u64,
    writes: u64,
}

impl Entry {
    fn bytes(&self) -> usize {
        size_of::<Entry>() + self.key.len() + self.record.tally.bytes()
    }
}

impl Pending {
    pub(super) fn len(&self) -> usize {
        self.keys.len()
    }

    /// The decisions that wait.
    pub(super) fn decisions(&self) -> u64 {
        self.keys.iter().map(|entry| entry.record.decisions()).sum()
    }

    /// The hash of a key of a policy, for the other functions.
    pub(super) fn hash(&self, policy: usize, key: &[u8]) -> u64 {
        self.hasher.hash_one((policy, key))
    }

    /// Reads what a decision about a key will probably read, so that it is in the cache.
    pub(super) fn touch(&self, hash: u64) -> u64 {
        let entry = self.keys.find(hash, |_| true);
        entry.map_or(0, |entry| {
            entry.record.tally.touch() ^ entry.key.first().copied().map_or(0, u64::from)
        })
    }

    /// Adds a decision about a key with this hash, unless there is no space for it.
    pub(super) fn add(
        &mut self,
        hash: u64,
        tracked: &Tracked,
        decision: &TrackedDecision<'_>,
    ) -> bool {
        let is_full = self.keys.len() >= MAX_KEYS;
        let is_of = |entry: &Entry| entry.policy == tracked.id && *entry.key == *decision.key;
        let entry = match self.keys.entry(hash, is_of, |entry| entry.hash) {
            _ if self.bytes > MAX_BYTES => return false,
            hash_table::Entry::Occupied(entry) => entry.into_mut(),
            hash_table::Entry::Vacant(_) if is_full => return false,
            hash_table::Entry::Vacant(space) => {
                let record = PendingKey {
                    tally: Tally::new(decision.time),
                    since: self.writes,
                    state: None,
                };
                let (policy, key) = (tracked.id, decision.key.into());
                let entry = space.insert(Entry { hash, policy, key, record }).into_mut();
                self.bytes += entry.bytes();
                entry
            }
        };
        let before = entry.bytes();
        entry.record.tally.add(tracked, decision);
        self.bytes = self.bytes - before + entry.bytes();
        self.new_decisions += 1;
        true
    }

    /// How many keys the next write may have: a write of a key costs the server as much as up to eight
    /// decisions, and all writes together must cost it less than decisions do.
    pub(super) fn budget(&self) -> usize {
        let share = usize::try_from(self.new_decisions / DECISIONS_PER_WRITE).unwrap_or(usize::MAX);
        share.max(MIN_WRITES)
    }

    /// Removes and returns at most as many keys as the budget, of those that have a group: first those
    /// with denials, then those that have waited longest. The others wait, and add up meanwhile.
    pub(super) fn take<G>(
        &mut self,
        budget: usize,
        group: impl Fn(usize, &[u8]) -> Option<G>,
    ) -> Vec<(G, Box<[u8]>, PendingKey)> {
        let group = |entry: &Entry| group(entry.policy, &entry.key);
        let rank = |entry: &Entry| (entry.record.tally.usage().denied == 0, entry.record.since);
        let last = if self.keys.len() > budget {
            // Keys of a server that is unavailable must not take the budget of the others.
            let ready = self.keys.iter().filter(|entry| group(entry).is_some());
            let mut ranks: Vec<_> = ready.map(rank).collect();
            (ranks.len() > budget).then(|| *ranks.select_nth_unstable(budget.saturating_sub(1)).1)
        } else {
            None
        };
        let mut groups = Vec::new();
        let extracted = self.keys.extract_if(|entry| {
            if groups.len() >= budget || last.is_some_and(|last| rank(entry) > last) {
                return false;
            }
            let group = group(entry);
            let has_group = group.is_some();
            groups.extend(group);
            has_group
        });
        let extracted: Vec<_> = extracted.collect();
        (self.new_decisions, self.writes) = (0, self.writes + 1);
        self.bytes -= extracted.iter().map(Entry::bytes).sum::<usize>();
        let keys = extracted.into_iter().map(|Entry { key, record, .. }| (key, record));
        groups.into_iter().zip(keys).map(|(group, (key, record))| (group, key, record)).collect()
    }
}

impl PendingKey {
    /// What an observer has counted for a key.
    pub(crate) fn observed(tally: Tally, state: StateChange) -> Self {
        PendingKey { tally, since: 0, state: Some(state) }
    }

    pub(super) fn has_state(&self) -> bool {
        self.state.is_some()
    }

    pub(super) fn decisions(&self) -> u64 {
        let usage = self.tally.usage();
        usage.allowed + usage.denied
    }

    /// Appends the arguments of the script.
    pub(crate) fn write(&self, arguments: &mut Arguments) {
        let usage = self.tally.usage();
        let notes = self.tally.notes();
        arguments.push_text(usage.first_seen.as_micros());
        arguments.push_text(usage.last_seen.as_micros());
        arguments.push_text(usage.allowed);
        arguments.push_text(usage.denied);
        arguments.push_text(usage.cost);
        arguments.push_text(self.tally.intervals().count());
        arguments.push_text(notes.len());
        if let Some(StateChange { expected, new }) = &self.state {
            arguments.push(expected);
            arguments.push(new);
        }
        for Interval { start, allowed, denied, cost } in self.tally.intervals() {
            arguments.push_text(start.as_micros() / 1_000_000);
            arguments.push_text(allowed);
            arguments.push_text(denied);
            arguments.push_text(cost);
        }
        arguments.push(&write_notes(&notes));
    }
}

/// Notes as one text. Each has its length in bytes and a colon before it, then its time in µs, cost,
/// answer, and the client's note if there is one, separated by colons.
fn write_notes(notes: &[Note]) -> Vec<u8> {
    let (mut list, mut text) = (Vec::new(), Vec::new());
    for Note { time, cost, answer, text: note } in notes {
        text.clear();
        // A vector accepts everything.
        let _ = write!(text, "{}:{cost}:{}", time.as_micros(), answer.as_str());
        if let Some(note) = note {
            text.push(b':');
            text.extend_from_slice(note.as_bytes());
        }
        let _ = write!(list, "{}:", text.len());
        list.extend_from_slice(&text);
    }
    list
}

/// Parses what [`write_notes`] has written; absent if it is malformed. Leaves out notes with answers
/// that this version does not know.
pub(super) fn parse_notes(mut list: &[u8]) -> Option<Vec<Note>> {
    let mut notes = Vec::new();
    while !list.is_empty() {
        let colon = list.iter().position(|byte| *byte == b':')?;
        let len: usize = str::from_utf8(&list[..colon]).ok()?.parse().ok()?;
        let (text, rest) = list[colon + 1..].split_at_checked(len)?;
        notes.extend(parse_note(&String::from_utf8_lossy(text)));
        list = rest;
    }
    Some(notes)
}

fn parse_note(text: &str) -> Option<Note> {
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
        let yaml = "policies: { api: { limits: [1/s], track: { usage: true } } }";
        let read = tollgate_config::Layers::new().named_yaml("tollgate.yaml", yaml).read();
        let track = read.unwrap().config.tracks.remove("api").unwrap();
        let mut pending = Pending::default();
        for policy in [0, 1] {
            pending.writes = u64::from(policy == 1);
            let tracked = Tracked::new(policy, "api", &track);
            for number in 0..10_u8 {
                let (key, answer, note) = (&[number][..], NoteAnswer::Denied, None);
                let decision = TrackedDecision { key, time: 1, cost: 1, granted: 0, answer, note };
                let hash = pending.hash(policy, key);
                assert!(pending.add(hash, &tracked, &decision));
            }
        }
        let taken = pending.take(6, |policy, _| (policy == 1).then_some(policy));
        assert_eq!((taken.len(), pending.len()), (6, 14));
        assert!(taken.iter().all(|(policy, _, _)| *policy == 1));
    }

    #[test]
    fn notes_are_parsed_as_they_were_written() {
        let mut notes = Vec::new();
        for text in [None, Some(""), Some(":"), Some("user:7 \n ü")] {
            for answer in NoteAnswer::ALL {
                let time = tollgate::Timestamp::from_micros(1_763_650_000_123_456);
                let text = text.map(Into::into);
                notes.push(Note { time, cost: 9_007_199_254_740_991, answer, text });
            }
        }
        let list = write_notes(&notes);
        assert_eq!(parse_notes(&list), Some(notes));
        assert_eq!(parse_notes(&list[..list.len() - 1]), None);
        assert_eq!(parse_notes(b""), Some(Vec::new()));
        assert_eq!(parse_notes(b"12:1:2:unknown"), None);
        assert_eq!(parse_notes(b"11:1:2:unknown11:1:2:allowed").map(|notes| notes.len()), Some(1));
        for text in ["", "1", "1:2", "1:2:maybe", "x:2:allowed", "1:-2:allowed"] {
            assert_eq!(parse_note(text), None, "{text}");
        }
    }
}
