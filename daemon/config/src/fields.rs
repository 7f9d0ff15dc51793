//! Fields to be read by their names: what is written, or the default of the table.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::address::Address;
use super::schema::{Kind, Scalar, Section, Value};
use super::shape::join;
use tollgate_document::{Body, Name, Node, Origin};
use tollgate_document::{ConfigError, Diagnostics};

/// That something cannot be read. What is wrong with it is among the diagnostics.
#[derive(Clone, Copy, Debug)]
pub(super) struct Broken;

/// The fields of a section, as they are written.
#[derive(Clone, Debug)]
pub(super) struct Fields<'a> {
    pub(super) node: Option<&'a Node>,
    section: &'static Section,
    pub(super) path: String,
    /// Where to point at when a error is about all of them.
    pub(super) origin: Origin,
    /// Where the file is.
    pub(super) base: &'a Path,
    diagnostics: &'a Diagnostics,
}

/// A text with its place.
#[derive(Clone, Debug)]
pub(super) struct Written {
    pub(super) text: String,
    pub(super) origin: Origin,
}

impl<'a> Fields<'a> {
    pub(super) fn new(
        node: &'a Node,
        section: &'static Section,
        base: &'a Path,
        diagnostics: &'a Diagnostics,
    ) -> Self {
        let origin = node.origin.clone();
        Fields { node: Some(node), section, path: String::new(), origin, base, diagnostics }
    }

    /// A value.
    pub(super) fn get<T: Meaning>(&self, name: &str) -> Result<T, Broken> {
        let Some((Kind::One(scalar), default)) = self.kind(name) else {
            return Err(self.no_such(name));
        };
        let value = match self.said(name).map(|x| (&x.body, &x.origin)) {
            None | Some((Body::Nothing, _)) => match default {
                "null" | "" => Value::Nothing,
                default => scalar.read(default).map_err(|_| self.no_such(name))?,
            },
            Some((Body::Text(text), origin)) => {
                self.place(scalar.read(text).map_err(|_| Broken)?, origin)
            }
            Some((Body::List(_) | Body::Fields(_), _)) => return Err(Broken),
        };
        T::of(value).ok_or_else(|| self.no_such(name))
    }

    /// A list of values, each with its place.
    pub(super) fn list(&self, name: &str) -> Result<Vec<Written>, Broken> {
        let (scalar, default) = match self.kind(name) {
            Some((Kind::Many(many) | Kind::OneOrMany(many) | Kind::ManyOr(many, _), default)) => {
                (many, default)
            }
            _ => return Err(self.no_such(name)),
        };
        let Some(node) = self.said(name) else {
            let words = default.trim_matches(['[', ']']).split(", ");
            let words = words.map(|word| word.trim_matches('"')).filter(|i| !i.is_empty());
            let of = |text: &str| Written { text: text.to_owned(), origin: Origin::Default };
            return Ok(words.map(of).collect());
        };
        match &node.body {
            Body::List(all) => texts(all, scalar),
            // Where one may not stand alone, that was complained of.
            Body::Text(_) => texts(std::slice::from_ref(node), scalar),
            Body::Nothing | Body::Fields(_) => Err(Broken),
        }
    }

    /// Names with their values, each with its place.
    pub(super) fn named(&self, name: &str) -> Vec<(&'a Name, &'a Node)> {
        match self.said(name).map(|x| &x.body) {
            Some(Body::Fields(all)) => all.iter().map(|(name, node)| (name, node)).collect(),
            _ => Vec::new(),
        }
    }

    /// The fields of a section.
    pub(super) fn section(&self, name: &str) -> Result<Fields<'a>, Broken> {
        let Some((Kind::Section(section), _)) = self.kind(name) else {
            return Err(self.no_such(name));
        };
        let node = self.said(name);
        Ok(self.inner(node, section, join(&self.path, name)))
    }

    /// The sections of a list, or of names.
    pub(super) fn sections(&self, name: &str) -> Result<Vec<Fields<'a>>, Broken> {
        let path = join(&self.path, name);
        match (self.kind(name), self.said(name).map(|x| &x.body)) {
            (Some((Kind::Sections(section), _)), Some(Body::List(all))) => {
                // What is no section was complained of.
                let each = all.iter().enumerate();
                let each = each.filter(|(_, x)| matches!(x.body, Body::Fields(_)));
                let of = |(at, x)| self.inner(Some(x), section, format!("{path}[{at}]"));
                Ok(each.map(of).collect())
            }
            (Some((Kind::Named(_, Kind::Section(section)), _)), Some(Body::Fields(all))) => {
                let of = |(name, node): &'a (Name, Node)| {
                    let inner = self.inner(Some(node), section, join(&path, &name.text));
                    Fields { origin: name.origin.clone(), ..inner }
                };
                Ok(all.iter().map(of).collect())
            }
            (Some((Kind::Sections(_) | Kind::Named(_, Kind::Section(_)), _)), _) => Ok(Vec::new()),
            _ => Err(self.no_such(name)),
        }
    }

    fn inner(&self, node: Option<&'a Node>, section: &'static Section, path: String) -> Self {
        // What is not written has no place.
        let origin = node.map_or(Origin::Default, |node| node.origin.clone());
        Fields { node, section, path, origin, base: self.base, diagnostics: self.diagnostics }
    }

    /// What is written of a field.
    pub(super) fn said(&self, name: &str) -> Option<&'a Node> {
        self.node?.get(name).filter(|node| !matches!(node.body, Body::Nothing))
    }

    /// The last part of the path.
    pub(super) fn name(&self) -> &str {
        // A policy's name may hold dots.
        self.path.split_once('.').map_or(&*self.path, |(_, name)| name)
    }

    /// Complains of a field, at its place if it is written and else at that of all of them.
    pub(super) fn report(&self, name: &str, message: impl Into<String>) -> Broken {
        let origin = self.said(name).map_or_else(|| self.origin.clone(), |x| x.origin.clone());
        self.complain_at(&join(&self.path, name), message, &origin)
    }

    pub(super) fn complain_at(
        &self,
        path: &str,
        message: impl Into<String>,
        origin: &Origin,
    ) -> Broken {
        self.diagnostics
            .add(ConfigError::new(message).with_field(path).with_origin(origin.clone()));
        Broken
    }

    /// Complains of a field because of a file that it names, and of a line there where it is known.
    pub(super) fn report_in_file(
        &self,
        path: &str,
        message: impl Into<String>,
        origin: &Origin,
        (file, line): (&Path, Option<u64>),
    ) -> Broken {
        let error = ConfigError::new(message).with_field(path).with_origin(origin.clone());
        self.diagnostics.add(error.with_location(file, line, None));
        Broken
    }

    fn kind(&self, name: &str) -> Option<(&'static Kind, &'static str)> {
        self.section.field(name).map(|field| (&field.kind, field.default))
    }

    /// The table and its reader disagree; no file can bring that about, and the defaults would show.
    fn no_such(&self, name: &str) -> Broken {
        self.report(name, "the table of fields has it otherwise; this is a mistake of tollgate's")
    }

    /// A path in the file is relative to the file's directory.
    fn place(&self, value: Value, origin: &Origin) -> Value {
        resolve(value, origin, self.base)
    }
}

/// A path in the file is relative to the file's directory; others are to the working directory.
pub(super) fn resolve(value: Value, origin: &Origin, base: &Path) -> Value {
    match (value, origin) {
        (Value::Path(path), Origin::File(_)) => Value::Path(base.join(path)),
        (Value::Address(Address::Unix(path)), Origin::File(_)) => {
            Value::Address(Address::Unix(base.join(path)))
        }
        (value, _) => value,
    }
}

/// The texts of a list, if each is what it should be.
pub(super) fn texts(all: &[Node], scalar: &Scalar) -> Result<Vec<Written>, Broken> {
    let text = |node: &Node| match &node.body {
        Body::Text(text) if scalar.read(text).is_ok() => {
            Ok(Written { text: text.clone(), origin: node.origin.clone() })
        }
        _ => Err(Broken),
    };
    all.iter().map(text).collect()
}

/// What a value of the table may be read as.
pub(super) trait Meaning: Sized {
    /// Nothing where the table has another kind of value.
    fn of(value: Value) -> Option<Self>;
}

impl<T: Meaning> Meaning for Option<T> {
    fn of(value: Value) -> Option<Self> {
        match value {
            Value::Nothing => Some(None),
            value => T::of(value).map(Some),
        }
    }
}

macro_rules! meanings {
    ($($value:pat => $type:ty, $read:expr;)*) => {
        $(impl Meaning for $type {
            fn of(value: Value) -> Option<Self> {
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
    Value::Truth(it) => bool, Some(it);
    Value::Word(it) => &'static str, Some(it);
    Value::Path(it) => PathBuf, Some(it);
    Value::Address(it) => Address, Some(it);
}
