//! Links of the documents that lead nowhere: to a file that is not there, or to a heading that has
//! another name.

use super::source::{File, Tree};
use super::{Finding, Rule};

pub(super) const RULE: Rule = Rule { name: "links", find };

fn find(tree: &Tree) -> Vec<Finding> {
    let documents = tree.files.iter().filter(|file| is_document(&file.path));
    documents.flat_map(|document| stale(tree, document)).collect()
}

fn is_document(path: &str) -> bool {
    path.ends_with(".md")
}

fn stale(tree: &Tree, document: &File) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (line, target) in links(&document.text) {
        if let Some(why) = leads_nowhere(tree, document, &target) {
            findings.push(Finding::new(&document.path, line, format!("link to {target}: {why}")));
        }
    }
    findings
}

fn leads_nowhere(tree: &Tree, document: &File, target: &str) -> Option<&'static str> {
    if target.contains("://") || target.starts_with("mailto:") {
        return None;
    }
    let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
    let path =
        if path.is_empty() { Some(document.path.clone()) } else { resolve(&document.path, path) };
    let Some(path) = path.filter(|path| exists(tree, path)) else {
        return Some("there is no such file");
    };
    if anchor.is_empty() || !is_document(&path) {
        return None;
    }
    let file = tree.files.iter().find(|file| file.path == path)?;
    let known = anchors(&file.text).iter().any(|known| known == anchor);
    (!known).then_some("there is no such heading")
}

fn exists(tree: &Tree, path: &str) -> bool {
    let folder = format!("{path}/");
    path.is_empty() || tree.names.iter().any(|name| name == path || name.starts_with(&folder))
}

/// `target` as seen from the file `from`; nothing if it leaves the repository.
fn resolve(from: &str, target: &str) -> Option<String> {
    let mut parts: Vec<&str> =
        if target.starts_with('/') { vec![] } else { from.split('/').collect() };
    parts.pop();
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            _ => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

/// The lines that are not inside a fenced block, with their numbers.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut fenced = false;
    text.lines().enumerate().filter_map(move |(at, line)| {
        let fence = line.trim_start().starts_with("```") || line.trim_start().starts_with("~~~");
        fenced ^= fence;
        (!fenced && !fence).then_some((at + 1, line))
    })
}

/// Every target of `[…](target)`, `[…]: target`, `href="target"` and `src="target"`.
fn links(text: &str) -> Vec<(usize, String)> {
    let mut links = Vec::new();
    for (number, line) in prose(text) {
        let line = without_code(line);
        for (opening, closing) in [("](", ')'), ("href=\"", '"'), ("src=\"", '"')] {
            for (at, _) in line.match_indices(opening) {
                let target =
                    line.get(at + opening.len()..).and_then(|rest| rest.split(closing).next());
                links.extend(target.and_then(first_word).map(|target| (number, target)));
            }
        }
        if let Some((_, target)) = line.split_once("]: ").filter(|_| line.starts_with('[')) {
            links.extend(first_word(target).map(|target| (number, target)));
        }
    }
    links
}

/// A target without its title and angle brackets.
fn first_word(target: &str) -> Option<String> {
    let word = target.split_whitespace().next()?;
    Some(word.trim_matches(['<', '>']).to_owned())
}

fn without_code(line: &str) -> String {
    line.split('`').step_by(2).collect()
}

/// The names that a document's headings can be linked by, as GitHub makes them, and those it gives
/// by hand.
fn anchors(text: &str) -> Vec<String> {
    let mut anchors: Vec<String> = Vec::new();
    for (_, line) in prose(text) {
        let title = line.trim_start_matches('#');
        if title.starts_with(' ') && title.len() < line.len() {
            let anchor = anchor(title.trim());
            let repeated = anchors.iter().filter(|known| **known == anchor).count();
            let numbered = (repeated > 0).then(|| format!("{anchor}-{repeated}"));
            anchors.push(anchor);
            anchors.extend(numbered);
        }
        for attribute in ["id=\"", "name=\""] {
            let given = line.split(attribute).skip(1).filter_map(|rest| rest.split('"').next());
            anchors.extend(given.map(String::from));
        }
    }
    anchors
}

fn anchor(title: &str) -> String {
    let mut text = title.to_lowercase();
    // Of a link in a heading only the text counts.
    while let Some((before, rest)) = text.split_once("](") {
        let after = rest.split_once(')').map_or("", |(_, after)| after);
        text = format!("{before}{after}");
    }
    text.chars()
        .filter(|letter| letter.is_alphanumeric() || matches!(letter, ' ' | '-' | '_'))
        .map(|letter| if letter == ' ' { '-' } else { letter })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, found: usize) {
        let other = "# What, exactly?\n## `a_b` – c\n## Twice\n## Twice\n<a id=\"given\"></a>\n```\n# code\n```\n";
        let tree = Tree::of(&[("docs/a.md", text), ("docs/other.md", other), ("src/lib.rs", "")]);
        let findings = find(&tree);
        assert_eq!(findings.len(), found, "{text}: {findings:?}");
    }

    #[test]
    fn stale_files_are_found() {
        check("[x](other.md) [y](../src/lib.rs) [z](/src) [w](./other.md \"title\")", 0);
        check("[x](https://example.com/a) <mailto:a@example.com> [m](mailto:a@example.com)", 0);
        check("[x](gone.md) and [y](../../outside.md)", 2);
        check("[x]: gone.md\n<img src=\"gone.png\">", 2);
        check("`[x](gone.md)`\n```\n[x](gone.md)\n```\n", 0);
    }

    #[test]
    fn stale_anchors_are_found() {
        check("[x](other.md#what-exactly) [y](other.md#a_b--c) [z](other.md#given)", 0);
        check("[x](other.md#twice) [y](other.md#twice-1)", 0);
        check("[x](other.md#twice-2) [y](other.md#code)", 2);
        check("# Here\n[x](#here) [y](#there)", 1);
    }
}
