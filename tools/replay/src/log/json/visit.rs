//! Walks over a line, keeps the values to look up and skips the others.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::Values;
use super::tree::Tree;

/// A rank below that of every name.
const WORST_RANK: usize = 1_000;

/// An object whose fields are looked up below `node`.
#[derive(Debug)]
pub(super) struct Object<'t> {
    pub(super) tree: &'t Tree,
    pub(super) node: usize,
    pub(super) found: &'t mut Values,
}

impl<'de> DeserializeSeed<'de> for Object<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

/// A value that may be an object with fields to look up, or a value itself.
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
    /// Keeps a JSON value: a string, a number, a boolean, or the first of a list; not `null` or an object.
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

/// The first element of a list; some logs have the values of a header as a list.
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
