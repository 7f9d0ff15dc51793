//! The reference page, generated from the table.

use std::fmt::Write as _;

use super::schema::{Field, Kind, ROOT, Scalar, Section, one_of};

const INTRODUCTION: &str = "\
<!-- Generated from the table of fields in daemon/config; a test of tollgate-config checks that this page is up to date. -->
# Configuration

`tollgate serve --config tollgate.yaml` reads a YAML file. Precedence: flags, then environment variables, then the file. Omitted fields,
and fields set to `null`, use the defaults below. Unknown fields are rejected, with the line and a suggestion.

```sh
tollgate config check tollgate.yaml    # reports all mistakes with their lines; exits with 2 if there are any
tollgate config print --origins --config tollgate.yaml    # prints the effective configuration, and the origin of each value
tollgate config schema                 # prints a JSON Schema for editors
```

**Environment variables.** `TOLLGATE_`, followed by the field in capitals with `__` for each dot: `TOLLGATE_STORE__URL` sets `store.url`.
List elements are separated by commas: `TOLLGATE_HEADERS=draft11,legacy-delta`. `tokens`, `policies` and `rules` can be set only in the file.
A variable with `__` that names no field is an error. Variables without `__` are ignored unless they name a field, because they may belong
to other programs, such as the `TOLLGATE_PORT` that Kubernetes sets.

**Paths** in the file are relative to the directory of the file; paths in environment variables and flags are relative to the working directory.

**Secrets** can be kept in files, which fields ending in `_file` name. These files are reloaded when they change.

**Values.** A duration is a number and a unit (`15ms`, `5s`, `1min`, `24h`). Sizes in bytes may have the unit `KiB`, `MiB` or `GiB`. Limits use the
usual notation (`10/s burst 20`). Fields marked ↻ need a restart: a reload that would change one of them is rejected.
";

/// The configuration reference, in Markdown.
#[must_use]
pub fn config_reference() -> String {
    let mut page = INTRODUCTION.to_owned();
    page.push_str("\n## Top level\n");
    table(&mut page, &ROOT);
    sections(&mut page, &ROOT, "");
    page
}

/// The paths of all fields. `*` stands for any name, and `[]` for any index.
#[must_use]
pub fn config_fields() -> Vec<String> {
    fn collect(section: &Section, prefix: &str, all: &mut Vec<String>) {
        for field in section.fields {
            let path = format!("{prefix}{}", field.name);
            all.push(path.clone());
            if let Some((inner, below)) = field.kind.section() {
                collect(inner, &format!("{path}{below}."), all);
            }
        }
    }
    let mut all = Vec::new();
    collect(&ROOT, "", &mut all);
    all
}

/// Writes a table for each nested section.
fn sections(page: &mut String, section: &Section, prefix: &str) {
    for field in section.fields {
        let Some((inner, below)) = field.kind.section() else { continue };
        let path = format!("{prefix}{}{}", field.name, below.replace('*', "NAME"));
        // Writing to a `String` does not fail.
        let _ = write!(page, "\n## `{path}`\n\n{}\n", field.about);
        table(page, inner);
        sections(page, inner, &format!("{path}."));
    }
}

fn table(page: &mut String, section: &Section) {
    page.push_str("\n| Field | Default | Values | Meaning |\n|---|---|---|---|\n");
    for field in section.fields {
        let restart = if field.needs_restart { " ↻" } else { "" };
        let name = field.name;
        let (default, values) = (default(field), values(&field.kind));
        let about = field.about.replace('|', "\\|");
        let _ = writeln!(page, "| `{name}`{restart} | {default} | {values} | {about} |");
    }
}

fn default(field: &Field) -> String {
    match (&field.kind, field.default) {
        (Kind::Section(_), _) => String::new(),
        (_, "") => "required".to_owned(),
        (_, default) => format!("`{default}`"),
    }
}

/// The type of a field, in a few words.
fn values(kind: &Kind) -> String {
    match kind {
        Kind::Scalar(one) => scalar(one),
        Kind::List(many) => format!("list: {}", scalar(many)),
        Kind::ScalarOrList(one_or_many) => format!("one or a list: {}", scalar(one_or_many)),
        Kind::ListOr(many_or, word) => format!("list: {}; or `{word}`", scalar(many_or)),
        Kind::Section(_) => "fields".to_owned(),
        Kind::Sections(_) => "list of fields".to_owned(),
        Kind::Map(names, inner) => format!("{} → {}", scalar(names), values(inner)),
    }
}

fn scalar(scalar: &Scalar) -> String {
    match scalar {
        Scalar::Text => "text".to_owned(),
        Scalar::Format(form) => {
            format!("{}, such as `{}`", form.name, form.example.trim_matches('"'))
        }
        Scalar::Duration { min } if min.is_zero() => "duration".to_owned(),
        Scalar::Duration { min } => format!("duration of at least {min:?}"),
        Scalar::Bytes { min, max } => format!("bytes, {min} to {max}"),
        Scalar::Count { min, max: u64::MAX } => format!("number of at least {min}"),
        Scalar::Count { min, max } => format!("number from {min} to {max}"),
        Scalar::Bool => "`true` or `false`".to_owned(),
        Scalar::Keyword { words } => {
            one_of(&words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>())
        }
        Scalar::Path { what } => (*what).to_owned(),
        Scalar::Address => "`HOST:PORT`, `unix:PATH` or `off`".to_owned(),
    }
}
