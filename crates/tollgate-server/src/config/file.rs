//! The file as it is written: every value a text with its place, none of them understood yet.

use std::fmt;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::{self, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_saphyr::Spanned;

/// A value, with where it stands.
pub(super) type Text = Spanned<String>;

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct File {
    pub(super) namespace: Option<Text>,
    pub(super) store: Option<Store>,
    pub(super) listen: Option<Listen>,
    pub(super) policies: Option<Named<Policy>>,
    pub(super) limits: Option<Limits>,
    pub(super) drain: Option<Drain>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Store {
    pub(super) url: Option<Text>,
    pub(super) data: Option<Text>,
    pub(super) snapshot_interval: Option<Text>,
    pub(super) max_keys: Option<Text>,
    pub(super) table_full: Option<Text>,
    pub(super) connections: Option<Text>,
    pub(super) deadline: Option<Text>,
    pub(super) connect_timeout: Option<Text>,
    pub(super) ca: Option<Text>,
    pub(super) cert: Option<Text>,
    pub(super) key: Option<Text>,
    pub(super) username: Option<Text>,
    pub(super) password_file: Option<Text>,
}

impl Store {
    /// Where a field stands, by its whole name.
    pub(super) fn text(&self, field: &str) -> Option<&Text> {
        let text = match field.strip_prefix("store.")? {
            "data" => &self.data,
            "snapshot_interval" => &self.snapshot_interval,
            "max_keys" => &self.max_keys,
            "table_full" => &self.table_full,
            "connections" => &self.connections,
            "deadline" => &self.deadline,
            "connect_timeout" => &self.connect_timeout,
            "ca" => &self.ca,
            "cert" => &self.cert,
            "key" => &self.key,
            "username" => &self.username,
            "password_file" => &self.password_file,
            _ => return None,
        };
        text.as_ref()
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Listen {
    pub(super) http: Option<Text>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Policy {
    pub(super) limits: List,
    pub(super) mode: Option<Text>,
    pub(super) on_store_error: Option<Text>,
    pub(super) shadow: Option<Text>,
    pub(super) max_keys: Option<Text>,
    pub(super) allow: List,
    pub(super) deny: List,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Limits {
    pub(super) key_bytes: Option<Text>,
    pub(super) body: Option<Text>,
    pub(super) checks: Option<Text>,
    pub(super) connections: Option<Text>,
    pub(super) header_timeout: Option<Text>,
    pub(super) idle: Option<Text>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Drain {
    pub(super) timeout: Option<Text>,
}

/// Values by name, in the order in which they are written.
#[derive(Debug)]
pub(super) struct Named<T>(pub(super) Vec<(Text, T)>);

impl<'a, T: Deserialize<'a>> Deserialize<'a> for Named<T> {
    fn deserialize<D: Deserializer<'a>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_map(NamedVisitor(PhantomData))
    }
}

struct NamedVisitor<T>(PhantomData<T>);

impl<'a, T: Deserialize<'a>> Visitor<'a> for NamedVisitor<T> {
    type Value = Named<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("names, each with what it is")
    }

    fn visit_map<A: MapAccess<'a>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut all = Vec::new();
        while let Some(entry) = map.next_entry()? {
            all.push(entry);
        }
        Ok(Named(all))
    }
}

/// A list of texts; one text alone is a list of one.
#[derive(Debug, Default)]
pub(super) struct List(pub(super) Vec<Text>);

impl<'a> Deserialize<'a> for List {
    fn deserialize<D: Deserializer<'a>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(ListVisitor)
    }
}

struct ListVisitor;

impl<'a> Visitor<'a> for ListVisitor {
    type Value = List;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of texts in quotes, such as [\"10/s burst 20\"]")
    }

    fn visit_seq<A: SeqAccess<'a>>(self, mut list: A) -> Result<List, A::Error> {
        let mut all = Vec::new();
        while let Some(text) = list.next_element()? {
            all.push(text);
        }
        Ok(List(all))
    }

    fn visit_unit<E: de::Error>(self) -> Result<List, E> {
        Ok(List::default())
    }
}
