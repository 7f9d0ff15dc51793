//! Whole keys, or beginnings, by their bytes.

use std::hash::BuildHasher;

use foldhash::fast::RandomState;
use hashbrown::HashTable;

use super::place;
use super::texts::{Full, Texts};

/// Texts, each with what it gives. A text takes its bytes, 8 for where they are and what it gives,
/// and 5 for each of one to two places of the table.
#[derive(Debug, Default)]
pub(super) struct TextMap {
    texts: Texts,
    allowances: Vec<u32>,
    /// The texts' numbers.
    table: HashTable<u32>,
    hasher: RandomState,
}

/// Why a text was not added.
#[derive(Debug)]
pub(super) enum NotAdded {
    /// It is there, under this number.
    Known(u32),
    Full,
}

impl TextMap {
    pub(super) fn add(&mut self, text: &[u8], allowance: u32) -> Result<(), NotAdded> {
        if let Some(known) = self.number(text) {
            return Err(NotAdded::Known(known));
        }
        let number = self.texts.push(text).map_err(|Full| NotAdded::Full)?;
        self.allowances.push(allowance);
        let TextMap { texts, table, hasher, .. } = self;
        let hash = |number: &u32| hasher.hash_one(texts.get(*number));
        table.insert_unique(hasher.hash_one(text), number, hash);
        Ok(())
    }

    /// Without the memory that more texts would have taken.
    pub(super) fn shrunk(mut self) -> Self {
        let TextMap { texts, allowances, table, hasher } = &mut self;
        texts.shrink();
        allowances.shrink_to_fit();
        table.shrink_to_fit(|number| hasher.hash_one(texts.get(*number)));
        self
    }

    pub(super) fn find(&self, text: &[u8]) -> Option<u32> {
        if self.table.is_empty() {
            return None;
        }
        self.number(text).and_then(|number| self.allowances.get(place(number)).copied())
    }

    /// The texts by number, and what each gives.
    pub(super) fn into_parts(self) -> (Texts, Box<[u32]>) {
        (self.texts, self.allowances.into_boxed_slice())
    }

    fn number(&self, text: &[u8]) -> Option<u32> {
        let found =
            self.table.find(self.hasher.hash_one(text), |table| self.texts.get(*table) == text);
        found.copied()
    }

    pub(super) fn len(&self) -> usize {
        self.texts.len()
    }
}
