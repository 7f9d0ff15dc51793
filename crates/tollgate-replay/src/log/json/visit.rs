//! One walk over a line, which keeps what is looked for and skips the rest.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::Found;
use super::tree::Tree;

/// No field has so many places.
const WORST_PLACE: usize = 1_000;

/// An object, of which the names below `node` are looked for.
#[derive(Debug)]
pub(super) struct Object<'t> {
    pub(super) tree: &'t Tree,
    pub(super) node: usize,
    pub(super) found: &'t mut Found,
}

impl<'de> DeserializeSeed<'de> for Object<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Object<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<(), A::Error> {
        let tree = self.tree;
        while let Some(child) = map.next_key_seed(Name { tree, node: self.node })? {
            match child {
                Some(child) => {
                    let value: &'de RawValue = map.next_value()?;
                    // What `RawValue` holds is valid, so only its depth can stop this walk; then it
                    // holds nothing that is looked for.
                    self.take(value.get(), child);
                }
                None => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(())
    }
}

impl Object<'_> {
    fn take(&mut self, value: &str, node: usize) {
        match value.as_bytes().first() {
            Some(b'{') if self.tree.has_children(node) => {
                let object = Object { tree: self.tree, node, found: &mut *self.found };
                let mut json = serde_json::Deserializer::from_str(value);
                object.deserialize(&mut json).unwrap_or_default();
            }
            Some(b'[') => {
                let mut json = serde_json::Deserializer::from_str(value);
                if let Ok(Some(first)) = First.deserialize(&mut json) {
                    self.keep(first, node);
                }
            }
            _ => self.keep(value, node),
        }
    }

    /// Keeps a text, a number or a truth; `null` is nothing, and so is an empty text. A dash is worse
    /// than what stands in any other place.
    fn keep(&mut self, value: &str, node: usize) {
        let slots = self.tree.slots(node);
        if slots.is_empty() || matches!(value, "null" | r#""""#) {
            return;
        }
        let start = self.found.text.len();
        match value.strip_prefix('"').and_then(|it| it.strip_suffix('"')) {
            Some(text) if !text.contains('\\') => {
                self.found.text.extend_from_slice(text.as_bytes())
            }
            Some(_) => {
                let text: String = serde_json::from_str(value).unwrap_or_default();
                self.found.text.extend_from_slice(text.as_bytes());
            }
            None if value.starts_with(['{', '[']) => return,
            None => self.found.text.extend_from_slice(value.as_bytes()),
        }
        let range = start..self.found.text.len();
        let penalty = if value == r#""-""# { WORST_PLACE } else { 0 };
        for (slot, rank) in slots {
            self.found.keep(*slot, *rank + penalty, &range);
        }
    }
}

/// A name in an object: its node, if it is looked for.
#[derive(Debug)]
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

/// The first of a list: logs have a header's values as one.
#[derive(Debug)]
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
