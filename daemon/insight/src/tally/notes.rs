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
#[derive(Clone, Copy, Debug, Default)]
struct PackedNote {
    time: u64,
    word: u64,
}

/// The texts of the notes that have one, the oldest first.
#[derive(Clone, Debug, Default)]
pub(super) struct Texts {
    texts: VecDeque<Box<str>>,
    bytes: usize,
}

impl Texts {
    pub(super) fn bytes(&self) -> usize {
        self.texts.capacity() * TEXT_BYTES + self.bytes
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Box<str>> {
        self.texts.iter()
    }
}

/// The last notes by ascending time: a ring, smaller than `VecDeque`. Their texts are elsewhere, because
/// most keys have none.
#[derive(Clone, Debug, Default)]
pub(super) struct Notes {
    ring: Box<[PackedNote]>,
    /// The position of the oldest note.
    first: u8,
    len: u8,
    has_texts: bool,
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
    /// The position of the note with this index from the oldest on.
    #[inline]
    fn position(&self, index: usize) -> usize {
        let position = usize::from(self.first) + index;
        if position < self.ring.len() { position } else { position - self.ring.len() }
    }

    #[inline]
    fn len(&self) -> usize {
        usize::from(self.len)
    }

    #[inline]
    fn newest(&self) -> Option<PackedNote> {
        let index = self.len().checked_sub(1)?;
        self.ring.get(self.position(index)).copied()
    }

    #[inline]
    pub(super) fn touch(&self) -> u64 {
        self.newest().map_or(0, |note| note.time)
    }

    #[inline]
    pub(super) fn bytes(&self) -> usize {
        size_of_val(&*self.ring)
    }

    /// Adds a note, in place of the oldest one if there are as many as the policy keeps. Otherwise
    /// [`Notes::insert`] must add it: if it is older than others, or if there are texts.
    #[inline]
    #[must_use]
    pub(super) fn push(&mut self, decision: &TrackedDecision<'_>, max: usize) -> bool {
        let note = PackedNote::new(decision);
        let is_newest = self.newest().is_none_or(|last| last.time <= note.time);
        let has_texts = self.has_texts || note.has_text();
        if !is_newest || has_texts || self.len() > max || max == 0 {
            return max == 0 && self.len == 0;
        }
        if self.len() == max {
            self.remove_first();
        }
        self.append(note, max);
        true
    }

    #[inline]
    fn remove_first(&mut self) {
        // The ring has at most 100 notes.
        self.first = u8::try_from(self.position(1)).unwrap_or_default();
        self.len -= 1;
    }

    /// Adds a note behind all others, of which there are less than `max`.
    #[inline]
    fn append(&mut self, note: PackedNote, max: usize) {
        if self.len() == self.ring.len() {
            self.grow(max);
        }
        let position = self.position(self.len());
        self.ring[position] = note;
        self.len += 1;
    }

    /// Makes room for twice as many notes, but not for more than the policy keeps.
    #[cold]
    fn grow(&mut self, max: usize) {
        let mut ring = Vec::with_capacity((2 * self.len()).max(2).min(max));
        ring.extend(self.iter());
        ring.resize(ring.capacity(), PackedNote::default());
        (self.ring, self.first) = (ring.into_boxed_slice(), 0);
    }

    /// The notes, the oldest first.
    fn iter(&self) -> impl Iterator<Item = PackedNote> {
        (0..self.len()).map(|index| self.ring[self.position(index)])
    }

    /// Adds a note with its text where its time belongs: decisions of several threads arrive out of
    /// order.
    pub(super) fn insert(&mut self, decision: &TrackedDecision<'_>, max: usize, texts: &mut Texts) {
        let note = PackedNote::new(decision);
        // A reload may have lowered the number.
        while self.len() > max {
            self.remove_oldest(texts);
        }
        let mut at = self.iter().filter(|other| other.time <= note.time).count();
        if self.len() == max {
            if at == 0 {
                return;
            }
            self.remove_oldest(texts);
            at -= 1;
        }
        if let Some(text) = decision.note {
            let rank = self.iter().take(at).filter(|other| other.has_text()).count();
            texts.bytes += text.len();
            texts.texts.insert(rank, text.into());
            self.has_texts = true;
        }
        self.append(note, max);
        for index in (at + 1..self.len()).rev() {
            let [later, earlier] = [index, index - 1].map(|index| self.position(index));
            self.ring.swap(later, earlier);
        }
    }

    fn remove_oldest(&mut self, texts: &mut Texts) {
        let has_text = self.iter().next().is_some_and(PackedNote::has_text);
        self.remove_first();
        if !has_text {
            return;
        }
        texts.bytes -= texts.texts.pop_front().map_or(0, |text| text.len());
        if texts.texts.is_empty() {
            (texts.texts, self.has_texts) = (VecDeque::new(), false);
        }
    }

    /// The notes with their texts, the oldest first.
    pub(super) fn list<'t>(&self, mut texts: impl Iterator<Item = &'t Box<str>>) -> Vec<Note> {
        let note = |note: PackedNote| Note {
            time: Timestamp::from_micros(note.time),
            cost: note.word & MAX_TOTAL,
            answer: note.answer(),
            text: if note.has_text() { texts.next().cloned() } else { None },
        };
        self.iter().map(note).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Notes arrive in any order, with and without texts, and the number that is kept changes.
    #[test]
    fn the_newest_notes_are_kept() {
        let (mut notes, mut texts) = (Notes::default(), Texts::default());
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
            let decision = TrackedDecision { key: b"", time, cost, granted: 0, answer, note };
            if !notes.push(&decision, max) {
                notes.insert(&decision, max, &mut texts);
            }

            let at = model.partition_point(|other| other.time.as_micros() <= time);
            let (time, text) = (Timestamp::from_micros(time), note.map(Into::into));
            model.insert(at, Note { time, cost, answer, text });
            model.drain(..model.len().saturating_sub(max));
            assert_eq!(notes.list(texts.iter()), model, "{number}");
            let of_model: Vec<_> = model.iter().filter_map(|note| note.text.as_ref()).collect();
            assert_eq!(texts.bytes, of_model.iter().map(|text| text.len()).sum::<usize>());
            assert_eq!(notes.has_texts, !of_model.is_empty());
            assert!(notes.ring.len() <= 20, "{}", notes.ring.len());
        }
    }

    #[test]
    fn no_notes_are_kept_if_the_policy_keeps_none() {
        let mut notes = Notes::default();
        let (key, answer, note) = (&b""[..], NoteAnswer::Denied, Some("note"));
        let decision = TrackedDecision { key, time: 1, cost: 1, granted: 0, answer, note };
        assert!(notes.push(&decision, 0));
        assert_eq!((notes.len(), notes.bytes()), (0, 0));
    }
}
