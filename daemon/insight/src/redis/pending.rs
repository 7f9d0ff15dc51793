//! Decisions that wait to be written.

use std::collections::VecDeque;
use std::hash::BuildHasher;
use std::hint::black_box;

use foldhash::fast::RandomState;
use hashbrown::{HashTable, hash_table};

use super::arguments::Arguments;
use crate::record::{InlineKey, Interval, Note, NoteAnswer, allocated_bytes};
use crate::recorder::TrackedDecision;
use crate::tally::Tally;
use crate::tracked::Tracked;

/// The most keys that wait, and the size of their records: an outage of the store must not fill the
/// memory of the daemon.
const MAX_KEYS: usize = 131_072;
const MAX_BYTES: usize = 128 * 1024 * 1024;

/// The decisions for which one key may be written, and the keys that may be written in any case.
const DECISIONS_PER_WRITE: u64 = 256;
const MIN_WRITES: usize = 256;
/// Shorter queues are not cleaned.
const MIN_CLEANED: usize = 1024;

/// What waits for a key.
#[derive(Debug)]
pub(crate) struct PendingKey {
    tally: Tally,
    state: Option<StateChange>,
}

/// The state of an observer in a record before and after a write. The server rejects the write if the
/// record has another state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StateChange {
    pub(crate) expected: Vec<u8>,
    pub(crate) new: Vec<u8>,
}

/// A key, the number of its policy, and what waits for it, in two cache lines.
#[derive(Debug)]
#[repr(align(64))]
struct Entry {
    policy: u32,
    /// Distinguishes it from an earlier entry of the same key.
    serial: u32,
    key: InlineKey,
    tally: Tally,
}

const _: () = assert!(size_of::<Entry>() == 128);

/// Keys in the order in which they are written. Those that were written meanwhile remain until their
/// turn comes.
#[derive(Debug, Default)]
struct Queue(VecDeque<Place>);

/// The hash and the serial number of an entry.
#[derive(Clone, Copy, Debug)]
struct Place {
    hash: u64,
    serial: u32,
}

/// Where a key waits, if it does, judged by a part of its hash.
#[derive(Clone, Copy, Debug)]
pub(super) struct Probe {
    hash: u64,
    bucket: Option<usize>,
}

/// What waits for all keys.
#[derive(Debug, Default)]
pub(super) struct Pending {
    keys: HashTable<Entry>,
    /// All keys, and those with denials, which are written first.
    all: Queue,
    denied: Queue,
    hasher: RandomState,
    bytes: usize,
    /// The decisions since the last write.
    new_decisions: u64,
    last_serial: u32,
}

impl Entry {
    fn is_denied(&self) -> bool {
        self.tally.usage().denied > 0
    }

    fn bytes(&self) -> usize {
        size_of::<Entry>() + allocated_bytes(&self.key) + self.tally.bytes()
    }
}

impl Queue {
    /// Adds a key. Before, removes the keys that were written, if they may be more than half.
    fn push(&mut self, place: Place, keys: &HashTable<Entry>) {
        let Queue(places) = self;
        if places.len() >= MIN_CLEANED.max(2 * keys.len()) {
            places.retain(|place| keys.find(place.hash, |entry| place.is_of(entry)).is_some());
        }
        places.push_back(place);
    }
}

impl Place {
    fn is_of(self, entry: &Entry) -> bool {
        entry.serial == self.serial
    }
}

impl Pending {
    pub(super) fn len(&self) -> usize {
        self.keys.len()
    }

    /// The decisions that wait.
    pub(super) fn decisions(&self) -> u64 {
        self.keys.iter().map(|entry| entry.tally.decisions()).sum()
    }

    /// Finds where the keys of some decisions wait. Reads what [`Pending::add`] will read, so that it is in
    /// the cache: first the keys of all entries, then their last notes, so that their cache misses overlap.
    pub(super) fn find<'d>(
        &self,
        decisions: impl Iterator<Item = (u32, TrackedDecision<'d>)>,
        probes: &mut Vec<Probe>,
    ) {
        probes.clear();
        probes.extend(decisions.map(|(policy, decision)| {
            let hash = self.hasher.hash_one((policy, decision.key));
            Probe { hash, bucket: self.keys.find_bucket_index(hash, |_| true) }
        }));
        let entries = probes.iter().filter_map(|probe| self.keys.get_bucket(probe.bucket?));
        let first = |entry: &Entry| entry.key.first().copied().unwrap_or_default();
        black_box(entries.clone().fold(0, |all, entry| all ^ first(entry)));
        black_box(entries.fold(0, |all, entry| all ^ entry.tally.touch()));
    }

    /// Adds a decision about a key, unless there is no space for it.
    pub(super) fn add(
        &mut self,
        probe: Probe,
        tracked: &Tracked,
        decision: &TrackedDecision<'_>,
    ) -> bool {
        if self.bytes > MAX_BYTES {
            return false;
        }
        let (hash, policy) = (probe.hash, tracked.id);
        let is_full = self.keys.len() >= MAX_KEYS;
        let is_of = |entry: &Entry| entry.policy == policy && *entry.key == *decision.key;
        let rehash = |entry: &Entry| self.hasher.hash_one((entry.policy, &*entry.key));
        let (entry, is_new) = match self.keys.entry(hash, is_of, rehash) {
            hash_table::Entry::Occupied(entry) => (entry.into_mut(), false),
            hash_table::Entry::Vacant(_) if is_full => return false,
            hash_table::Entry::Vacant(space) => {
                self.last_serial = self.last_serial.wrapping_add(1);
                let (key, tally) = (InlineKey::from_slice(decision.key), Tally::new(decision.time));
                let entry = Entry { policy, serial: self.last_serial, key, tally };
                self.bytes += entry.bytes();
                (space.insert(entry).into_mut(), true)
            }
        };
        let is_first_denial = !decision.answer.is_allowed() && !entry.is_denied();
        entry.tally.add(tracked, decision, &mut self.bytes);
        self.new_decisions += 1;
        let place = Place { hash, serial: entry.serial };
        if is_new {
            self.all.push(place, &self.keys);
        }
        if is_first_denial {
            self.denied.push(place, &self.keys);
        }
        true
    }

    /// How many keys the next write may have: a write of a key costs the server as much as six
    /// decisions, and all writes together must cost it little beside the decisions.
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
        let mut taken = Vec::new();
        for queue in [&mut self.denied, &mut self.all] {
            // Keys of a server that is unavailable must not take the budget of the others.
            let mut without_group = Vec::new();
            while taken.len() < budget {
                let Some(place) = queue.0.pop_front() else { break };
                let is_of = |entry: &Entry| place.is_of(entry);
                let Ok(entry) = self.keys.find_entry(place.hash, is_of) else { continue };
                let Some(group) = group(entry.get().policy, &entry.get().key) else {
                    without_group.push(place);
                    continue;
                };
                let (entry, _) = entry.remove();
                self.bytes -= entry.bytes();
                let record = PendingKey { tally: entry.tally, state: None };
                taken.push((group, entry.key.into_boxed_slice(), record));
            }
            for place in without_group.into_iter().rev() {
                queue.0.push_front(place);
            }
        }
        self.new_decisions = 0;
        taken
    }
}

impl PendingKey {
    /// What an observer has counted for a key.
    pub(crate) fn observed(tally: Tally, state: StateChange) -> Self {
        PendingKey { tally, state: Some(state) }
    }

    pub(super) fn has_state(&self) -> bool {
        self.state.is_some()
    }

    pub(super) fn decisions(&self) -> u64 {
        self.tally.decisions()
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

/// A byte of a note has, from its lowest bit: the size of the cost, the number of the answer, and whether
/// the note has a text.
const SIZE_BITS: u32 = 3;
const HAS_TEXT: u8 = 1 << 6;

/// Notes as bytes. Each has its size before it, in two bytes. Then follow its time in µs in seven bytes,
/// the byte with its answer, its cost without leading zeros, and its text; numbers are big-endian.
fn write_notes(notes: &[Note]) -> Vec<u8> {
    let mut list = Vec::new();
    for Note { time, cost, answer, text } in notes {
        let [_, time @ ..] = time.as_micros().to_be_bytes();
        let cost: Vec<u8> = cost.to_be_bytes().into_iter().skip_while(|byte| *byte == 0).collect();
        let (has_text, text) = text.as_deref().map_or((0, ""), |text| (HAS_TEXT, text));
        // A cost has at most seven bytes, and a text 256.
        let cost_size = u8::try_from(cost.len()).unwrap_or_default();
        let kind = has_text | answer.number() << SIZE_BITS | cost_size;
        let size = time.len() + 1 + cost.len() + text.len();
        list.extend(u16::try_from(size).unwrap_or_default().to_be_bytes());
        list.extend(time);
        list.push(kind);
        list.extend(cost);
        list.extend(text.as_bytes());
    }
    list
}

/// Parses what [`write_notes`] has written; absent if it is malformed. Leaves out notes with answers
/// that this version does not know.
pub(super) fn parse_notes(mut list: &[u8]) -> Option<Vec<Note>> {
    let mut notes = Vec::new();
    while let Some((size, rest)) = list.split_first_chunk() {
        let (note, rest) = rest.split_at_checked(u16::from_be_bytes(*size).into())?;
        notes.extend(parse_note(note)?);
        list = rest;
    }
    list.is_empty().then_some(notes)
}

/// Parses a note; absent if it is malformed. The inner value is absent if this version does not know its
/// answer.
fn parse_note(note: &[u8]) -> Option<Option<Note>> {
    let (time, rest) = note.split_at_checked(7)?;
    let (kind, rest) = rest.split_first()?;
    let size = usize::from(kind & !(u8::MAX << SIZE_BITS));
    let (cost, text) = rest.split_at_checked(size)?;
    let number = |bytes: &[u8]| bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte));
    let text = str::from_utf8(text).ok()?;
    let answer = NoteAnswer::from_number((kind & !HAS_TEXT) >> SIZE_BITS);
    Some(answer.map(|answer| Note {
        time: tollgate::Timestamp::from_micros(number(time)),
        cost: number(cost),
        answer,
        text: (kind & HAS_TEXT != 0).then(|| text.into()),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A policy that tracks its keys, and has this number.
    fn tracked(policy: u32) -> Tracked {
        let yaml = "policies: { api: { limits: [1/s], track: { usage: true } } }";
        let read = tollgate_config::Layers::new().named_yaml("tollgate.yaml", yaml).read();
        let track = read.unwrap().config.tracks.remove("api").unwrap();
        Tracked::new(policy, "api", &track)
    }

    fn add(pending: &mut Pending, tracked: &Tracked, key: &[u8], answer: NoteAnswer) {
        let decision = TrackedDecision { key, time: 1, cost: 1, granted: 0, answer, note: None };
        let mut probes = Vec::new();
        pending.find(std::iter::once((tracked.id, decision)), &mut probes);
        assert!(pending.add(probes[0], tracked, &decision));
    }

    /// The keys of a server that is unavailable wait longest.
    #[test]
    fn keys_without_a_group_leave_the_budget_to_the_others() {
        let mut pending = Pending::default();
        for policy in [0, 1] {
            for number in 0..10_u8 {
                add(&mut pending, &tracked(policy), &[number], NoteAnswer::Denied);
            }
        }
        let taken = pending.take(6, |policy, _| (policy == 1).then_some(policy));
        assert_eq!((taken.len(), pending.len()), (6, 14));
        assert!(taken.iter().all(|(policy, _, _)| *policy == 1));
        let rest = pending.take(6, |policy, _| Some(policy));
        let numbers: Vec<_> = rest.iter().map(|(policy, key, _)| (*policy, key[0])).collect();
        assert_eq!(numbers, [(0, 0), (0, 1), (0, 2), (0, 3), (0, 4), (0, 5)]);
    }

    #[test]
    fn denied_keys_are_taken_first_and_then_those_that_have_waited_longest() {
        let (mut pending, tracked) = (Pending::default(), tracked(0));
        let take = |pending: &mut Pending, budget| -> Vec<u8> {
            pending.take(budget, |_, _| Some(())).iter().map(|(_, key, _)| key[0]).collect()
        };
        for number in 0..6 {
            add(&mut pending, &tracked, &[number], NoteAnswer::Allowed);
        }
        for number in [4, 2, 4, 7] {
            add(&mut pending, &tracked, &[number], NoteAnswer::Denied);
        }
        assert_eq!(take(&mut pending, 4), [4, 2, 7, 0]);
        // It waits again, behind the others.
        add(&mut pending, &tracked, &[0], NoteAnswer::Allowed);
        assert_eq!(take(&mut pending, 9), [1, 3, 5, 0]);
        assert_eq!((pending.len(), pending.bytes), (0, 0));
    }

    /// Keys with denials are written before the others' turn comes, again and again.
    #[test]
    fn the_queues_stay_short_although_keys_are_taken_out_of_turn() {
        let (mut pending, tracked) = (Pending::default(), tracked(0));
        add(&mut pending, &tracked, b"waits", NoteAnswer::Allowed);
        for _ in 0..5 * MIN_CLEANED {
            add(&mut pending, &tracked, b"denied", NoteAnswer::Denied);
            assert_eq!(pending.take(1, |_, _| Some(())).len(), 1);
        }
        assert_eq!(pending.len(), 1);
        assert!(pending.all.0.len() <= MIN_CLEANED && pending.denied.0.len() <= MIN_CLEANED);
    }

    #[test]
    fn notes_are_parsed_as_they_were_written() {
        let mut notes = Vec::new();
        for text in [None, Some(""), Some(":"), Some("user:7 \n ü")] {
            for answer in NoteAnswer::ALL {
                let time = tollgate::Timestamp::from_micros(1_763_650_000_123_456);
                let text: Option<Box<str>> = text.map(Into::into);
                for cost in [0, 1, 255, 256, 9_007_199_254_740_991] {
                    notes.push(Note { time, cost, answer, text: text.clone() });
                }
            }
        }
        let mut list = write_notes(&notes);
        assert_eq!(parse_notes(&list), Some(notes.clone()));
        // A note of a later version, with an answer of its own.
        list.extend(b"\x00\x08\x00\x00\x00\x00\x00\x00\x01\x38");
        assert_eq!(parse_notes(&list), Some(notes));
        assert_eq!(parse_notes(b""), Some(Vec::new()));
        for end in 1..=9 {
            assert_eq!(parse_notes(&list[..list.len() - end]), None, "{end}");
        }
        assert_eq!(parse_notes(b"\x00\x08\x00\x00\x00\x00\x00\x00\x01\x01"), None, "no cost");
        assert_eq!(parse_notes(b"\x00\x09\x00\x00\x00\x00\x00\x00\x01\x40\xff"), None, "no text");
    }
}
