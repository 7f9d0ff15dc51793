//! Prints the complete configuration as YAML.

use std::path::Path;

use tollgate::masked_url;

use super::address::Address;
use super::fields::resolve;
use super::schema::{Field, Kind, ROOT, Scalar, Section, Value};
use tollgate_document::{Body, Node, Origin};

/// The replacement of a secret.
const MASK: &str = "\"***\"";

pub(super) fn yaml(tree: &Node, file: Option<&str>, directory: &Path, origins: bool) -> String {
    let mut printer = Printer { text: String::new(), file, directory, origins };
    printer.section(Some(tree), &ROOT, 0, true);
    printer.text
}

struct Printer<'a> {
    text: String,
    file: Option<&'a str>,
    directory: &'a Path,
    origins: bool,
}

impl Printer<'_> {
    /// Prints the fields of a section: all of them, or only those that are present. A rule has
    /// either `checks` or the fields of a single check, and must not be printed with both.
    fn section(
        &mut self,
        node: Option<&Node>,
        section: &'static Section,
        depth: usize,
        is_complete: bool,
    ) {
        for field in section.fields {
            let value = node.and_then(|node| node.get(field.name));
            let value = value.filter(|x| !matches!(x.body, Body::Nothing));
            if value.is_some() || is_complete && field.required.is_none() {
                self.field(field.name, value, field, &field.kind, depth, is_complete);
            }
        }
    }

    fn field(
        &mut self,
        name: &str,
        value: Option<&Node>,
        field: &Field,
        kind: &'static Kind,
        depth: usize,
        is_complete: bool,
    ) {
        self.indent(depth);
        self.text.push_str(&quoted(name));
        self.text.push(':');
        match (kind, value.map(|x| (&x.body, x))) {
            (Kind::Section(section), _) => {
                self.text.push('\n');
                self.section(value, section, depth + 1, is_complete);
            }
            (Kind::Sections(section), Some((Body::List(all), _))) if !all.is_empty() => {
                self.text.push('\n');
                for node in all {
                    self.indent(depth + 1);
                    self.text.push_str("-\n");
                    self.section(Some(node), section, depth + 2, false);
                }
            }
            (Kind::Map(_, inner), Some((Body::Fields(all), _))) if !all.is_empty() => {
                self.text.push('\n');
                for (name, node) in all {
                    self.field(&name.text, Some(node), field, inner, depth + 1, is_complete);
                }
            }
            (_, None) => self.line(field.default, None),
            (Kind::Scalar(_), Some(_)) if field.is_secret => self.line(MASK, value),
            (Kind::Scalar(scalar) | Kind::ScalarOrList(scalar), Some((Body::Text(text), node))) => {
                let text = self.value(text, scalar, &node.origin);
                self.line(&text, value);
            }
            (Kind::ListOr(_, word), Some((Body::Text(_), _))) => self.line(word, value),
            (
                Kind::List(scalar) | Kind::ScalarOrList(scalar) | Kind::ListOr(scalar, _),
                Some((Body::List(all), _)),
            ) => {
                let texts = all.iter().filter_map(|x| match &x.body {
                    Body::Text(text) => Some(self.value(text, scalar, &x.origin)),
                    _ => None,
                });
                let list = format!("[{}]", texts.collect::<Vec<_>>().join(", "));
                self.line(&list, value);
            }
            // An empty list or mapping; a valid tree has no other case.
            (Kind::Sections(_), Some(_)) => self.line("[]", value),
            (_, Some(_)) => self.line("{}", value),
        }
    }

    fn indent(&mut self, depth: usize) {
        self.text.push_str(&"  ".repeat(depth));
    }

    /// Prints a value and its origin to the end of the line.
    fn line(&mut self, text: &str, node: Option<&Node>) {
        self.text.push(' ');
        self.text.push_str(text);
        if let Some(node) = node.filter(|_| self.origins) {
            self.text.push_str("  # ");
            self.text.push_str(&self.origin(&node.origin));
        }
        self.text.push('\n');
    }

    fn origin(&self, origin: &Origin) -> String {
        match origin {
            Origin::Default => "default".to_owned(),
            Origin::Sample => "sample".to_owned(),
            Origin::Variable(name) => name.as_ref().to_owned(),
            Origin::Flag(name) => (*name).to_owned(),
            Origin::File(span) => match self.file {
                Some(file) => format!("{}:{}", file.escape_default(), span.line),
                None => format!("line {}", span.line),
            },
        }
    }

    fn value(&self, text: &str, scalar: &Scalar, origin: &Origin) -> String {
        let Ok(value) = scalar.read(text) else { return quoted(text) };
        match resolve(value, origin, self.directory) {
            Value::Path(path) => quoted(&path.display().to_string()),
            Value::Address(Address::Unix(path)) => quoted(&format!("unix:{}", path.display())),
            Value::Number(_) | Value::Bool(_) | Value::Keyword(_) | Value::Duration(_) => {
                text.to_owned()
            }
            Value::Address(Address::Tcp(_)) if is_plain_address(text) => text.to_owned(),
            _ if scalar.hides() => quoted(&masked_url(text)),
            _ => quoted(text),
        }
    }
}

/// Whether an address needs no quotes in YAML.
fn is_plain_address(text: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b':');
    text.bytes().next().is_some_and(|byte| byte.is_ascii_alphanumeric()) && text.bytes().all(inner)
}

/// A text in YAML: plain if it is certain to be parsed as the same text, otherwise quoted.
fn quoted(text: &str) -> String {
    let is_plain =
        |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b'/');
    let begins = text.bytes().next().is_some_and(|byte| byte.is_ascii_alphabetic());
    let reserved = ["null", "true", "false", "yes", "no", "on", "off", "y", "n"];
    let is_word = reserved.iter().any(|reserved| reserved.eq_ignore_ascii_case(text));
    if begins && !is_word && text.bytes().all(is_plain) {
        return text.to_owned();
    }
    // A JSON string is a YAML string, except that YAML does not allow non-printable characters.
    let mut written = String::new();
    for character in serde_json::Value::from(text).to_string().chars() {
        if character.is_control() || character == '\u{feff}' {
            written.push_str(&format!("\\u{:04x}", u32::from(character)));
        } else {
            written.push(character);
        }
    }
    written
}
