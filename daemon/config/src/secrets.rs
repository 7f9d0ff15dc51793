//! Secrets in a file, which reports must mask.

use std::ops::Range;

use super::schema::{Kind, ROOT, Scalar, Section};
use tollgate_document::{Body, Node, Origin};

/// The ranges of a text that are secret: the values of secret fields, and everything that looks
/// like a secret, in case the text could not be parsed.
pub(super) fn find(text: &str, tree: Option<&Node>) -> Vec<Range<usize>> {
    let mut secrets = Vec::new();
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        secrets.extend(in_line(line).map(|x| start + x.start..start + x.end));
        start += line.len();
    }
    if let Some(tree) = tree {
        of_section(tree, &ROOT, &mut secrets);
    }
    secrets
}

/// The password of a URL, and the text after `token:`.
fn in_line(line: &str) -> impl Iterator<Item = Range<usize>> {
    let url = line.find("://").and_then(|scheme| {
        let login = scheme + "://".len();
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

fn of_section(node: &Node, section: &Section, secrets: &mut Vec<Range<usize>>) {
    for field in section.fields {
        let Some(value) = node.get(field.name) else { continue };
        match (&field.kind, &value.body) {
            (Kind::Scalar(scalar), _)
                if field.is_secret && !matches!(scalar, Scalar::Path { .. }) =>
            {
                if let Origin::File(span) = &value.origin {
                    secrets.push(span.bytes.clone());
                }
            }
            (Kind::Section(inner), _) => of_section(value, inner, secrets),
            (Kind::Sections(inner), Body::List(all)) => {
                for node in all {
                    match &node.body {
                        Body::Fields(_) => of_section(node, inner, secrets),
                        _ => misplaced(node, inner, secrets),
                    }
                }
            }
            (Kind::Sections(inner), _) => misplaced(value, inner, secrets),
            _ => {}
        }
    }
}

/// A value in place of a section with a secret field may be the secret.
fn misplaced(node: &Node, section: &Section, secrets: &mut Vec<Range<usize>>) {
    if section.fields.iter().any(|field| field.is_secret)
        && let Origin::File(span) = &node.origin
    {
        secrets.push(span.bytes.clone());
    }
}
