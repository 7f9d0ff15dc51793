//! Decisions that wait to be written.

use std::hash::BuildHasher;

use foldhash::fast::RandomState;
use hashbrown::{HashTable, hash_table};

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

    fn hash(&self, policy: usize, key: &[u8]) -> u64 {
        self.hasher.hash_one((policy, key))
    }

    /// Reads what a decision about a key will probably read, so that it is in the cache.
    pub(super) fn touch(&self, policy: usize, key: &[u8]) -> u64 {
        let entry = self.keys.find(self.hash(policy, key), |_| true);
        entry.map_or(0, |entry| {
            entry.record.tally.touch() ^ entry.key.first().copied().map_or(0, u64::from)
        })
    }

    /// Adds a decision, unless there is no space for it.
    pub(super) fn add(&mut self, tracked: &Tracked, decision: &TrackedDecision<'_>) -> bool {
        let hash = self.hash(tracked.id, decision.key);
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
    pub(crate) fn write(&self, arguments: &mut Vec<Vec<u8>>) {
        let mut put = |number: u64| arguments.push(number.to_string().into());
        let count = |len: usize| u64::try_from(len).unwrap_or(u64::MAX);
        let usage = self.tally.usage();
        put(usage.first_seen.as_micros());
        put(usage.last_seen.as_micros());
        put(usage.allowed);
        put(usage.denied);
        put(usage.cost);
        let notes = self.tally.notes();
        put(count(self.tally.intervals().count()));
        put(count(notes.len()));
        if let Some(StateChange { expected, new }) = &self.state {
            arguments.extend([expected.clone(), new.clone()]);
        }
        let mut put = |number: u64| arguments.push(number.to_string().into());
        for Interval { start, allowed, denied, cost } in self.tally.intervals() {
            put(start.as_micros() / 1_000_000);
            put(*allowed);
            put(*denied);
            put(*cost);
        }
        for note in &notes {
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
                assert!(pending.add(&tracked, &decision));
            }
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
