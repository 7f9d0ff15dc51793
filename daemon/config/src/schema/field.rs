//! Fields and sections.

use super::scalar::{Scalar, Value};

/// A field.
#[derive(Debug)]
pub(crate) struct Field {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    /// The default as YAML; empty for a required field.
    pub(crate) default: &'static str,
    /// The description, in sentences.
    pub(crate) about: &'static str,
    /// The message if the field is missing, for a required field.
    pub(crate) required: Option<&'static str>,
    /// Whether a change needs a restart.
    pub(crate) needs_restart: bool,
    /// Whether the value is never shown.
    pub(crate) is_secret: bool,
}

/// The type of a field.
#[derive(Debug)]
pub(crate) enum Kind {
    /// One value.
    Scalar(Scalar),
    /// A list of values.
    List(Scalar),
    /// A list of values, or a single value without brackets.
    ScalarOrList(Scalar),
    /// A list of values, or this word.
    ListOr(Scalar, &'static str),
    /// Fields.
    Section(&'static Section),
    /// A list of sections.
    Sections(&'static Section),
    /// A mapping from names of this format to values.
    Map(Scalar, &'static Kind),
}

/// A group of fields.
#[derive(Debug)]
pub(crate) struct Section {
    pub(crate) fields: &'static [Field],
}

impl Field {
    pub(super) const fn new(
        name: &'static str,
        kind: Kind,
        default: &'static str,
        about: &'static str,
    ) -> Self {
        Field { name, kind, default, about, required: None, needs_restart: false, is_secret: false }
    }

    pub(super) const fn required(mut self, otherwise: &'static str) -> Self {
        self.required = Some(otherwise);
        self
    }

    pub(super) const fn needs_restart(mut self) -> Self {
        self.needs_restart = true;
        self
    }

    pub(super) const fn secret(mut self) -> Self {
        self.is_secret = true;
        self
    }

    /// The default of a scalar.
    pub(crate) fn default_value(&self) -> Value {
        match (&self.kind, self.default) {
            (Kind::Scalar(scalar), default) if !matches!(default, "null" | "") => {
                self.parsed_default(scalar, default)
            }
            _ => Value::Nothing,
        }
    }

    /// The elements of the default of a list.
    pub(crate) fn default_values(&self) -> Vec<Value> {
        match &self.kind {
            Kind::List(scalar) | Kind::ScalarOrList(scalar) | Kind::ListOr(scalar, _) => {
                self.default_words().map(|word| self.parsed_default(scalar, word)).collect()
            }
            _ => Vec::new(),
        }
    }

    fn parsed_default(&self, scalar: &Scalar, text: &str) -> Value {
        match scalar.read(text) {
            Ok(value) => value,
            Err(error) => unreachable!("the default of {} is valid: {error}", self.name),
        }
    }

    /// The elements of the default of a list, as written.
    pub(crate) fn default_words(&self) -> impl Iterator<Item = &'static str> {
        let words = self.default.trim_matches(['[', ']']).split(", ");
        words.map(|word| word.trim_matches('"')).filter(|word| !word.is_empty())
    }
}

impl Section {
    pub(crate) fn field(&self, name: &str) -> Option<&'static Field> {
        self.fields.iter().find(|field| field.name == name)
    }
}

impl Kind {
    /// The fields below this one, and the suffix of its path that precedes theirs: nothing, `[]` for
    /// any index, or `.*` for any name.
    pub(crate) fn section(&self) -> Option<(&'static Section, &'static str)> {
        match self {
            Kind::Section(section) => Some((section, "")),
            Kind::Sections(section) => Some((section, "[]")),
            Kind::Map(_, Kind::Section(section)) => Some((section, ".*")),
            _ => None,
        }
    }
}
