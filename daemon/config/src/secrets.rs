//! Secrets in a file, which reports must mask.

use std::ops::Range;

use tollgate_document::Origin;

use super::schema::{Kind, ROOT, Section};
use super::tree::{Content, Entry};

/// The ranges of a text that are secret: the values of secret fields, and everything that looks
/// like a secret, in case the text could not be parsed.
pub(super) fn find(text: &str, tree: Option<&Entry>) -> Vec<Range<usize>> {
    let mut secrets = Vec::new();
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        secrets.extend(in_line(line).map(|x| start + x.start..start + x.end));
        start += line.len();
    }
    if let Some(tree) = tree {
        in_section(tree, &ROOT, &mut secrets);
    }
    secrets
}

/// The password of a URL, and the text after `token:`.
fn in_line(line: &str) -> impl Iterator<Item = Range<usize>> {
    // The scheme of an invalid URL may be followed by a single slash.
    let url = line.find(":/").and_then(|scheme| {
        let slashes = line.get(scheme + 1..)?;
        let login = line.len() - slashes.trim_start_matches('/').len();
        let end = line.rfind('@').filter(|end| *end > login)?;
        let from = line.get(login..end)?.find(':').map_or(login, |line| login + line + 1);
        Some(from..end)
    });
    let token = ["token:", "token\":", "token':"].iter().find_map(|x| {
        let at = line.find(x)? + x.len();
        let value = line.get(at..)?;
        let end = value.find([',', '}']).unwrap_or(value.trim_end().len());
        Some(at + (value.len() - value.trim_start().len()).min(end)..at + end)
    });
    url.into_iter().chain(token)
}

fn in_section(entry: &Entry, section: &Section, secrets: &mut Vec<Range<usize>>) {
    for field in section.fields {
        let Some(value) = entry.get(field.name) else { continue };
        match (&field.kind, &value.content) {
            (Kind::Scalar(_), _) if field.is_secret => add(value, secrets),
            (Kind::Section(inner), _) => in_section(value, inner, secrets),
            (Kind::Sections(inner), Content::List(all)) => {
                for one in all {
                    match &one.content {
                        Content::Fields(_) => in_section(one, inner, secrets),
                        _ => misplaced(one, inner, secrets),
                    }
                }
            }
            (Kind::Sections(inner), _) => misplaced(value, inner, secrets),
            _ => {}
        }
    }
}

/// A value in place of a section with a secret field may be the secret.
fn misplaced(entry: &Entry, section: &Section, secrets: &mut Vec<Range<usize>>) {
    if section.fields.iter().any(|field| field.is_secret) {
        add(entry, secrets);
    }
}

fn add(entry: &Entry, secrets: &mut Vec<Range<usize>>) {
    if let Origin::File(span) = &entry.origin {
        secrets.push(span.bytes.clone());
    }
}
