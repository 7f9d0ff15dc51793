//! Reads fields by name: the value in the tree, or the default in the table.

use std::collections::BTreeMap;
use std::path::PathBuf;

use tollgate_document::{ConfigError, Diagnostics, Name, Origin};

use super::schema::{Field, Kind, Section, Value};
use super::tree::{Content, Entry};
use super::validate::join;

/// A value is invalid. The mistake is already among the diagnostics.
#[derive(Clone, Copy, Debug)]
pub(super) struct Invalid;

/// A reader of the fields of a section.
///
/// Its methods panic if the table has no such field, or one of another type. No configuration can
/// cause this, because every field is read.
#[derive(Clone)]
pub(super) struct SectionReader<'a> {
    pub(super) entry: Option<&'a Entry>,
    section: &'static Section,
    pub(super) path: String,
    /// The origin of errors about the section as a whole.
    pub(super) origin: Origin,
    diagnostics: &'a Diagnostics,
}

impl<'a> SectionReader<'a> {
    pub(super) fn new(
        entry: &'a Entry,
        section: &'static Section,
        diagnostics: &'a Diagnostics,
    ) -> Self {
        let (path, origin) = (String::new(), entry.origin.clone());
        SectionReader { entry: Some(entry), section, path, origin, diagnostics }
    }

    /// A value.
    pub(super) fn get<T: FromValue>(&self, name: &str) -> Result<T, Invalid> {
        match self.field_entry(name) {
            None => Ok(convert(name, &self.field(name).default_value())),
            Some(entry) => convert_entry(name, entry),
        }
    }

    /// A list of values, each with its origin.
    pub(super) fn list_with_origins<T: FromValue>(
        &self,
        name: &str,
    ) -> Result<Vec<(T, Origin)>, Invalid> {
        let Some(entry) = self.field_entry(name) else {
            let values = self.field(name).default_values();
            let converted = values.iter().map(|value| (convert(name, value), Origin::Default));
            return Ok(converted.collect());
        };
        let all = match &entry.content {
            Content::List(all) => all.as_slice(),
            _ => std::slice::from_ref(entry),
        };
        all.iter().map(|one| Ok((convert_entry(name, one)?, one.origin.clone()))).collect()
    }

    /// A list of values.
    pub(super) fn list<T: FromValue>(&self, name: &str) -> Result<Vec<T>, Invalid> {
        Ok(self.list_with_origins(name)?.into_iter().map(|(value, _)| value).collect())
    }

    /// The files `cert` and `key`, which require each other.
    pub(super) fn certificate(&self) -> Result<Option<(PathBuf, PathBuf)>, Invalid> {
        let (field, other) = match (self.get("cert")?, self.get::<Option<PathBuf>>("key")?) {
            (Some(cert), Some(key)) => return Ok(Some((cert, key))),
            (None, None) => return Ok(None),
            (Some(_), None) => ("cert", "key"),
            (None, Some(_)) => ("key", "cert"),
        };
        Err(self.report(field, format!("requires {}.{other}; add it", self.path)))
    }

    /// The entries of a mapping.
    pub(super) fn named(&self, name: &str) -> &'a [(Name, Entry)] {
        match self.field_entry(name).map(|entry| &entry.content) {
            Some(Content::Fields(all)) => all,
            _ => &[],
        }
    }

    /// The texts of a mapping.
    pub(super) fn texts(&self, name: &str) -> Result<BTreeMap<String, String>, Invalid> {
        let texts = self.named(name).iter();
        texts.map(|(key, entry)| Ok((key.text.clone(), convert_entry(name, entry)?))).collect()
    }

    /// The reader of a section.
    pub(super) fn section(&self, name: &str) -> SectionReader<'a> {
        let Kind::Section(section) = &self.field(name).kind else {
            unreachable!("the schema has no section {name}")
        };
        self.inner(self.field_entry(name), section, join(&self.path, name))
    }

    /// The readers of the sections in a list or mapping. Invalid ones have already been reported.
    pub(super) fn sections(&self, name: &str) -> Vec<SectionReader<'a>> {
        let path = join(&self.path, name);
        match (&self.field(name).kind, self.field_entry(name).map(|entry| &entry.content)) {
            (Kind::Sections(section), Some(Content::List(all))) => {
                let each = all.iter().enumerate();
                let each = each.filter(|(_, one)| matches!(one.content, Content::Fields(_)));
                let reader = |(at, one)| self.inner(Some(one), section, format!("{path}[{at}]"));
                each.map(reader).collect()
            }
            (Kind::Map(_, Kind::Section(section)), Some(Content::Fields(all))) => {
                let reader = |(name, entry): &'a (Name, Entry)| {
                    let inner = self.inner(Some(entry), section, join(&path, &name.text));
                    SectionReader { origin: name.origin.clone(), ..inner }
                };
                all.iter().map(reader).collect()
            }
            _ => Vec::new(),
        }
    }

    fn inner(&self, entry: Option<&'a Entry>, section: &'static Section, path: String) -> Self {
        // A missing value has no position.
        let origin = entry.map_or(Origin::Default, |entry| entry.origin.clone());
        SectionReader { entry, section, path, origin, diagnostics: self.diagnostics }
    }

    /// The entry of a field, unless it is missing or null.
    pub(super) fn field_entry(&self, name: &str) -> Option<&'a Entry> {
        self.entry?.get(name)
    }

    fn field(&self, name: &str) -> &'static Field {
        match self.section.field(name) {
            Some(field) => field,
            None => unreachable!("the schema has no field {name}"),
        }
    }

    /// The last part of the path.
    pub(super) fn name(&self) -> &str {
        // The name of a policy may contain dots.
        self.path.split_once('.').map_or(&*self.path, |(_, name)| name)
    }

    /// Reports a mistake in a field, at its origin if it is present and otherwise at that of the
    /// section.
    pub(super) fn report(&self, name: &str, message: impl Into<String>) -> Invalid {
        let origin = self.field_entry(name).map_or(&self.origin, |entry| &entry.origin);
        self.report_at(&join(&self.path, name), message, origin)
    }

    pub(super) fn report_at(
        &self,
        path: &str,
        message: impl Into<String>,
        origin: &Origin,
    ) -> Invalid {
        self.add(ConfigError::new(message).with_field(path).with_origin(origin.clone()))
    }

    pub(super) fn add(&self, error: ConfigError) -> Invalid {
        self.diagnostics.add(error);
        Invalid
    }
}

fn convert_entry<T: FromValue>(name: &str, entry: &Entry) -> Result<T, Invalid> {
    match &entry.content {
        Content::Scalar(_, value) => Ok(convert(name, value)),
        // Every other content has been reported.
        _ => Err(Invalid),
    }
}

fn convert<T: FromValue>(name: &str, value: &Value) -> T {
    match T::from_value(value) {
        Some(value) => value,
        None => unreachable!("the reader of {name} does not match the schema"),
    }
}

/// A type that a scalar can be converted to.
pub(super) trait FromValue: Sized {
    /// Converts a value; `None` if the table has another type for it.
    fn from_value(value: &Value) -> Option<Self>;
}

impl<T: FromValue> FromValue for Option<T> {
    fn from_value(value: &Value) -> Option<Self> {
        match value {
            Value::Nothing => Some(None),
            value => T::from_value(value).map(Some),
        }
    }
}
