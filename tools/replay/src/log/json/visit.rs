//! One walk over a line, which keeps what is looked for and skips the rest.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::Found;
use super::tree::Tree;

/// No field has so many places.
const WORST_PLACE: usize = 1_000;

/// A line: an object, of which the names below `node` are looked for.
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

/// A value that may be an object of which names are looked for, or else what its own name says.
#[derive(Debug)]
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
                // What a number says exactly is in its text only.
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

    /// Nothing that can be an object as well is such a number.
    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E>(self, truth: bool) -> Result<(), E> {
        self.keep(if truth { "true" } else { "false" });
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
}

impl Object<'_> {
    /// Keeps a value as JSON has it: a text, a number or a truth, of a list the first; `null` and an object
    /// are nothing.
    fn keep_json(self, value: &str) {
        match value.as_bytes() {
            [b'"', .., b'"'] => match value.get(1..value.len() - 1) {
                Some(text) if memchr::memchr(b'\\', text.as_bytes()).is_none() => self.keep(text),
                _ => self.keep(&serde_json::from_str::<String>(value).unwrap_or_default()),
            },
            [b'[', ..] => {
                let mut list = serde_json::Deserializer::from_str(value);
                match First.deserialize(&mut list) {
                    // A list in a list is nothing, so this goes no deeper.
                    Ok(Some(first)) if !first.starts_with('[') => self.keep_json(first),
                    _ => {}
                }
            }
            [b'{', ..] | b"null" => {}
            _ => self.keep(value),
        }
    }

    /// Keeps a text, unless it is empty. A dash is worse than what stands in any other place.
    fn keep(self, text: &str) {
        let slots = self.tree.slots(self.node);
        if slots.is_empty() || text.is_empty() {
            return;
        }
        let start = self.found.text.len();
        self.found.text.extend_from_slice(text.as_bytes());
        let range = start..self.found.text.len();
        let penalty = if text == "-" { WORST_PLACE } else { 0 };
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
