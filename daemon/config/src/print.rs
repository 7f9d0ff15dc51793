//! Prints the complete configuration as YAML.

use tollgate::masked_url;
use tollgate_document::Origin;

use super::address::Address;
use super::schema::{Field, Kind, ROOT, Section, Value};
use super::tree::{Content, Entry};

/// The replacement of a secret.
const MASK: &str = "\"***\"";

pub(super) fn yaml(tree: &Entry, file: Option<&str>, origins: bool) -> String {
    let mut printer = Printer { text: String::new(), file, origins };
    printer.section(Some(tree), &ROOT, 0, true);
    printer.text
}

struct Printer<'a> {
    text: String,
    file: Option<&'a str>,
    origins: bool,
}

impl Printer<'_> {
    /// Prints the fields of a section: all of them, or only those that are present. A rule has
    /// either `checks` or the fields of a single check, and must not be printed with both.
    fn section(
        &mut self,
        entry: Option<&Entry>,
        section: &'static Section,
        depth: usize,
        is_complete: bool,
    ) {
        for field in section.fields {
            let entry = entry.and_then(|entry| entry.get(field.name));
            if entry.is_some() || is_complete && field.required.is_none() {
                self.field(field.name, entry, field, &field.kind, depth, is_complete);
            }
        }
    }

    fn field(
        &mut self,
        name: &str,
        entry: Option<&Entry>,
        field: &Field,
        kind: &'static Kind,
        depth: usize,
        is_complete: bool,
    ) {
        self.indent(depth);
        self.text.push_str(&quoted(name));
        self.text.push(':');
        match (kind, entry.map(|entry| &entry.content)) {
            (Kind::Section(section), _) => {
                self.text.push('\n');
                self.section(entry, section, depth + 1, is_complete);
            }
            (Kind::Sections(section), Some(Content::List(all))) if !all.is_empty() => {
                self.text.push('\n');
                for entry in all {
                    self.indent(depth + 1);
                    self.text.push_str("-\n");
                    self.section(Some(entry), section, depth + 2, false);
                }
            }
            (Kind::Map(_, inner), Some(Content::Fields(all))) if !all.is_empty() => {
                self.text.push('\n');
                for (name, entry) in all {
                    self.field(&name.text, Some(entry), field, inner, depth + 1, is_complete);
                }
            }
            (_, None) => self.line(field.default, None),
            (_, Some(Content::Scalar(..))) if field.is_secret => self.line(MASK, entry),
            (_, Some(Content::Scalar(text, value))) => self.line(&scalar(text, value), entry),
            (_, Some(Content::List(all))) => {
                let texts = all.iter().filter_map(|entry| match &entry.content {
                    Content::Scalar(text, value) => Some(scalar(text, value)),
                    _ => None,
                });
                let list = format!("[{}]", texts.collect::<Vec<_>>().join(", "));
                self.line(&list, entry);
            }
            // An empty mapping; a valid tree has no other case.
            (_, Some(_)) => self.line("{}", entry),
        }
    }

    fn indent(&mut self, depth: usize) {
        self.text.push_str(&"  ".repeat(depth));
    }

    /// Prints a value and its origin to the end of the line.
    fn line(&mut self, text: &str, entry: Option<&Entry>) {
        self.text.push(' ');
        self.text.push_str(text);
        if let Some(entry) = entry.filter(|_| self.origins) {
            self.text.push_str("  # ");
            self.text.push_str(&self.origin(&entry.origin));
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
}

/// A scalar in YAML.
fn scalar(text: &str, value: &Value) -> String {
    match value {
        Value::Path(path) => quoted(&path.display().to_string()),
        Value::Address(address @ Address::Unix(_)) => quoted(&address.to_string()),
        Value::Number(_) | Value::Bool(_) | Value::Keyword(_) | Value::Duration(_) => {
            text.to_owned()
        }
        Value::Address(Address::Tcp(_)) if is_plain_address(text) => text.to_owned(),
        Value::Url(url) => quoted(&masked_url(url)),
        _ => quoted(text),
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
