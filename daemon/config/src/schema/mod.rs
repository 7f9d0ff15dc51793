//! Every field of the configuration, in one table: what it is called, what it may say, what holds
//! where nobody says, and what it means.
//!
//! Reading, the environment, `config check|print|schema`, the reference page and the defaults all
//! come from here. There is a file for each section.

mod envoy;
mod form;
mod listen;
mod operation;
mod policies;
mod rules;
mod scalar;
mod store;
mod tokens;

use std::fmt::Write as _;

pub(super) use form::Form;
pub(super) use scalar::{Scalar, Value};

/// A field.
#[derive(Debug)]
pub(super) struct Field {
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    /// As it would be written. Nothing where it must be written.
    pub(super) default: &'static str,
    /// What it means, in sentences.
    pub(super) about: &'static str,
    /// What is said where it is missing, if it may not be.
    pub(super) required: Option<&'static str>,
    /// Whether a daemon that runs cannot take up another value.
    pub(super) needs_restart: bool,
    /// Whether it is never shown.
    pub(super) is_secret: bool,
}

/// What a field holds.
#[derive(Debug)]
pub(super) enum Kind {
    /// One value.
    One(Scalar),
    /// A list of values.
    Many(Scalar),
    /// A list of values; one alone may stand without its brackets.
    OneOrMany(Scalar),
    /// A list of values, or this word.
    ManyOr(Scalar, &'static str),
    /// Fields.
    Section(&'static Section),
    /// A list, with fields in each place.
    Sections(&'static Section),
    /// Names of this form, and what each of them is.
    Named(Scalar, &'static Kind),
}

/// Fields that stand together.
#[derive(Debug)]
pub(super) struct Section {
    pub(super) fields: &'static [Field],
    /// Fields that a later version has.
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

    /// Fields, each with a default of its own.
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
    /// Whether an environment variable and a flag can hold it.
    pub(super) fn fits_in_a_variable(&self) -> bool {
        matches!(self, Kind::One(_) | Kind::Many(_))
    }
}

/// All of it.
pub(super) static ROOT: Section = Section {
    fields: &[
        Field::new(
            "namespace",
            Kind::One(Scalar::Form(&form::NAMESPACE)),
            "tollgate",
            "What the names of all keys on Redis begin with. It keeps two installations on one \
             store apart; memory is always one's own.",
        )
        .needs_restart(),
        Field::section("store", &store::STORE, "Where state lives."),
        Field::section("listen", &listen::LISTEN, "Where the daemon listens."),
        Field::new(
            "tokens",
            Kind::Sections(&tokens::TOKEN),
            "[]",
            "Who may do what. Without any, operator verbs and limits given in a request work from \
             loopback only.",
        ),
        Field::new(
            "policies",
            Kind::Named(Scalar::Form(&form::POLICY_NAME), &Kind::Section(&policies::POLICY)),
            "{}",
            "The policies by name.",
        ),
        rules::RULES,
        rules::DEFAULT,
        rules::TRUSTED_PROXIES,
        rules::IPV6_PREFIX,
        Field::section("jwt", &rules::JWT, "How `{jwt.CLAIM}` in a key template is read."),
        Field::section("envoy", &envoy::ENVOY, "How Envoy's rate limit service is answered."),
        operation::HEADERS,
        operation::PRIVACY,
        Field::section("log", &operation::LOG, "What is logged, on standard error."),
        Field::section("drain", &operation::DRAIN, "How the daemon stops."),
        Field::section("limits", &operation::LIMITS, "What peers are held to."),
    ],
    later: &[],
};

/// The names of all fields, in which `*` stands for any name and `[]` for a place; each section
/// before what is in it.
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
            Kind::Named(_, Kind::Section(section)) => (Some(*section), ".*."),
            _ => (None, ""),
        };
        let below = format!("{path}{below}");
        all.push(path);
        if let Some(inner) = inner {
            collect(inner, &below, all);
        }
    }
}

/// Words in a row: `deny or allow`, `info, debug or trace`.
pub(super) fn one_of(words: &[&str]) -> String {
    let mut text = String::new();
    for (index, word) in words.iter().enumerate() {
        let between = match index {
            0 => "",
            _ if index + 1 == words.len() => " or ",
            _ => ", ",
        };
        // Writing into a text does not fail.
        let _ = write!(text, "{between}{word}");
    }
    text
}
