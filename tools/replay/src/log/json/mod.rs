//! One JSON object per line.

mod tree;
mod visit;

use std::ops::Range;

use serde::de::DeserializeSeed;

use super::error::LineError;
use super::fields::{Fields, TimeUnit};
use super::line::Line;
use super::named::Slots;
use tree::Tree;
use visit::Object;

/// Parses the lines of one log.
#[derive(Clone, Debug)]
pub(super) struct Json {
    names: Vec<String>,
    slots: Slots,
    unit: TimeUnit,
    tree: Tree,
    values: Values,
}

/// The values of a line by slot.
#[derive(Clone, Debug)]
struct Values {
    values: Vec<Option<Range<usize>>>,
    /// The rank of the name of each value; the lowest rank wins.
    ranks: Vec<usize>,
    text: Vec<u8>,
}

impl Json {
    pub(super) fn new(fields: &Fields) -> Self {
        let names = fields.names();
        let slots = Slots::new(&names, Some(names.len() - 1));
        let tree = Tree::new(&fields.places());
        let values = Values {
            values: vec![None; names.len()],
            ranks: vec![usize::MAX; names.len()],
            text: Vec::new(),
        };
        Json { names, slots, unit: fields.time_unit(), tree, values }
    }

    pub(super) fn parse<'a>(&'a mut self, line: &'a [u8]) -> Result<Line<'a>, LineError> {
        self.values.clear();
        // Validating the whole line as UTF-8 is faster than validating each string.
        let text = std::str::from_utf8(line)
            .map_err(|error| LineError::NotJson { column: error.valid_up_to() + 1 })?;
        let mut json = serde_json::Deserializer::from_str(text);
        let object = Object { tree: &self.tree, node: Tree::ROOT, found: &mut self.values };
        object
            .deserialize(&mut json)
            .and_then(|()| json.end())
            .map_err(|error| LineError::NotJson { column: error.column().max(1) })?;
        self.slots.line(&self.names, &self.values.values, &self.values.text, self.unit)
    }
}

impl Values {
    fn clear(&mut self) {
        self.text.clear();
        self.values.fill(None);
        self.ranks.fill(usize::MAX);
    }

    /// Stores a value, unless there is one with a better rank.
    fn keep(&mut self, slot: usize, rank: usize, range: &Range<usize>) {
        if rank < self.ranks[slot] {
            self.values[slot] = Some(range.clone());
            self.ranks[slot] = rank;
        }
    }
}
