//! Environment variables: `TOLLGATE_STORE__URL` sets `store.url`.

use std::ffi::OsString;
use std::sync::Arc;

use tollgate_document::{Body, ConfigError, Diagnostics, Node, Origin};

use super::schema::{Field, Kind, ROOT, Section};
use super::validate::{join, remedy};

const PREFIX: &str = "TOLLGATE_";
/// The separator of the parts of a path; names themselves contain single underscores.
const SEPARATOR: &str = "__";

/// A value that replaces the one in the file.
pub(super) struct LayerValue {
    pub(super) path: Vec<&'static str>,
    pub(super) field: &'static Field,
    pub(super) node: Node,
}

/// The values of the variables, ordered by name.
///
/// A variable with `__` that names no field is a mistake. One without `__` is ignored, because it
/// may belong to another program: next to a service named `tollgate`, Kubernetes sets
/// `TOLLGATE_PORT`, `TOLLGATE_SERVICE_HOST` and others in every container.
pub(super) fn read(
    variables: impl IntoIterator<Item = (OsString, OsString)>,
    diagnostics: &Diagnostics,
) -> Vec<LayerValue> {
    let variables = variables.into_iter();
    let variables = variables.filter_map(|(name, value)| Some((name.into_string().ok()?, value)));
    let mut variables: Vec<_> = variables.collect();
    variables.sort();
    let mut values = Vec::new();
    for (name, value) in variables {
        let origin = Origin::Variable(Arc::from(&*name));
        match read_variable(&name, value, &origin) {
            Ok(value) => values.extend(value),
            Err(message) => diagnostics.add(ConfigError::new(message).with_origin(origin)),
        }
    }
    values
}

/// The value of one variable; `None` if it belongs to another program.
fn read_variable(
    name: &str,
    value: OsString,
    origin: &Origin,
) -> Result<Option<LayerValue>, String> {
    let Some(variable_path) = name.strip_prefix(PREFIX).map(str::to_lowercase) else {
        return Ok(None);
    };
    let (path, field) = match find(variable_path.split(SEPARATOR)) {
        Ok(found) => found,
        Err(error) if variable_path.contains(SEPARATOR) => return Err(error),
        Err(_) => return Ok(None),
    };
    if !matches!(field.kind, Kind::Scalar(_) | Kind::List(_)) {
        return Err(match section_of(&field.kind).and_then(|section| section.fields.first()) {
            Some(first) => format!(
                "{} is a section; set one of its fields, as in {name}{SEPARATOR}{}",
                path.join("."),
                first.name.to_uppercase()
            ),
            None => file_only(&path.join(".")),
        });
    }
    let value = value.into_string().map_err(|_| "the value is not UTF-8".to_owned())?;
    Ok(Some(LayerValue { path, field, node: node(field, &value, origin.clone()) }))
}

/// A value as a node; the elements of a list are separated by commas.
pub(super) fn node(field: &Field, value: &str, origin: Origin) -> Node {
    match (&field.kind, value) {
        (_, "null") => Node::nothing(origin),
        (Kind::List(_), _) => {
            let parts = value.split(',').map(str::trim).filter(|x| !x.is_empty());
            let parts = parts.map(|part| Node::text(part, origin.clone())).collect();
            Node { origin, body: Body::List(parts), quoted: false }
        }
        _ => Node::text(value, origin),
    }
}

/// The field with a path. The error states the remedy.
pub(super) fn find<'a>(
    path: impl Iterator<Item = &'a str>,
) -> Result<(Vec<&'static str>, &'static Field), String> {
    let mut names = Vec::new();
    let mut section = Some(&ROOT);
    let mut found = None;
    for part in path {
        let path = names.join(".");
        let Some(here) = section else {
            return Err(match found.map(|field: &Field| &field.kind) {
                Some(Kind::Map(..) | Kind::Sections(_)) => file_only(&path),
                _ => format!("{path} has no fields"),
            });
        };
        let Some(field) = here.field(part) else {
            return Err(format!("unknown field {}; {}", join(&path, part), remedy(part, here)));
        };
        names.push(field.name);
        section = section_of(&field.kind);
        found = Some(field);
    }
    found.map(|field| (names, field)).ok_or_else(|| "expected the path of a field".to_owned())
}

fn section_of(kind: &Kind) -> Option<&'static Section> {
    match kind {
        Kind::Section(section) => Some(section),
        _ => None,
    }
}

fn file_only(field: &str) -> String {
    format!("{field} can be set only in the file")
}
