//! The table as a page to read.

use std::fmt::Write as _;

use super::schema::{self, Field, Kind, Scalar, Section, one_of};

const BEFORE: &str = "\
<!-- Written from the table of fields by a test of tollgate-server, which says how to renew it. -->
# Configuration

`tollgate serve --config tollgate.yaml` reads a YAML file. Over it lies the environment, over that lie the flags. What nobody says has
the default that stands here; `null` is the same as not said. A field that there is not is an error, with its line and the name that
comes nearest.

```sh
tollgate config check tollgate.yaml    # all mistakes, with their lines; exits with 2 if there are any
tollgate config print --origins        # what the daemon would run with, and where each value comes from
tollgate config schema                 # JSON Schema, for editors
```

**Environment.** `TOLLGATE_`, then the field in capitals with `__` for each dot: `store.url` is `TOLLGATE_STORE__URL`. Lists of single
values are separated by commas: `TOLLGATE_HEADERS=draft11,legacy-delta`. `tokens`, `policies` and `rules` are said in the file only. A
variable with `__` that names no field is an error; one without is left to others, such as the `TOLLGATE_PORT` that Kubernetes sets.

**Paths** in the file are relative to the file's directory, those of the environment and of flags to the working directory.

**Secrets** have a field ending in `_file`, which names the file that holds them; it is read again when it changes.

**Values.** A duration is a number and a unit (`15ms`, `5s`, `1min`, `24h`); bytes may have `KiB` or `MiB`; a limit is written as
everywhere (`10/s burst 20`). What needs a restart is marked ↻: a reload that would change it is refused.
";

/// The reference of the configuration, in Markdown.
#[must_use]
pub fn config_reference() -> String {
    let mut page = BEFORE.to_owned();
    page.push_str("\n## Top level\n");
    table(&mut page, &schema::ROOT);
    sections(&mut page, &schema::ROOT, "");
    page
}

/// The names of all fields. `*` stands for any name, and `[]` for a place in a list.
#[must_use]
pub fn config_fields() -> Vec<String> {
    schema::all()
}

/// Each section that a section has, with a table of its own.
fn sections(page: &mut String, section: &Section, prefix: &str) {
    for field in section.fields {
        let (inner, path) = match &field.kind {
            Kind::Section(section) => (section, format!("{prefix}{}", field.name)),
            Kind::Sections(sections) => (sections, format!("{prefix}{}[]", field.name)),
            Kind::Named(_, Kind::Section(section)) => {
                (section, format!("{prefix}{}.NAME", field.name))
            }
            _ => continue,
        };
        // Writing into a text does not fail.
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

/// What a field may hold, in a few words.
fn values(kind: &Kind) -> String {
    match kind {
        Kind::One(one) => scalar(one),
        Kind::Many(many) => format!("list: {}", scalar(many)),
        Kind::OneOrMany(one_or_many) => format!("one or a list: {}", scalar(one_or_many)),
        Kind::ManyOr(many_or, word) => format!("list: {}; or `{word}`", scalar(many_or)),
        Kind::Section(_) => "fields".to_owned(),
        Kind::Sections(_) => "list of fields".to_owned(),
        Kind::Named(names, inner) => format!("{} → {}", scalar(names), values(inner)),
    }
}

fn scalar(scalar: &Scalar) -> String {
    match scalar {
        Scalar::Text => "text".to_owned(),
        Scalar::Form(form) => {
            format!("{}, such as `{}`", form.name, form.example.trim_matches('"'))
        }
        Scalar::Duration { least } if least.is_zero() => "duration".to_owned(),
        Scalar::Duration { least } => format!("duration of at least {least:?}"),
        Scalar::Bytes { least, most } => format!("bytes, {least} to {most}"),
        Scalar::Count { least, most: u64::MAX } => format!("number of at least {least}"),
        Scalar::Count { least, most } => format!("number from {least} to {most}"),
        Scalar::Truth => "`true` or `false`".to_owned(),
        Scalar::Word { words, .. } => {
            let words: Vec<_> = words.iter().map(|word| format!("`{word}`")).collect();
            one_of(&words.iter().map(String::as_str).collect::<Vec<_>>())
        }
        Scalar::Path { what } => (*what).to_owned(),
        Scalar::Address => "`HOST:PORT`, `unix:PATH` or `off`".to_owned(),
    }
}
