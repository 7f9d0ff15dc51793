//! An object of JSON in each line.

mod tree;
mod visit;

use std::ops::Range;

use serde::de::DeserializeSeed;

use super::broken::BrokenLine;
use super::fields::{Fields, TimeUnit};
use super::line::Line;
use super::named::Slots;
use tree::Tree;
use visit::Object;

/// Reads lines of one log.
#[derive(Clone, Debug)]
pub(super) struct Json {
    names: Vec<String>,
    slots: Slots,
    unit: TimeUnit,
    tree: Tree,
    found: Found,
}

/// What was found in a line, by slot.
#[derive(Clone, Debug)]
struct Found {
    values: Vec<Option<Range<usize>>>,
    /// Which of the places of a field its value is from; the lowest is taken.
    ranks: Vec<usize>,
    text: Vec<u8>,
}

impl Json {
    pub(super) fn new(fields: &Fields) -> Self {
        let names = fields.names();
        let slots = Slots::new(&names, names.len().checked_sub(1));
        let tree = Tree::new(&fields.places());
        let found = Found {
            values: vec![None; names.len()],
            ranks: vec![usize::MAX; names.len()],
            text: Vec::new(),
        };
        Json { names, slots, unit: fields.time_unit(), tree, found }
    }

    pub(super) fn read<'a>(&'a mut self, line: &'a [u8]) -> Result<Line<'a>, BrokenLine> {
        self.found.clear();
        // To look once whether it is text is less work than to do so for each of its strings.
        let text = std::str::from_utf8(line)
            .map_err(|error| BrokenLine::NotJson { column: error.valid_up_to() + 1 })?;
        let mut json = serde_json::Deserializer::from_str(text);
        let object = Object { tree: &self.tree, node: Tree::ROOT, found: &mut self.found };
        object
            .deserialize(&mut json)
            .and_then(|()| json.end())
            .map_err(|error| BrokenLine::NotJson { column: error.column().max(1) })?;
        self.slots.line(&self.names, &self.found.values, &self.found.text, self.unit)
    }
}

impl Found {
    fn clear(&mut self) {
        self.text.clear();
        self.values.fill(None);
        self.ranks.fill(usize::MAX);
    }

    /// Keeps a value for a slot, unless there is one from a better place.
    fn keep(&mut self, slot: usize, rank: usize, range: &Range<usize>) {
        if let (Some(value), Some(best)) = (self.values.get_mut(slot), self.ranks.get_mut(slot))
            && rank < *best
        {
            (*value, *best) = (Some(range.clone()), rank);
        }
    }
}
