//! The environment: `TOLLGATE_STORE__URL` is `store.url`.

use std::ffi::OsString;
use std::sync::Arc;

use super::layers::Over;
use super::schema::{Field, Kind, ROOT, Section};
use tollgate_document::did_you_mean;
use tollgate_document::{Body, Node, Origin};
use tollgate_document::{ConfigError, Diagnostics};

const PREFIX: &str = "TOLLGATE_";
/// Between the parts of a path: names have single underscores of their own.
const BETWEEN: &str = "__";

/// What the variables say, in the order of their names.
///
/// A variable with `__` is meant for us, so one that names no field is a mistake. One without may be
/// anybody's: beside a service called `tollgate`, Kubernetes sets `TOLLGATE_PORT`,
/// `TOLLGATE_SERVICE_HOST` and more in every container.
pub(super) fn read(
    variables: impl IntoIterator<Item = (OsString, OsString)>,
    diagnostics: &Diagnostics,
) -> Vec<Over> {
    let ours = variables.into_iter().filter_map(|(name, value)| {
        let name = name.into_string().ok().filter(|name| name.starts_with(PREFIX))?;
        Some((name, value))
    });
    let mut ours: Vec<_> = ours.collect();
    ours.sort();
    let mut over = Vec::new();
    for (name, value) in ours {
        let origin = Origin::Variable(Arc::from(&*name));
        match one(&name, value, &origin) {
            Ok(value) => over.extend(value),
            Err(message) => diagnostics.add(ConfigError::new(message).with_origin(origin)),
        }
    }
    over
}

/// What one variable says; nothing if it is not meant for us.
fn one(name: &str, value: OsString, origin: &Origin) -> Result<Option<Over>, String> {
    let written = name.strip_prefix(PREFIX).unwrap_or_default().to_lowercase();
    let Some((path, field)) = find(written.split(BETWEEN)) else {
        return if written.contains(BETWEEN) { Err(unknown(&written)) } else { Ok(None) };
    };
    if !field.kind.fits_in_a_variable() {
        return Err(match field.kind {
            Kind::Section(_) => format!(
                "{} has fields: name one of them, as in {name}{BETWEEN}{}",
                path.join("."),
                first_of(&field.kind).to_uppercase()
            ),
            _ => file_only(&path.join(".")),
        });
    }
    let value = value.into_string().map_err(|_| "its value is not UTF-8".to_owned())?;
    Ok(Some(Over { path, field, node: node(field, &value, origin.clone()) }))
}

/// A value as it would stand in the file; that of a list has commas between its parts.
pub(super) fn node(field: &Field, value: &str, origin: Origin) -> Node {
    match (&field.kind, value) {
        (_, "null") => Node::nothing(origin),
        (Kind::Many(_), _) => {
            let parts = value.split(',').map(str::trim).filter(|x| !x.is_empty());
            let parts = parts.map(|part| Node::text(part, origin.clone())).collect();
            Node { origin, body: Body::List(parts), quoted: false }
        }
        _ => Node::text(value, origin),
    }
}

/// The field of a path.
pub(super) fn find<'a>(
    path: impl Iterator<Item = &'a str>,
) -> Option<(Vec<&'static str>, &'static Field)> {
    let mut names = Vec::new();
    let mut section = Some(&ROOT);
    let mut found = None;
    for part in path {
        let field = section?.field(part)?;
        names.push(field.name);
        section = section_of(&field.kind);
        found = Some(field);
    }
    found.map(|field| (names, field))
}

fn section_of(kind: &Kind) -> Option<&'static Section> {
    match kind {
        Kind::Section(section) => Some(section),
        _ => None,
    }
}

fn first_of(kind: &Kind) -> &'static str {
    let fields = section_of(kind).map(|x| x.fields).unwrap_or_default();
    fields.first().map(|field| field.name).unwrap_or_default()
}

fn file_only(field: &str) -> String {
    format!("{field} can be said in the file only")
}

/// What is said of a path that names no field.
fn unknown(written: &str) -> String {
    let mut section = Some(&ROOT);
    let mut path = String::new();
    for part in written.split(BETWEEN) {
        let Some(here) = section else {
            return format!("there is no field below {path}");
        };
        let Some(field) = here.field(part) else {
            return unknown_here(part, &path, here);
        };
        if !path.is_empty() {
            path.push('.');
        }
        path.push_str(field.name);
        if matches!(field.kind, Kind::Named(..) | Kind::Sections(_)) {
            return file_only(&path);
        }
        section = section_of(&field.kind);
    }
    format!("there is no field {path}")
}

fn unknown_here(part: &str, path: &str, section: &Section) -> String {
    let whole = if path.is_empty() { part.to_owned() } else { format!("{path}.{part}") };
    if section.later.contains(&part) {
        return format!("there is no field {whole} in this version: leave it out");
    }
    let known = section.fields.iter().map(|field| field.name);
    let hint = did_you_mean(part, known.clone())
        .unwrap_or_else(|| format!("known there are {}", known.collect::<Vec<_>>().join(", ")));
    format!("there is no field {whole}; {hint}")
}
