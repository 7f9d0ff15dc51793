//! Validates a tree against the table: unknown fields, wrong types, and every scalar.
//!
//! This finds all mistakes that can be found by looking at one value at a time.

use super::schema::{Field, Kind, Scalar, Section};
use tollgate_document::{Body, ConfigError, Diagnostics, Name, Node, Origin, did_you_mean};

/// Validates a tree.
pub(super) fn check(node: &Node, section: &'static Section, diagnostics: &Diagnostics) {
    let validator = Validator { diagnostics };
    validator.section(node, section, "", &node.origin);
}

/// Validates a value that does not come from the file.
pub(super) fn check_field(
    node: &Node,
    field: &'static Field,
    path: &str,
    diagnostics: &Diagnostics,
) {
    Validator { diagnostics }.kind(node, &field.kind, path, &node.origin);
}

struct Validator<'a> {
    diagnostics: &'a Diagnostics,
}

impl Validator<'_> {
    fn report(&self, message: impl Into<String>, path: &str, origin: &Origin) {
        self.diagnostics
            .add(ConfigError::new(message).with_field(path).with_origin(origin.clone()));
    }

    /// Missing fields are reported at `owner`.
    fn section(&self, node: &Node, section: &'static Section, path: &str, owner: &Origin) {
        let fields = match &node.body {
            Body::Nothing => &[][..],
            Body::Fields(fields) => fields,
            Body::Text(_) | Body::List(_) => {
                return self.report("expected fields, as in name: value", path, &node.origin);
            }
        };
        let mut mistyped = Vec::new();
        for (name, inner) in fields {
            match section.field(&name.text) {
                Some(field) => self.kind(inner, &field.kind, &join(path, field.name), &name.origin),
                None => {
                    self.report(unknown(&name.text, section), path, &name.origin);
                    mistyped.push(&name.text);
                }
            }
        }
        for field in section.fields {
            let Some(remedy) = field.required else { continue };
            let value = fields.iter().find(|(x, _)| x.text == field.name).map(|(_, x)| &x.body);
            let is_missing = match value {
                None | Some(Body::Nothing) => true,
                Some(Body::List(all)) => all.is_empty(),
                Some(Body::Text(_) | Body::Fields(_)) => false,
            };
            // A mistyped required field is reported only once.
            let is_mistyped = || {
                mistyped
                    .iter()
                    .any(|mistyped| did_you_mean(mistyped, [field.name].into_iter()).is_some())
            };
            if is_missing && !is_mistyped() {
                self.report(remedy, &join(path, field.name), owner);
            }
        }
    }

    fn kind(&self, node: &Node, kind: &'static Kind, path: &str, owner: &Origin) {
        match (kind, &node.body) {
            (Kind::Section(section), _) => self.section(node, section, path, owner),
            (_, Body::Nothing) => {}
            (Kind::Scalar(scalar), _) | (Kind::ScalarOrList(scalar), Body::Text(_)) => {
                self.scalar(node, scalar, path);
            }
            (
                Kind::List(scalar) | Kind::ScalarOrList(scalar) | Kind::ListOr(scalar, _),
                Body::List(all),
            ) => {
                for (index, inner) in all.iter().enumerate() {
                    self.scalar(inner, scalar, &format!("{path}[{index}]"));
                }
            }
            (Kind::ListOr(_, word), Body::Text(text)) if text == word => {}
            (Kind::ListOr(scalar, word), _) => {
                let example = scalar.example();
                let message = format!("expected a list, such as [{example}], or {word}");
                self.report(message, path, &node.origin);
            }
            (Kind::List(scalar) | Kind::ScalarOrList(scalar), _) => {
                let message = format!("expected a list, such as [{}]", scalar.example());
                self.report(message, path, &node.origin);
            }
            (Kind::Sections(section), Body::List(all)) => {
                for (index, inner) in all.iter().enumerate() {
                    self.section(inner, section, &format!("{path}[{index}]"), &inner.origin);
                }
            }
            (Kind::Sections(_), _) => {
                let message = "expected a list, with a dash and fields for each element";
                self.report(message, path, &node.origin);
            }
            (Kind::Map(names, inner), Body::Fields(all)) => {
                for (name, node) in all {
                    self.name(name, names, path);
                    self.kind(node, inner, &join(path, &name.text), &name.origin);
                }
            }
            (Kind::Map(..), _) => {
                let message = "expected a mapping, as in name: value";
                self.report(message, path, &node.origin);
            }
        }
    }

    fn name(&self, name: &Name, scalar: &Scalar, path: &str) {
        if let Err(remedy) = scalar.read(&name.text) {
            let message = message(&name.text, remedy, scalar);
            self.report(message, &join(path, &name.text), &name.origin);
        }
    }

    fn scalar(&self, node: &Node, scalar: &Scalar, path: &str) {
        match &node.body {
            Body::Text(text) => {
                if let Err(remedy) = scalar.read(text) {
                    self.report(message(text, remedy, scalar), path, &node.origin);
                }
            }
            Body::Nothing => {
                let message = format!("expected a value, such as {}", scalar.example());
                self.report(message, path, &node.origin);
            }
            Body::List(_) | Body::Fields(_) => {
                let message = "expected a single value, not a list or fields";
                self.report(message, path, &node.origin);
            }
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

fn unknown(name: &str, section: &Section) -> String {
    if section.later.contains(&name) {
        return format!("unknown field {name:?}; not available in this version, remove it");
    }
    let known = section.fields.iter().map(|field| field.name);
    let hint = did_you_mean(name, known.clone())
        .unwrap_or_else(|| format!("expected one of {}", known.collect::<Vec<_>>().join(", ")));
    format!("unknown field {name:?}; {hint}")
}

/// The path of a field in a section.
pub(super) fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}
