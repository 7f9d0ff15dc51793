//! The last notes of a key.

use std::collections::VecDeque;

use tollgate::Timestamp;

use crate::record::{MAX_TOTAL, Note, NoteAnswer};
use crate::recorder::TrackedDecision;

const COST_BITS: u32 = MAX_TOTAL.count_ones();
const HAS_TEXT: u64 = 1 << (COST_BITS + 3);
/// The size of a text without its bytes.
const TEXT_BYTES: usize = size_of::<Box<str>>();

/// A note without its text: its time, and in one word its cost, its answer and whether it has a text.
#[derive(Clone, Copy, Debug)]
struct PackedNote {
    time: u64,
    word: u64,
}

/// The texts of the notes that have one.
#[derive(Clone, Debug, Default)]
struct Texts {
    texts: VecDeque<Box<str>>,
    bytes: usize,
}

/// The last notes by ascending time.
#[derive(Clone, Debug, Default)]
pub(super) struct Notes {
    notes: VecDeque<PackedNote>,
    /// Most keys have none.
    texts: Option<Box<Texts>>,
}

impl PackedNote {
    #[inline]
    fn new(decision: &TrackedDecision<'_>) -> Self {
        let answer = decision.answer.number() << COST_BITS;
        let text = if decision.note.is_some() { HAS_TEXT } else { 0 };
        PackedNote { time: decision.time, word: decision.cost.min(MAX_TOTAL) | answer | text }
    }

    #[inline]
    fn has_text(self) -> bool {
        self.word & HAS_TEXT != 0
    }

    fn answer(self) -> NoteAnswer {
        let number = (self.word & !HAS_TEXT) >> COST_BITS;
        let answer = NoteAnswer::ALL.into_iter().find(|answer| answer.number() == number);
        answer.unwrap_or(NoteAnswer::Denied)
    }
}

impl Notes {
    #[inline]
    pub(super) fn touch(&self) -> u64 {
        self.notes.back().map_or(0, |note| note.time)
    }

    #[inline]
    pub(super) fn bytes(&self) -> usize {
        let texts = self.texts.as_ref().map_or(0, |texts| {
            size_of::<Texts>() + texts.texts.capacity() * TEXT_BYTES + texts.bytes
        });
        self.notes.capacity() * size_of::<PackedNote>() + texts
    }

    /// Adds a note, in place of the oldest one if there are as many as the policy keeps.
    #[inline]
    pub(super) fn push(&mut self, decision: &TrackedDecision<'_>, max: usize) {
        let note = PackedNote::new(decision);
        let is_newest = self.notes.back().is_none_or(|last| last.time <= note.time);
        let has_texts = self.texts.is_some() || decision.note.is_some();
        if !is_newest || has_texts || self.notes.len() > max || max == 0 {
            self.insert(note, decision.note, max);
            return;
        }
        if self.notes.len() == max {
            self.notes.pop_front();
        }
        self.reserve(max);
        self.notes.push_back(note);
    }

    /// Adds a note with its text where its time belongs: decisions of several threads arrive out of
    /// order.
    fn insert(&mut self, note: PackedNote, text: Option<&str>, max: usize) {
        // A reload may have lowered the number.
        while self.notes.len() > max {
            self.remove_oldest();
        }
        let mut at = self.notes.partition_point(|other| other.time <= note.time);
        if self.notes.len() == max {
            if at == 0 {
                return;
            }
            self.remove_oldest();
            at -= 1;
        }
        if let Some(text) = text {
            let rank = self.notes.range(..at).filter(|other| other.has_text()).count();
            let texts = self.texts.get_or_insert_default();
            texts.bytes += text.len();
            texts.texts.insert(rank, text.into());
        }
        self.reserve(max);
        self.notes.insert(at, note);
    }

    fn remove_oldest(&mut self) {
        let has_text = self.notes.pop_front().is_some_and(PackedNote::has_text);
        let Some(texts) = self.texts.as_mut().filter(|_| has_text) else { return };
        texts.bytes -= texts.texts.pop_front().map_or(0, |text| text.len());
        if texts.texts.is_empty() {
            self.texts = None;
        }
    }

    /// Makes room for another note: twice as much as before, but not for more than the policy keeps.
    #[inline]
    fn reserve(&mut self, max: usize) {
        let len = self.notes.len();
        if len == self.notes.capacity() {
            self.notes.reserve_exact(len.max(2).min(max - len));
        }
    }

    /// The notes, the oldest first.
    pub(super) fn list(&self) -> Vec<Note> {
        let mut texts = self.texts.iter().flat_map(|texts| &texts.texts).cloned();
        let note = |note: &PackedNote| Note {
            time: Timestamp::from_micros(note.time),
            cost: note.word & MAX_TOTAL,
            answer: note.answer(),
            text: if note.has_text() { texts.next() } else { None },
        };
        self.notes.iter().map(note).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Notes arrive in any order, with and without texts, and the number that is kept changes.
    #[test]
    fn the_newest_notes_are_kept() {
        let mut notes = Notes::default();
        let mut model: Vec<Note> = Vec::new();
        for number in 0..20_000_u64 {
            let random = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 33;
            let max = usize::from(number % 4_000 > 2_000) * 12 + 8;
            let time = number / 2 + if random.is_multiple_of(5) { 0 } else { random % 4 };
            let text = format!("note {number}");
            let has_text = number % 3_000 > 1_500 && random.is_multiple_of(3);
            let answer = NoteAnswer::ALL[usize::try_from(random / 7 % 5).unwrap()];
            let cost = if random.is_multiple_of(2) { MAX_TOTAL } else { random };
            let note = has_text.then_some(&*text);
            notes.push(&TrackedDecision { key: b"", time, cost, granted: 0, answer, note }, max);

            let at = model.partition_point(|other| other.time.as_micros() <= time);
            let (time, text) = (Timestamp::from_micros(time), note.map(Into::into));
            model.insert(at, Note { time, cost, answer, text });
            model.drain(..model.len().saturating_sub(max));
            assert_eq!(notes.list(), model, "{number}");
            let texts = model.iter().filter_map(|note| note.text.as_ref());
            let bytes = notes.texts.as_ref().map_or(0, |texts| texts.bytes);
            assert_eq!(bytes, texts.map(|text| text.len()).sum::<usize>());
            assert!(notes.notes.capacity() <= 20, "{}", notes.notes.capacity());
        }
    }

    #[test]
    fn no_notes_are_kept_if_the_policy_keeps_none() {
        let mut notes = Notes::default();
        let (key, answer, note) = (&b""[..], NoteAnswer::Denied, Some("note"));
        notes.push(&TrackedDecision { key, time: 1, cost: 1, granted: 0, answer, note }, 0);
        assert_eq!((notes.list(), notes.bytes()), (Vec::new(), 0));
    }
}
