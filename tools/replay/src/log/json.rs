//! One JSON object per line.

use std::cmp::Ordering;
use std::fmt;
use std::ops::Range;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::error::LineError;
use super::fields::{Fields, TimeUnit, fold};
use super::line::{Line, Slots};

/// A rank below that of every name.
const WORST_RANK: usize = 1_000;

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
    ranges: Vec<Option<Range<usize>>>,
    /// The rank of the name of each value; the lowest rank wins.
    ranks: Vec<usize>,
    text: Vec<u8>,
}

impl Json {
    pub(super) fn new(fields: &Fields) -> Self {
        let names = fields.names();
        let slots = Slots::new(&names, Some(names.len() - 1));
        let tree = Tree::new(&fields.places());
        let (ranges, ranks) = (vec![None; names.len()], vec![usize::MAX; names.len()]);
        let values = Values { ranges, ranks, text: Vec::new() };
        Json { names, slots, unit: fields.unit, tree, values }
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
        self.slots.line(&self.names, &self.values.ranges, &self.values.text, self.unit)
    }
}

impl Values {
    fn clear(&mut self) {
        self.text.clear();
        self.ranges.fill(None);
        self.ranks.fill(usize::MAX);
    }

    /// Stores a value, unless there is one with a better rank.
    fn keep(&mut self, slot: usize, rank: usize, range: &Range<usize>) {
        if rank < self.ranks[slot] {
            self.ranges[slot] = Some(range.clone());
            self.ranks[slot] = rank;
        }
    }
}

/// The names to look up. Node 0 is the object of a line.
#[derive(Clone, Debug)]
struct Tree {
    nodes: Vec<Node>,
}

#[derive(Clone, Debug, Default)]
struct Node {
    /// Children by folded name, ordered by length and then by letters, so that a search mostly
    /// compares lengths.
    children: Vec<(Vec<u8>, usize)>,
    /// The slots that a value here belongs to, and the rank of this name for each.
    slots: Vec<(usize, usize)>,
}

impl Tree {
    const ROOT: usize = 0;

    /// `places` contains the names for each slot, best first.
    fn new(places: &[Vec<String>]) -> Self {
        let mut tree = Tree { nodes: vec![Node::default()] };
        for (slot, places) in places.iter().enumerate() {
            for (rank, place) in places.iter().enumerate() {
                // Some logs write a path through objects as one name with dots.
                tree.insert([place.as_str()].into_iter(), slot, rank);
                tree.insert(place.split('.'), slot, rank);
            }
        }
        tree
    }

    fn insert<'a>(&mut self, path: impl Iterator<Item = &'a str>, slot: usize, rank: usize) {
        let mut at = Self::ROOT;
        for name in path {
            let name: Vec<u8> = name.bytes().map(fold).collect();
            let new = self.nodes.len();
            let node = &mut self.nodes[at];
            at = match node.children.binary_search_by(|child| order(&child.0, &name)) {
                Ok(found) => node.children[found].1,
                Err(place) => {
                    node.children.insert(place, (name, new));
                    self.nodes.push(Node::default());
                    new
                }
            };
        }
        let slots = &mut self.nodes[at].slots;
        if !slots.contains(&(slot, rank)) {
            slots.push((slot, rank));
        }
    }

    fn child(&self, node: usize, name: &str) -> Option<usize> {
        let children = &self.nodes[node].children;
        let found = children.binary_search_by(|child| order(&child.0, name.as_bytes())).ok()?;
        Some(children[found].1)
    }

    fn has_children(&self, node: usize) -> bool {
        !self.nodes[node].children.is_empty()
    }

    fn slots(&self, node: usize) -> &[(usize, usize)] {
        &self.nodes[node].slots
    }
}

/// Compares a folded name with any name.
fn order(folded: &[u8], name: &[u8]) -> Ordering {
    let letters = || folded.iter().copied().cmp(name.iter().copied().map(fold));
    folded.len().cmp(&name.len()).then_with(letters)
}

/// An object whose fields are looked up below `node`.
struct Object<'t> {
    tree: &'t Tree,
    node: usize,
    found: &'t mut Values,
}

impl<'de> DeserializeSeed<'de> for Object<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

/// A value that may be an object with fields to look up, or a value itself.
struct Branch<'t>(Object<'t>);

impl<'de> DeserializeSeed<'de> for Branch<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self.0)
    }
}

impl<'de> Visitor<'de> for Object<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let Object { tree, node, found } = self;
        while let Some(child) = map.next_key_seed(Name { tree, node })? {
            match child {
                Some(node) if tree.has_children(node) => {
                    map.next_value_seed(Branch(Object { tree, node, found: &mut *found }))?;
                }
                // Only the text of a number is exact.
                Some(node) => {
                    let value: &'de RawValue = map.next_value()?;
                    Object { tree, node, found: &mut *found }.keep_json(value.get());
                }
                None => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<(), A::Error> {
        if let Some(first) = First.visit_seq(list)? {
            self.keep_json(first);
        }
        Ok(())
    }

    fn visit_str<E>(self, text: &str) -> Result<(), E> {
        self.keep(text);
        Ok(())
    }

    fn visit_u64<E>(self, number: u64) -> Result<(), E> {
        self.keep(&number.to_string());
        Ok(())
    }

    fn visit_i64<E>(self, number: i64) -> Result<(), E> {
        self.keep(&number.to_string());
        Ok(())
    }

    /// No field that may also be an object is a float.
    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E>(self, value: bool) -> Result<(), E> {
        self.keep(if value { "true" } else { "false" });
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
}

impl Object<'_> {
    /// Keeps a JSON value: a string, a number, a boolean, or the first of a list; not `null` or an
    /// object.
    fn keep_json(self, value: &str) {
        match value.as_bytes() {
            [b'"', .., b'"'] => match value.get(1..value.len() - 1) {
                Some(text) if memchr::memchr(b'\\', text.as_bytes()).is_none() => self.keep(text),
                // `RawValue` has validated the string, so only a lone surrogate fails here.
                _ => self.keep(&serde_json::from_str::<String>(value).unwrap_or_default()),
            },
            [b'[', ..] => {
                let mut list = serde_json::Deserializer::from_str(value);
                match First.deserialize(&mut list) {
                    // A nested list is ignored, so the recursion ends here.
                    Ok(Some(first)) if !first.starts_with('[') => self.keep_json(first),
                    _ => {}
                }
            }
            [b'{', ..] | b"null" => {}
            _ => self.keep(value),
        }
    }

    /// Keeps a text, unless it is empty. A dash ranks below any other value.
    fn keep(self, text: &str) {
        let slots = self.tree.slots(self.node);
        if slots.is_empty() || text.is_empty() {
            return;
        }
        let start = self.found.text.len();
        self.found.text.extend_from_slice(text.as_bytes());
        let range = start..self.found.text.len();
        let penalty = if text == "-" { WORST_RANK } else { 0 };
        for (slot, rank) in slots {
            self.found.keep(*slot, *rank + penalty, &range);
        }
    }
}

/// A name in an object, resolved to its node if it is looked up.
struct Name<'t> {
    tree: &'t Tree,
    node: usize,
}

impl<'de> DeserializeSeed<'de> for Name<'_> {
    type Value = Option<usize>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for Name<'_> {
    type Value = Option<usize>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name")
    }

    fn visit_str<E>(self, name: &str) -> Result<Self::Value, E> {
        Ok(self.tree.child(self.node, name))
    }
}

/// The first element of a list; some logs have the values of a header as a list.
struct First;

impl<'de> DeserializeSeed<'de> for First {
    type Value = Option<&'de str>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for First {
    type Value = Option<&'de str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let first: Option<&'de RawValue> = list.next_element()?;
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(first.map(RawValue::get))
    }
}
