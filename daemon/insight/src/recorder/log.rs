//! Decisions in the order in which they were made, in memory that is allocated once.

use super::TrackedDecision;
use crate::record::{MAX_KEY_BYTES, MAX_NOTE_BYTES, NoteAnswer};

/// The most decisions of a log.
pub(crate) const MAX_DECISIONS: usize = 512;
/// The size of keys and notes together, in bytes. An empty log has room for any decision.
const MAX_BYTES: usize = 32 * 1024;
const _: () = assert!(MAX_KEY_BYTES + MAX_NOTE_BYTES <= MAX_BYTES);

/// How many decisions are added to records together. A decision waits for memory several times, and
/// the others of its batch use that time.
pub(crate) const BATCH: usize = 32;

/// The log has no room.
#[derive(Clone, Copy, Debug)]
pub(super) struct Full;

/// A decision. Its key is among the bytes of the log, followed by its note.
#[derive(Clone, Copy, Debug)]
struct Entry {
    time: u64,
    cost: u64,
    granted: u64,
    policy: u32,
    /// Where the key begins, where the note begins, and where it ends.
    key: u16,
    note: u16,
    end: u16,
    answer: NoteAnswer,
    has_note: bool,
}

/// The decisions of one thread.
#[derive(Debug)]
pub(crate) struct Log {
    entries: Vec<Entry>,
    bytes: Vec<u8>,
}

impl Log {
    pub(super) fn new() -> Self {
        Log { entries: Vec::with_capacity(MAX_DECISIONS), bytes: Vec::with_capacity(MAX_BYTES) }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(super) fn clear(&mut self) {
        self.entries.clear();
        self.bytes.clear();
    }

    /// Adds a decision.
    #[inline]
    pub(super) fn add(&mut self, policy: u32, decision: &TrackedDecision<'_>) -> Result<(), Full> {
        let TrackedDecision { key, time, cost, granted, answer, note } = *decision;
        let text = note.unwrap_or_default().as_bytes();
        let start = self.bytes.len();
        let note_start = start + key.len();
        let end = note_start + text.len();
        if self.entries.len() == MAX_DECISIONS || end > MAX_BYTES {
            return Err(Full);
        }
        let offset = |at: usize| u16::try_from(at).map_err(|_| Full);
        let (start, note_start, end) = (offset(start)?, offset(note_start)?, offset(end)?);
        self.bytes.extend_from_slice(key);
        self.bytes.extend_from_slice(text);
        self.entries.push(Entry {
            time,
            cost,
            granted,
            policy,
            key: start,
            note: note_start,
            end,
            answer,
            has_note: note.is_some(),
        });
        Ok(())
    }

    /// The decisions in batches, each with the number of its policy.
    pub(crate) fn batches(
        &self,
    ) -> impl Iterator<Item = impl Iterator<Item = (u32, TrackedDecision<'_>)> + Clone> {
        self.entries.chunks(BATCH).map(|batch| batch.iter().map(|entry| self.decision(entry)))
    }

    #[inline]
    fn decision(&self, entry: &Entry) -> (u32, TrackedDecision<'_>) {
        let Entry { time, cost, granted, policy, answer, .. } = *entry;
        let [start, note_start, end] = [entry.key, entry.note, entry.end].map(usize::from);
        let key = &self.bytes[start..note_start];
        let text = || str::from_utf8(&self.bytes[note_start..end]).ok();
        let note = entry.has_note.then(text).flatten();
        (policy, TrackedDecision { key, time, cost, granted, answer, note })
    }
}
