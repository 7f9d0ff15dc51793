//! The last notes of a key.

use std::collections::VecDeque;

use tollgate::Timestamp;

use super::Rest;
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
pub(super) struct Texts {
    texts: VecDeque<Box<str>>,
    bytes: usize,
}

/// The last notes by ascending time.
#[derive(Clone, Debug, Default)]
pub(super) struct Notes(VecDeque<PackedNote>);

impl PackedNote {
    #[inline]
    fn new(decision: &TrackedDecision<'_>) -> Self {
        let answer = u64::from(decision.answer.number()) << COST_BITS;
        let text = if decision.note.is_some() { HAS_TEXT } else { 0 };
        PackedNote { time: decision.time, word: decision.cost.min(MAX_TOTAL) | answer | text }
    }

    #[inline]
    fn has_text(self) -> bool {
        self.word & HAS_TEXT != 0
    }

    fn answer(self) -> NoteAnswer {
        let number = (self.word & !HAS_TEXT) >> COST_BITS;
        let answer =
            NoteAnswer::ALL.into_iter().find(|answer| u64::from(answer.number()) == number);
        answer.unwrap_or(NoteAnswer::Denied)
    }
}

impl Texts {
    pub(super) fn bytes(&self) -> usize {
        self.texts.capacity() * TEXT_BYTES + self.bytes
    }

    fn insert(&mut self, at: usize, text: &str) {
        self.bytes += text.len();
        self.texts.insert(at, text.into());
    }

    fn remove_oldest(&mut self) {
        self.bytes -= self.texts.pop_front().map_or(0, |text| text.len());
        if self.texts.is_empty() {
            *self = Texts::default();
        }
    }
}

impl Notes {
    #[inline]
    pub(super) fn touch(&self) -> u64 {
        self.0.back().map_or(0, |note| note.time)
    }

    #[inline]
    pub(super) fn bytes(&self) -> usize {
        self.0.capacity() * size_of::<PackedNote>()
    }

    /// Whether [`Notes::push`] can add the note of a decision, if the policy keeps `max`: it is the newest,
    /// and neither it nor the one that it replaces has a text.
    #[inline]
    pub(super) fn accepts(&self, decision: &TrackedDecision<'_>, max: usize) -> bool {
        let Notes(notes) = self;
        let is_newest = notes.back().is_none_or(|last| last.time <= decision.time);
        let has_room = notes.len() < max
            || notes.len() == max && notes.front().is_none_or(|oldest| !oldest.has_text());
        is_newest && has_room && decision.note.is_none()
    }

    /// Adds a note, in place of the oldest one if there are as many as the policy keeps.
    #[inline]
    pub(super) fn push(&mut self, decision: &TrackedDecision<'_>, max: usize) {
        if max == 0 {
            return;
        }
        if self.0.len() == max {
            self.0.pop_front();
        }
        self.reserve(max);
        self.0.push_back(PackedNote::new(decision));
    }

    /// Adds a note with its text where its time belongs: decisions of several threads arrive out of
    /// order.
    pub(super) fn insert(
        &mut self,
        decision: &TrackedDecision<'_>,
        max: usize,
        rest: &mut Option<Box<Rest>>,
    ) {
        let note = PackedNote::new(decision);
        // A reload may have lowered the number.
        while self.0.len() > max {
            self.remove_oldest(rest);
        }
        let mut at = self.0.partition_point(|other| other.time <= note.time);
        if self.0.len() == max {
            if at == 0 {
                return;
            }
            self.remove_oldest(rest);
            at -= 1;
        }
        if let Some(text) = decision.note {
            let rank = self.0.range(..at).filter(|other| other.has_text()).count();
            rest.get_or_insert_default().texts.insert(rank, text);
        }
        self.reserve(max);
        self.0.insert(at, note);
    }

    fn remove_oldest(&mut self, rest: &mut Option<Box<Rest>>) {
        let has_text = self.0.pop_front().is_some_and(PackedNote::has_text);
        if let Some(rest) = rest.as_mut().filter(|_| has_text) {
            rest.texts.remove_oldest();
        }
    }

    /// Makes room for another note: twice as much as before, but not for more than the policy keeps.
    #[inline]
    fn reserve(&mut self, max: usize) {
        let len = self.0.len();
        if len == self.0.capacity() {
            self.0.reserve_exact(len.max(2).min(max - len));
        }
    }

    /// The notes, the oldest first.
    pub(super) fn list(&self, texts: Option<&Texts>) -> Vec<Note> {
        let mut texts = texts.into_iter().flat_map(|texts| &texts.texts).cloned();
        let note = |note: &PackedNote| Note {
            time: Timestamp::from_micros(note.time),
            cost: note.word & MAX_TOTAL,
            answer: note.answer(),
            text: if note.has_text() { texts.next() } else { None },
        };
        self.0.iter().map(note).collect()
    }
}
