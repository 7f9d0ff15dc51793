//! Reads fields by name: the value in the tree, or the default in the table.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::address::Address;
use super::schema::{Kind, Scalar, Section, Value};
use super::validate::join;
use tollgate_document::{Body, ConfigError, Diagnostics, Name, Node, Origin};

/// A value is invalid. The mistake is already among the diagnostics.
#[derive(Clone, Copy, Debug)]
pub(super) struct Invalid;

/// A reader of the fields of a section.
#[derive(Clone, Debug)]
pub(super) struct SectionReader<'a> {
    pub(super) node: Option<&'a Node>,
    section: &'static Section,
    pub(super) path: String,
    /// The origin of errors about the section as a whole.
    pub(super) origin: Origin,
    /// The directory of the file.
    pub(super) base: &'a Path,
    diagnostics: &'a Diagnostics,
}

/// A text with its origin.
#[derive(Clone, Debug)]
pub(super) struct SourceText {
    pub(super) text: String,
    pub(super) origin: Origin,
}

impl<'a> SectionReader<'a> {
    pub(super) fn new(
        node: &'a Node,
        section: &'static Section,
        base: &'a Path,
        diagnostics: &'a Diagnostics,
    ) -> Self {
        let origin = node.origin.clone();
        SectionReader { node: Some(node), section, path: String::new(), origin, base, diagnostics }
    }

    /// A value.
    pub(super) fn get<T: FromValue>(&self, name: &str) -> Result<T, Invalid> {
        let Some((Kind::Scalar(scalar), default)) = self.kind(name) else {
            return Err(self.schema_mismatch(name));
        };
        let value = match self.field_node(name).map(|x| (&x.body, &x.origin)) {
            None | Some((Body::Nothing, _)) => match default {
                "null" | "" => Value::Nothing,
                default => scalar.read(default).map_err(|_| self.schema_mismatch(name))?,
            },
            Some((Body::Text(text), origin)) => {
                self.place(scalar.read(text).map_err(|_| Invalid)?, origin)
            }
            Some((Body::List(_) | Body::Fields(_), _)) => return Err(Invalid),
        };
        T::from_value(value).ok_or_else(|| self.schema_mismatch(name))
    }

    /// A list of values, each with its origin.
    pub(super) fn list(&self, name: &str) -> Result<Vec<SourceText>, Invalid> {
        let (scalar, default) = match self.kind(name) {
            Some((
                Kind::List(many) | Kind::ScalarOrList(many) | Kind::ListOr(many, _),
                default,
            )) => (many, default),
            _ => return Err(self.schema_mismatch(name)),
        };
        let Some(node) = self.field_node(name) else {
            let words = default.trim_matches(['[', ']']).split(", ");
            let words = words.map(|word| word.trim_matches('"')).filter(|i| !i.is_empty());
            let of = |text: &str| SourceText { text: text.to_owned(), origin: Origin::Default };
            return Ok(words.map(of).collect());
        };
        match &node.body {
            Body::List(all) => texts(all, scalar),
            // A single value where a list is required has already been reported.
            Body::Text(_) => texts(std::slice::from_ref(node), scalar),
            Body::Nothing | Body::Fields(_) => Err(Invalid),
        }
    }

    /// The entries of a mapping.
    pub(super) fn named(&self, name: &str) -> Vec<(&'a Name, &'a Node)> {
        match self.field_node(name).map(|x| &x.body) {
            Some(Body::Fields(all)) => all.iter().map(|(name, node)| (name, node)).collect(),
            _ => Vec::new(),
        }
    }

    /// The reader of a section.
    pub(super) fn section(&self, name: &str) -> Result<SectionReader<'a>, Invalid> {
        let Some((Kind::Section(section), _)) = self.kind(name) else {
            return Err(self.schema_mismatch(name));
        };
        let node = self.field_node(name);
        Ok(self.inner(node, section, join(&self.path, name)))
    }

    /// The readers of the sections in a list or mapping.
    pub(super) fn sections(&self, name: &str) -> Result<Vec<SectionReader<'a>>, Invalid> {
        let path = join(&self.path, name);
        match (self.kind(name), self.field_node(name).map(|x| &x.body)) {
            (Some((Kind::Sections(section), _)), Some(Body::List(all))) => {
                // Other elements have already been reported.
                let each = all.iter().enumerate();
                let each = each.filter(|(_, x)| matches!(x.body, Body::Fields(_)));
                let of = |(at, x)| self.inner(Some(x), section, format!("{path}[{at}]"));
                Ok(each.map(of).collect())
            }
            (Some((Kind::Map(_, Kind::Section(section)), _)), Some(Body::Fields(all))) => {
                let of = |(name, node): &'a (Name, Node)| {
                    let inner = self.inner(Some(node), section, join(&path, &name.text));
                    SectionReader { origin: name.origin.clone(), ..inner }
                };
                Ok(all.iter().map(of).collect())
            }
            (Some((Kind::Sections(_) | Kind::Map(_, Kind::Section(_)), _)), _) => Ok(Vec::new()),
            _ => Err(self.schema_mismatch(name)),
        }
    }

    fn inner(&self, node: Option<&'a Node>, section: &'static Section, path: String) -> Self {
        // A missing value has no position.
        let origin = node.map_or(Origin::Default, |node| node.origin.clone());
        SectionReader {
            node,
            section,
            path,
            origin,
            base: self.base,
            diagnostics: self.diagnostics,
        }
    }

    /// The node of a field, unless it is missing or null.
    pub(super) fn field_node(&self, name: &str) -> Option<&'a Node> {
        self.node?.get(name).filter(|node| !matches!(node.body, Body::Nothing))
    }

    /// The last part of the path.
    pub(super) fn name(&self) -> &str {
        // The name of a policy may contain dots.
        self.path.split_once('.').map_or(&*self.path, |(_, name)| name)
    }

    /// Reports a mistake in a field, at its origin if it is present and otherwise at that of the
    /// section.
    pub(super) fn report(&self, name: &str, message: impl Into<String>) -> Invalid {
        let origin =
            self.field_node(name).map_or_else(|| self.origin.clone(), |x| x.origin.clone());
        self.report_at(&join(&self.path, name), message, &origin)
    }

    pub(super) fn report_at(
        &self,
        path: &str,
        message: impl Into<String>,
        origin: &Origin,
    ) -> Invalid {
        self.diagnostics
            .add(ConfigError::new(message).with_field(path).with_origin(origin.clone()));
        Invalid
    }

    /// Reports a mistake in a file that a field names, with the line if it is known.
    pub(super) fn report_in_file(
        &self,
        path: &str,
        message: impl Into<String>,
        origin: &Origin,
        (file, line): (&Path, Option<u64>),
    ) -> Invalid {
        let error = ConfigError::new(message).with_field(path).with_origin(origin.clone());
        self.diagnostics.add(error.with_location(file, line, None));
        Invalid
    }

    fn kind(&self, name: &str) -> Option<(&'static Kind, &'static str)> {
        self.section.field(name).map(|field| (&field.kind, field.default))
    }

    /// The table and its reader disagree. No configuration can cause this.
    fn schema_mismatch(&self, name: &str) -> Invalid {
        self.report(name, "the reader does not match the schema; this is a bug in Tollgate")
    }

    /// Paths in the file are relative to the file's directory.
    fn place(&self, value: Value, origin: &Origin) -> Value {
        resolve(value, origin, self.base)
    }
}

/// Paths in the file are relative to the file's directory, others to the working directory.
pub(super) fn resolve(value: Value, origin: &Origin, base: &Path) -> Value {
    match (value, origin) {
        (Value::Path(path), Origin::File(_)) => Value::Path(base.join(path)),
        (Value::Address(Address::Unix(path)), Origin::File(_)) => {
            Value::Address(Address::Unix(base.join(path)))
        }
        (value, _) => value,
    }
}

/// The texts of a list, if all of them are valid.
pub(super) fn texts(all: &[Node], scalar: &Scalar) -> Result<Vec<SourceText>, Invalid> {
    let text = |node: &Node| match &node.body {
        Body::Text(text) if scalar.read(text).is_ok() => {
            Ok(SourceText { text: text.clone(), origin: node.origin.clone() })
        }
        _ => Err(Invalid),
    };
    all.iter().map(text).collect()
}

/// A type that a scalar can be converted to.
pub(super) trait FromValue: Sized {
    /// Converts a value; `None` if the table has another type for it.
    fn from_value(value: Value) -> Option<Self>;
}

impl<T: FromValue> FromValue for Option<T> {
    fn from_value(value: Value) -> Option<Self> {
        match value {
            Value::Nothing => Some(None),
            value => T::from_value(value).map(Some),
        }
    }
}

macro_rules! meanings {
    ($($value:pat => $type:ty, $read:expr;)*) => {
        $(impl FromValue for $type {
            fn from_value(value: Value) -> Option<Self> {
                match value {
                    $value => $read,
                    _ => None,
                }
            }
        })*
    };
}

meanings! {
    Value::Text(it) => String, Some(it);
    Value::Duration(it) => Duration, Some(it);
    Value::Number(it) => u64, Some(it);
    Value::Number(it) => usize, usize::try_from(it).ok();
    Value::Number(it) => u8, u8::try_from(it).ok();
    Value::Bool(it) => bool, Some(it);
    Value::Keyword(it) => &'static str, Some(it);
    Value::Path(it) => PathBuf, Some(it);
    Value::Address(it) => Address, Some(it);
}
