//! Validates a document against the table and parses its scalars.
//!
//! This finds unknown fields, wrong types, and all other mistakes that can be found by looking at
//! one value at a time.

use std::path::Path;

use tollgate_document::{Body, ConfigError, Diagnostics, Name, Node, Origin, did_you_mean};

use super::address::Address;
use super::schema::{Kind, Scalar, Section, Value};
use super::tree::{Content, Entry};

pub(super) struct Validator<'a> {
    /// The directory of the file.
    pub(super) directory: &'a Path,
    pub(super) diagnostics: &'a Diagnostics,
}

impl Validator<'_> {
    fn report(&self, message: impl Into<String>, path: &str, origin: &Origin) -> Content {
        self.diagnostics
            .add(ConfigError::new(message).with_field(path).with_origin(origin.clone()));
        Content::Invalid
    }

    /// Missing fields are reported at `owner`.
    pub(super) fn section(
        &self,
        node: Node,
        section: &'static Section,
        path: &str,
        owner: &Origin,
    ) -> Entry {
        let Node { origin, body, .. } = node;
        let is_nothing = matches!(body, Body::Nothing);
        let fields = match body {
            Body::Nothing => Vec::new(),
            Body::Fields(fields) => fields,
            Body::Text(_) | Body::List(_) => {
                let content = self.report("expected fields, as in name: value", path, &origin);
                return Entry { origin, content };
            }
        };
        let mut entries = Vec::with_capacity(fields.len());
        let mut mistyped = Vec::new();
        for (name, node) in fields {
            if let Some(field) = section.field(&name.text) {
                let entry = self.value(node, &field.kind, &join(path, field.name), &name.origin);
                entries.push((name, entry));
            } else {
                let remedy = match (path, &*name.text) {
                    ("", "domain" | "descriptors") => {
                        "name a file of envoyproxy/ratelimit in envoy.config".to_owned()
                    }
                    (_, name) => remedy(name, section),
                };
                let message = format!("unknown field {:?}; {remedy}", name.text);
                self.report(message, path, &name.origin);
                mistyped.push(name.text);
            }
        }
        for field in section.fields {
            let Some(remedy) = field.required else { continue };
            let entry = entries.iter().find(|(name, _)| name.text == field.name);
            let is_missing = match entry.map(|(_, entry)| &entry.content) {
                None | Some(Content::Nothing) => true,
                Some(Content::List(all)) => all.is_empty(),
                Some(_) => false,
            };
            // A mistyped required field is reported only once.
            let is_mistyped = || {
                mistyped.iter().any(|name| did_you_mean(name, [field.name].into_iter()).is_some())
            };
            if is_missing && !is_mistyped() {
                self.report(remedy, &join(path, field.name), owner);
            }
        }
        let content = if is_nothing { Content::Nothing } else { Content::Fields(entries) };
        Entry { origin, content }
    }

    pub(super) fn value(
        &self,
        node: Node,
        kind: &'static Kind,
        path: &str,
        owner: &Origin,
    ) -> Entry {
        let Node { origin, body, quoted } = node;
        let content = match (kind, body) {
            (Kind::Section(section), body) => {
                return self.section(Node { origin, body, quoted }, section, path, owner);
            }
            (_, Body::Nothing) => Content::Nothing,
            (Kind::Scalar(scalar), body) | (Kind::ScalarOrList(scalar), body @ Body::Text(_)) => {
                self.scalar(body, scalar, path, &origin)
            }
            (
                Kind::List(scalar) | Kind::ScalarOrList(scalar) | Kind::ListOr(scalar, _),
                Body::List(all),
            ) => self.list(all, path, |node, path| {
                let Node { origin, body, .. } = node;
                Entry { content: self.scalar(body, scalar, path, &origin), origin }
            }),
            (Kind::ListOr(_, word), Body::Text(text)) if text == *word => {
                Content::Scalar(text, Value::Keyword(word))
            }
            (Kind::ListOr(scalar, word), _) => {
                let example = scalar.example();
                let message = format!("expected a list, such as [{example}], or {word}");
                self.report(message, path, &origin)
            }
            (Kind::List(scalar) | Kind::ScalarOrList(scalar), _) => {
                let message = format!("expected a list, such as [{}]", scalar.example());
                self.report(message, path, &origin)
            }
            (Kind::Sections(section), Body::List(all)) => self.list(all, path, |node, path| {
                let owner = node.origin.clone();
                self.section(node, section, path, &owner)
            }),
            (Kind::Sections(_), _) => {
                let message = "expected a list, with a dash and fields for each element";
                self.report(message, path, &origin)
            }
            (Kind::Map(names, inner), Body::Fields(all)) => {
                let entry = |(name, node): (Name, Node)| {
                    let path = join(path, &name.text);
                    if let Err(remedy) = names.read(&name.text) {
                        self.report(message(&name.text, remedy, names), &path, &name.origin);
                    }
                    let entry = match (inner, &node.body) {
                        // Unlike a field, an entry has no default.
                        (Kind::Scalar(scalar), Body::Nothing) => {
                            let content = self.scalar(Body::Nothing, scalar, &path, &name.origin);
                            Entry { origin: node.origin, content }
                        }
                        _ => self.value(node, inner, &path, &name.origin),
                    };
                    (name, entry)
                };
                Content::Fields(all.into_iter().map(entry).collect())
            }
            (Kind::Map(..), _) => {
                self.report("expected a mapping, as in name: value", path, &origin)
            }
        };
        Entry { origin, content }
    }

    /// Validates each element of a list.
    fn list(&self, all: Vec<Node>, path: &str, validate: impl Fn(Node, &str) -> Entry) -> Content {
        let all = all.into_iter().enumerate();
        Content::List(all.map(|(at, node)| validate(node, &format!("{path}[{at}]"))).collect())
    }

    fn scalar(&self, body: Body, scalar: &Scalar, path: &str, origin: &Origin) -> Content {
        match body {
            Body::Text(text) => match scalar.read(&text) {
                Ok(value) => Content::Scalar(text, self.resolve(value, origin)),
                Err(remedy) => self.report(message(&text, remedy, scalar), path, origin),
            },
            Body::Nothing => {
                let message = format!("expected a value, such as {}", scalar.example());
                self.report(message, path, origin)
            }
            Body::List(_) | Body::Fields(_) => {
                self.report("expected a single value, not a list or fields", path, origin)
            }
        }
    }

    /// Paths in the file are relative to the file's directory, others to the working directory.
    fn resolve(&self, value: Value, origin: &Origin) -> Value {
        match (value, origin) {
            (Value::Path(path), Origin::File(_)) => Value::Path(self.directory.join(path)),
            (Value::Address(Address::Unix(path)), Origin::File(_)) => {
                Value::Address(Address::Unix(self.directory.join(path)))
            }
            (value, _) => value,
        }
    }
}

/// The message about a value. It shows the value, unless that may be secret or is part of the
/// remedy.
fn message(text: &str, remedy: String, scalar: &Scalar) -> String {
    /// The maximum number of characters of a value that are shown.
    const MAX_SHOWN_CHARS: usize = 200;
    let value = match text.char_indices().nth(MAX_SHOWN_CHARS) {
        Some((at, _)) => format!("{:?}…", text.split_at(at).0),
        None => format!("{text:?}"),
    };
    if scalar.hides() || remedy.contains(&value) { remedy } else { format!("{value}: {remedy}") }
}

/// What to write instead of an unknown field.
pub(super) fn remedy(name: &str, section: &Section) -> String {
    let known = section.fields.iter().map(|field| field.name);
    did_you_mean(name, known.clone())
        .unwrap_or_else(|| format!("expected one of {}", known.collect::<Vec<_>>().join(", ")))
}

/// The path of a field in a section.
pub(super) fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}
