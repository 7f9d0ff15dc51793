//! Whether a tree is what the table says: unknown fields, wrong shapes, and every single value.
//!
//! All mistakes are found here that need no second value to be seen.

use super::schema::{Field, Kind, Scalar, Section};
use tollgate_document::did_you_mean;
use tollgate_document::{Body, Name, Node, Origin};
use tollgate_document::{ConfigError, Diagnostics};

/// Complains of all that the table does not know.
pub(super) fn check(node: &Node, section: &'static Section, diagnostics: &Diagnostics) {
    let shape = Shape { diagnostics };
    shape.section(node, section, "", &node.origin);
}

/// Complains of a value that does not come from the file.
pub(super) fn check_field(
    node: &Node,
    field: &'static Field,
    path: &str,
    diagnostics: &Diagnostics,
) {
    Shape { diagnostics }.kind(node, &field.kind, path, &node.origin);
}

struct Shape<'a> {
    diagnostics: &'a Diagnostics,
}

impl Shape<'_> {
    fn report(&self, message: impl Into<String>, path: &str, origin: &Origin) {
        self.diagnostics
            .add(ConfigError::new(message).with_field(path).with_origin(origin.clone()));
    }

    /// `owner` is where to point at what is missing.
    fn section(&self, node: &Node, section: &'static Section, path: &str, owner: &Origin) {
        let fields = match &node.body {
            Body::Nothing => &[][..],
            Body::Fields(fields) => fields,
            Body::Text(_) | Body::List(_) => {
                return self.report("write fields here, as in name: value", path, &node.origin);
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
            let said = fields.iter().find(|(x, _)| x.text == field.name).map(|(_, x)| &x.body);
            let is_missing = match said {
                None | Some(Body::Nothing) => true,
                Some(Body::List(all)) => all.is_empty(),
                Some(Body::Text(_) | Body::Fields(_)) => false,
            };
            // One mistake is said once.
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
            (Kind::One(scalar), _) | (Kind::OneOrMany(scalar), Body::Text(_)) => {
                self.scalar(node, scalar, path);
            }
            (
                Kind::Many(scalar) | Kind::OneOrMany(scalar) | Kind::ManyOr(scalar, _),
                Body::List(all),
            ) => {
                for (index, inner) in all.iter().enumerate() {
                    self.scalar(inner, scalar, &format!("{path}[{index}]"));
                }
            }
            (Kind::ManyOr(_, word), Body::Text(text)) if text == word => {}
            (Kind::ManyOr(scalar, word), _) => {
                let example = scalar.example();
                let message = format!("write a list, such as [{example}], or {word}");
                self.report(message, path, &node.origin);
            }
            (Kind::Many(scalar) | Kind::OneOrMany(scalar), _) => {
                let message = format!("write a list, such as [{}]", scalar.example());
                self.report(message, path, &node.origin);
            }
            (Kind::Sections(section), Body::List(all)) => {
                for (index, inner) in all.iter().enumerate() {
                    self.section(inner, section, &format!("{path}[{index}]"), &inner.origin);
                }
            }
            (Kind::Sections(_), _) => {
                let message = "write a list here, with a dash and fields for each";
                self.report(message, path, &node.origin);
            }
            (Kind::Named(names, inner), Body::Fields(all)) => {
                for (name, node) in all {
                    self.name(name, names, path);
                    self.kind(node, inner, &join(path, &name.text), &name.origin);
                }
            }
            (Kind::Named(..), _) => {
                let message = "write names here, each with what it is";
                self.report(message, path, &node.origin);
            }
        }
    }

    fn name(&self, name: &Name, scalar: &Scalar, path: &str) {
        if let Err(remedy) = scalar.read(&name.text) {
            let message = shown(&name.text, remedy, scalar);
            self.report(message, &join(path, &name.text), &name.origin);
        }
    }

    fn scalar(&self, node: &Node, scalar: &Scalar, path: &str) {
        match &node.body {
            Body::Text(text) => {
                if let Err(remedy) = scalar.read(text) {
                    self.report(shown(text, remedy, scalar), path, &node.origin);
                }
            }
            Body::Nothing => {
                let message = format!("write a value, such as {}", scalar.example());
                self.report(message, path, &node.origin);
            }
            Body::List(_) | Body::Fields(_) => {
                let message = "write one value here, not a list or fields";
                self.report(message, path, &node.origin);
            }
        }
    }
}

/// What is said of a value, which is shown unless it may be secret or is shown already.
fn shown(text: &str, remedy: String, scalar: &Scalar) -> String {
    /// The most characters of a value that are shown.
    const MAX_SHOWN_CHARS: usize = 200;
    let value = match text.char_indices().nth(MAX_SHOWN_CHARS) {
        Some((at, _)) => format!("{:?}…", text.get(..at).unwrap_or_default()),
        None => format!("{text:?}"),
    };
    if scalar.hides() || remedy.contains(&value) { remedy } else { format!("{value}: {remedy}") }
}

fn unknown(name: &str, section: &Section) -> String {
    if section.later.contains(&name) {
        return format!("unknown field {name:?}; this version does not have it: leave it out");
    }
    let known = section.fields.iter().map(|field| field.name);
    let hint = did_you_mean(name, known.clone())
        .unwrap_or_else(|| format!("known here are {}", known.collect::<Vec<_>>().join(", ")));
    format!("unknown field {name:?}; {hint}")
}

/// A field's name below another's.
pub(super) fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}
