//! Beginnings of keys.

use std::num::NonZeroU32;

use super::place;
use super::text_map::TextMap;
use super::texts::Texts;

/// Beginnings of keys in order, each with the longest other that it begins with.
///
/// All beginnings of a key that are here are in one line of ancestors: that of the last one that
/// does not stand after the key. So a lookup halves the list until it has that, and then climbs.
#[derive(Debug, Default)]
pub(super) struct Prefixes {
    texts: Texts,
    /// What each text gives.
    allowances: Box<[u32]>,
    /// In the order of their texts.
    rows: Box<[Row]>,
}

#[derive(Clone, Copy, Debug)]
struct Row {
    text: u32,
    /// The place of the parent, plus 1: so no parent takes no room.
    parent: Option<NonZeroU32>,
}

impl Prefixes {
    pub(super) fn new(given: TextMap) -> Self {
        let (texts, allowances) = given.into_parts();
        let mut sorted: Vec<u32> = (0..).take(allowances.len()).collect();
        sorted.sort_unstable_by_key(|x| texts.get(*x));
        // The beginnings that the one at hand may lie in, the longest last: text, and place plus 1.
        let mut around: Vec<(u32, Option<NonZeroU32>)> = Vec::new();
        let row = |(text, after): (u32, u32)| {
            let bytes = texts.get(text);
            while around.pop_if(|(x, _)| !bytes.starts_with(texts.get(*x))).is_some() {}
            let parent = around.last().and_then(|(_, place)| *place);
            around.push((text, NonZeroU32::new(after)));
            Row { text, parent }
        };
        let rows = sorted.into_iter().zip(1..).map(row).collect();
        Prefixes { texts, allowances, rows }
    }

    /// The longest that a key begins with: its length, and what it gives.
    pub(super) fn find(&self, key: &[u8]) -> Option<(usize, u32)> {
        let after = self.rows.partition_point(|row| self.texts.get(row.text) <= key);
        let mut row = self.rows.get(after.checked_sub(1)?)?;
        let nearest = self.texts.get(row.text);
        let common = nearest.iter().zip(key).take_while(|(a, b)| a == b).count();
        loop {
            let length = self.texts.get(row.text).len();
            if length <= common {
                return Some((length, *self.allowances.get(place(row.text))?));
            }
            row = self.rows.get(place(row.parent?.get() - 1))?;
        }
    }

    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }
}
