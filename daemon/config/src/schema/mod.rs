//! The table of all configuration fields: name, type, default and description.
//!
//! The reader, environment variables, `config check|print|schema`, the reference page and the
//! defaults all derive from this table.

mod envoy;
mod format;
mod listen;
mod operation;
mod policies;
mod rules;
mod scalar;
mod store;
mod tokens;

use std::fmt::Write as _;

pub(super) use format::Format;
pub(super) use scalar::{Scalar, Value};

/// A field.
#[derive(Debug)]
pub(super) struct Field {
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    /// The default as YAML; empty for a required field.
    pub(super) default: &'static str,
    /// The description, in sentences.
    pub(super) about: &'static str,
    /// The message if the field is missing, for a required field.
    pub(super) required: Option<&'static str>,
    /// Whether a change needs a restart.
    pub(super) needs_restart: bool,
    /// Whether the value is never shown.
    pub(super) is_secret: bool,
}

/// The type of a field.
#[derive(Debug)]
pub(super) enum Kind {
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
pub(super) struct Section {
    pub(super) fields: &'static [Field],
    /// Fields that are reserved for a later version.
    pub(super) later: &'static [&'static str],
}

impl Field {
    const fn new(
        name: &'static str,
        kind: Kind,
        default: &'static str,
        about: &'static str,
    ) -> Self {
        Field { name, kind, default, about, required: None, needs_restart: false, is_secret: false }
    }

    /// A section, whose fields have their own defaults.
    const fn section(name: &'static str, fields: &'static Section, about: &'static str) -> Self {
        Field::new(name, Kind::Section(fields), "{}", about)
    }

    const fn required(mut self, otherwise: &'static str) -> Self {
        self.required = Some(otherwise);
        self
    }

    pub(super) const fn needs_restart(mut self) -> Self {
        self.needs_restart = true;
        self
    }

    const fn secret(mut self) -> Self {
        self.is_secret = true;
        self
    }
}

impl Section {
    pub(super) fn field(&self, name: &str) -> Option<&'static Field> {
        self.fields.iter().find(|field| field.name == name)
    }
}

impl Kind {
    /// Whether an environment variable or a flag can set the field.
    pub(super) fn fits_in_a_variable(&self) -> bool {
        matches!(self, Kind::Scalar(_) | Kind::List(_))
    }
}

/// The top level.
pub(super) static ROOT: Section = Section {
    fields: &[
        Field::new(
            "namespace",
            Kind::Scalar(Scalar::Format(&format::NAMESPACE)),
            "tollgate",
            "The prefix of all keys on Redis, which separates installations that share a server. \
             The memory store is never shared.",
        )
        .needs_restart(),
        Field::section("store", &store::STORE, "The store for the state of limits."),
        Field::section(
            "listen",
            &listen::LISTEN,
            "The listeners: `HOST:PORT`, `unix:PATH` or \
                                                   `off`.",
        ),
        Field::new(
            "tokens",
            Kind::Sections(&tokens::TOKEN),
            "[]",
            "Access tokens. Without tokens, operator commands and limits given in a request are \
             accepted from loopback only.",
        ),
        Field::new(
            "policies",
            Kind::Map(Scalar::Format(&format::POLICY_NAME), &Kind::Section(&policies::POLICY)),
            "{}",
            "The policies by name.",
        ),
        rules::RULES,
        rules::DEFAULT,
        rules::TRUSTED_PROXIES,
        rules::IPV6_PREFIX,
        Field::section(
            "jwt",
            &rules::JWT,
            "Validation of the tokens that `{jwt.CLAIM}` in key \
                                            templates reads.",
        ),
        Field::section("envoy", &envoy::ENVOY, "Envoy's rate limit service."),
        operation::HEADERS,
        operation::PRIVACY,
        Field::section("log", &operation::LOG, "Logging to standard error."),
        Field::section("drain", &operation::DRAIN, "Graceful shutdown."),
        Field::section(
            "limits",
            &operation::LIMITS,
            "Resource limits for requests and \
                                                      connections.",
        ),
    ],
    later: &[],
};

/// The paths of all fields, in which `*` stands for any name and `[]` for any index; each section
/// precedes its fields.
pub(super) fn all() -> Vec<String> {
    let mut all = Vec::new();
    collect(&ROOT, "", &mut all);
    all
}

fn collect(section: &'static Section, prefix: &str, all: &mut Vec<String>) {
    for field in section.fields {
        let path = format!("{prefix}{}", field.name);
        let (inner, below) = match &field.kind {
            Kind::Section(section) => (Some(*section), "."),
            Kind::Sections(sections) => (Some(*sections), "[]."),
            Kind::Map(_, Kind::Section(section)) => (Some(*section), ".*."),
            _ => (None, ""),
        };
        let below = format!("{path}{below}");
        all.push(path);
        if let Some(inner) = inner {
            collect(inner, &below, all);
        }
    }
}

/// An enumeration of words: `deny or allow`, `info, debug or trace`.
pub(super) fn one_of(words: &[&str]) -> String {
    let mut text = String::new();
    for (index, word) in words.iter().enumerate() {
        let between = match index {
            0 => "",
            _ if index + 1 == words.len() => " or ",
            _ => ", ",
        };
        // Writing to a `String` does not fail.
        let _ = write!(text, "{between}{word}");
    }
    text
}
