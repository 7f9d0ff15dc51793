//! A table of decisions that are added up, in memory that is allocated once.

use tollgate::Timestamp;

use super::TrackedDecision;
use crate::record::{Interval, Note, NoteAnswer, Usage, add};
use crate::tracked::Tracked;

/// The most keys in a table, and its slots, of which at most half are used.
const MAX_ENTRIES: usize = 4_096;
const SLOTS: usize = 2 * MAX_ENTRIES;
/// The size of keys and notes together, in bytes.
const MAX_BYTES: usize = 512 * 1024;
/// The most notes of all keys together.
const MAX_NOTES: usize = 16_384;

/// The table has no room.
#[derive(Clone, Copy, Debug)]
pub(super) struct Full;

/// A decision, the hash of its key and interval, and the start of the interval.
#[derive(Clone, Copy, Debug)]
pub(super) struct Observation<'o> {
    pub(super) tracked: &'o Tracked,
    pub(super) hash: u64,
    pub(super) start: u64,
    pub(super) decision: &'o TrackedDecision<'o>,
}

/// A part of the bytes.
#[derive(Clone, Copy, Debug, Default)]
struct Span {
    offset: usize,
    len: usize,
    capacity: usize,
}

/// The decisions about a key in one interval of its timeline.
#[derive(Debug)]
struct Entry {
    policy: u32,
    hash: u64,
    start: u64,
    key: Span,
    first: u64,
    last: u64,
    allowed: u64,
    denied: u64,
    cost: u64,
    /// Its last notes, as a list of slots: the oldest, the newest and their number.
    oldest: usize,
    newest: usize,
    notes: usize,
}

/// A note in a list.
#[derive(Clone, Copy, Debug)]
struct Slot {
    time: u64,
    cost: u64,
    answer: NoteAnswer,
    has_text: bool,
    text: Span,
    /// The slot of the next newer note of the same key.
    next: usize,
}

/// The decisions of one thread since the table was cleared.
#[derive(Debug)]
pub(super) struct Table {
    /// The entry of each slot, plus 1; 0 if it is free.
    slots: Box<[u16]>,
    entries: Vec<Entry>,
    notes: Vec<Slot>,
    bytes: Vec<u8>,
    is_filling: bool,
}

impl Table {
    pub(super) fn new() -> Self {
        Table {
            slots: vec![0; SLOTS].into(),
            entries: Vec::with_capacity(MAX_ENTRIES),
            notes: Vec::with_capacity(MAX_NOTES),
            bytes: Vec::with_capacity(MAX_BYTES),
            is_filling: false,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(super) fn clear(&mut self) {
        self.slots.fill(0);
        self.entries.clear();
        self.notes.clear();
        self.bytes.clear();
        self.is_filling = false;
    }

    /// Whether the table has become half full since the last call that returned true.
    #[inline]
    pub(super) fn starts_to_fill(&mut self) -> bool {
        if self.is_filling {
            return false;
        }
        self.is_filling = self.entries.len() > MAX_ENTRIES / 2
            || self.notes.len() > MAX_NOTES / 2
            || self.bytes.len() > MAX_BYTES / 2;
        self.is_filling
    }

    /// Adds a decision.
    #[inline]
    pub(super) fn add(&mut self, observation: &Observation<'_>) -> Result<(), Full> {
        let Observation { decision, .. } = *observation;
        let index = match self.find(observation) {
            Ok(index) => index,
            Err(slot) => self.insert(observation, slot)?,
        };
        self.add_note(index, observation)?;
        let entry = &mut self.entries[index];
        entry.first = entry.first.min(decision.time);
        entry.last = entry.last.max(decision.time);
        let is_allowed = decision.answer.is_allowed();
        entry.allowed += u64::from(is_allowed);
        entry.denied += u64::from(!is_allowed);
        add(&mut entry.cost, decision.granted);
        Ok(())
    }

    /// Adds a note, in place of the oldest one if the key has as many as the policy keeps.
    #[inline]
    fn add_note(&mut self, index: usize, observation: &Observation<'_>) -> Result<(), Full> {
        let Observation { tracked, decision, .. } = *observation;
        let entry = &mut self.entries[index];
        if tracked.track.recent == 0 {
            return Ok(());
        }
        let is_complete = entry.notes >= tracked.track.recent;
        let (slot, mut text) = match is_complete {
            true => (entry.oldest, self.notes[entry.oldest].text),
            false => (self.notes.len(), Span::default()),
        };
        if slot == MAX_NOTES {
            return Err(Full);
        }
        let has_text = decision.note.is_some();
        if let Some(note) = decision.note {
            text = put(&mut self.bytes, text, note.as_bytes())?;
        }
        let (time, cost, answer) = (decision.time, decision.cost, decision.answer);
        let note = Slot { time, cost, answer, has_text, text, next: slot };
        if is_complete {
            entry.oldest = self.notes[slot].next;
            self.notes[slot] = note;
            // A list of one note has no other oldest one.
            if entry.notes == 1 {
                entry.oldest = slot;
            }
        } else {
            self.notes.push(note);
            entry.notes += 1;
            if entry.notes == 1 {
                entry.oldest = slot;
            }
        }
        if entry.notes > 1 {
            self.notes[entry.newest].next = slot;
        }
        entry.newest = slot;
        Ok(())
    }

    /// The entry of a key, or the free slot for it.
    #[inline]
    fn find(&self, observation: &Observation<'_>) -> Result<usize, usize> {
        let Observation { tracked, hash, start, decision } = *observation;
        // The remainder is below the number of slots.
        let mut slot = usize::try_from(hash % (1 << 13)).unwrap_or_default();
        loop {
            let Some(index) = usize::from(self.slots[slot]).checked_sub(1) else {
                return Err(slot);
            };
            let entry = &self.entries[index];
            if entry.hash == hash
                && entry.policy == tracked.id
                && entry.start == start
                && self.text(entry.key) == decision.key
            {
                return Ok(index);
            }
            slot = (slot + 1) % SLOTS;
        }
    }

    fn insert(&mut self, observation: &Observation<'_>, slot: usize) -> Result<usize, Full> {
        let Observation { tracked, hash, start, decision } = *observation;
        let index = self.entries.len();
        if index == MAX_ENTRIES {
            return Err(Full);
        }
        let key = put(&mut self.bytes, Span::default(), decision.key)?;
        let number = u16::try_from(index + 1).map_err(|_| Full)?;
        let (first, last) = (decision.time, decision.time);
        let (allowed, denied, cost) = (0, 0, 0);
        let (oldest, newest, notes) = (0, 0, 0);
        let policy = tracked.id;
        self.entries.push(Entry {
            policy,
            hash,
            start,
            key,
            first,
            last,
            allowed,
            denied,
            cost,
            oldest,
            newest,
            notes,
        });
        self.slots[slot] = number;
        Ok(index)
    }

    fn text(&self, span: Span) -> &[u8] {
        &self.bytes[span.offset..span.offset + span.len]
    }

    /// What the table has.
    pub(super) fn deltas(&self) -> impl Iterator<Item = Delta<'_>> {
        self.entries.iter().map(|entry| Delta { table: self, entry })
    }
}

/// Writes bytes into a span if they fit, and otherwise at the end.
#[inline]
fn put(bytes: &mut Vec<u8>, span: Span, text: &[u8]) -> Result<Span, Full> {
    let len = text.len();
    if len <= span.capacity {
        bytes[span.offset..span.offset + len].copy_from_slice(text);
        return Ok(Span { len, ..span });
    }
    if bytes.len() + len > MAX_BYTES {
        return Err(Full);
    }
    let offset = bytes.len();
    bytes.extend_from_slice(text);
    Ok(Span { offset, len, capacity: len })
}

/// The decisions about a key in one interval, on their way to the storage.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Delta<'t> {
    table: &'t Table,
    entry: &'t Entry,
}

impl<'t> Delta<'t> {
    pub(crate) fn policy(&self) -> u32 {
        self.entry.policy
    }

    pub(crate) fn key(&self) -> &'t [u8] {
        self.table.text(self.entry.key)
    }

    pub(crate) fn usage(&self) -> Usage {
        let Entry { first, last, allowed, denied, cost, .. } = *self.entry;
        let (first_seen, last_seen) = (Timestamp::from_micros(first), Timestamp::from_micros(last));
        Usage { first_seen, last_seen, allowed, denied, cost }
    }

    pub(crate) fn interval(&self) -> Interval {
        let Entry { start, allowed, denied, cost, .. } = *self.entry;
        Interval { start: Timestamp::from_micros(start), allowed, denied, cost }
    }

    /// Its last notes, the oldest first.
    pub(crate) fn notes(&self) -> impl Iterator<Item = Note> + use<'t> {
        let Delta { table, entry } = *self;
        let mut slot = entry.oldest;
        (0..entry.notes).map(move |_| {
            let note = table.notes[slot];
            slot = note.next;
            let text = note.has_text.then(|| String::from_utf8_lossy(table.text(note.text)).into());
            let (time, cost, answer) = (Timestamp::from_micros(note.time), note.cost, note.answer);
            Note { time, cost, answer, text }
        })
    }
}
